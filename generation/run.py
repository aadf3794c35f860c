"""Prompts × sources → responses.parquet: each answered once, or present with the reason why not."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from generation.answers import SETTLED, Answers, Cell, Sums
from generation.asking import now, spread
from generation.flags import FLAGS, of_text
from generation.journal import Journal, Record
from generation.progress import Meter
from generation.retry import Gate
from generation.sources.kinds import open_source
from generation.sources.openai_chat import Model
from generation.sources.speaker import Answer, Request, Speaker
from study.config import FILE, Study
from study.errors import StudyError
from study.records import Case, Content, Prompt, Source

if TYPE_CHECKING:
    import pandas as pd

JOURNAL = "responses.jsonl"
_ROWS = 5000  # written at a time
_OWN = ("flags", "question")  # what is known of an embedded source's answer, too


@dataclass(frozen=True)
class Outcome:
    """What a run did: cells of the grid, answers kept from before, asked now, and rows that are not ok."""

    cells: int
    kept: int
    asked: int
    statuses: dict[str, dict[str, int]]
    flags: dict[str, int] = field(default_factory=dict)
    cost: float | None = None
    unpriced: int = 0
    stopped: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return sum(n for counts in self.statuses.values() for status, n in counts.items() if status != "ok")

    @property
    def open(self) -> int:
        """Rows that a further run would ask for."""
        return sum(n for counts in self.statuses.values() for status, n in counts.items() if status not in SETTLED)


def run(study: Study, again: bool = False, meter: Meter | None = None) -> Outcome:
    """Put every prompt to every source, and write responses.parquet whole.

    Outcomes that stand in the journal for the same question are kept, whatever they are: an answer is never drawn
    again because of what it says. Only what failed on the way, changed or is missing is asked for.

    Parameters
    ----------
    again : ask for every answer anew

    Raises
    ------
    StudyError : before anything is asked, if a source cannot be opened, or answers given to raters would change
    """
    content = study.content()
    speakers = opened(study, content)
    with Journal(study.path(JOURNAL)) as journal:
        if again:
            refuse_to_replace(study, list(grid(study, content, speakers)))
            journal.append({"event": "again", "at": now()})
        answers = Answers.read(journal.path)
        cells = list(grid(study, content, speakers))
        unsettled = [c for c in cells if not answers.settled(c.key)]
        refuse_to_replace(study, unsettled)
        with meter or Meter(quiet=True) as shown:
            stopped = _ask_all(unsettled, cells, speakers, answers, journal, shown, content.language)
        sums = write_responses(study, content, answers, cells, stopped)
    from generation import manifest

    manifest.write(study, content, speakers, answers, sums)
    return _outcome(cells, unsettled, sums, stopped)


def opened(study: Study, content: Content) -> dict[str, Speaker]:
    """A study's sources by name, ready to answer.

    Raises
    ------
    StudyError : if one cannot be opened, or there is none
    """
    if not study.sources:
        raise StudyError(f"{study.folder / FILE}: has no [[source]]; name at least one")
    return {s.source_id: open_source(s, content, study.folder) for s in study.sources}


def grid(study: Study, content: Content, speakers: Mapping[str, Speaker]) -> Iterator[Cell]:
    """Every prompt with every source, in the order of responses.parquet."""
    for prompt in content.prompts:
        case = content.cases[prompt.case_id]
        for source in study.sources:
            speaker = speakers[source.source_id]
            if isinstance(speaker, Model):
                yield Cell(source, case, prompt, speaker.key(Request(case, prompt.text, prompt)))
            else:
                yield Cell(source, case, prompt, question(source, case, prompt))


def question(source: Source, case: Case, prompt: Prompt) -> str:
    """A name for what is asked of an embedded source: it changes with its settings, the case or the prompt."""
    asked = {
        "who": [source.source_id, prompt.prompt_id],
        "kind": source.kind,
        "settings": source.settings,
        "persona": case.persona.fields(),
        "facts": [[f.fact_id, f.polarity, f.statement, f.answer, f.slots] for f in case.facts],
        "prompt": [prompt.text, prompt.category, prompt.reference_answer],
    }
    written = json.dumps(asked, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()


def refuse_to_replace(study: Study, unsettled: list[Cell]) -> None:
    """Refuse to ask for answers that have been given out for rating."""
    if not study.items.exists() or not study.responses.exists():
        return
    from study import tables

    given = tables.read(study.responses, tables.RESPONSES)
    given = given[given["status"] == "ok"]
    rated = set(zip(given["prompt_id"], given["source_id"], strict=True))
    for cell in unsettled:
        if (cell.prompt.prompt_id, cell.source.source_id) in rated:
            raise StudyError(
                f"{study.responses}: the answer of {cell.source.source_id} to {cell.prompt.prompt_id} is with the "
                "raters, and its question is no longer the same; undo the change, or make a study in a new folder"
            )


def _ask_all(
    unsettled: list[Cell],
    cells: list[Cell],
    speakers: Mapping[str, Speaker],
    answers: Answers,
    journal: Journal,
    meter: Meter,
    language: str,
) -> dict[str, str]:
    """Ask for every open cell; why sources could not be asked to the end, by source."""
    stopped: dict[str, str] = {}
    pools: dict[str, list[Cell]] = {}
    for name, speaker in speakers.items():
        own = [c for c in unsettled if c.source.source_id == name]
        total = sum(c.source.source_id == name for c in cells)
        meter.begin(name, total, total - len(own))
        pools.setdefault(name if isinstance(speaker, Model) else "", []).extend(own)

    def one(cell: Cell) -> None:
        name = cell.source.source_id
        answer = speakers[name].answer(Request(cell.case, cell.prompt.text, cell.prompt))
        if not answer.asked:
            stopped[name] = str(answer.detail).removeprefix("not asked: ")
            return
        record = line_on(cell, answer, language)
        if not isinstance(speakers[name], Model) and _stands(record, next(answers.known([cell]))):
            return
        answers.add(record, journal.append(record))
        meter.add(
            name,
            failed=answer.status not in SETTLED,
            flagged=bool(record.get("flags")),
            cost=cast(float | None, answer.about.get("cost")),
        )

    models = {n: s for n, s in speakers.items() if isinstance(s, Model)}
    for model in models.values():
        model.note = lambda record: answers.add(record, journal.append(record, durable=False))
    begun = [
        spread(own, one, models[name].workers if name in models else 1, Gate())
        for name, own in pools.items()
        if own
    ]
    try:
        for work in begun:
            work.join()
    except BaseException:
        for model in models.values():
            model.stop()
        for work in begun:
            work.stop()
        raise
    finally:
        for model in models.values():
            model.close()
    return stopped


def line_on(cell: Cell, answer: Answer, language: str) -> Record:
    """The journal's line on one outcome."""
    about = dict(answer.about)
    if answer.text is not None and "flags" not in about:
        found = of_text(answer.text, language=language)
        about["flags"] = ",".join(name for name in FLAGS if name in found) or None
    return {
        "event": "answered",
        "key": cell.key,
        "prompt_id": cell.prompt.prompt_id,
        "case_id": cell.case.case_id,
        "source_id": cell.source.source_id,
        "status": answer.status,
        "text": answer.text if answer.status == "ok" else None,
        "detail": answer.detail,
        **about,
        "by_attempt": bool(about.get("attempts")) and answer.status in SETTLED,
        "at": now(),
    }


def _stands(record: Record, before: Record | None) -> bool:
    """Whether an embedded source, asked again for want of an answer, has only the same to say."""
    return before is not None and all(record[n] == before[n] for n in ("status", "text", "detail"))


def write_responses(
    study: Study, content: Content, answers: Answers, cells: list[Cell], stopped: Mapping[str, str]
) -> dict[str, Sums]:
    """The grid as responses.parquet, whole, a part at a time; what each source's rows add up to."""
    from study import tables

    sums = {s.source_id: Sums() for s in study.sources}
    columns = [c.name for c in tables.RESPONSES.columns if not c.optional or _of_models(answers) or c.name in _OWN]

    def parts() -> "Iterator[pd.DataFrame]":
        for first in range(0, len(cells), _ROWS):
            some = cells[first : first + _ROWS]
            rows = [row(c, r, stopped) for c, r in zip(some, answers.known(some), strict=True)]
            for found in rows:
                sums[str(found["source_id"])].add(found)
            yield tables.typed(rows, tables.RESPONSES, columns)

    tables.write_parts(parts(), study.responses, tables.RESPONSES, {"crossed.study": study.digest})
    return sums


def row(cell: Cell, record: Record | None, stopped: Mapping[str, str]) -> Record:
    """One row of responses.parquet: the outcome that stands, or why there is none."""
    from study import tables

    name = cell.source.source_id
    bare = {
        "prompt_id": cell.prompt.prompt_id,
        "case_id": cell.case.case_id,
        "source_id": name,
        "question": cell.key,
    }
    if record is None:
        why = stopped.get(name)
        return bare | {"status": "failed", "detail": f"not asked: {why}" if why else "not asked yet"}
    return {n: record.get(n) for n in tables.RESPONSES.names} | bare


def _of_models(answers: Answers) -> bool:
    return bool(answers.attempts)


def _outcome(cells: list[Cell], unsettled: list[Cell], sums: dict[str, Sums], stopped: dict[str, str]) -> Outcome:
    flags: dict[str, int] = {}
    for one in sums.values():
        for name, n in one.flags.items():
            flags[name] = flags.get(name, 0) + n
    costs = [s.cost for s in sums.values() if s.cost is not None]
    return Outcome(
        cells=len(cells),
        kept=len(cells) - len(unsettled),
        asked=len(unsettled),
        statuses={name: dict(s.statuses) for name, s in sums.items()},
        flags=flags,
        cost=sum(costs) if costs else None,
        unpriced=sum(s.unpriced for s in sums.values()),
        stopped=stopped,
    )
