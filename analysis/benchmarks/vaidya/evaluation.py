"""A folder of conversations → scores: VAIDYA's evaluation file, with all that its mean does not say.

The document's mean is over what was evaluated. Beside it stand what is missing, invalid or unread, the mean with
each of these as 0, and the interval that cases drawn anew would give.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import results
from analysis.benchmarks import events, rate
from analysis.benchmarks.budget import Budget
from analysis.benchmarks.scoring import Scorer
from analysis.benchmarks.vaidya import conversation, usage
from analysis.benchmarks.vaidya.metrics import NO_DIAGNOSIS, vignette
from analysis.benchmarks.vaidya.survey import Survey
from analysis.benchmarks.vaidya.usage import Tokens
from analysis.stats import clusters
from analysis.stats.clusters import Estimate
from analysis.stats.misclassification import clopper_pearson
from generation.progress import Meter
from generation.settings import Price
from study import tables
from study.errors import StudyError

DRAWS = 2000
LEVEL = 0.95
UNJUDGED = "unjudged"  # no server answered, or the budget was spent: asked for again


@dataclass(frozen=True)
class Evaluation:
    """What one rater says of one folder: a row for each case of the file, and what they come to."""

    rater_id: str
    rows: tuple[dict[str, object], ...]
    summary: dict[str, object]
    stopped: str | None

    @property
    def incomplete(self) -> bool:
        """Whether the document's rule makes this exit with 2."""
        return bool(self.lacking)

    @property
    def lacking(self) -> dict[str, int]:
        """How many cases have no score, by the reason."""
        counted = ("missing", "invalid", "judge_errors", "unjudged", "no_words")
        return {name: len(self.summary[name]) for name in counted if self.summary[name]}  # type: ignore[arg-type]


def evaluate(
    found: Survey,
    scorer: Scorer,
    budget: Budget,
    meter: Meter,
    *,
    replay: bool = False,
    prices: Mapping[str, Price | None] | None = None,
    seed: int = 0,
) -> Evaluation:
    """Have one rater score every conversation that can be scored.

    Raises
    ------
    StudyError : before anything is asked, if there is nothing to score, or the rater cannot be set up
    """
    patients = {p.case_id: p for p in found.cases.patients}
    if not found.conversations:
        case_id, why = next(iter(found.invalid.items()), ("", ""))
        first = f": {conversation.path_of(found.folder, case_id).name} {why}" if why else ""
        raise StudyError(f"{found.folder}: holds no conversation of these cases that can be scored{first}")
    pairs = [(vignette(patients[case_id]), c.encounter) for case_id, c in found.conversations.items()]
    rated = rate.rate(found.folder, pairs, [scorer], budget, meter, replay=replay)
    asked = _asked(found.folder, [rate.task(case, encounter, scorer) for case, encounter in pairs])
    by_case = dict(zip(found.conversations, rated.rows.to_dict("records"), strict=True))
    rows = tuple(_row(found, case_id, patients[case_id].patient_id, by_case.get(case_id)) for case_id in patients)
    notes = {
        case_id: said
        for case_id, c in found.conversations.items()
        if (said := conversation.contradictions(c, prices or {}))
    }
    summary = summarised(found, scorer, rows, asked, seed=seed)
    summary |= {"models": sorted(rated.rows["model"].dropna().unique()), "contradictions": notes}
    return Evaluation(scorer.rater_id, rows, summary, rated.stopped)


def summarised(
    found: Survey, scorer: Scorer, rows: Sequence[Mapping[str, object]], asked: Sequence[Mapping[str, object]],
    *, seed: int = 0,
) -> dict[str, object]:  # fmt: skip
    """The document's summary, and ours below it."""
    scores = [float(r["score"]) for r in rows if r["score"] is not None]  # type: ignore[arg-type]
    expected, evaluated, binary = len(rows), len(scores), scorer.metrics[0].level == "nominal"
    spent = usage.added(_tokens(record) for record in asked)
    costs = [record.get("cost") for record in asked]
    return {
        "evaluated": evaluated,
        "score_total": sum(scores),
        "score_mean": sum(scores) / evaluated if evaluated else None,
        "eval_token_usage": spent.plain(),
        "benchmark": found.cases.benchmark,
        "metric": scorer.metrics[0].metric_id,
        "rater": scorer.rater_id,
        "rater_kind": scorer.kind,
        "doctor": found.doctor,
        "expected": expected,
        "missing": list(found.missing),
        "invalid": dict(found.invalid),
        "judge_errors": _with(rows, "judge_error"),
        "unjudged": _with(rows, UNJUDGED),
        "no_words": _with(rows, "doctor_failed", "patient_failed"),
        "no_diagnosis": _with(rows, NO_DIAGNOSIS),
        "strangers": list(found.strangers),
        "coverage": evaluated / expected,
        "estimates": [e.record() for e in estimates(scores, expected, seed, binary=binary)],
        "interval": {"level": LEVEL, "method": "percentile bootstrap of cases; exact where all scores are alike",
                     "draws": DRAWS, "seed": seed},
        "leaks": _leaks(found),
        "eval_cost": usage.whole(costs),
        "unpriced": sorted({model for r in asked if r.get("cost") is None for model in _unpriced(r)}),
        "simulated": found.simulated,
        "cases_sha256": found.cases.digest,
        "versions": results.versions(),
    }


def write(found: Evaluation, path: Path) -> None:
    """The evaluation file: results and summary, as the document has them."""
    text = json.dumps(plain(found), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    tables.replaced(path, lambda half: half.write_text(text, encoding="utf-8"))


def plain(found: Evaluation) -> dict[str, object]:
    """The evaluation as plain values; what could not be computed is null."""
    whole = results.Result("vaidya", {}, {"results": list(found.rows), "summary": found.summary}).plain()
    return {"results": whole["results"], "summary": whole["summary"]}


def _asked(folder: Path, keys: Sequence[str]) -> list[Mapping[str, object]]:
    """What the folder's events hold of these tasks that brought a reply; a rule has nothing there."""
    path = folder / events.FILE
    known = events.Events.read(path, Budget())
    found = [known.scored(key) for key in keys]
    asked = [r for r in found if r is not None and r.get("asks")]
    return [r for r in asked if r["status"] != "failed" or r.get("prompt_tokens") is not None]


def _row(found: Survey, case_id: str, patient_id: int, rating: Mapping[str, object] | None) -> dict[str, object]:
    """One result: patient_id, score and reasoning as the document has them, and how the score came about."""
    if rating is None:
        status = "invalid" if case_id in found.invalid else "missing"
        reason = found.invalid.get(case_id, f"{conversation.path_of(found.folder, case_id).name} is not there")
        return {"patient_id": patient_id, "score": None, "reasoning": reason, "status": status}
    value, reason = rating["value"], rating["reason"]
    met = found.conversations[case_id].encounter
    status = str(rating["status"])
    if status == "ok" and reason == NO_DIAGNOSIS:
        status = NO_DIAGNOSIS
    if status == "missing":
        status = UNJUDGED
    if status == "not_applicable" and met.status in ("doctor_failed", "patient_failed"):
        status = met.status
    return {
        "patient_id": patient_id,
        "score": None if pd.isna(value) else float(value),
        "reasoning": None if pd.isna(reason) else reason,
        "status": status,
        "diagnosis": met.diagnosis,
        "flags": list(met.flags),
    }


def estimates(scores: Sequence[float], expected: int, seed: int, *, binary: bool) -> list[Estimate]:
    """The mean of what was evaluated, and the mean with all else as 0; cases are drawn anew.

    Where all scores are alike, draws of them say nothing: a share then has its exact interval, another mean none.
    """
    if not scores:
        return []
    padded = np.concatenate([np.asarray(scores), np.zeros(expected - len(scores))])
    known = np.concatenate([np.ones(len(scores)), np.zeros(expected - len(scores))])
    found = []
    for term, cells in (
        ("score_mean", np.column_stack([padded, known])[: len(scores)]),
        ("score_mean_missing_zero", np.column_stack([padded, np.ones(expected)])),
    ):
        draws = clusters.bootstrap(cells, _mean, n_boot=DRAWS, seed=seed)
        value = _mean(cells.sum(0)[None, :])[0]
        own = clusters.bootstrapped(value, draws, [term], len(cells), len(cells), LEVEL)[0]
        found.append(_alike(own, binary) if np.ptp(cells[:, 0]) == 0 else own)
    return found


def _alike(own: Estimate, binary: bool) -> Estimate:
    if not binary or own.estimate not in (0.0, 1.0):
        return replace(own, std_error=np.nan, low=np.nan, high=np.nan)
    low, high = clopper_pearson(round(own.estimate * own.n), own.n, LEVEL)
    return replace(own, std_error=np.nan, low=low, high=high)


def _mean(sums: np.ndarray) -> np.ndarray:
    return (sums[..., 0] / sums[..., 1])[..., None]


def _with(rows: Sequence[Mapping[str, object]], *statuses: str) -> list[str]:
    return [str(r["patient_id"]) for r in rows if r["status"] in statuses]


def _leaks(found: Survey) -> dict[str, list[str]]:
    """Conversations by what leaked in them: what the engine noticed, or, of other files, what their turns show."""
    held: dict[str, list[str]] = {}
    for case_id, one in found.conversations.items():
        for flag in one.encounter.flags:
            held.setdefault(flag, []).append(case_id)
    return held


def _unpriced(record: Mapping[str, object]) -> Sequence[str]:
    """The models without a price, as they were asked for: a table of prices has them by these names."""
    return record.get("unpriced") or [str(record.get("model"))]  # type: ignore[return-value]


def _tokens(record: Mapping[str, object]) -> Tokens:
    return Tokens(*(record.get(f"{name}_tokens") for name in ("prompt", "completion", "cached", "reasoning")))
