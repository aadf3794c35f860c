"""The shipped answers and their contrasts: right, wrong particle, wrong fact, bare particle."""

import pytest

from study.content import load, shipped
from study.language.answer import answered, mentions, register
from study.language.check import check
from study.language.clauses import clauses
from study.language.ledger import index
from study.language.reading import read

CONTENT = load(shipped("cases.json"), shipped("prompts.json"))
LEDGERS = {name: index(case, CONTENT.slots) for name, case in CONTENT.cases.items()}
FACTS = {f.fact_id: f for case in CONTENT.cases.values() for f in case.facts}


def checked(prompt, answer):
    facts = [FACTS[name] for name in prompt.expected_facts]
    return check(prompt.text, read(prompt.text, LEDGERS[prompt.case_id]), answer, facts)


def contrasts(label):
    return [
        (p, answer) for p in CONTENT.prompts if p.negation for name, answer in p.negation.contrast_answers
        if name == label
    ]  # fmt: skip


def test_no_reference_answer_is_faulted():
    assert [] == [p.prompt_id for p in CONTENT.prompts if checked(p, p.reference_answer).faults]


def test_every_reference_answer_tells_its_facts_in_a_patients_words():
    told = [checked(p, p.reference_answer) for p in CONTENT.prompts]
    assert all(c.missing == () and c.register.patient for c in told)


@pytest.mark.parametrize(("label", "n"), [
    ("particle_mismatch", 21), ("fact_contradiction", 20), ("bare_particle", 21),
])  # fmt: skip
def test_contrast_answers_are_told_apart(label, n):
    found = [checked(p, answer).faults for p, answer in contrasts(label)]
    assert [(label,)] * n == found


def test_a_clinicians_answer_is_known_by_its_terms():
    [(prompt, answer)] = contrasts("register_inversion")
    assert not checked(prompt, answer).register.patient


def test_either_particle_goes_with_an_ambiguous_question():
    question = "숨이 차지 않으세요?"
    reading = read(question, LEDGERS["HEM"])
    assert reading.question.ambiguous
    assert {()} == {check(question, reading, f"{p}, 숨은 안 차요.").faults for p in ("네", "아니요")}


def test_an_answer_without_particle_is_held_by_its_clause():
    question = "가슴 통증은 없으세요?"
    reading = read(question, LEDGERS["CCO"])
    assert () == check(question, reading, "가슴은 안 아파요.").faults
    assert ("fact_contradiction",) == check(question, reading, "가슴이 아파요.").faults
    assert ("fact_contradiction", "particle_mismatch") == check(question, reading, "네, 가슴이 아파요.").faults


@pytest.mark.parametrize(("text", "particle"), [
    ("네, 없어요.", "네"), ("예, 그래요.", "네"), ("음, 아니요. 없어요.", "아니요"), ("아뇨, 있어요.", "아니요"),
    ("네 살이에요.", "none"), ("예전에는 그랬어요.", "none"), ("안 아파요.", "none"),
    ("아니에요, 안 아파요.", "아니요"),
])  # fmt: skip
def test_a_particle_is_read_and_a_number_is_not(text, particle):
    assert particle == answered(text)


def test_clauses_deny_each_for_itself():
    assert [True, False, True] == [c.denies for c in clauses("열은 없고, 기침은 나지만 가래는 안 나와요.")]
    assert [True, False] == [c.denies for c in clauses("통증 없이 소변만 붉어요.")]


def test_a_keyword_of_one_letter_is_a_word_of_its_own():
    assert mentions("열이 나요.", ("열",))
    assert not mentions("열심히 일해요.", ("열",))
    assert not mentions("담배를 피우고 있어요.", ("피",))
    assert mentions("다리로 뻗쳐요.", ("뻗",))


@pytest.mark.parametrize(("text", "levels", "terms"), [
    ("네, 안 아파요.", ("haeyo",), ()),
    ("가슴 통증 소견은 없습니다.", ("hasipsio",), ("소견",)),
    ("배뇨통 없음.", ("nominal",), ("배뇨통",)),
])  # fmt: skip
def test_register_is_terms_and_speech_level(text, levels, terms):
    assert (levels, terms) == (register(text).levels, register(text).terms)
