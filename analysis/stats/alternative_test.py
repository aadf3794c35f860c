"""Is a judge as good as a rater? The alternative annotator test, with items that come in clusters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.stats.adjust import adjusted as by_size_of_family
from analysis.stats.clusters import Estimate, cluster_mean, clustered_se, enough, t_interval, t_test
from analysis.stats.comparison import Comparison
from study.errors import StudyError

Score = Literal["neg_rmse", "accuracy"]
FEWEST_ITEMS = 30  # per rater; Calderon et al. (2025) recommend 50 to 100
FEWEST_RATERS = 3
TIE = 1e-9  # scores that differ by less are the same score
# The advantage a judge is granted for being cheaper than a rater (Calderon et al. 2025, section 3).
EPSILON = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}


@dataclass(frozen=True)
class AlternativeTest:
    """Outcome of the test.

    `rho` is the chance that the judge agrees with the rest at least as well as a rater does, averaged over raters;
    `omega` the share of raters it beats, `passed` whether that is at least half. `win`, `lose` and `tie` are the
    shares of judge–rater meetings. The arrays are by rater of `raters`; `skipped` are raters with too few items.
    """

    epsilon: float
    score: Score
    q: float
    omega: float
    passed: bool
    rho: Estimate
    raters: tuple[str, ...]
    rho_by_rater: np.ndarray
    rho_human: np.ndarray
    p_values: np.ndarray
    p_adjusted: np.ndarray
    beaten: np.ndarray
    win: float
    lose: float
    tie: float
    n: int
    n_clusters: int
    skipped: dict[str, int]
    notes: tuple[str, ...] = ()


def alternative_test(
    comparison: Comparison,
    *,
    epsilon: float = EPSILON["expert"],
    score: Score = "neg_rmse",
    q: float = 0.05,
    level: float = 0.95,
) -> AlternativeTest:
    """Whether the compared rater could stand in for a randomly chosen one of the panel.

    For each rater j and item i the judge's and rater j's scores are held against those of the others; W_f is 1
    where the judge fits at least as well, W_h where the rater does (a tie counts for both). Rater j is beaten if
    the mean of W_h − W_f is below `epsilon` by a one-sided t test with cluster-robust variance and
    Benjamini–Yekutieli control over raters.

    Raises
    ------
    StudyError : fewer than three raters, fewer than ten clusters, or no rater with thirty items

    References
    ----------
    Calderon, Reichart & Dror (2025), ACL, arXiv 2501.10970.
    """
    data = comparison.labelled()
    if data.panel.shape[1] < FEWEST_RATERS:
        raise StudyError(
            f"the alternative annotator test needs {FEWEST_RATERS} raters or more in the panel; "
            f"{comparison.metric} has {', '.join(data.raters)}"
        )
    notes = enough(data.cluster, data.unit, "an alternative annotator test")
    fits, judged, usable = _meetings(data.panel, data.score, _SCORES[score])
    counts = usable.sum(0)
    kept = counts >= FEWEST_ITEMS
    if not kept.any():
        most = int(counts.max())
        raise StudyError(
            f"the alternative annotator test needs {FEWEST_ITEMS} items per rater; "
            f"no rater has more than {most} that others rated too"
        )
    skipped = {data.raters[j]: int(counts[j]) for j in np.flatnonzero(~kept)}
    if skipped:
        few = ", ".join(f"{name} ({n})" for name, n in skipped.items())
        notes += (f"left out of the test for fewer than {FEWEST_ITEMS} items: {few}",)
    w_f, w_h, usable = (judged >= fits - TIE)[:, kept], (fits >= judged - TIE)[:, kept], usable[:, kept]
    p_values = np.array([_p(w_f[u, j], w_h[u, j], data.cluster[u], epsilon) for j, u in enumerate(usable.T)])
    # A p that is not defined is a test made all the same, and none that was won.
    adjusted = by_size_of_family(np.where(np.isnan(p_values), 1.0, p_values), "BY")
    beaten = adjusted <= q
    undefined = int(np.isnan(p_values).sum())
    if undefined:
        notes += (
            f"p is not defined for {undefined} raters (every difference equals epsilon); not counted as beaten",
        )
    if usable.any(1).sum() < 50:
        notes += ("fewer than 50 items: the test's authors recommend 50 to 100",)
    rho_by = _column_means(w_f, usable)
    return AlternativeTest(
        epsilon=epsilon, score=score, q=q, omega=float(beaten.mean()), passed=bool(beaten.mean() >= 0.5),
        rho=_mean_of_raters(w_f, usable, rho_by, data.cluster, level),
        raters=tuple(name for name, k in zip(data.raters, kept, strict=True) if k),
        rho_by_rater=rho_by, rho_human=_column_means(w_h, usable), p_values=p_values, p_adjusted=adjusted,
        beaten=beaten, win=float((w_f & ~w_h)[usable].mean()), lose=float((w_h & ~w_f)[usable].mean()),
        tie=float((w_f & w_h)[usable].mean()), n=int(usable.any(1).sum()),
        n_clusters=len(np.unique(data.cluster[usable.any(1)])), skipped=skipped, notes=notes,
    )  # fmt: skip


def _meetings(
    panel: np.ndarray, score: np.ndarray, fit: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Item × rater: how well the rater fits the others, how well the judge does, and where both are defined."""
    n, k = panel.shape
    raters, judge = np.full((n, k), np.nan), np.full((n, k), np.nan)
    for j in range(k):
        others = np.delete(panel, j, axis=1)
        raters[:, j], judge[:, j] = fit(panel[:, j], others), fit(score, others)
    return raters, judge, np.isfinite(raters) & np.isfinite(judge)


def _neg_rmse(score: np.ndarray, others: np.ndarray) -> np.ndarray:
    return -np.sqrt(_row_mean((others - score[:, None]) ** 2))


def _accuracy(score: np.ndarray, others: np.ndarray) -> np.ndarray:
    same = (np.abs(others - score[:, None]) < TIE).astype(float)
    return _row_mean(np.where(np.isfinite(others) & np.isfinite(score)[:, None], same, np.nan))


_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "neg_rmse": _neg_rmse,
    "accuracy": _accuracy,
}


def _row_mean(table: np.ndarray) -> np.ndarray:
    found = np.isfinite(table)
    counts = found.sum(1)
    total = np.where(found, table, 0).sum(1)
    return np.divide(total, counts, out=np.full(len(table), np.nan), where=counts > 0)


def _column_means(won: np.ndarray, usable: np.ndarray) -> np.ndarray:
    return (won & usable).sum(0) / usable.sum(0)


def _p(w_f: np.ndarray, w_h: np.ndarray, cluster: np.ndarray, epsilon: float) -> float:
    difference = w_h.astype(float) - w_f.astype(float)
    return cluster_mean(difference, cluster, null=epsilon, alternative="smaller").p_value


def _mean_of_raters(
    won: np.ndarray, usable: np.ndarray, by_rater: np.ndarray, cluster: np.ndarray, level: float
) -> Estimate:
    """Mean of the raters' shares, its error from each item's influence on them."""
    n, k = usable.shape
    influence = (np.where(usable, won - by_rater, 0) * (n / usable.sum(0))).sum(1) / k
    error, rho = clustered_se(influence, cluster), float(by_rater.mean())
    groups = len(np.unique(cluster))
    low, high = t_interval(rho, error, groups - 1.0, level)
    t, p = t_test(rho - 0.5, error, groups - 1.0)
    return Estimate("rho", rho, error, groups - 1.0, max(low, 0.0), min(high, 1.0), n, groups, t, p)
