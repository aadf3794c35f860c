"""How encounters become ratings: a scorer is a rater (a judge or a rule) of whole encounters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from generation.asking import Note
from study.records import Encounter, Metric, Vignette

SCORED = ("concluded", "max_rounds", "doctor_failed")  # what says something about the doctor
OPEN = ("failed", "not_asked")  # outcomes that are asked for again


@dataclass(frozen=True)
class Scored:
    """One scorer's word on one encounter: a value for each of its metrics exactly where status is ok.

    Other statuses: `judge_error` (no verdict after all re-asks; stands), `not_applicable`, `failed` (the judge's
    server did not answer; asked for again), `not_asked` (the budget is spent, or the judge cannot be reached).
    `reason` goes into the rating rows, as does `no_diagnosis` there where a doctor came to none. `about` holds
    model, prompt_hash, cost, tokens and whatever else is to stand in the events.
    """

    status: Literal["ok", "judge_error", "not_applicable", "failed", "not_asked"]
    values: Mapping[str, float | None] = field(default_factory=dict)
    reason: str | None = None
    about: Mapping[str, object] = field(default_factory=dict)


class Scorer(Protocol):
    """A rater of encounters. `identity` holds all that would make its word another draw, settings and prompts.

    `workers` is how many encounters it can score at a time; a rule is asked anew at every run (workers 1, nothing
    kept), a judge only for what has no outcome in the events.
    """

    rater_id: str
    kind: Literal["judge", "rule"]
    metrics: tuple[Metric, ...]
    identity: Mapping[str, object]
    workers: int

    def open(self, note: Note) -> None:
        """Make ready; `note` receives every attempt (an Asker's), and ends the run when the budget is spent."""
        ...

    def score(self, case: Vignette, encounter: Encounter, key: str) -> Scored:
        """The word on one encounter, whose status is one of SCORED. `key` names this task for an Asker."""
        ...

    def stop(self) -> None:
        """Let no further question leave."""
        ...

    def close(self) -> None: ...
