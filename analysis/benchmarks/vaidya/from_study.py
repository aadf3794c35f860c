"""A study's own cases as a case file: its diagnoses for DiagBench, its students' questions for MedConvBench."""

import json
from collections.abc import Mapping
from pathlib import Path

from generation.vignette import of_case
from study import tables
from study.errors import StudyError
from study.records import Case, Content, Prompt

_CORE, _MINOR = 2, 1  # what a question counts that asks for a core fact of its case, or for none


def entries(content: Content) -> list[dict[str, object]]:
    """The cases in their order, numbered from 0; `case_id` keeps the study's own name.

    Raises
    ------
    StudyError : if a case has no diagnosis
    """
    nameless = [name for name, case in content.cases.items() if not case.diagnosis]
    if nameless:
        raise StudyError(f"cases: {', '.join(nameless)} has no target diagnosis; a benchmark needs one")
    return [_entry(number, case, content) for number, case in enumerate(content.cases.values())]


def write(content: Content, path: Path) -> int:
    """Write the case file, whole or not at all; returns how many cases it has.

    Raises
    ------
    StudyError : if the file is there already, or is no .json file
    """
    if path.suffix.lower() != ".json":
        raise StudyError(f"{path}: name a file that ends in .json")
    if path.exists():
        raise StudyError(f"{path}: is there already; name another file")
    found = entries(content)
    text = json.dumps(found, ensure_ascii=False, indent=2) + "\n"
    tables.replaced(path, lambda half: half.write_text(text, encoding="utf-8"))
    return len(found)


def _entry(number: int, case: Case, content: Content) -> dict[str, object]:
    told = of_case(case, content.language)
    asked = [p for p in content.prompts_of(case.case_id) if p.answer_type == "fact" and p.expected_facts]
    core = {f.fact_id for f in case.facts if f.priority == "core"}
    return {
        "patient_id": number,
        "case_id": case.case_id,
        "age": _age(case.patient),
        "chief_complaint": case.chief_complaint,
        "case_study": told.text,
        "expected_diagnosis": case.diagnosis,
        "expected_questions": [{"question": p.text, "score": _score(p, core)} for p in asked],
    }


def _score(prompt: Prompt, core: set[str]) -> int:
    return _CORE if core & set(prompt.expected_facts) else _MINOR


def _age(patient: Mapping[str, object]) -> int | None:
    age = patient.get("age")
    return age if isinstance(age, int) else None
