import pytest

from generation.prompt import VARIANTS, system_prompt
from study.content import load, shipped
from study.errors import StudyError
from study.records import Persona

CASES = load(shipped("cases.json"), shipped("prompts.json")).cases


@pytest.mark.parametrize("case", CASES)
def test_the_baseline_is_the_six_fields_in_order_and_nothing_else(case):
    persona = CASES[case].persona
    assert "\n\n".join(persona.fields()) == system_prompt(persona)


@pytest.mark.parametrize("case", CASES)
def test_the_baseline_gives_no_hint_on_negative_questions(case):
    assert "부정문" not in system_prompt(CASES[case].persona)


@pytest.mark.parametrize("language", ["ko", "en"])
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v != "baseline"])
def test_a_variant_adds_its_sentence_at_the_end(variant, language):
    persona = Persona(*"abcdef")
    assert f"a\n\nb\n\nc\n\nd\n\ne\n\nf {VARIANTS[variant][language]}" == system_prompt(persona, language, variant)


def test_an_unknown_variant_is_refused_with_those_there_are():
    with pytest.raises(StudyError, match="there are baseline, negation_hint, role_lock"):
        system_prompt(CASES["HEM"].persona, variant="shouting")


def test_a_variant_in_another_language_is_refused_and_the_baseline_is_not():
    persona = Persona(*"abcdef")
    assert system_prompt(persona, "ja").endswith("f")
    with pytest.raises(StudyError, match="not written in ja"):
        system_prompt(persona, "ja", "role_lock")
