"""Prompts × sources → responses.parquet: each answered once, or present with the reason why not."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from generation import journal
from generation.sources.kinds import open_source
from generation.sources.speaker import Request, Speaker
from study.config import FILE, Study
from study.errors import StudyError
from study.records import Case, Content, Prompt, Response, Source

JOURNAL = "responses.jsonl"
Progress = Callable[[int, int], None]  # done, of so many


@dataclass(frozen=True)
class Outcome:
    """What a run did: cells of the grid, answers kept from before, asked now, and rows that are not ok."""

    cells: int
    kept: int
    asked: int
    statuses: dict[str, dict[str, int]]

    @property
    def failed(self) -> int:
        return sum(n for counts in self.statuses.values() for status, n in counts.items() if status != "ok")


def run(study: Study, again: bool = False, progress: Progress | None = None) -> Outcome:
    """Put every prompt to every source, and write responses.parquet whole.

    Answers that stand in the journal with status ok, to the same question, are kept; the others are asked for.

    Parameters
    ----------
    again : ask for every answer anew

    Raises
    ------
    StudyError : before anything is asked, if a source cannot be opened
    """
    content = study.content()
    if not study.sources:
        raise StudyError(f"{study.folder / FILE}: has no [[source]]; name at least one")
    speakers = {s.source_id: open_source(s, content, study.folder) for s in study.sources}
    path = study.path(JOURNAL)
    before = {} if again else journal.read(path)
    rows: list[Response] = []
    asked = 0
    total = len(content.prompts) * len(study.sources)
    with journal.Journal(path) as notes:
        for source in study.sources:
            for prompt in content.prompts:
                case = content.cases[prompt.case_id]
                name = question(source, case, prompt)
                known = before.get((prompt.prompt_id, source.source_id))
                if known is not None and known[0] == name and known[1].status == "ok":
                    rows.append(known[1])
                else:
                    response = ask(speakers[source.source_id], source, case, prompt)
                    notes.add(response, name)
                    rows.append(response)
                    asked += 1
                if progress:
                    progress(len(rows), total)
    _write(rows, study, content)
    return Outcome(total, total - asked, asked, _statuses(rows, study))


def ask(speaker: Speaker, source: Source, case: Case, prompt: Prompt) -> Response:
    """One source's response to one prompt."""
    answer = speaker.answer(Request(case, prompt.text, prompt))
    text = answer.text if answer.status == "ok" else None
    return Response(prompt.prompt_id, case.case_id, source.source_id, answer.status, text, answer.detail)


def question(source: Source, case: Case, prompt: Prompt) -> str:
    """A name for what is asked of whom: it changes with the source's settings, the case or the prompt."""
    asked = {
        "kind": source.kind,
        "settings": source.settings,
        "persona": case.persona.fields(),
        "facts": [[f.fact_id, f.polarity, f.statement, f.answer, f.slots] for f in case.facts],
        "prompt": [prompt.text, prompt.category, prompt.reference_answer],
    }
    written = json.dumps(asked, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()[:32]


def _write(rows: list[Response], study: Study, content: Content) -> None:
    import pandas as pd

    from study import tables

    place = {p.prompt_id: i for i, p in enumerate(content.prompts)}
    order = {s.source_id: i for i, s in enumerate(study.sources)}
    rows = sorted(rows, key=lambda r: (place[r.prompt_id], order[r.source_id]))
    frame = pd.DataFrame([vars(r) for r in rows], columns=tables.RESPONSES.names[:6])
    tables.write(frame, study.responses, tables.RESPONSES, {"crossed.study": study.digest})


def _statuses(rows: list[Response], study: Study) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {s.source_id: {} for s in study.sources}
    for row in rows:
        counts[row.source_id][row.status] = counts[row.source_id].get(row.status, 0) + 1
    return counts

