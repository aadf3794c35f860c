"""Two speakers take turns, and the encounter ends by rule."""

import doctest
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation import conclusion, leaks, price, retrieval, vignette
from generation.client import body
from generation.doctor import RuleDoctor
from generation.encounter import Appointment, meet
from generation.model_player import ModelPlayer
from generation.players import player
from generation.prompt import system_prompt
from generation.reply import Usage
from generation.settings import model_settings
from generation.sources.speaker import Answer
from generation.vignette import of_case
from study.content import load, shipped
from study.errors import StudyError
from study.records import Turn, Vignette

CASE = Vignette(
    "7",
    "A 34-year-old woman has had double vision for a month. Rest makes it better. She smokes ten cigarettes a day."
    " An uncle had myasthenia gravis. She takes no medicines.",
    "Myasthenia gravis",
    extra={"chief_complaint": "double vision"},
)
OTHERS = ("Asthma", "Gout", CASE.diagnosis)


class Scripted:
    """Says what it was given, in order; an Answer as it is."""

    def __init__(self, *words):
        self.words, self.seen = list(words), []

    def say(self, turns):
        self.seen.append(turns)
        found = self.words.pop(0)
        return found if isinstance(found, Answer) else Answer("ok", found)


def met(doctor, patient, rounds=3, case=CASE, told=""):
    return meet(Scripted(*doctor), Scripted(*patient), Appointment(case, "d", "p"), rounds=rounds, told=told)


def played(doctor, rounds=8, case=CASE):
    who = player("doctor", doctor, diagnoses=OTHERS)
    patient = player("patient", "embedded")
    at = Appointment(case, who.name, patient.name)
    told = who.brief(case, rounds)
    return meet(who.meets(at, rounds), patient.meets(at, rounds), at, rounds=rounds, told=told)


def test_the_patient_opens_and_a_round_is_both():
    found = met(["How long?", "Diagnosis: Gout"], ["My toe hurts.", "Two days."])
    assert [(1, "patient"), (1, "doctor"), (2, "patient"), (2, "doctor")] == [
        (t.round, t.speaker) for t in found.turns
    ]
    assert ("concluded", "Gout", "7/1/d") == (found.status, found.diagnosis, found.encounter_id)


def test_nobody_speaks_after_the_conclusion():
    doctor, patient = Scripted("Diagnosis: Gout", "no"), Scripted("My toe hurts.", "no")
    meet(doctor, patient, Appointment(CASE, "d", "p"), rounds=5)
    assert (["no"], ["no"]) == (doctor.words, patient.words)


@pytest.mark.parametrize("rounds", [1, 2, 8])
def test_a_diagnosis_in_the_last_round_is_one(rounds):
    found = met(["Go on."] * (rounds - 1) + ["Diagnosis: Gout"], ["Hm."] * rounds, rounds)
    assert ("concluded", rounds) == (found.status, found.rounds)


@pytest.mark.parametrize("rounds", [1, 2, 8])
def test_without_one_the_rounds_end_it(rounds):
    found = met(["Go on."] * rounds, ["Hm."] * rounds, rounds)
    assert ("max_rounds", None, 2 * rounds) == (found.status, found.diagnosis, len(found.turns))


@pytest.mark.parametrize("status", ["empty", "refused", "filtered"])
@pytest.mark.parametrize("who", ["doctor", "patient"])
def test_who_has_no_words_fails_and_no_text_is_invented(who, status):
    silent = Answer(status, detail="nothing came")
    found = met([silent], ["Hm."]) if who == "doctor" else met([], [silent])
    assert (f"{who}_failed", f"{who}, round 1: nothing came") == (found.status, found.detail)
    assert (who == "doctor") == len(found.turns)


def test_the_way_there_is_nobodys_fault():
    assert "infra_error" == met([Answer("failed", detail="HTTP 503")], ["Hm."]).status
    assert "not_run" == met([Answer("failed", detail="budget", asked=False)], ["Hm."]).status


def test_what_the_two_took_is_counted_apart_and_unknown_is_not_nothing():
    asked = {"attempts": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": 0.5, "model": "m"}
    doctor = [Answer("ok", "Go on.", about=asked), Answer("ok", "Diagnosis: Gout", about=asked)]
    found = met(doctor, ["Hm.", "Hm."])
    assert (2, 200, 20, 1.0, None) == (
        found.doctor.calls, found.doctor.prompt_tokens, found.doctor.completion_tokens, found.doctor.cost,
        found.doctor.cached_tokens,
    )  # fmt: skip
    assert (0, 0.0, 1.0) == (found.patient.calls, found.patient.cost, found.cost)
    unpriced = met([Answer("ok", "Diagnosis: Gout", about=asked | {"cost": None})], ["Hm."])
    assert unpriced.cost is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Diagnosis: Gout", "Gout"),
        ("Thank you.\n\n**Final Diagnosis:** Gout.", "Gout"),
        ("DIAGNOSIS READY: Gout", "Gout"),
        ("감사합니다.\n진단: 통풍", "통풍"),
        ("최종 진단명: 통풍", "통풍"),
        ("Diagnosis: could it be gout?", None),
        ("Diagnosis: pending", None),
        ("Diagnosis: not yet determined", None),
        ("진단: 아직 모르겠습니다", None),
        ("Diagnosis: Nontuberculous mycobacteriosis", "Nontuberculous mycobacteriosis"),
        ("Diagnosis: Narcolepsy", "Narcolepsy"),
        ("Diagnosis: Gout. Considered: Gout 80; Sepsis 5", "Gout"),
        ("Differential diagnosis: gout, sepsis", None),
        ("**Diagnosis**: *Gout*", "Gout"),
        ("Diagnosis:", None),
        ("What was the diagnosis: gout or not?", None),
        ("Has the diagnosis been explained to you?", None),
    ],
)
def test_only_a_line_of_its_own_concludes(text, expected):
    found = conclusion.read(text)
    assert expected == (found.diagnosis if found else None)


def test_what_was_weighed_is_read_from_a_line_of_its_own_or_the_same():
    for mark in ("\n", ". "):
        found = conclusion.read(f"Diagnosis: Gout{mark}Considered: Gout 80; Sepsis 5")
        assert (("Gout", 80.0), ("Sepsis", 5.0)) == found.candidates


WORDS = st.sampled_from(
    ["Go on.", "Diagnosis: Gout", Answer("empty"), Answer("failed"), Answer("failed", asked=False)]
)


@given(st.lists(WORDS, min_size=8, max_size=8), st.lists(WORDS, min_size=8, max_size=8), st.integers(1, 8))
def test_however_it_goes_the_record_is_whole(doctor, patient, rounds):
    found = met(doctor, patient, rounds)
    assert [("patient", "doctor")[i % 2] for i in range(len(found.turns))] == [t.speaker for t in found.turns]
    assert [i // 2 + 1 for i in range(len(found.turns))] == [t.round for t in found.turns]
    assert len(found.turns) <= 2 * rounds
    assert (found.status == "concluded") == (found.diagnosis is not None)
    assert (found.status == "max_rounds") == (len(found.turns) == 2 * rounds and found.diagnosis is None)
    assert all(conclusion.concluded(found.turns[:i]) is None for i in range(len(found.turns)))
    assert (found.detail is None) == (found.status == "concluded")


def test_a_patient_cannot_conclude():
    assert conclusion.concluded([Turn(1, "patient", "Diagnosis: Gout")]) is None


def test_weights_off_the_scale_are_left_out():
    found = conclusion.read("Diagnosis: Gout\nConsidered: Gout (80%); Sepsis 140; Pseudogout")
    assert (("Gout", 80.0),) == found.candidates


def test_a_patient_who_names_the_diagnosis_is_flagged():
    found = met(["Go on.", "Diagnosis: Gout"], ["They say it is MYASTHENIA  gravis.", "Hm."])
    assert ("patient_named_diagnosis",) == found.flags == found.turns[0].flags


def test_a_patient_who_repeats_the_doctors_word_gives_nothing_away():
    found = met(["Could it be myasthenia gravis?", "Diagnosis: Gout"], ["Hm.", "Myasthenia gravis? I don't know."])
    assert () == found.flags


@pytest.mark.parametrize(
    "text",
    ["Doctor: How are you?", "As your doctor, I'd say rest.", "I will prescribe a tablet.", "Diagnosis: Gout",
     "의사: 어디가 아프세요?", "약을 처방해 드리겠습니다."],
)  # fmt: skip
def test_a_patient_who_speaks_as_the_doctor_is_flagged(text):
    assert ("patient_as_doctor",) == met(["Diagnosis: Gout"], [text]).flags


@pytest.mark.parametrize("text", ["My doctor says rest.", "I have seen a doctor.", "의사 선생님이 쉬라고 했어요."])
def test_a_patient_may_speak_of_doctors(text):
    assert () == met(["Diagnosis: Gout"], [text]).flags


def test_a_doctor_who_was_told_the_answer_is_flagged():
    assert ("doctor_told_diagnosis",) == met(["Go on."], ["Hm."], 1, told="It is myasthenia gravis.").flags


@pytest.mark.parametrize(
    ("text", "diagnosis", "expected"),
    [
        ("I have MS.", "Multiple sclerosis (MS)", True),
        ("symptoms", "Multiple sclerosis (MS)", False),
        ("Ms. Kim sent me, to be sure all is fine.", "Multiple sclerosis (MS)", False),
        ("They said ALL.", "Acute lymphoblastic leukaemia (ALL)", True),
        ("All of me hurts.", "Acute lymphoblastic leukaemia (ALL)", False),
        ("i have gout", "GOUT (ARTHRITIS URICA)", True),
        ("방광암은 아무도 없어요.", "방광암", True),
        ("I had asthma as a child.", "Asthma, unspecified (J45)", True),
        ("Nothing of that", "", False),
    ],
)
def test_a_diagnosis_is_known_by_its_names(text, diagnosis, expected):
    assert expected == leaks.names(text, diagnosis)


def test_the_oracle_knows_and_the_mute_never_concludes():
    oracle, mute = played("oracle"), played("mute")
    assert (CASE.diagnosis, ("doctor_told_diagnosis",)) == (oracle.diagnosis, oracle.flags)
    assert ("max_rounds", None, ()) == (mute.status, mute.diagnosis, mute.flags)


def test_a_doctor_may_speak_as_one():
    noted = {"attempts": 1, "flags": "truncated,register,role_drift"}
    doctor, patient = Answer("ok", "처방해 드릴게요.", about=noted), Answer("ok", "네.", about=noted)
    found = met([doctor], [patient], 1)
    assert [("truncated", "register", "role_drift"), ("truncated",)] == [t.flags for t in found.turns]


SETTINGS = model_settings(
    {"model": "m", "base_url": "http://127.0.0.1:9/v1", "max_tokens": 40,
     "price": {"input": 3, "cached_input": 1, "output": 11, "as_of": "2026-11-01"}}, "test",
)  # fmt: skip


def test_a_model_plays_the_persona_of_a_studys_case():
    content = load(shipped("cases.json"), shipped("prompts.json"))
    case = of_case(content.cases["HEM"])
    told = ModelPlayer("p", "patient", SETTINGS).brief(case, 8)
    assert told == system_prompt(content.cases["HEM"].persona, "ko")


def test_a_model_doctor_is_told_nothing_of_the_case():
    doctor = ModelPlayer("d", "doctor", SETTINGS)
    assert doctor.brief(CASE, 8) == doctor.brief(replace(CASE, case_id="9", text="other", diagnosis="Gout"), 8)
    assert CASE.text in ModelPlayer("p", "patient", SETTINGS).brief(CASE, 8)


@given(st.text(max_size=300), st.integers(0, 40), st.integers(0, 100))
def test_no_call_costs_more_than_its_bound(text, completion, cached):
    """A tokenizer makes at most a token of each byte, and a template a few of each message."""
    sent = body(SETTINGS, [{"role": "system", "content": text}, {"role": "user", "content": text}])
    prompt = 2 * len(text.encode()) + 2 * 8
    paid = price.cost(Usage(prompt, min(cached, prompt), completion), SETTINGS.price)
    assert paid <= price.bound(SETTINGS, sent)


def test_what_has_no_price_or_limit_has_no_bound():
    assert price.bound(SETTINGS.model_copy(update={"price": None}), {}) is None
    assert price.bound(SETTINGS.model_copy(update={"max_tokens": None}), {}) is None


def test_the_cases_of_a_benchmark_are_read_as_they_were_written(tmp_path):
    content = load(shipped("cases.json"), shipped("prompts.json"))
    told = (CASE, of_case(content.cases["HEM"]))
    vignette.write(told, tmp_path / "cases.json")
    assert told == vignette.read(tmp_path / "cases.json")
    (tmp_path / "cases.json").write_text("[]")
    with pytest.raises(StudyError, match="no file of a benchmark's cases"):
        vignette.read(tmp_path / "cases.json")


def test_the_embedded_patient_answers_from_the_case_and_keeps_the_diagnosis_to_itself():
    found = played("embedded")
    said = " ".join(t.text for t in found.turns if t.speaker == "patient")
    assert "double vision." == found.turns[0].text
    assert "ten cigarettes" in said and "Rest makes it better" in said and "takes no medicines" in said
    assert "uncle" not in said
    assert () == found.flags


def test_the_embedded_patient_says_each_sentence_once():
    said = [t.text for t in played("embedded", 13).turns if t.speaker == "patient"]
    known = [t for t in said if "not sure" not in t]
    assert len(known) == len(set(known)) > 3


def test_the_embedded_pair_speaks_korean_from_a_studys_case():
    content = load(shipped("cases.json"), shipped("prompts.json"))
    case = of_case(content.cases["HEM"])
    found = played("embedded", case=case)
    said = " ".join(t.text for t in found.turns if t.speaker == "patient")
    assert "하루 한 갑씩 40년째 피우고 있어요." in said and "방광암" not in said
    assert "언제부터" in found.turns[1].text


def test_an_embedded_encounter_is_the_same_each_time():
    assert played("embedded") == played("embedded")


def test_the_embedded_doctor_takes_nothing_from_the_case():
    """Two cases with one text and different answers end alike."""
    other = Vignette(CASE.case_id, CASE.text, "Gout", extra=CASE.extra)
    first, second = played("embedded"), played("embedded", case=other)
    assert first.diagnosis == second.diagnosis


def test_a_list_of_one_diagnosis_would_give_it_away():
    with pytest.raises(StudyError, match="there is only one"):
        player("doctor", "embedded", diagnoses=["Gout", "Gout"])


def test_nobody_plays_an_unknown_role():
    with pytest.raises(StudyError, match="no embedded patient; there are embedded, local"):
        player("patient", "oracle")


@pytest.mark.parametrize("module", [conclusion, leaks, retrieval])
def test_examples(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_a_diagnosis_that_is_written_in_two_ways_is_one_choice():
    names = ["Hair tourniquet syndrome", "Hair Tourniquet Syndrome", "Migraine"]
    assert RuleDoctor(names).identity == RuleDoctor(names[1:]).identity
