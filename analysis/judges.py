"""A judge is a rater: rubric and item in, rating rows out. It sees labels and texts, never sources.

One item a call. A reply that is no verdict is asked for again, twice at most, with what was wrong with it; after
that the item has status judge_error and no value. Every attempt and verdict stands in `judges/ID.jsonl`, so that a
judge that was killed goes on where it stopped, and a verdict once given is never drawn again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import rubric as rubrics
from analysis import verdict as verdicts
from analysis.insisting import insist
from analysis.rubric import Rubric, Turn, View
from generation.asking import Asker, now, spread
from generation.client import body, key
from generation.journal import Journal, records
from generation.progress import Meter
from generation.settings import ModelSettings, model_settings
from generation.sources.local import reached, small_model
from study.config import FILE, Study
from study.errors import StudyError
from study.records import Content, Judge, Metric

_DEFAULTS = {"temperature": 0.0, "top_p": None, "max_tokens": 400}
Record = dict[str, object]


@dataclass(frozen=True)
class Task:
    """One item to be judged on one occasion."""

    view: View
    metrics: tuple[Metric, ...]
    occasion: int
    messages: tuple[Mapping[str, str], ...]
    key: str


@dataclass(frozen=True)
class Bench:
    """A judge ready to judge a study: its model, its rubric and its tasks."""

    judge: Judge
    settings: ModelSettings
    rubric: Rubric
    tasks: tuple[Task, ...]
    path: Path


@dataclass(frozen=True)
class Judged:
    """What a run of one judge did; `statuses` counts rating rows, `commonest_error` is the reason most of the rows
    without a verdict share."""

    judge: str
    kept: int
    asked: int
    statuses: dict[str, int]
    cost: float | None
    unpriced: int
    stopped_by: str | None
    commonest_error: str | None


def judge(study: Study, judge_id: str, meter: Meter) -> tuple[Judged, pd.DataFrame]:
    """Have one judge rate what it has not rated yet; its rating rows, one for every item, metric and occasion.

    Raises
    ------
    StudyError : if there is no such judge, or its row, rubric or key is wrong; before anything is asked
    """
    bench = set_up(study, judge_id)
    known = settled(bench.path)
    open_tasks = [t for t in bench.tasks if t.key not in known]
    meter.begin(judge_id, len(bench.tasks), len(bench.tasks) - len(open_tasks))
    closed = _ask(bench, open_tasks, meter) if open_tasks else None
    latest = latest_records(bench.path)
    found = [latest.get(t.key) for t in bench.tasks]
    rows = pd.DataFrame(
        [row for t, r in zip(bench.tasks, found, strict=True) for row in _rows(bench, t, r, closed)]
    )
    costs = [r.get("cost") for r in found if r is not None]
    priced = [c for c in costs if c is not None]
    errors = rows.loc[rows["status"] == "judge_error", "reason"].dropna().mode()
    return (
        Judged(
            judge_id,
            kept=len(bench.tasks) - len(open_tasks),
            asked=meter.tallies[judge_id].done,
            statuses={str(s): int(n) for s, n in rows["status"].value_counts().items()},
            cost=sum(priced) if priced else None,
            unpriced=len(costs) - len(priced),
            stopped_by=closed,
            commonest_error=None if errors.empty else str(errors.iloc[0]),
        ),
        rows,
    )


def set_up(study: Study, judge_id: str) -> Bench:
    """A judge of study.toml with everything it will be asked.

    Raises
    ------
    StudyError : if anything is wrong with it
    """
    found = next((j for j in study.judges if j.judge_id == judge_id), None)
    place = f"{study.folder / FILE}"
    if found is None:
        known = ", ".join(j.judge_id for j in study.judges) or "none"
        raise StudyError(f"{place}: no judge {judge_id}; its judges are {known}")
    settings = _settings(found, f"{place}: judge {judge_id}")
    metrics = tuple(study.metric(m) for m in found.metrics) or study.metrics
    rubric = rubrics.load(found.rubric, study.folder)
    rubric.check(metrics)
    from study import tables

    items = tables.read(study.items, tables.ITEMS)
    content = study.content() if study.content_files else None
    tasks = _tasks(found, settings, rubric, metrics, views(items, content))
    if not tasks:
        raise StudyError(f"{place}: judge {judge_id} has nothing to rate: no item is of its metrics' kind")
    return Bench(found, settings, rubric, tuple(tasks), study.path("judges") / f"{judge_id}.jsonl")


def views(items: pd.DataFrame, content: Content | None) -> Iterator[View]:
    """What a judge sees of each item, in the labels' order: the case, the dialogue so far, as raters do."""
    questions = {p.prompt_id: p.text for p in content.prompts} if content else {}
    spoken = items[items["kind"] == "utterance"].sort_values("turn", kind="stable")
    dialogues = {
        label: [
            (r.label, Turn(questions.get(r.prompt_id), r.text if isinstance(r.text, str) else None))
            for r in rows.itertuples()
        ]
        for label, rows in spoken.groupby("encounter", sort=False)
    }
    for item in items.itertuples():
        case = content.cases.get(item.case_id) if content else None
        if item.kind == "encounter":
            yield View(item.label, item.kind, tuple(turn for _, turn in dialogues.get(item.label, ())), (), case)
            continue
        own = Turn(questions.get(item.prompt_id), item.text if isinstance(item.text, str) else None)
        dialogue = dialogues.get(item.encounter, [])
        place = next((i for i, (label, _) in enumerate(dialogue) if label == item.label), 0)
        yield View(item.label, item.kind, (own,), tuple(turn for _, turn in dialogue[:place]), case)


def settled(path: Path) -> set[str]:
    """Keys of tasks that have an outcome; a task that only failed on the way has none."""
    return {str(r["key"]) for _, r in records(path) if r.get("event") == "judged" and r["status"] != "failed"}


def latest_records(path: Path) -> dict[str, Record]:
    """The last outcome of each task."""
    return {str(r["key"]): r for _, r in records(path) if r.get("event") == "judged"}


def _settings(judge: Judge, place: str) -> ModelSettings:
    given = _DEFAULTS | judge.settings
    kind = given.pop("kind", "openai_chat")
    if kind == "local":
        return small_model({"seed": 1} | given, place)
    if kind != "openai_chat":
        raise StudyError(f'{place}: kind {kind!r} is no judge; kind is "openai_chat" (the default) or "local"')
    return model_settings(given, place)


def _tasks(
    judge: Judge, settings: ModelSettings, rubric: Rubric, metrics: Sequence[Metric], seen: Iterable[View]
) -> list[Task]:
    tasks = []
    for view in seen:
        asked = tuple(m for m in metrics if m.item == view.kind)
        if not asked:
            continue
        messages = tuple(rubric.messages(view, asked))
        for occasion in range(1, judge.repeats + 1):
            chosen = settings.model_copy(update={"replicate": settings.replicate + occasion - 1})
            named = key(judge.judge_id, chosen, body(chosen, messages))
            tasks.append(Task(view, asked, occasion, messages, f"{view.label}:{named}"))
    return tasks


def _ask(bench: Bench, tasks: Sequence[Task], meter: Meter) -> str | None:
    """Put the tasks to the judge; why it had to stop, or None."""
    with Journal(bench.path) as journal:
        asker = Asker(reached(bench.settings), note=lambda record: journal.append(record, durable=False))

        def one(task: Task) -> None:
            record = _judged(asker, bench, task)
            if record is None:
                return
            journal.append(record)
            failed = record["status"] in ("failed", "judge_error")
            meter.add(bench.judge.judge_id, failed=failed, cost=record["cost"])

        work = spread(tasks, one, bench.settings.concurrency, asker.gate)
        try:
            work.join()
        except KeyboardInterrupt:
            work.stop()
            raise
        finally:
            asker.close()
        return asker.gate.closed


def _judged(asker: Asker, bench: Bench, task: Task) -> Record | None:
    """One task's outcome; None if it was not asked because the judge cannot be reached any more."""
    settings = bench.settings.model_copy(update={"replicate": bench.settings.replicate + task.occasion - 1})
    about = {"label": task.view.label, "occasion": task.occasion}
    found = insist(
        asker, settings, task.messages, lambda text: verdicts.read(text, task.metrics), bench.rubric.again,
        task.key, about,
    )  # fmt: skip
    if found.status == "not_asked":
        return None
    verdict = found.verdict
    return {
        "event": "judged",
        "key": task.key,
        **about,
        "status": found.status,
        "scores": dict(verdict.scores) if verdict else None,
        "reason": verdict.reason if verdict else None,
        "detail": found.detail,
        **found.about(bench.settings.price),
        "prompt_hash": rubrics.digest(task.messages),
        "rubric": bench.rubric.digest,
        "at": now(),
    }


def _rows(bench: Bench, task: Task, record: Record | None, closed: str | None) -> Iterator[Record]:
    """One rating row for each metric of a task."""
    status = "missing" if record is None or record["status"] == "failed" else str(record["status"])
    why = record["detail"] if record is not None else f"not asked: {closed or 'the run was stopped'}"
    for metric in task.metrics:
        value = record["scores"][metric.metric_id] if record is not None and status == "ok" else None
        yield {
            "rater_id": bench.judge.judge_id,
            "rater_kind": "judge",
            "label": task.view.label,
            "metric_id": metric.metric_id,
            "occasion": task.occasion,
            "value": value,
            "status": "cannot_judge" if status == "ok" and value is None else status,
            "reason": record["reason"] if record is not None and status == "ok" else why,
            "simulated": False,
            "model": record["model"] if record is not None else None,
            "prompt_hash": record["prompt_hash"] if record is not None else None,
            "cost": None if record is None or record["cost"] is None else record["cost"] / len(task.metrics),
        }
