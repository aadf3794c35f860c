"""What happened in a benchmark's folder, one line an event, appended and never changed.

    run      what a run was to do               asked, missed  every call before it left; those without an answer
    said     one utterance, or its failure      ended          an encounter and its status, for who reads along
    scored   one judge's word on one encounter  again          from here on all is asked anew

An encounter is rebuilt from what was said in it. So a run that was killed goes on in the middle of a dialogue, and
rating anew needs no call.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.benchmarks.budget import Budget
from generation.asking import now
from generation.encounter import Speaker
from generation.journal import Journal, Record, read_at, records
from generation.sources.speaker import Answer
from study.records import Role, Turn

FILE = "events.jsonl"
_OWN = ("event", "config", "encounter_id", "role", "round", "index", "status", "text", "detail", "at")


@dataclass
class Events:
    """Where each utterance and verdict of a folder stands. Texts stay in the file, so that memory is flat."""

    path: Path
    _said: dict[bytes, dict[int, int]] = field(default_factory=dict)
    _scored: dict[bytes, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, budget: Budget) -> "Events":
        """The events of a file; what they cost is counted in the budget.

        Raises
        ------
        StudyError : for a line that cannot be read
        """
        events = cls(path)
        budget.reset()
        for place, record in records(path):
            events.add(record, place)
            budget.count(record)
        budget.settle()
        return events

    def add(self, record: Mapping[str, object], place: int) -> None:
        match record.get("event"):
            case "again":
                self._said.clear()
            case "said":
                said = self._said.setdefault(_short(record["config"]), {})
                said[int(str(record["index"]))] = place
            case "scored":
                self._scored[_short(record["key"])] = place

    def said(self, config: str) -> dict[int, Record]:
        """What was said in an encounter so far, by its place in the dialogue."""
        places = self._said.get(_short(config), {})
        return dict(zip(places, read_at(self.path, iter(places.values())), strict=True)) if places else {}

    def scored(self, key: str) -> Record | None:
        """A judge's word, if it was given."""
        place = self._scored.get(_short(key))
        return None if place is None else next(read_at(self.path, iter([place])))


class Remembering:
    """A speaker whose earlier words stand in the events: they are not asked for again, and new ones are kept.

    Parameters
    ----------
    speaker : who is asked for what is not known; None if nobody may be
    keep : receives new words before anything follows from them
    """

    def __init__(
        self,
        role: Role,
        config: str,
        encounter_id: str,
        known: Mapping[int, Record],
        speaker: Speaker | None = None,
        keep: "Keep | None" = None,
    ) -> None:
        self._role, self._config, self._encounter_id = role, config, encounter_id
        self._known, self._speaker, self._keep = known, speaker, keep

    def say(self, turns: Sequence[Turn]) -> Answer:
        record = self._known.get(len(turns))
        failed = record is not None and record["status"] == "failed"
        if record is not None and not (failed and self._speaker is not None):
            return _answer(record)
        if self._speaker is None:
            return Answer("failed", detail="not asked yet", asked=False)
        answer = self._speaker.say(turns)
        if answer.asked and self._keep is not None:
            self._keep(self._record(answer, turns))
        return answer

    def _record(self, answer: Answer, turns: Sequence[Turn]) -> Record:
        return {
            "event": "said", "config": self._config, "encounter_id": self._encounter_id, "role": self._role,
            "round": len(turns) // 2 + 1, "index": len(turns), "status": answer.status, "text": answer.text,
            "detail": answer.detail, **answer.about, "at": now(),
        }  # fmt: skip


class Keep:
    """Writes events and takes them into account.

    A line is out of this process when it is written, so that no kill loses it; it is on the disk with the next
    durable one, which ends an encounter or is a judge's word. A machine that loses power so loses dialogues that
    were under way, and none that was over.
    """

    def __init__(self, journal: Journal, events: Events, budget: Budget) -> None:
        self._journal, self._events, self._budget = journal, events, budget

    def __call__(self, record: Record, *, durable: bool = False) -> None:
        self._events.add(record, self._journal.append(record, durable=durable))
        self._budget.count(record)

    def noted(self, record: Mapping[str, object]) -> None:
        """For an Asker, by way of the budget: every attempt has its line before it leaves."""
        self._journal.append(record, durable=False)


def told(path: Path, event: str) -> Iterator[Record]:
    """All records of one kind, in order."""
    return (record for _, record in records(path) if record.get("event") == event)


def _answer(record: Record) -> Answer:
    about = {name: value for name, value in record.items() if name not in _OWN}
    text, detail = record["text"], record["detail"]
    return Answer(str(record["status"]), text and str(text), detail and str(detail), about)


def _short(name: object) -> bytes:
    return bytes.fromhex(str(name))[:16]
