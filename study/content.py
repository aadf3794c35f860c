"""Cases, prompts and checklists from their files (grammar: data/README.md)."""

import json
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from study.errors import StudyError, joined
from study.records import (
    Case,
    Checklist,
    ChecklistItem,
    Content,
    Fact,
    Negation,
    Persona,
    Prompt,
    Slot,
)

Texts = dict[str, str]
Schema = TypeVar("Schema", bound=BaseModel)


def load(cases: Path, prompts: Path, checklists: Path | None = None) -> Content:
    """Content of a study, checked: every prompt has its case, every fact it names is in that case's ledger.

    Raises
    ------
    StudyError : with all problems found, one a line, each naming the file and the entry
    """
    case_file = _parsed(cases, _CaseFile)
    prompt_file = _parsed(prompts, _PromptFile)
    language = prompt_file.language
    content = Content(
        language=language,
        cases={c.case_id: c.record(language) for c in case_file.cases},
        prompts=tuple(p.record(language) for p in prompt_file.prompts),
        slots={name: slot.record(name) for name, slot in case_file.slots.items()},
        categories=tuple(c.id for c in prompt_file.categories),
        checklists=_checklists(checklists, language) if checklists else {},
    )
    problems = _case_problems(case_file, cases) + _prompt_problems(content, prompts)
    problems += _checklist_problems(content, checklists)
    if problems:
        raise StudyError(joined(problems))
    return content


def shipped(name: str) -> Path:
    """Where a shipped content file lies: inside an installed package, or in data/ of a checkout."""
    here = Path(__file__).parent
    for folder in (here / "shipped", here.parent / "data"):
        if (folder / name).is_file():
            return folder / name
    raise StudyError(f"{name}: not shipped with this installation; give the study its own file")


class _Fact(BaseModel):
    fact_id: str
    category: str
    kind: str
    polarity: Literal["present", "absent", "unknown"]
    surface_polarity: Literal["pos", "neg", "any"] = "any"
    priority: Literal["core", "minor"] = "core"
    statement_ko: str
    answer_ko: str
    evidence_ko: str
    keywords_ko: list[str]
    slots: list[str] = []

    def record(self) -> Fact:
        return Fact(
            fact_id=self.fact_id,
            category=self.category,
            kind=self.kind,
            polarity=self.polarity,
            statement=self.statement_ko,
            answer=self.answer_ko,
            evidence=self.evidence_ko,
            keywords=tuple(self.keywords_ko),
            slots=tuple(self.slots),
            surface_polarity=self.surface_polarity,
            priority=self.priority,
        )


class _Persona(BaseModel):
    role_declaration: Texts
    demographic_context: Texts
    clinical_state: Texts
    history: Texts
    conversational_style: Texts
    behavioral_constraints: Texts

    def record(self, language: str) -> Persona:
        return Persona(**{name: getattr(self, name)[language] for name in type(self).model_fields})


class _Diagnosis(BaseModel):
    icd10: str
    en: str


class _Case(BaseModel):
    case_id: str
    title_ko: str
    chief_complaint_ko: str
    persona: _Persona
    facts: list[_Fact]
    target_diagnosis: _Diagnosis | None = None
    encounter: dict[str, object] = {}
    patient: dict[str, object] = {}

    def record(self, language: str) -> Case:
        return Case(
            case_id=self.case_id,
            title=self.title_ko,
            chief_complaint=self.chief_complaint_ko,
            persona=self.persona.record(language),
            facts=tuple(f.record() for f in self.facts),
            diagnosis=self.target_diagnosis.en if self.target_diagnosis else "",
            door_note=str(self.encounter.get("door_note_ko", "")),
            patient=self.patient,
        )


class _Slot(BaseModel):
    category: str
    default: Literal["deny", "unknown", "agree", "confirm", "worry"]
    ask_ko: list[str]

    def record(self, name: str) -> Slot:
        return Slot(name, self.category, self.default, tuple(self.ask_ko))


class _CaseFile(BaseModel):
    cases: list[_Case]
    slots: dict[str, _Slot] = {}


class _ContrastAnswer(BaseModel):
    label: str
    text_ko: str


class _Negation(BaseModel):
    subtype: str
    negated_proposition_true: bool
    contrast_answers: list[_ContrastAnswer] = []

    def record(self) -> Negation:
        contrasts = tuple((a.label, a.text_ko) for a in self.contrast_answers)
        return Negation(self.subtype, self.negated_proposition_true, contrasts)


class _Prompt(BaseModel):
    prompt_id: str
    case_id: str
    turn: int
    category: str
    form: Literal["affirmative", "negative", "open_ended"]
    text_ko: str
    answer_type: str = "fact"
    expected_fact_ids: list[str] = []
    optional_fact_ids: list[str] = []
    expected_particle: str = "none"
    negation: _Negation | None = None
    reference_answer: dict[str, str] | None = None

    def record(self, language: str) -> Prompt:
        return Prompt(
            prompt_id=self.prompt_id,
            case_id=self.case_id,
            turn=self.turn,
            category=self.category,
            form=self.form,
            text=self.text_ko,
            answer_type=self.answer_type,
            expected_facts=tuple(self.expected_fact_ids),
            optional_facts=tuple(self.optional_fact_ids),
            expected_particle=self.expected_particle,
            negation=self.negation.record() if self.negation else None,
            reference_answer=(self.reference_answer or {}).get(language),
        )


class _Category(BaseModel):
    id: str


class _PromptFile(BaseModel):
    language: str
    categories: list[_Category]
    prompts: list[_Prompt]


class _ChecklistItem(BaseModel):
    item_id: str
    section: str
    ko: str
    weight: float
    critical: bool
    evidence: dict[str, list[str]] = {}

    def record(self) -> ChecklistItem:
        slots = tuple(self.evidence.get("slots", []))
        facts = tuple(self.evidence.get("fact_ids", []))
        return ChecklistItem(self.item_id, self.section, self.ko, self.weight, self.critical, slots, facts)


class _CaseChecklist(BaseModel):
    case_id: str
    items: list[_ChecklistItem]


class _ChecklistFile(BaseModel):
    checklists: list[_CaseChecklist]


def _checklists(path: Path, language: str) -> dict[str, Checklist]:
    file = _parsed(path, _ChecklistFile)
    return {c.case_id: Checklist(c.case_id, tuple(i.record() for i in c.items)) for c in file.checklists}


def _parsed(path: Path, schema: type[Schema]) -> Schema:
    try:
        raw = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; name it in study.toml under [content]") from None
    except (UnicodeDecodeError, IsADirectoryError):
        raise StudyError(f"{path}: is not a UTF-8 text file; content files are JSON") from None
    try:
        return schema.model_validate(json.loads(raw))
    except json.JSONDecodeError as error:
        raise StudyError(f"{path}:{error.lineno}: is not JSON ({error.msg}); mend this line") from None
    except ValidationError as error:
        places = [f"{path}: {_place(e['loc'])}: {_reason(e)}" for e in error.errors()]
        raise StudyError(joined(places)) from None


def _place(location: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _reason(error: dict[str, object]) -> str:
    if error["type"] == "missing":
        return "is missing"
    return f"{error['input']!r}: {str(error['msg']).removeprefix('Input ')}"


def _case_problems(file: _CaseFile, path: Path) -> list[str]:
    ids = [f.fact_id for case in file.cases for f in case.facts]
    problems = [f"{path}: case {i} stands twice" for i in _repeated([c.case_id for c in file.cases])]
    problems += [f"{path}: fact {i} stands twice" for i in _repeated(ids)]
    for case in file.cases:
        for fact in case.facts:
            unknown = [s for s in fact.slots if s not in file.slots]
            problems += [f"{path}: {fact.fact_id}: slot {s} is not in the lexicon of slots" for s in unknown]
    return problems


def _prompt_problems(content: Content, path: Path) -> list[str]:
    problems = [f"{path}: prompt {i} stands twice" for i in _repeated([p.prompt_id for p in content.prompts])]
    known = ", ".join(content.cases)
    for prompt in content.prompts:
        case = content.cases.get(prompt.case_id)
        if case is None:
            problems.append(
                f"{path}: {prompt.prompt_id} belongs to case {prompt.case_id}, which is not there; "
                f"the cases are {known}"
            )
            continue
        ledger = {f.fact_id for f in case.facts}
        for fact in prompt.expected_facts + prompt.optional_facts:
            if fact not in ledger:
                problems.append(
                    f"{path}: {prompt.prompt_id} expects {fact}, which is not in the ledger of {case.case_id}"
                )
        if prompt.category not in content.categories:
            problems.append(
                f"{path}: {prompt.prompt_id} has category {prompt.category}; "
                f"the categories are {', '.join(content.categories)}"
            )
    if not content.prompts:
        problems.append(f"{path}: holds no prompt; a study needs at least one")
    return problems


def _checklist_problems(content: Content, path: Path | None) -> list[str]:
    return [
        f"{path}: a checklist for case {case}, which is not there; the cases are {', '.join(content.cases)}"
        for case in content.checklists
        if case not in content.cases
    ]


def _repeated(names: list[str]) -> list[str]:
    return sorted({n for n in names if names.count(n) > 1})
