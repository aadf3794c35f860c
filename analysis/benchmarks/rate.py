"""Encounters × scorers → ratings.parquet: judges and rules rate encounters as people do, one row a metric.

A judge's word stands in events.jsonl and is never drawn again; a rule is cheap, and asked anew each time. An
encounter that says nothing about its doctor has rows with its status, and no value.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas as pd

from analysis.benchmarks.budget import Budget
from analysis.benchmarks.events import FILE, Events, Keep
from analysis.benchmarks.scoring import OPEN, SCORED, Scored, Scorer
from generation.asking import now, spread
from generation.journal import Journal, Record
from generation.progress import Meter
from generation.retry import Gate, Stopped
from study import tables
from study.errors import StudyError
from study.records import Encounter, Metric, Vignette

RATINGS = "ratings.parquet"
_METRICS = "crossed.metrics"
Pair = tuple[Vignette, Encounter]


@dataclass
class Rated:
    """Rating rows on encounters (label: the encounter's id), and what became of them, by rater and status."""

    rows: pd.DataFrame
    statuses: dict[str, Counter] = field(default_factory=dict)
    asked: int = 0
    kept: int = 0
    cost: float | None = None
    unpriced: int = 0
    stopped: str | None = None

    @property
    def open(self) -> int:
        """Rows that a further run would ask for."""
        return sum(n for counts in self.statuses.values() for s, n in counts.items() if s == "missing")


def rate(
    folder: Path,
    pairs: Iterable[Pair],
    scorers: Sequence[Scorer],
    budget: Budget,
    meter: Meter,
    *,
    replay: bool = False,
) -> Rated:
    """Have every scorer rate every encounter, and write ratings.parquet.

    Rows of other raters that the file holds stay in it as long as their encounters are among `pairs`.

    Parameters
    ----------
    pairs : cases and their encounters; gone through once
    replay : make no call; what no judge has said yet is missing

    Raises
    ------
    StudyError : if two scorers have one name, or a judge cannot be set up
    """
    names = [s.rater_id for s in scorers]
    if again := [n for n in names if names.count(n) > 1]:
        raise StudyError(f"{again[0]}: two raters of this name; give one of them another")
    path = folder / FILE
    if replay:
        rated = _rated(pairs, scorers, Events.read(path, budget), None, budget, meter)
    else:
        with Journal(path) as journal:
            events = Events.read(path, budget)
            rated = _rated(pairs, scorers, events, Keep(journal, events, budget), budget, meter)
    _write(folder / RATINGS, rated.rows, [m for s in scorers for m in s.metrics])
    return rated


def task(case: Vignette, encounter: Encounter, scorer: Scorer) -> str:
    """The name of one rating: it changes with the scorer, what was said, and what the case expects."""
    named = {
        "who": [scorer.rater_id, scorer.kind, scorer.identity],
        "turns": [[t.speaker, t.text] for t in encounter.turns],
        "end": [encounter.encounter_id, encounter.status, encounter.diagnosis],
        "case": [case.text, case.diagnosis, case.extra],
    }
    written = json.dumps(named, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()


def _rated(
    pairs: Iterable[Pair],
    scorers: Sequence[Scorer],
    events: Events,
    keep: Keep | None,
    budget: Budget,
    meter: Meter,
) -> Rated:
    rated = Rated(pd.DataFrame())
    rows: dict[tuple[int, int], list[Record]] = {}
    work: dict[int, list[tuple[int, Pair, str]]] = {}
    for place, (case, encounter) in enumerate(pairs):
        for number, scorer in enumerate(scorers):
            key = task(case, encounter, scorer)
            found = _known(encounter, scorer, events, key)
            if found is None and scorer.kind == "rule":
                found = scorer.score(case, encounter, key)
            if found is None and keep is not None:
                work.setdefault(number, []).append((place, (case, encounter), key))
                continue
            rated.kept += scorer.kind == "judge" and encounter.status in SCORED and found is not None
            rows[place, number] = _rows(scorer, encounter, found or _NOT_ASKED)
    if work:
        assert keep is not None
        _ask(work, scorers, keep, budget, meter, rows)
        rated.asked = sum(len(own) for own in work.values())
        rated.stopped = budget.closed
    ordered = [row for place in sorted(rows) for row in rows[place]]
    rated.rows = tables.typed(ordered, tables.RATINGS).astype(
        {"occasion": "int64", "value": "float64", "simulated": "bool"}
    )
    _count(rated, ordered)
    return rated


_NOT_ASKED = Scored("not_asked", reason="not asked yet")


def _known(encounter: Encounter, scorer: Scorer, events: Events, key: str) -> Scored | None:
    """What need not be asked: of an encounter that says nothing, and a judge's earlier word."""
    if encounter.status not in SCORED:
        return Scored("not_applicable", reason=f"{encounter.status}: {encounter.detail}")
    record = events.scored(key) if scorer.kind == "judge" else None
    if record is None or record["status"] in OPEN:
        return None
    own = ("event", "key", "question", "status", "values", "reason", "rater_id", "encounter_id", "at")
    about = {name: value for name, value in record.items() if name not in own}
    return Scored(record["status"], record["values"] or {}, record["reason"], about)  # type: ignore[arg-type]


def _ask(
    work: dict[int, list[tuple[int, Pair, str]]],
    scorers: Sequence[Scorer],
    keep: Keep,
    budget: Budget,
    meter: Meter,
    rows: dict[tuple[int, int], list[Record]],
) -> None:
    note = budget.noting(keep.noted)
    begun = []

    def one(number: int, place: int, pair: Pair, key: str) -> None:
        scorer, (case, encounter) = scorers[number], pair
        try:
            found = scorer.score(case, encounter, key)
        except Stopped as stopped:
            if not str(stopped):
                raise
            found = Scored("not_asked", reason=str(stopped))
        if found.status != "not_asked":
            keep(_scored(scorer, encounter, key, found), durable=True)
            failed = found.status in ("failed", "judge_error")
            meter.add(scorer.rater_id, failed=failed, cost=found.about.get("cost"))  # type: ignore[arg-type]
        rows[place, number] = _rows(scorer, encounter, found)

    judges = [scorers[number] for number in work]
    try:
        for scorer in judges:
            scorer.open(note)
        for number, own in work.items():
            scorer = scorers[number]
            meter.begin(scorer.rater_id, len(own), 0)
            workers = max(1, min(scorer.workers, len(own)))
            begun.append(spread(own, lambda job, number=number: one(number, *job), workers, Gate()))
        for jobs in begun:
            jobs.join()
    except BaseException:
        for scorer in judges:
            scorer.stop()
        for jobs in begun:
            jobs.stop()
        raise
    finally:
        for scorer in judges:
            scorer.close()


def _scored(scorer: Scorer, encounter: Encounter, key: str, found: Scored) -> Record:
    return {
        "event": "scored", "key": key, "question": key, "rater_id": scorer.rater_id,
        "encounter_id": encounter.encounter_id, "status": found.status, "values": dict(found.values),
        "reason": found.reason, **found.about, "at": now(),
    }  # fmt: skip


def _rows(scorer: Scorer, encounter: Encounter, found: Scored) -> list[Record]:
    """One rating row a metric. What no judge was reached for is missing, and has no value."""
    cost = found.about.get("cost")
    values = {m.metric_id: found.values.get(m.metric_id) if found.status == "ok" else None for m in scorer.metrics}
    return [
        {
            "rater_id": scorer.rater_id,
            "rater_kind": scorer.kind,
            "label": encounter.encounter_id,
            "metric_id": metric.metric_id,
            "occasion": 1,
            "value": values[metric.metric_id],
            "status": _status(encounter, found, values[metric.metric_id]),
            "reason": found.reason,
            "simulated": False,
            "model": found.about.get("model"),
            "prompt_hash": found.about.get("prompt_hash"),
            "cost": cost / len(scorer.metrics) if isinstance(cost, int | float) else None,
        }
        for metric in scorer.metrics
    ]


def _status(encounter: Encounter, found: Scored, value: float | None) -> str:
    if encounter.status not in SCORED:
        return encounter.status
    if found.status == "ok" and value is None:
        return "cannot_judge"
    return "missing" if found.status in OPEN else found.status


def _count(rated: Rated, rows: Sequence[Record]) -> None:
    for row in rows:
        rated.statuses.setdefault(str(row["rater_id"]), Counter())[row["status"]] += 1
        if row["rater_kind"] == "judge" and row["status"] in ("ok", "judge_error"):
            if row["cost"] is None:
                rated.unpriced += 1
            else:
                rated.cost = (rated.cost or 0.0) + float(row["cost"])


def metrics(path: Path) -> tuple[Metric, ...]:
    """What a benchmark's ratings are on, as they tell it themselves.

    Raises
    ------
    TableError : if there is no such file
    """
    tables.read(path, tables.RATINGS)
    told = json.loads(tables.metadata(path).get(_METRICS, "[]"))
    return tuple(Metric(**m | {"anchors": tuple(m["anchors"])}) for m in told)


def _write(path: Path, rows: pd.DataFrame, rated_on: Sequence[Metric]) -> None:
    known = {m.metric_id: m for m in rated_on}
    tables.check_ratings(rows, known.values())
    if path.exists():
        before = tables.read(path, tables.RATINGS)
        others = ~before["rater_id"].isin(set(rows["rater_id"])) & before["label"].isin(set(rows["label"]))
        known = {m.metric_id: m for m in metrics(path)} | known
        rows = tables.stacked(before[others], rows)
    told = json.dumps([asdict(known[name]) for name in rows["metric_id"].unique()], ensure_ascii=False)
    tables.write(rows, path, tables.RATINGS, {_METRICS: told})
