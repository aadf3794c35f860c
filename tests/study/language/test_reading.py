"""Topics, facts and particles: on the shipped prompts, and on questions the rules were not written from."""

import csv
from pathlib import Path

import pytest

from study.content import load, shipped
from study.language.ledger import index
from study.language.question import recognise
from study.language.reading import read
from study.records import Case, Fact, Persona, Slot

CONTENT = load(shipped("cases.json"), shipped("prompts.json"))
LEDGERS = {name: index(case, CONTENT.slots) for name, case in CONTENT.cases.items()}
GOLDEN = Path(__file__).parents[2] / "golden" / "language"

# Floors, a little below what was measured; the README beside the sets tells how each was used.
FLOORS = {
    ("held_out_questions", "dev"): (84, 84, 82, 84),
    ("held_out_questions", "test"): (81, 81, 78, 81),
    ("second_questions", "second"): (89, 89, 83, 88),
    ("third_questions", "third"): (44, 44, 43, 43),
}


def rows(name, split):
    with open(GOLDEN / f"{name}.tsv", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["split"] == split]


def facts_told(case, text):
    return {f.fact_id for f in read(text, LEDGERS[case]).facts}


@pytest.mark.parametrize(("name", "split"), FLOORS)
def test_held_out_questions_are_read_as_well_as_measured(name, split):
    form = subtype = facts = particle = 0
    for row in rows(name, split):
        reading = read(row["text"], LEDGERS[row["case"]])
        form += reading.question.form == row["form"]
        subtype += (reading.question.subtype or "") == row["subtype"]
        wanted = set(filter(None, row["facts"].split(",")))
        facts += bool(wanted) and wanted <= {f.fact_id for f in reading.facts}
        particle += reading.particle == row["particle"]
    measured = (form, subtype, facts, particle)
    assert all(got >= floor for got, floor in zip(measured, FLOORS[name, split], strict=True)), measured


def test_every_shipped_prompt_has_its_form_and_subtype():
    wrong = [
        p.prompt_id
        for p in CONTENT.prompts
        if recognise(p.text).form != p.form
        or p.negation and recognise(p.text).subtype != p.negation.subtype
    ]
    assert [] == wrong


def test_every_shipped_prompt_has_its_particle():
    wrong = [
        p.prompt_id for p in CONTENT.prompts if read(p.text, LEDGERS[p.case_id]).particle != p.expected_particle
    ]
    assert [] == wrong


def test_every_shipped_prompt_finds_its_facts():
    wrong = [
        p.prompt_id for p in CONTENT.prompts if not set(p.expected_facts) <= facts_told(p.case_id, p.text)
    ]
    assert [] == wrong


def test_no_shipped_prompt_draws_out_what_was_not_asked():
    over = [
        p.prompt_id
        for p in CONTENT.prompts
        if p.expected_facts and facts_told(p.case_id, p.text) - {*p.expected_facts, *p.optional_facts}
    ]
    assert [] == over


@pytest.mark.parametrize(("case", "text", "particle"), [
    ("HEM", "김철수 님 맞으세요?", "아니요"),
    ("HEM", "생년월일이 1965년 3월 12일 맞으세요?", "아니요"),
    ("HEM", "하루에 두 갑 피우시나요?", "아니요"),
    ("FIP", "왼쪽 옆구리가 아프신가요?", "아니요"),
    ("CCO", "혹시 혼자 사세요?", "네"),
    ("CCO", "가족분들과 함께 사시나요?", "아니요"),
    ("CCO", "담배 끊으셨어요?", "네"),
    ("HEM", "담배 끊으셨어요?", "아니요"),
])  # fmt: skip
def test_another_value_than_the_ledgers_is_denied(case, text, particle):
    assert particle == read(text, LEDGERS[case]).particle


@pytest.mark.parametrize(("case", "text", "particle"), [
    ("HEM", "체중은 그대로세요?", "아니요"),
    ("CCO", "체중은 그대로세요?", "네"),
    ("HEM", "소변 줄기는 괜찮으세요?", "네"),
    ("CCO", "잠은 잘 주무세요?", "아니요"),
    ("HEM", "요즘 기운이 없으세요?", "네"),
    ("FIP", "산전 검사에서 이상은 없었나요?", "네"),
])  # fmt: skip
def test_asking_for_the_well_side_turns_the_particle(case, text, particle):
    assert particle == read(text, LEDGERS[case]).particle


@pytest.mark.parametrize(("text", "particle"), [
    ("어지러우세요?", "아니요"), ("어지럽지는 않으세요?", "네"), ("변비는 없으세요?", "네"),
])  # fmt: skip
def test_a_symptom_that_no_fact_names_is_denied(text, particle):
    reading = read(text, LEDGERS["HEM"])
    assert ((), True, particle) == (reading.facts, reading.denies, reading.particle)


def test_what_no_fact_speaks_of_is_not_known():
    reading = read("키가 어떻게 되세요?", LEDGERS["HEM"])
    assert ((), None, "none") == (reading.facts, reading.proposition, reading.particle)


def test_a_relative_of_whom_no_fact_speaks_is_not_known():
    assert read("아버님은 건강하신가요?", LEDGERS["CCO"]).facts == ()


@pytest.mark.parametrize(("text", "particle"), [
    ("정리하면, 석 달째 마른기침을 하시고 식은땀은 없으신 거군요. 맞나요?", "네"),
    ("정리하면, 석 달째 마른기침을 하시고 식은땀도 나신다는 거죠?", "아니요"),
    ("그러니까 기침이 낮에 더 심하시다는 거죠?", "아니요"),
])  # fmt: skip
def test_a_summary_is_confirmed_only_if_every_clause_is_right(text, particle):
    reading = read(text, LEDGERS["CCO"])
    assert ("confirm", particle) == (reading.purpose, reading.particle)


@pytest.mark.parametrize(("text", "purpose", "reaction"), [
    ("몇 가지 여쭤봐도 될까요?", "social", None),
    ("감사합니다. 수고하셨습니다.", "social", None),
    ("술을 줄이시는 게 좋겠습니다. 하실 수 있겠어요?", "reaction", "advice"),
    ("입원하셔야 할 것 같습니다. 괜찮으시겠어요?", "reaction", "consent"),
    ("설명드린 것 중에 이해가 안 되는 부분은 없으세요?", "reaction", "understanding"),
    ("방광내시경이 필요해요. 걱정되는 점 있으세요?", "reaction", "worry"),
    ("약을 드시면 열이 떨어지나요?", "fact", None),
])  # fmt: skip
def test_a_plan_asks_for_a_reaction_and_a_question_for_a_fact(text, purpose, reaction):
    reading = read(text, LEDGERS["HEM"])
    assert (purpose, reaction) == (reading.purpose, reading.reaction)


def own_case(*facts):
    persona = Persona("역할", "배경", "상태", "병력", "말투", "제약")
    return Case("OWN", "귀가 울려요", "이명", persona, tuple(facts))


def test_a_slot_of_the_studys_own_is_found_by_its_expressions():
    fact = Fact("OWN-F01", "hpc_associated", "symptom", "present", "고음의 이명", "삐 소리가 나요.", "", ("삐",),
                ("pitch",), "pos")
    slots = {"pitch": Slot("pitch", "hpc_character", "unknown", ("삐 ?소리", "높은 소리"))}
    reading = read("혹시 높은 소리가 들리세요?", index(own_case(fact), slots))
    assert (("pitch",), (fact,), "네") == (reading.topics, reading.facts, reading.particle)


def test_a_case_without_facts_can_be_asked():
    reading = read("열은 없으세요?", index(own_case(), CONTENT.slots))
    assert ((), "네") == (reading.facts, reading.particle)
