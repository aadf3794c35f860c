"""The grid of a study's questions, and where the journal holds the answer to each.

Only places are kept in memory, not texts, so that a study of a hundred thousand answers needs no more than one of
a hundred.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from generation.journal import Record, read_at, records
from study.records import Case, Prompt, Source

SETTLED = ("ok", "empty", "refused", "filtered")  # outcomes that are not asked for again


@dataclass(frozen=True)
class Cell:
    """One prompt put to one source, and the question's name under the settings of today."""

    source: Source
    case: Case
    prompt: Prompt
    key: str


@dataclass
class Attempts:
    """Requests of one source: sent, ended without an answer, answered. The rest was lost when a run was killed."""

    sent: int = 0
    missed: int = 0
    answered: int = 0

    @property
    def lost(self) -> int:
        return self.sent - self.missed - self.answered


@dataclass
class Answers:
    """Where each question's last outcome stands in a journal."""

    path: Path
    attempts: dict[str, Attempts] = field(default_factory=dict)
    _places: dict[bytes, int] = field(default_factory=dict)
    _settled: set[bytes] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> "Answers":
        """The answers of a journal, read line by line.

        Raises
        ------
        StudyError : for a line that cannot be read
        """
        answers = cls(path)
        for place, record in records(path):
            answers.add(record, place)
        return answers

    def add(self, record: Mapping[str, object], place: int) -> None:
        """Take a record of the journal into account."""
        match record.get("event"):
            case "again":
                self._settled.clear()
            case "asked":
                self._of(record).sent += 1
            case "missed":
                self._of(record).missed += 1
            case "answered":
                name = _short(str(record["key"]))
                self._places[name] = place
                (self._settled.add if record["status"] in SETTLED else self._settled.discard)(name)
                if record.get("by_attempt"):
                    self._of(record).answered += 1

    def settled(self, key: str) -> bool:
        """Whether a question has an outcome that stands."""
        return _short(key) in self._settled

    def known(self, cells: list[Cell]) -> Iterator[Record | None]:
        """The last outcome of each cell, in order; None where there is none."""
        places = [self._places.get(_short(c.key)) for c in cells]
        found = (
            read_at(self.path, (p for p in places if p is not None))
            if any(p is not None for p in places)
            else iter(())
        )
        for place in places:
            yield None if place is None else next(found)

    def _of(self, record: Mapping[str, object]) -> Attempts:
        return self.attempts.setdefault(str(record["source_id"]), Attempts())


@dataclass
class Sums:
    """What the outcomes of one source add up to. `cost` is None as long as no cost is known."""

    statuses: Counter = field(default_factory=Counter)
    flags: Counter = field(default_factory=Counter)
    models: Counter = field(default_factory=Counter)
    fingerprints: Counter = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0
    cost: float | None = None
    unpriced: int = 0
    first: str | None = None
    last: str | None = None
    demo: bool = False

    def add(self, row: Mapping[str, object]) -> None:
        """Count one row of the grid."""
        self.statuses[row["status"]] += 1
        self.flags.update(str(row.get("flags") or "").split(",") if row.get("flags") else ())
        if row.get("attempts") is None or row["status"] not in SETTLED:
            return
        for name, seen in (("model", self.models), ("fingerprint", self.fingerprints)):
            seen[row.get(name) or "not named"] += 1
        if row.get("prompt_tokens") is None or row.get("completion_tokens") is None:
            self.uncounted += 1
        else:
            self.prompt_tokens += int(row["prompt_tokens"])
            self.completion_tokens += int(row["completion_tokens"])
        if row.get("cost") is None:
            self.unpriced += 1
        else:
            self.cost = (self.cost or 0.0) + float(row["cost"])
        at = str(row["answered_at"])
        self.first, self.last = min(self.first or at, at), max(self.last or at, at)
        self.demo = self.demo or bool(row.get("demo"))


def _short(key: str) -> bytes:
    return bytes.fromhex(key)[:16]
