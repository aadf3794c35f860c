"""The things a study is made of, as frozen records. What each word means stands in the README's glossary."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["utterance", "encounter"]
RaterKind = Literal["human", "judge", "rule"]
Form = Literal["affirmative", "negative", "open_ended"]
Polarity = Literal["present", "absent", "unknown"]
Role = Literal["doctor", "patient"]
EncounterStatus = Literal[
    "concluded", "max_rounds", "doctor_failed", "patient_failed", "infra_error", "not_run"
]  # fmt: skip

FORMS: tuple[str, ...] = ("affirmative", "negative", "open_ended")


@dataclass(frozen=True)
class Persona:
    """The six fields that make a model play the patient, in the order in which they are read to it."""

    role_declaration: str
    demographic_context: str
    clinical_state: str
    history: str
    conversational_style: str
    behavioral_constraints: str

    def fields(self) -> tuple[str, ...]:
        return (
            self.role_declaration,
            self.demographic_context,
            self.clinical_state,
            self.history,
            self.conversational_style,
            self.behavioral_constraints,
        )


@dataclass(frozen=True)
class Fact:
    """One entry of a case's ledger: what is true of the patient, and how the patient would say it."""

    fact_id: str
    category: str
    kind: str
    polarity: Polarity
    statement: str
    answer: str
    evidence: str
    keywords: tuple[str, ...]
    slots: tuple[str, ...]
    surface_polarity: Literal["pos", "neg", "any"] = "any"
    priority: Literal["core", "minor"] = "core"


@dataclass(frozen=True)
class Slot:
    """A question topic: how it is asked for (regular expressions) and what to say when no fact answers it."""

    slot_id: str
    category: str
    default: Literal["deny", "unknown", "agree", "confirm", "worry"]
    asked: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A clinical vignette: persona, facts ledger and target diagnosis."""

    case_id: str
    title: str
    chief_complaint: str
    persona: Persona
    facts: tuple[Fact, ...]
    diagnosis: str = ""
    door_note: str = ""
    patient: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Negation:
    """How a negative question is negated, and whether what it negates is in truth absent."""

    subtype: str
    proposition_true: bool
    contrast_answers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Prompt:
    """One student question, with its category and form, and what a good answer must hold."""

    prompt_id: str
    case_id: str
    turn: int
    category: str
    form: Form
    text: str
    answer_type: str = "fact"
    expected_facts: tuple[str, ...] = ()
    optional_facts: tuple[str, ...] = ()
    expected_particle: str = "none"
    negation: Negation | None = None
    reference_answer: str | None = None


@dataclass(frozen=True)
class ChecklistItem:
    """One thing a student should ask, say or do in an encounter."""

    item_id: str
    section: str
    text: str
    weight: float
    critical: bool
    slots: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checklist:
    case_id: str
    items: tuple[ChecklistItem, ...]


@dataclass(frozen=True)
class Content:
    """Cases, prompts and checklists of a study, with the lexicon of question topics."""

    language: str
    cases: dict[str, Case]
    prompts: tuple[Prompt, ...]
    slots: dict[str, Slot]
    categories: tuple[str, ...]
    checklists: dict[str, Checklist] = field(default_factory=dict)

    def prompts_of(self, case_id: str) -> tuple[Prompt, ...]:
        """The prompts of one case in dialogue order."""
        return tuple(sorted((p for p in self.prompts if p.case_id == case_id), key=lambda p: p.turn))


@dataclass(frozen=True)
class Metric:
    """What is rated: its scale, the words on the scale's points, and the kind of item it is asked about."""

    metric_id: str
    item: Kind
    low: float
    high: float
    level: Literal["nominal", "ordinal", "interval", "ratio"] = "ordinal"
    question: str = ""
    anchors: tuple[str, ...] = ()
    step: float | None = 1.0


# What rules rate, each 1 (it keeps to the rule) or 0; people and judges are not asked these.
RULE_METRICS = tuple(
    Metric(name, "utterance", 0, 1, "nominal", question)
    for name, question in (
        ("rule_told", "Are the facts that the question asks for in the answer?"),
        ("rule_true", "Does no clause contradict the case?"),
        ("rule_reserved", "Is no other fact of the ledger in the answer?"),
        ("rule_particle", "Does the particle fit the question's form and the case?"),
        ("rule_clear", "Does anything follow the particle?"),
        ("rule_register", "Is it spoken in 해요체 without a clinician's terms?"),
        ("rule_short", "Is it at most 35 tokens long?"),
    )
)


@dataclass(frozen=True)
class Source:
    """Who answers: a kind that `generation` knows, with its settings."""

    source_id: str
    kind: str
    title: str
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Judge:
    """A model as a rater: its rubric, the metrics it rates (all of them if none is named), and its settings."""

    judge_id: str
    rubric: str
    metrics: tuple[str, ...]
    repeats: int
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """What one source answered to one prompt; a failure keeps its row and has no text."""

    prompt_id: str
    case_id: str
    source_id: str
    status: str
    text: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Vignette:
    """A case told as running text, as benchmarks have it: the patient plays it, the doctor never sees it.

    `extra` keeps all else that the case's file says of it.
    """

    case_id: str
    text: str
    diagnosis: str = ""
    language: str = "en"
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """What one of the two said, in which round (from 1), and what was noticed of it."""

    round: int
    speaker: Role
    text: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spent:
    """What one role took: calls that brought an answer, their tokens and cost. Unknown is None, never 0.

    Cached tokens are part of the prompt's, reasoning tokens of the completion's.
    """

    calls: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    model: str | None = None


@dataclass(frozen=True)
class Encounter:
    """A dialogue of a doctor and a patient: its turns, how it ended, and what it took.

    `source_id` is the doctor, who is held to account; `patient_id` is who played the patient. `candidates` are the
    diagnoses that the doctor weighed, each with 0 to 100. `config` names all that would make it another draw.

    Statuses: `concluded` has a diagnosis; `max_rounds` ended without one; `doctor_failed` and `patient_failed` had
    no text from one of the two (empty, refused, filtered); `infra_error` was cut short by a server that did not
    answer, and is asked for again; `not_run` is unfinished, since the run stopped. Only the first three say
    something about the doctor.
    """

    encounter_id: str
    case_id: str
    source_id: str
    patient_id: str
    replicate: int
    status: EncounterStatus
    turns: tuple[Turn, ...] = ()
    diagnosis: str | None = None
    candidates: tuple[tuple[str, float], ...] = ()
    flags: tuple[str, ...] = ()
    detail: str | None = None
    doctor: Spent = Spent()
    patient: Spent = Spent()
    started: str | None = None
    ended: str | None = None
    config: str = ""
    demo: bool = False

    @property
    def cost(self) -> float | None:
        """What both took together; None if either is unknown."""
        costs = (self.doctor.cost, self.patient.cost)
        return None if None in costs else sum(costs)

    @property
    def rounds(self) -> int:
        return max((t.round for t in self.turns), default=0)
