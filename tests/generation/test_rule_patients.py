"""The rule patient answers well, and each of its kin has its one fault where it was planted and nowhere else."""

from pathlib import Path

import pytest

from generation.sources.kinds import KINDS, open_source
from generation.sources.speaker import Request
from generation.sources.wording import told, turned
from study.content import load, shipped
from study.errors import StudyError
from study.language.answer import answered, mentions, register, without_particle
from study.language.check import check
from study.language.ledger import index
from study.language.morphology import sentences
from study.language.question import recognise
from study.language.reading import read
from study.records import Content, Source

CONTENT = load(shipped("cases.json"), shipped("prompts.json"))
FACTS = {f.fact_id: f for case in CONTENT.cases.values() for f in case.facts}
LEDGERS = {name: index(case, CONTENT.slots) for name, case in CONTENT.cases.items()}
RULE_PATIENTS = ("ledger", "ledger_polarity", "ledger_clinician", "ledger_stiff")
PROMPTS = {p.prompt_id: p for p in CONTENT.prompts}


def speaker(kind, content=CONTENT, **settings):
    return open_source(Source(kind, kind, kind, settings), content, Path())


def answer(kind, prompt):
    return speaker(kind).answer(Request(CONTENT.cases[prompt.case_id], prompt.text, prompt)).text


@pytest.fixture(scope="module")
def answers():
    """Every embedded source's answer to every shipped prompt."""
    speakers = {kind: speaker(kind) for kind in (*RULE_PATIENTS, "draft_reference")}
    return {
        kind: {p.prompt_id: s.answer(Request(CONTENT.cases[p.case_id], p.text, p)) for p in CONTENT.prompts}
        for kind, s in speakers.items()
    }


@pytest.fixture(scope="module")
def texts(answers):
    return {kind: {name: a.text for name, a in given.items()} for kind, given in answers.items()}


def differing(texts, kind):
    return {name for name, text in texts[kind].items() if text != texts["ledger"][name]}


def test_every_embedded_source_answers_every_prompt(answers):
    assert {"ok"} == {a.status for given in answers.values() for a in given.values()}


def test_answers_are_the_same_on_every_run(texts):
    assert texts["ledger"] == {name: answer("ledger", p) for name, p in PROMPTS.items()}


def test_the_rule_patient_starts_with_the_right_particle(texts):
    wrong = [n for n, p in PROMPTS.items() if answered(texts["ledger"][n]) != p.expected_particle
             and not (p.expected_particle == "none" and answered(texts["ledger"][n]) == "none")]  # fmt: skip
    assert [] == wrong


def test_the_rule_patient_tells_what_is_asked(texts):
    missing = [
        n for n, p in PROMPTS.items()
        if not all(mentions(texts["ledger"][n], FACTS[f].keywords) for f in p.expected_facts)
    ]  # fmt: skip
    assert [] == missing


def test_the_rule_patient_has_no_fault_that_the_checks_know(texts):
    faults = {
        n: found.faults for n, p in PROMPTS.items()
        if (found := check(p.text, read(p.text, LEDGERS[p.case_id]), texts["ledger"][n])).faults
    }  # fmt: skip
    assert {} == faults


def test_the_rule_patient_speaks_as_a_patient(texts):
    assert all(register(text).patient for text in texts["ledger"].values())


def test_english_polarity_differs_on_inner_negation_only(texts):
    inner = {n for n, p in PROMPTS.items() if p.negation and p.negation.subtype.startswith("inner")}
    assert inner == differing(texts, "ledger_polarity")
    assert len(inner) == 19


def test_english_polarity_changes_the_particle_and_nothing_else(texts):
    same = {n: (without_particle(texts["ledger"][n]), without_particle(t))
            for n, t in texts["ledger_polarity"].items()}  # fmt: skip
    assert all(one == other for one, other in same.values())


def test_the_clinicians_register_slips_in_reasoning_and_education_only(texts):
    turns = {n for n, p in PROMPTS.items() if p.category in ("clinical_reasoning", "patient_education")}
    assert turns == differing(texts, "ledger_clinician")
    assert not any(register(texts["ledger_clinician"][n]).patient for n in turns)


def test_the_clinicians_register_keeps_particle_and_facts(texts):
    for name, text in texts["ledger_clinician"].items():
        assert answered(text) == answered(texts["ledger"][name])
        prompt = PROMPTS[name]
        assert all(mentions(text, FACTS[f].keywords) for f in prompt.expected_facts), name


def test_the_stiff_patient_reads_out_the_ledger_everywhere(texts):
    assert set(PROMPTS) == differing(texts, "ledger_stiff")
    for name, prompt in PROMPTS.items():
        assert all(FACTS[f].statement in texts["ledger_stiff"][name] for f in prompt.expected_facts), name


def test_the_stiff_patient_keeps_the_right_particle(texts):
    assert all(answered(t) == answered(texts["ledger"][n]) for n, t in texts["ledger_stiff"].items())


@pytest.mark.parametrize("kind", RULE_PATIENTS)
@pytest.mark.parametrize("case", CONTENT.cases)
@pytest.mark.parametrize("text", [
    "어지럽지는 않으세요?", "입맛은 괜찮으세요?", "키가 어떻게 되세요?", "안녕하세요.", "감사합니다.",
    "커피는 드세요?", "통증은 계속 있나요, 아니면 왔다 갔다 하나요?", "숨을 크게 쉬어 보세요.",
    "?", "ㅎㅎ", "hello", "정리하면 괜찮으신 거죠?",
    "담배를 끊으시는 게 좋겠어요. 하실 수 있겠어요?", "다음 주에 뵐게요. 궁금한 점 있으세요?",
])  # fmt: skip
def test_every_rule_patient_answers_what_no_study_foresaw(kind, case, text):
    given = speaker(kind).answer(Request(CONTENT.cases[case], text))
    assert given.status == "ok"
    assert given.text.strip() == given.text != ""


@pytest.mark.parametrize(("case", "text", "said"), [
    ("HEM", "어지럽지는 않으세요?", "네, 그렇지는 않아요."),
    ("HEM", "어지러우세요?", "아니요, 그렇지는 않아요."),
    ("HEM", "쓰러지신 적은 없으세요?", "네, 그런 적은 없어요."),
    ("HEM", "입맛은 괜찮으세요?", "네, 괜찮아요."),
    ("HEM", "키가 어떻게 되세요?", "글쎄요, 잘 모르겠어요."),
    ("HEM", "김철수 님 아니세요?", "아니요, 정대식이에요."),
    ("FIP", "배가 뭉치지는 않으세요?", "네, 배가 뭉치지는 않아요."),
    ("FIP", "오늘 왜 오셨어요?", "열이 나고 몸이 떨려서 왔어요."),
    ("CCO", "지금은 담배 안 피우시죠?", "네, 20대 때 하루 반 갑씩 5년 피우다가 10년 전에 끊었어요."),
    ("CCO", "감사합니다.", "네, 감사합니다."),
])  # fmt: skip
def test_the_rule_patient_says(case, text, said):
    assert said == speaker("ledger").answer(Request(CONTENT.cases[case], text)).text


def test_facts_are_joined_as_a_patient_joins_them():
    assert told([FACTS["CCO-F30"], FACTS["CCO-F31"]]) == "결핵을 앓은 적은 없고, 폐렴을 앓은 적도 없어요."
    assert told([FACTS["HEM-F25"], FACTS["HEM-F26"]]) == "아침마다 혈압약을 먹고, 아스피린도 매일 한 알씩 먹어요."
    assert told([FACTS["CCO-F38"], FACTS["CCO-F39"]]).startswith("어머니가 천식이라 흡입기를 쓰시고")


@pytest.mark.parametrize(("sentence", "how", "turned_to"), [
    ("소변이 빨갛게 나와요.", "so", "소변이 빨갛게 나와서"),
    ("하루 한 갑씩 40년째 피우고 있어요.", "while", "하루 한 갑씩 40년째 피우고 있는데"),
    ("밤이랑 새벽에 심해요.", "of", "밤이랑 새벽에 심한"),
    ("사흘 전부터 다시 빨개졌어요.", "of", "사흘 전부터 다시 빨개진"),
    ("혹시 암일까 봐 걱정돼요.", "of", "혹시 암일까 봐 걱정되는"),
    ("어린이집 교사예요.", "and", "어린이집 교사고"),
])  # fmt: skip
def test_a_sentence_takes_another_ending(sentence, how, turned_to):
    assert turned_to == turned(sentence, how)


@pytest.mark.parametrize("how", ["and", "so", "while", "of"])
@pytest.mark.parametrize("fact", [f for f in FACTS.values() if f.answer.endswith("요.")], ids=lambda f: f.fact_id)
def test_every_fact_can_be_turned_and_keeps_its_words(fact, how):
    first = sentences(fact.answer)[-1]
    turned_to = turned(first, how)
    assert turned_to
    assert first.split()[:-2] == turned_to.split()[: len(first.split()) - 2]


def test_a_setting_that_the_kind_does_not_have_is_refused():
    with pytest.raises(StudyError, match="ledger has no setting temperature; it has none"):
        speaker("ledger", temperature=0.7)


def test_an_unknown_kind_is_refused_with_the_kinds_there_are():
    with pytest.raises(StudyError, match="has kind oracle; the kinds are draft_reference, ledger"):
        speaker("oracle")


@pytest.mark.parametrize("kind", RULE_PATIENTS)
def test_the_rule_patient_refuses_other_languages(kind):
    with pytest.raises(StudyError, match="speaks Korean"):
        speaker(kind, Content("en", CONTENT.cases, CONTENT.prompts, CONTENT.slots, CONTENT.categories))


def test_drafts_answer_the_studys_prompts_and_no_other_question():
    case = CONTENT.cases["HEM"]
    assert "missing" == speaker("draft_reference").answer(Request(case, "열은 없으세요?")).status


def test_every_kind_has_its_words():
    assert all(KINDS.values())


def test_negative_prompts_are_the_ones_read_as_negative():
    assert {n for n, p in PROMPTS.items() if p.negation} == {
        n for n, p in PROMPTS.items() if recognise(p.text).form == "negative"
    }
