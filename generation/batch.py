"""A provider's batch files: a source's open questions out, its answers in, matched by the questions' names."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from generation import manifest
from generation import reply as replies
from generation.answers import Answers, Cell
from generation.asking import Asked, now
from generation.client import PATHS, Call
from generation.journal import Journal
from generation.retry import CallError
from generation.run import JOURNAL, grid, line_on, opened, refuse_to_replace, write_responses
from generation.sources.openai_chat import Model
from generation.sources.speaker import Request
from study.config import FILE, Study
from study.errors import StudyError, joined


@dataclass(frozen=True)
class Imported:
    """What a batch file brought: answers taken, answers that stood already, and questions that failed."""

    taken: int
    known: int
    failed: int


def export(study: Study, source_id: str, path: Path) -> int:
    """Write the open questions of a source as a batch file; returns how many there are.

    Raises
    ------
    StudyError : if the source is no model, or nothing is open
    """
    from study import tables

    content = study.content()
    speakers = opened(study, content)
    model = _model(study, speakers, source_id)
    answers = Answers.read(study.path(JOURNAL))
    open_cells = [
        c for c in grid(study, content, speakers) if c.source.source_id == source_id and not answers.settled(c.key)
    ]
    refuse_to_replace(study, open_cells)
    if not open_cells:
        raise StudyError(
            f"{study.folder}: every question to {source_id} has its outcome; there is nothing to export"
        )
    lines = [json.dumps(_line(model, c), ensure_ascii=False) for c in open_cells]
    tables.replaced(path, lambda half: half.write_text("\n".join(lines) + "\n", encoding="utf-8"))
    return len(lines)


def import_(study: Study, source_id: str, paths: list[Path]) -> Imported:
    """Take a batch's answers (and errors) into the journal, and write responses.parquet.

    The whole of every file is checked first; nothing is taken from a file with a problem.

    Raises
    ------
    StudyError : with all problems, each with its line
    """
    content = study.content()
    speakers = opened(study, content)
    model = _model(study, speakers, source_id)
    cells = list(grid(study, content, speakers))
    own = {c.key: c for c in cells if c.source.source_id == source_id}
    lines = [line for path in paths for line in _checked(path, own)]
    names = [key for key, _ in lines]
    if again := sorted({n for n in names if names.count(n) > 1} if len(set(names)) < len(names) else ()):
        raise StudyError(f"{paths[0]}: {own[again[0]].prompt.prompt_id} is answered twice; give each answer once")
    taken = known = failed = 0
    with Journal(study.path(JOURNAL)) as journal:
        answers = Answers.read(journal.path)
        for key, line in lines:
            if answers.settled(key):
                known += 1
                continue
            cell = own[key]
            request = Request(cell.case, cell.prompt.text, cell.prompt)
            asked = _asked(line, model)
            attempt = str(line.get("id") or key)
            about = {"key": key, "source_id": source_id, "prompt_id": cell.prompt.prompt_id, "attempt": attempt}
            answers.add(sent := {"event": "asked", **about, "number": 1, "at": now(), "batch": True}, 0)
            journal.append(sent, durable=False)
            record = line_on(cell, model.read(request, model.sent(request), asked), content.language)
            if asked.call is None:
                answers.add(missed := {"event": "missed", **about, "detail": str(asked.error), "at": now()}, 0)
                journal.append(missed, durable=False)
            answers.add(record, journal.append(record))
            taken, failed = taken + (asked.call is not None), failed + (asked.call is None)
        sums = write_responses(study, content, answers, cells, {})
    manifest.write(study, content, speakers, answers, sums)
    return Imported(taken, known, failed)


def _line(model: Model, cell: Cell) -> dict[str, object]:
    body = model.sent(Request(cell.case, cell.prompt.text, cell.prompt))
    return {"custom_id": cell.key, "method": "POST", "url": f"/v1{PATHS[model.settings.api]}", "body": body}


def _checked(path: Path, own: Mapping[str, Cell]) -> Iterator[tuple[str, dict]]:
    if not path.is_file():
        raise StudyError(f"{path}: no such file")
    problems, found = [], []
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            try:
                line = json.loads(raw)
            except (json.JSONDecodeError, UnicodeDecodeError):
                line = None
            if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
                problems.append(f"{path}:{number}: is not a line of a batch's answers")
            elif line["custom_id"] not in own:
                problems.append(
                    f"{path}:{number}: custom_id {line['custom_id'][:12]}… is not a question of this source "
                    "under its settings of today"
                )
            else:
                found.append((line["custom_id"], line))
    if problems:
        raise StudyError(joined(problems))
    yield from found


def _asked(line: Mapping, model: Model) -> Asked:
    """The outcome that one line tells."""
    response = line.get("response") if isinstance(line.get("response"), Mapping) else {}
    body, code = response.get("body"), response.get("status_code")
    created = body.get("created") or body.get("created_at") if isinstance(body, Mapping) else None
    timed = isinstance(created, int) and not isinstance(created, bool)
    at = datetime.fromtimestamp(created, UTC).isoformat() if timed else now()
    request_id = response.get("request_id") if isinstance(response.get("request_id"), str) else None
    if code == 200:
        try:
            reply = replies.read(json.dumps(body, ensure_ascii=False).encode(), model.settings.api)
            return Asked(Call(reply, request_id, None), None, 1, at, at)
        except replies.Unreadable as error:
            return Asked(None, CallError("unreadable", str(error)), 1, at, at)
    words = replies.shown(replies.message(line.get("error") or body or "no reason given"))
    detail = f"HTTP {code}: {words}" if code else f"the batch failed: {words}"
    return Asked(None, CallError("server", detail, code=code if isinstance(code, int) else None), 1, at, at)


def _model(study: Study, speakers: Mapping[str, object], source_id: str) -> Model:
    if source_id not in speakers:
        raise StudyError(f"{study.folder / FILE}: no source {source_id}; its sources are {', '.join(speakers)}")
    model = speakers[source_id]
    if not isinstance(model, Model):
        raise StudyError(
            f"{study.folder / FILE}: source {source_id} is no model behind an address; it has no batch"
        )
    return model
