"""What each calibration map would do to scores it has not seen: by prompt, by case, by source."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.stats.calibration_error import CalibrationError, calibration_error
from analysis.stats.calibration_map import KINDS, MOST_CATEGORIES, Kind, Map, cross_fit, fit_map, folds_of
from analysis.stats.clusters import bootstrap, percentiles, sums_by_cluster
from analysis.stats.comparison import Comparison
from study.errors import StudyError

N_FOLDS = 10
SHRINKS = (
    "a map read from all sources together shrinks the gaps between them: it is for reading a score, "
    "not for comparing sources"
)


@dataclass(frozen=True)
class MapReport:
    """Maps with their errors on unseen items.

    `errors` has a row per map and way of leaving out: `map`, `left_out`, `rmse`, `low`, `high`, `mae`, `bias`
    (read − panel), `n_clipped`, `n`. `best` is the map with the least error by prompt, `fitted` it and the others
    on all items; `read_as` (n,) are its values of unseen items. `sources` has panel, judge and cross-fitted means
    by source, `gap` and `gap_read` the distance from the best to the worst source by the panel and by the map.
    `error` is the calibration error of the judge as it is, `error_read` that of the best map.
    """

    errors: pd.DataFrame
    best: Kind
    fitted: dict[str, Map]
    read_as: np.ndarray
    residual_sd: float
    sources: pd.DataFrame
    gap: float
    gap_read: float
    error: CalibrationError
    error_read: CalibrationError
    notes: tuple[str, ...] = ()


def map_report(comparison: Comparison, *, n_boot: int = 1000, seed: int = 0, level: float = 0.95) -> MapReport:
    """Every map, cross-fitted by clusters, by cases and by sources, beside the judge as it is.

    Raises
    ------
    StudyError : a constant judge or panel; fewer than two clusters
    """
    data = comparison.labelled()
    mean = data.panel_mean
    if data.n_clusters < 2:
        raise StudyError(f"one {data.unit} only: a map cannot be tried on another; calibrate on two or more")
    folds = _folds(data, np.random.default_rng(seed))
    rows = [_errors("none (as it is)", "—", data.score, mean, data.cluster, 0, n_boot, seed, level)]
    read: dict[str, np.ndarray] = {}
    fitted: dict[str, Map] = {}
    ratings = np.unique(data.panel[np.isfinite(data.panel)])
    kinds = [k for k in KINDS if k != "cumulative_logit" or len(ratings) <= MOST_CATEGORIES]
    notes = (SHRINKS,)
    if len(kinds) < len(KINDS):
        notes += (f"{len(ratings)} distinct panel ratings: no cumulative-logit map, which is for rating scales",)
    for kind in kinds:
        panel = data.panel if kind == "cumulative_logit" else mean
        fitted[kind] = fit_map(kind, data.score, panel)
        inside = fitted[kind](data.score)
        rows.append(_errors(kind, "nothing (in sample)", inside, mean, data.cluster, 0, n_boot, seed, level))
        for left_out, fold in folds.items():
            found = cross_fit(kind, data.score, panel, fold)
            clipped = int(found.clipped.sum())
            rows.append(_errors(kind, left_out, found.values, mean, data.cluster, clipped, n_boot, seed, level))
            read.setdefault(kind, found.values)
    errors = pd.DataFrame(rows)
    unseen = errors[errors["left_out"] == next(iter(folds))]
    best = unseen.loc[unseen["rmse"].idxmin(), "map"]
    sources = _sources(data, mean, read[best])
    return MapReport(
        errors=errors, best=best, fitted=fitted, read_as=read[best],
        residual_sd=float(np.std(mean - read[best], ddof=1)),
        sources=sources, gap=_range(sources, "panel"), gap_read=_range(sources, "read_as"),
        error=calibration_error(data.score, mean, data.cluster, n_boot=n_boot, seed=seed, level=level),
        error_read=calibration_error(data.score, mean, data.cluster, predicted=read[best], n_boot=n_boot,
                                     seed=seed, level=level),
        notes=notes,
    )  # fmt: skip


def _folds(data: Comparison, rng: np.random.Generator) -> dict[str, np.ndarray]:
    unit = "item" if data.unit == "label" else data.unit
    folds = {f"a tenth of {unit}s": folds_of(data.cluster, N_FOLDS, rng)}
    for column in ("case", "source"):
        if column in data.items and column != data.unit:
            codes, levels = data.codes(column)
            if len(levels) > 1 and (codes >= 0).all():
                folds[f"one {column}"] = codes
    return folds


def _errors(
    kind: str,
    left_out: str,
    values: np.ndarray,
    mean: np.ndarray,
    cluster: np.ndarray,
    clipped: int,
    n_boot: int,
    seed: int,
    level: float,
) -> dict[str, float | str | int]:
    off = values - mean
    sums = sums_by_cluster(np.column_stack([np.ones_like(off), off**2]), cluster)
    draws = bootstrap(sums, _root_mean, n_boot=n_boot, seed=seed)
    error, low, high = percentiles(draws[:, 0], f"error of {kind}", level, groups=len(sums))
    return {
        "map": kind, "left_out": left_out, "rmse": float(np.sqrt((off**2).mean())), "std_error": error, "low": low,
        "high": high, "mae": float(np.abs(off).mean()), "bias": float(off.mean()), "n_clipped": clipped,
        "n": len(off),
    }  # fmt: skip


def _root_mean(sums: np.ndarray) -> np.ndarray:
    return np.sqrt(sums[:, 1:] / sums[:, :1])


def _sources(data: Comparison, mean: np.ndarray, read: np.ndarray) -> pd.DataFrame:
    rows = []
    for source in data.sources or ["all"]:
        here = (data.items["source"] == source).to_numpy() if data.sources else np.ones(data.n, bool)
        rows.append({"source": source, "panel": float(mean[here].mean()), "judge": float(data.score[here].mean()),
                     "read_as": float(read[here].mean()), "n": int(here.sum())})  # fmt: skip
    return pd.DataFrame(rows)


def _range(sources: pd.DataFrame, column: str) -> float:
    return float(sources[column].max() - sources[column].min())
