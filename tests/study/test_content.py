"""The shipped content keeps its own rules, and a wrong file is refused with its place."""

import json
import re
from collections import Counter

import pytest

from study import content
from study.errors import StudyError
from study.records import FORMS

CASES, PROMPTS, CHECKLISTS = (content.shipped(f"{n}.json") for n in ("cases", "prompts", "checklists"))
SHIPPED = content.load(CASES, PROMPTS, CHECKLISTS)
FACTS = {f.fact_id: f for c in SHIPPED.cases.values() for f in c.facts}
# Words of the clinician's register that no patient says (coding manual, section 3).
JARGON = (
    "혈뇨",
    "빈뇨",
    "배뇨통",
    "객혈",
    "천명",
    "호흡곤란",
    "야간뇨",
    "신우신염",
    "방광암 의심",
    "감별",
    "소견",
)


def test_seventy_prompts_fill_every_cell_of_category_by_form():
    cells = Counter((p.category, p.form) for p in SHIPPED.prompts)
    assert 70 == len(SHIPPED.prompts)
    assert {(c, f) for c in SHIPPED.categories for f in FORMS} == set(cells)
    assert {"affirmative": 30, "negative": 21, "open_ended": 19} == Counter(p.form for p in SHIPPED.prompts)


def test_core_text_of_every_persona_has_700_to_900_characters():
    for case in SHIPPED.cases.values():
        assert 700 <= len(case.persona.clinical_state) + len(case.persona.history) <= 900, case.case_id


def test_every_fact_stands_in_the_persona_and_in_its_own_answer():
    for case in SHIPPED.cases.values():
        text = "\n".join(case.persona.fields())
        for fact in case.facts:
            assert fact.evidence in text, fact.fact_id
            assert any(k in fact.answer for k in fact.keywords), fact.fact_id
            assert re.search(r"(요|죠)[.?!]$", fact.answer), fact.fact_id


def test_reference_answers_tell_every_expected_fact_in_the_patients_voice():
    for prompt in SHIPPED.prompts:
        for fact in prompt.expected_facts:
            assert any(k in prompt.reference_answer for k in FACTS[fact].keywords), prompt.prompt_id
        assert not [j for j in JARGON if j in prompt.reference_answer], prompt.prompt_id
        for sentence in re.split(r"(?<=[.?!])\s+", prompt.reference_answer):
            assert sentence == "네." or re.search(r"(요|죠)[.?!]$", sentence), prompt.prompt_id


def test_reference_answers_start_with_the_particle_of_truth_based_agreement():
    for prompt in SHIPPED.prompts:
        if prompt.expected_particle != "none":
            assert re.match(rf"{prompt.expected_particle}[,.]", prompt.reference_answer), prompt.prompt_id
        if prompt.negation:
            agrees = prompt.negation.proposition_true or prompt.negation.subtype.startswith("outer")
            assert ("네" if agrees else "아니요") == prompt.expected_particle, prompt.prompt_id


def test_only_negative_prompts_carry_a_negation_and_each_has_three_contrasts():
    for prompt in SHIPPED.prompts:
        assert (prompt.form == "negative") == (prompt.negation is not None), prompt.prompt_id
        if prompt.negation:
            assert "particle_mismatch" == prompt.negation.contrast_answers[0][0], prompt.prompt_id
            assert 3 == len({label for label, _ in prompt.negation.contrast_answers}), prompt.prompt_id


def test_checklists_cover_the_three_cases_and_name_known_slots_and_facts():
    assert {"HEM": 22, "FIP": 23, "CCO": 24} == {c: len(k.items) for c, k in SHIPPED.checklists.items()}
    for checklist in SHIPPED.checklists.values():
        for item in checklist.items:
            assert set(item.slots) <= set(SHIPPED.slots), item.item_id
            assert set(item.facts) <= set(FACTS), item.item_id


def test_the_knowledge_base_has_80_symptoms_of_three_diagnoses():
    symptoms = json.loads(content.shipped("symptoms.json").read_text("utf-8"))["symptoms"]
    diagnoses = [d for s in symptoms for d in s["diagnoses"]]
    assert (80, 240) == (len(symptoms), len(diagnoses))
    assert 240 == len({d["profile_id"] for d in diagnoses})
    for symptom in symptoms:
        assert 3 == len({d["icd10"] for d in symptom["diagnoses"]}), symptom["id"]
        findings = Counter(f["ko"] for d in symptom["diagnoses"] for f in d["findings"])
        assert 1 == max(findings.values()), symptom["id"]


def edited(tmp_path, source, edit):
    data = json.loads(source.read_text("utf-8"))
    edit(data)
    path = tmp_path / source.name
    path.write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    return path


def test_a_prompt_without_a_case_is_named(tmp_path):
    prompts = edited(tmp_path, PROMPTS, lambda d: d["prompts"][4].update(case_id="XYZ"))
    with pytest.raises(StudyError, match=r"HEM-Q05 belongs to case XYZ, which is not there; the cases are HEM"):
        content.load(CASES, prompts)


def test_all_problems_of_a_file_come_at_once(tmp_path):
    def edit(data):
        data["prompts"][0]["expected_fact_ids"] = ["HEM-F99"]
        data["prompts"][1]["category"] = "gossip"
        data["prompts"][2]["prompt_id"] = "HEM-Q01"

    with pytest.raises(StudyError) as error:
        content.load(CASES, edited(tmp_path, PROMPTS, edit))
    assert 3 == len(str(error.value).splitlines())


def test_a_missing_key_and_a_wrong_form_are_named_with_their_place(tmp_path):
    def edit(data):
        del data["prompts"][3]["text_ko"]
        data["prompts"][5]["form"] = "polite"

    with pytest.raises(StudyError, match=r"prompts\[3\]\.text_ko: is missing\n.*prompts\[5\]\.form: 'polite'"):
        content.load(CASES, edited(tmp_path, PROMPTS, edit))


def test_broken_json_names_its_line(tmp_path):
    (tmp_path / "cases.json").write_text('{"cases": [\n{]}', "utf-8")
    with pytest.raises(StudyError, match=r"cases\.json:2: is not JSON"):
        content.load(tmp_path / "cases.json", PROMPTS)


def test_an_absent_or_binary_file_is_one_sentence(tmp_path):
    with pytest.raises(StudyError, match="no such file"):
        content.load(tmp_path / "none.json", PROMPTS)
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(StudyError, match="not a UTF-8 text file"):
        content.load(tmp_path / "picture.json", PROMPTS)
