"""What would the panel have said of items that only the judge rated? Means by source and their differences."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.stats.clusters import Estimate, cluster_mean, enough, t_interval
from analysis.stats.comparison import Comparison
from analysis.stats.misclassification import Rate, clopper_pearson, from_counts
from analysis.stats.prediction_powered import Moments, Powered, effective_size, moments, needed, of_moments
from study.errors import StudyError

_NOBODY = np.empty((0, 2))
_TIMES = (1, 2, 10)  # judged units per panel unit for which the effective size is shown


@dataclass(frozen=True)
class PanelSaid:
    """Panel means from panel and judge together.

    `means` and `differences` have broom columns and, beside them, those of the panel alone (`panel_…`), `tuning`,
    `correlation`, `n_effective`, `n_labelled`, `n_unlabelled`. `gain` tells, by source, what judged units
    would add: `times` as many judged as rated, `n_effective`, `needed` panel units for the wanted width.
    `overall` weighs sources alike.
    """

    means: pd.DataFrame
    differences: pd.DataFrame
    overall: Estimate | None
    gain: pd.DataFrame
    width: float
    moments: dict[str, Moments]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LowRate:
    """How many answers the panel scores below a threshold.

    `panel` counts its own answers, with exact intervals; `corrected` is the judge's rate among answers that the
    panel did not see, corrected for its errors, or None with the reason in `refused`. `errors` has the judge's
    specificity and sensitivity by source: they must be alike for a correction to carry over.
    """

    threshold: float
    panel: pd.DataFrame
    errors: pd.DataFrame
    corrected: Rate | None
    refused: str


def panel_said(comparison: Comparison, *, width: float | None = None, level: float = 0.95) -> PanelSaid:
    """Prediction-powered means by source, their paired differences from the first, and what a judge would add.

    Parameters
    ----------
    width : of an interval that is wanted, in points of the scale; a tenth of the scale if not given

    Raises
    ------
    StudyError : fewer than ten labelled clusters
    """
    labelled = comparison.labelled()
    width = width or (comparison.scale[1] - comparison.scale[0]) / 10
    notes = list(enough(labelled.cluster, labelled.unit, "a panel mean"))
    rest = comparison.keep(np.isfinite(comparison.score) & (comparison.counts == 0))
    if not rest.n:
        notes.append(
            "the panel rated every judged item, so the judge adds nothing to these means: it helps for new "
            "prompts, which the panel need not rate; the gain is shown by source"
        )
    seen, unseen = _units(labelled), _units(rest)
    means, kept, gain = [], {}, []
    for name, cells in seen.items():
        here, more = _filled(cells), _filled(unseen.get(name, _NOBODY))
        if len(here) < 2:
            notes.append(f"{name}: fewer than two {labelled.unit}s rated by the panel")
            continue
        if len(more) >= 2:
            kept[name] = moments(here[:, 0], here[:, 1], more[:, 1])
            means.append(_powered_row(name, of_moments(kept[name], level=level, n_items=labelled.n)))
        else:
            means.append(_plain_row(name, here, level))
        gain += _gain(name, here, width, level)
    differences = _differences(seen, unseen, level)
    overall = _overall(labelled, rest, kept, level)
    return PanelSaid(pd.DataFrame(means), differences, overall, pd.DataFrame(gain), width, kept, tuple(notes))


def low_rate(comparison: Comparison, threshold: float | None = None, *, level: float = 0.95) -> LowRate:
    """Answers scored below a threshold by the panel, and by the judge where the panel did not look.

    Parameters
    ----------
    threshold : below it an answer is low; the middle of the scale if not given
    """
    low, high = comparison.scale
    threshold = (low + high) / 2 if threshold is None else threshold
    data = comparison.labelled()
    panel, judge = data.panel_mean < threshold - 1e-9, data.score < threshold - 1e-9
    rest = comparison.keep(np.isfinite(comparison.score) & (comparison.counts == 0))
    counts, errors = [], []
    for source in [None, *data.sources]:
        here = np.ones(data.n, bool) if source is None else (data.items["source"] == source).to_numpy()
        counts.append(_count(source or "all", panel[here], level))
        errors.append(_error_row(source or "all", judge[here], panel[here], level))
    corrected, refused = None, ""
    try:
        corrected = from_counts(rest.score < threshold - 1e-9, judge, panel, level)
    except StudyError as error:
        refused = str(error)
    return LowRate(threshold, pd.DataFrame(counts), pd.DataFrame(errors), corrected, refused)


def _units(data: Comparison) -> dict[str, np.ndarray]:
    """By source: unit × (panel mean, judge), nan where the source has no item; a silent panel is 0."""
    if not data.n:
        return {}
    if not data.sources:
        data = replace(data, items=data.items.assign(source="all"))
    panel = data.crossed(np.where(data.counts > 0, data.panel_mean, 0.0))
    judge = data.crossed(data.score)
    return {s: np.column_stack([panel[i], judge[i]]) for i, s in enumerate(data.codes("source")[1])}


def _filled(cells: np.ndarray) -> np.ndarray:
    return cells[np.isfinite(cells).all(1)]


def _powered_row(name: str, found: Powered) -> dict[str, float | str | int]:
    alone = found.classical
    return {
        **found.estimate.record(), "term": name, "panel_estimate": alone.estimate, "panel_low": alone.low,
        "panel_high": alone.high, "tuning": found.tuning, "correlation": found.correlation,
        "n_labelled": found.n_labelled, "n_unlabelled": found.n_unlabelled, "n_effective": found.n_effective,
    }  # fmt: skip


def _plain_row(name: str, here: np.ndarray, level: float) -> dict[str, float | str | int]:
    found = cluster_mean(here[:, 0], np.arange(len(here)), name, level=level)
    return {
        **found.record(), "panel_estimate": found.estimate, "panel_low": found.low, "panel_high": found.high,
        "tuning": 0.0, "correlation": _correlation(here), "n_labelled": len(here), "n_unlabelled": 0,
        "n_effective": float(len(here)),
    }  # fmt: skip


def _correlation(here: np.ndarray) -> float:
    spread = here.std(0)
    return float(np.corrcoef(here.T)[0, 1]) if (spread > 1e-12).all() else 0.0


def _gain(name: str, here: np.ndarray, width: float, level: float) -> list[dict[str, float | str | int | None]]:
    n, r, sd = len(here), _correlation(here), float(here[:, 0].std(ddof=1))
    alone = needed(sd, 0.0, width, np.inf, level) if sd > 0 else 2
    rows = []
    for times in _TIMES:
        judged = np.inf if alone is None else max(alone, n) * (1 + times)
        rows.append({"term": name, "times": times, "correlation": r, "n_labelled": n,
                     "n_effective": effective_size(n, times * n, r), "needed_alone": alone,
                     "needed": needed(sd, r, width, judged, level) if sd > 0 else 2})  # fmt: skip
    return rows


def _differences(seen: dict[str, np.ndarray], unseen: dict[str, np.ndarray], level: float) -> pd.DataFrame:
    """Each source less the first, on the units that have both."""
    first, *others = seen
    rows = []
    for source in others:
        here = _filled(seen[source] - seen[first])
        more = _filled(unseen[source] - unseen[first]) if {source, first} <= set(unseen) else _NOBODY
        if len(here) < 2:
            continue
        name = f"{source} − {first}"
        if len(more) >= 2:
            rows.append(_powered_row(name, of_moments(moments(here[:, 0], here[:, 1], more[:, 1]), level=level)))
        else:
            rows.append(_plain_row(name, here, level))
    return pd.DataFrame(rows)


def _overall(labelled: Comparison, rest: Comparison, kept: dict[str, Moments], level: float) -> Estimate | None:
    """All sources weighted alike, each with its own tuning, prompts as units: sources share them."""
    if len(kept) < 2 or len(kept) < len(labelled.sources) or rest.sources != labelled.sources:
        return None
    weights = np.array([[of_moments(kept[s]).tuning] for s in labelled.sources])
    residual = labelled.crossed(labelled.panel_mean) - weights * labelled.crossed(labelled.score)
    judged = weights * rest.crossed(rest.score)
    residual, judged = (t[:, np.isfinite(t).all(0)].mean(0) for t in (residual, judged))
    if len(residual) < 2 or len(judged) < 2:
        return None
    error = float(np.sqrt(residual.var(ddof=1) / len(residual) + judged.var(ddof=1) / len(judged)))
    value, df = float(residual.mean() + judged.mean()), len(residual) - 1.0
    return Estimate("all sources alike", value, error, df, *t_interval(value, error, df, level), labelled.n,
                    len(residual))  # fmt: skip


def _count(name: str, low: np.ndarray, level: float) -> dict[str, float | str | int]:
    ends = clopper_pearson(int(low.sum()), len(low), level)
    return {"term": name, "low_answers": int(low.sum()), "n": len(low), "estimate": float(low.mean()),
            "low": ends[0], "high": ends[1]}  # fmt: skip


def _error_row(name: str, judge: np.ndarray, panel: np.ndarray, level: float) -> dict[str, float | str | int]:
    row: dict[str, float | str | int] = {"term": name}
    for what, at, right in (("specificity", ~panel, ~judge), ("sensitivity", panel, judge)):
        n, yes = int(at.sum()), int(right[at].sum())
        ends = clopper_pearson(yes, n, level) if n else (np.nan, np.nan)
        row |= {what: yes / n if n else np.nan, f"{what}_low": ends[0], f"{what}_high": ends[1], f"{what}_n": n}
    return row
