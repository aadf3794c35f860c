"""How well a judge orders items and sources, with what ties and chance alone would give."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.stats import pairs
from analysis.stats.calibration_map import folds_of
from analysis.stats.clusters import Estimate, bootstrap, bootstrapped, percentiles, sums_by_cluster
from analysis.stats.comparison import Comparison
from analysis.stats.ranking import (
    SoftAccuracy,
    grouped_correlation,
    soft_accuracy_of_sums,
    soft_columns,
    soft_pairwise_accuracy,
)
from study.errors import StudyError

_FEWEST_PAIRS = 10  # of sources, below which their order is hardly testable


@dataclass(frozen=True)
class RankReport:
    """Order of items and of sources.

    `pairs` has a row per grouping (none, by source, by prompt): `accuracy` with `low` and `high`, `always_tie`,
    `permuted`, `tau_eq`, `tau_b`, `gamma`, `somers_d`, `n_pairs`. `tied` is the accuracy within prompts with a tie
    threshold from other prompts. `soft` is soft pairwise accuracy of sources with its interval, `order` the
    sources' means and ranks.
    """

    pairs: pd.DataFrame
    tied: float
    thresholds: tuple[float, ...]
    soft: Estimate | None
    soft_detail: SoftAccuracy | None
    order: pd.DataFrame
    correlations: dict[str, float]
    notes: tuple[str, ...] = ()


def rank_report(comparison: Comparison, *, n_boot: int = 1000, seed: int = 0, level: float = 0.95) -> RankReport:
    """Pairwise accuracy with ties, relatives of tau, and soft pairwise accuracy of sources.

    Raises
    ------
    StudyError : fewer than two items
    """
    data = comparison.labelled()
    mean, rng = data.panel_mean, np.random.default_rng(seed)
    notes: list[str] = []
    rows = [_all_pairs(mean, data.score)]
    tied, thresholds = np.nan, ()
    if "source" in data.items and 1 < len(data.sources) < data.n:
        rows.append(_grouped("by source", data, mean, data.codes("source")[0], None, n_boot, seed, level))
    if data.n_clusters < data.n:
        rows.append(_grouped(f"by {data.unit}", data, mean, data.cluster, data.cluster, n_boot, seed, level))
        try:
            fold = folds_of(data.cluster, 10, rng)
            tied, chosen = pairs.cross_fitted_accuracy(mean, data.score, data.cluster, fold)
            thresholds = tuple(chosen.tolist())
        except StudyError as error:
            notes.append(str(error))
    soft = detail = None
    correlations: dict[str, float] = {}
    if data.n_clusters < data.n and len(data.sources) > 1:
        panel, judge, lost = _crossed(data, mean)
        if lost:
            notes.append(f"{lost} {data.unit}s lack a source and are left out of soft pairwise accuracy")
        soft, detail = _soft(panel, judge, data, n_boot, seed, level, rng)
        correlations = _correlations(panel, judge)
        n_pairs = len(data.sources) * (len(data.sources) - 1) // 2
        if n_pairs <= _FEWEST_PAIRS:
            notes.append(f"{len(data.sources)} sources make {n_pairs} pairs: their order is hardly testable")
    return RankReport(pd.DataFrame(rows), float(tied), thresholds, soft, detail, _order(data, mean), correlations,
                      tuple(notes))  # fmt: skip


def crossed_scores(comparison: Comparison) -> tuple[np.ndarray, np.ndarray, int]:
    """Source × prompt scores of panel and judge where all sources are there, and how many prompts are not."""
    data = comparison.labelled()
    return _crossed(data, data.panel_mean)


def _all_pairs(mean: np.ndarray, score: np.ndarray) -> dict[str, float | str | int]:
    return _row("none", pairs.pair_counts(mean, score), score)


def _row(grouping: str, counts: pairs.PairCounts, score: np.ndarray) -> dict[str, float | str | int]:
    return {
        "grouping": grouping, "accuracy": pairs.accuracy(counts), "low": np.nan, "high": np.nan,
        "always_tie": pairs.always_tie(counts), "permuted": pairs.permuted(counts, pairs.tie_rate(score)),
        "tau_eq": pairs.tau_eq(counts), "tau_b": pairs.tau_b(counts), "gamma": pairs.gamma(counts),
        "somers_d": pairs.somers_d(counts), "n_pairs": int(counts.total),
    }  # fmt: skip


def _grouped(
    name: str,
    data: Comparison,
    mean: np.ndarray,
    group: np.ndarray,
    cluster: np.ndarray | None,
    n_boot: int,
    seed: int,
    level: float,
) -> dict[str, float | str | int]:
    counts = pairs.counts_within(mean, data.score, group)
    row = _row(name, counts.summed(), data.score)
    if cluster is not None:
        right = np.column_stack([counts.concordant + counts.tied_both, counts.total])
        draws = bootstrap(right.astype(float), _share, n_boot=n_boot, seed=seed)
        _, row["low"], row["high"] = percentiles(
            draws[:, 0], f"pairwise accuracy {name}", level, groups=len(right)
        )
    return row


def _share(sums: np.ndarray) -> np.ndarray:
    return sums[:, :1] / sums[:, 1:]


def _crossed(data: Comparison, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    panel, judge = data.crossed(mean), data.crossed(data.score)
    whole = np.isfinite(panel).all(0)
    if whole.sum() < 2:
        raise StudyError(
            f"fewer than two {data.unit}s have every source: sources cannot be ordered on the same ones"
        )
    return panel[:, whole], judge[:, whole], int((~whole).sum())


def _soft(
    panel: np.ndarray,
    judge: np.ndarray,
    data: Comparison,
    n_boot: int,
    seed: int,
    level: float,
    rng: np.random.Generator,
) -> tuple[Estimate, SoftAccuracy]:
    detail = soft_pairwise_accuracy(panel, judge, rng=rng)
    sums = sums_by_cluster(soft_columns(panel, judge), np.arange(panel.shape[1]))
    draws = bootstrap(sums, _OfSums(len(panel)), n_boot=n_boot, seed=seed)
    made = bootstrapped(np.array([detail.estimate]), draws, ["soft pairwise accuracy"], panel.size, panel.shape[1],
                        level)  # fmt: skip
    return made[0], detail


class _OfSums:
    """`soft_accuracy_of_sums` for so many sources; can be sent to another process."""

    def __init__(self, n_sources: int):
        self.n_sources = n_sources

    def __call__(self, sums: np.ndarray) -> np.ndarray:
        return soft_accuracy_of_sums(sums, self.n_sources)


def _correlations(panel: np.ndarray, judge: np.ndarray) -> dict[str, float]:
    found = {}
    for grouping in ("none", "by source", "by prompt"):
        for measure in ("pearson", "tau_b"):
            try:
                found[f"{measure}, {grouping}"] = grouped_correlation(panel, judge, grouping, measure)
            except StudyError:
                found[f"{measure}, {grouping}"] = np.nan
    return found


def _order(data: Comparison, mean: np.ndarray) -> pd.DataFrame:
    if not data.sources:
        return pd.DataFrame(columns=["source", "panel", "judge", "panel_rank", "judge_rank"])
    codes, levels = data.codes("source")
    held = np.bincount(codes)
    table = pd.DataFrame({"source": levels, "panel": np.bincount(codes, mean) / held,
                          "judge": np.bincount(codes, data.score) / held})  # fmt: skip
    for who in ("panel", "judge"):
        table[f"{who}_rank"] = table[who].round(9).rank(ascending=False, method="average")
    return table
