"""Responses held against their study: the exact grid, today's questions, the journal's words, one window."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pandas as pd

from generation import manifest as manifests
from generation.answers import Answers, Cell
from generation.journal import records
from generation.run import JOURNAL, grid, opened
from study import releasable, tables
from study.config import Study
from study.errors import StudyError

_SHOWN = 5
_SHORT = 0.5  # of a source's usual tokens a character: a prompt counted so short was cut


@dataclass(frozen=True)
class Verified:
    """What is wrong, and what a reader of the study should know."""

    problems: list[str]
    notes: list[str]


def verify(study: Study, *, release: bool = False) -> Verified:
    """Hold a study's responses against its files.

    Parameters
    ----------
    release : also refuse what may not be published

    Raises
    ------
    StudyError : if there are no responses
    """
    content = study.content()
    responses = tables.read(study.responses, tables.RESPONSES)
    path = study.path(JOURNAL)
    if not path.exists():
        raise StudyError(
            f"{path}: not found; the responses were not made by `generation run`, or it was moved away"
        )
    answers = Answers.read(path)
    cells = list(grid(study, content, opened(study, content)))
    problems = [f"{study.responses}: {p}" for p in _grid_problems(cells, responses)]
    if not problems:
        problems += [f"{study.responses}: {p}" for p in _text_problems(cells, responses, answers)]
    problems += [f"{study.responses}: {p}" for p in _model_problems(responses)]
    problems += [f"{path}: {p}" for p in _count_problems(study)]
    notes = _notes(study, responses, answers)
    unfit = releasable.problems(responses, study.generation.window_days, study.generation.waiver)
    if release:
        problems += [f"{study.responses}: {p}" for p in unfit]
    else:
        notes += [f"not fit for release: {p}" for p in unfit]
    return Verified(problems, notes)


def window_note(study: Study, now: datetime | None = None) -> str | None:
    """A warning, before anything is asked, that answers of today fall outside the window of earlier ones."""
    if not study.responses.exists():
        return None
    responses = tables.read(study.responses, tables.RESPONSES)
    if releasable.span(responses) is None:
        return None
    first = responses["answered_at"].dropna().min()
    days = (pd.Timestamp(now or datetime.now(UTC)) - first).total_seconds() / 86_400
    if days <= study.generation.window_days or study.generation.waiver:
        return None
    return (
        f"the first answer is from {first:%Y-%m-%d}, {days:.0f} days ago; the study allows "
        f"{study.generation.window_days:g} days, so answers of today cannot be released with it"
    )


def _grid_problems(cells: list[Cell], responses: pd.DataFrame) -> Iterator[str]:
    wanted = {(c.prompt.prompt_id, c.source.source_id): c for c in cells}
    there = set(zip(responses["prompt_id"], responses["source_id"], strict=True))
    for prompt, source in sorted(wanted.keys() - there)[:_SHOWN]:
        yield f"has no row for {prompt} by {source}; `generation run` writes it"
    for prompt, source in sorted(there - wanted.keys())[:_SHOWN]:
        yield f"has a row for {prompt} by {source}, which the study does not ask; `generation run` writes it anew"
    if "question" not in responses.columns:
        return
    stale = [
        row for row in responses.itertuples() if (cell := wanted.get((row.prompt_id, row.source_id))) is not None
        and isinstance(row.question, str) and row.question != cell.key
    ]  # fmt: skip
    for source in sorted({row.source_id for row in stale}):
        n = sum(row.source_id == source for row in stale)
        yield f"{n} answers of {source} were given to other questions or settings than today's; run again"


def _text_problems(cells: list[Cell], responses: pd.DataFrame, answers: Answers) -> Iterator[str]:
    told = {
        (c.prompt.prompt_id, c.source.source_id): record
        for c, record in zip(cells, answers.known(cells), strict=True)
        if record is not None
    }
    wrong = []
    for row in responses.itertuples():
        record = told.get((row.prompt_id, row.source_id))
        said = row.text if isinstance(row.text, str) else None
        if said != (record["text"] if record is not None else None):
            wrong.append(f"{row.prompt_id} by {row.source_id}")
    for name in wrong[:_SHOWN]:
        yield f"the text of {name} is not what the journal holds; do not edit it, `generation run` writes it anew"


def _model_problems(responses: pd.DataFrame) -> Iterator[str]:
    if "model" not in responses.columns:
        return
    for source, models in responses.groupby("source_id", sort=False)["model"]:
        names = sorted(models.dropna().unique())
        if len(names) > 1:
            yield f"{source} was answered by several models ({', '.join(names)}): its name is an alias"
    counted = responses.dropna(subset=["prompt_tokens", "text"])
    cut = counted[counted["flags"].fillna("").str.contains("prompt_cut")]
    for source, rows in cut.groupby("source_id"):
        yield f"{len(rows)} prompts of {source} were cut by the server, as its count of tokens shows"


def _count_problems(study: Study) -> Iterator[str]:
    """The same prompt costs the same tokens each time: where it does not, the server cuts or changes it."""
    counts: dict[tuple[str, str], int] = {}
    told = set()
    for _, record in records(study.path(JOURNAL)):
        tokens, name = record.get("prompt_tokens"), (str(record.get("source_id")), str(record.get("prompt_hash")))
        if record.get("event") != "answered" or not isinstance(tokens, int):
            continue
        if counts.setdefault(name, tokens) != tokens and name not in told:
            told.add(name)
            yield (
                f"{record['prompt_id']} by {name[0]} took {counts[name]} prompt tokens once and {tokens} another "
                "time; the server cuts or changes its prompts"
            )


def _notes(study: Study, responses: pd.DataFrame, answers: Answers) -> list[str]:
    found = []
    for name, attempts in answers.attempts.items():
        if attempts.lost:
            found.append(
                f"{attempts.lost} requests to {name} were sent and have no outcome: a run was killed meanwhile"
            )
    if study.path(manifests.MANIFEST).exists():
        import json

        written = json.loads(study.path(manifests.MANIFEST).read_text(encoding="utf-8"))
        for name, source in written.get("sources", {}).items():
            found += [f"{name}: {deviation}" for deviation in source.get("deviations", [])]
    refused = responses[~responses["status"].isin(("ok", "failed"))]
    for (source, status), rows in refused.groupby(["source_id", "status"], sort=False):
        found.append(f"{len(rows)} answers of {source} are {status}; they have no text to rate")
    return found
