"""Two speakers take turns: a doctor and a patient meet, and the encounter ends by rule.

Nothing here knows who the two are. Whether the encounter is over is asked right after every utterance, so that a
diagnosis in the last round is one and nobody speaks after it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from generation import leaks
from generation.asking import Note
from generation.conclusion import Conclusion, concluded
from generation.sources.speaker import Answer
from study.records import Encounter, EncounterStatus, Role, Spent, Turn, Vignette

Stop = Callable[[Sequence[Turn]], Conclusion | None]
ORDER: tuple[Role, ...] = ("patient", "doctor")  # a round: the patient speaks, the doctor answers
_OF_PATIENTS = ("register", "role_drift")  # what a doctor may do
_COUNTS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost")


class Speaker(Protocol):
    """One of the two in one encounter."""

    def say(self, turns: Sequence[Turn]) -> Answer:
        """What this one says after all turns so far: text exactly where status is ok.

        `about` tells what is known of a model's answer (columns of the table `responses`, and `attempts`);
        `asked` is False where nothing was sent, because the run stops. Flags of the text go into about["flags"].
        """
        ...


class Player(Protocol):
    """Who can play one of the two in any case: a model with its settings, or an embedded one.

    `name` is its id (the doctor's is the encounter's source_id); `identity` holds all that would make its words
    another draw: kind, model, address, settings; `workers` is how many encounters it can be in at a time (0: any
    number); `demo` marks who is not fit for a release; `bounded` says whether a call's cost has a known bound.
    """

    name: str
    identity: Mapping[str, object]
    workers: int
    demo: bool
    bounded: bool

    def brief(self, case: Vignette, rounds: int) -> str:
        """All that it is told before the first word is spoken; a doctor's must not hold the answer."""
        ...

    def open(self, note: Note) -> None:
        """Make ready; `note` is told of every attempt before it leaves, and may end the run.

        Raises
        ------
        StudyError : if a key is missing
        """
        ...

    def meets(self, at: "Appointment", rounds: int) -> Speaker:
        """A speaker for one encounter. A doctor takes nothing from the case but its language."""
        ...

    def stop(self) -> None:
        """Let no further question leave."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Appointment:
    """Which case, which doctor, which patient, which time; `config` names all that would make it another draw."""

    case: Vignette
    source_id: str
    patient_id: str
    replicate: int = 1
    config: str = ""
    demo: bool = False

    @property
    def encounter_id(self) -> str:
        """Readable, and so not blind: items that people rate get meaningless labels instead."""
        return f"{self.case.case_id}/{self.replicate}/{self.source_id}"


def meet(
    doctor: Speaker,
    patient: Speaker,
    at: Appointment,
    *,
    rounds: int,
    stop: Stop = concluded,
    told: str = "",
) -> Encounter:
    """Let the two speak for at most so many rounds; the encounter, however it ended.

    Parameters
    ----------
    stop : asked after every utterance; a Conclusion ends the encounter
    told : what the doctor was told beforehand, checked for the answer
    """
    both = {"doctor": doctor, "patient": patient}
    turns: list[Turn] = []
    heard: dict[Role, list[Answer]] = {"doctor": [], "patient": []}

    def ended(status: EncounterStatus, found: Conclusion | None = None, detail: str | None = None) -> Encounter:
        times = [a.about for role in ORDER for a in heard[role] if a.about.get("asked_at")]
        return Encounter(
            encounter_id=at.encounter_id,
            case_id=at.case.case_id,
            source_id=at.source_id,
            patient_id=at.patient_id,
            replicate=at.replicate,
            status=status,
            turns=tuple(turns),
            diagnosis=found.diagnosis if found else None,
            candidates=found.candidates if found else (),
            flags=leaks.of_encounter(turns, told, at.case),
            detail=detail,
            doctor=spent(heard["doctor"]),
            patient=spent(heard["patient"]),
            started=min((str(t["asked_at"]) for t in times), default=None),
            ended=max((str(t["answered_at"]) for t in times), default=None),
            config=at.config,
            demo=at.demo,
        )

    for number in range(1, rounds + 1):
        for role in ORDER:
            answer = both[role].say(tuple(turns))
            heard[role].append(answer)
            if answer.text is None:
                return ended(_without_words(role, answer), detail=f"{role}, round {number}: {answer.detail}")
            turns.append(Turn(number, role, answer.text, _flags(role, answer, turns, at.case)))
            if found := stop(turns):
                return ended("concluded", found)
    return ended("max_rounds", detail=f"no diagnosis in {rounds} rounds")


def spent(answers: Sequence[Answer]) -> Spent:
    """What the answers took together. A sum is unknown if a part of it is; embedded speakers cost nothing."""
    calls = [a.about for a in answers if a.about.get("attempts")]
    if not calls:
        return Spent(cost=0.0)
    return Spent(
        calls=sum(a.status != "failed" for a in answers if a.about.get("attempts")),
        model=next((str(c["model"]) for c in calls if c.get("model")), None),
        **{name: _sum([c.get(name) for c in calls]) for name in _COUNTS},
    )


def _without_words(role: Role, answer: Answer) -> EncounterStatus:
    if not answer.asked:
        return "not_run"
    if answer.status == "failed":
        return "infra_error"
    return "doctor_failed" if role == "doctor" else "patient_failed"


def _flags(role: Role, answer: Answer, before: Sequence[Turn], case: Vignette) -> tuple[str, ...]:
    noted = str(answer.about.get("flags") or "").split(",")
    kept = [f for f in noted if f and not (role == "doctor" and f in _OF_PATIENTS)]
    return (*kept, *leaks.of_turn(role, answer.text or "", before, case))


def _sum(values: Sequence[object]) -> float | int | None:
    known = [v for v in values if isinstance(v, int | float)]
    return sum(known) if len(known) == len(values) else None
