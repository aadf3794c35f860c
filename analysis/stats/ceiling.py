"""How the judge does beside the raters on the same target, and what it does to the panel's agreement."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from analysis.stats.agreement import Level, icc, krippendorff_alpha, value_counts
from analysis.stats.agreement_intervals import coefficients
from analysis.stats.clusters import Estimate, bootstrap, bootstrapped, percentiles, sums_by_cluster, weight_blocks
from analysis.stats.comparison import Comparison
from analysis.stats.pairs import counts_within
from study.errors import StudyError

MEASURES = ("r", "mae", "kappa", "pairwise_accuracy")
_MOST_VALUES = 30  # distinct ratings beyond which alpha is taken at the interval level


@dataclass(frozen=True)
class Ceiling:
    """Judge and raters against the same leave-one-rater-out targets.

    `by_rater` has one row per rater left out: the rater's and the judge's value of each measure against the mean
    of the others. `estimates` has, for each measure, the raters' mean, the judge's mean and judge minus raters.
    """

    by_rater: pd.DataFrame
    estimates: list[Estimate]
    notes: tuple[str, ...] = ()

    def difference(self, measure: str) -> Estimate:
        return next(e for e in self.estimates if e.term == f"{measure}: judge − raters")


def leave_one_rater_out(
    comparison: Comparison, *, n_boot: int = 1000, seed: int = 0, level: float = 0.95
) -> Ceiling:
    """Judge and rater j against the mean of the other raters, for each j, with a bootstrap over clusters.

    Measures: Pearson's r; mean absolute error; quadratic kappa, in its form for real numbers (Lin's concordance,
    which needs no rounding of the target); pairwise accuracy with ties, within clusters.

    Judge against the whole panel beside rater against the rest would be unfair: the whole panel's mean is the
    better target.

    Raises
    ------
    StudyError : fewer than two raters, no variation
    """
    data = comparison.labelled()
    k = data.panel.shape[1]
    if k < 2:
        raise StudyError(f"only {data.raters[0]} is in the panel: a leave-one-out target needs two raters or more")
    blocks, notes = [], []
    pairs = len(data.score) > data.n_clusters
    for j in range(k):
        rest = data.keep(np.isfinite(data.panel[:, j]))
        target = _row_mean(np.delete(rest.panel, j, axis=1))
        used = np.isfinite(target)
        rest, target = rest.keep(used), target[used]
        if rest.n < 3:
            notes.append(f"{data.raters[j]} shares fewer than 3 items with the others: left out of the ceiling")
            continue
        blocks.append((j, _padded(rest.panel[:, j], rest.score, target, rest.cluster, data.cluster)))
    if not blocks:
        raise StudyError(f"no rater of {data.metric} shares three items with another: there is no ceiling")
    sums = np.concatenate([block for _, block in blocks], axis=1)
    names = [data.raters[j] for j, _ in blocks]
    measured = _Measures(len(blocks))
    values = measured(sums.sum(0)[None, :])[0].reshape(3, len(MEASURES))
    draws = bootstrap(sums, measured, n_boot=n_boot, seed=seed)
    terms = [f"{m}: {who}" for who in ("raters", "judge", "judge − raters") for m in MEASURES]
    shown = [i for i, t in enumerate(terms) if pairs or not t.startswith("pairwise")]
    if not pairs:
        notes.append("one item per cluster: no pairs within clusters, so no pairwise accuracy")
    estimates = bootstrapped(
        values.ravel()[shown], draws[:, shown], [terms[i] for i in shown], data.n, data.n_clusters, level
    )
    each = measured.by_block(sums.sum(0)[None, :])[0]
    table = pd.DataFrame({"rater": names})
    for m, measure in enumerate(MEASURES):
        if pairs or measure != "pairwise_accuracy":
            table[f"rater_{measure}"], table[f"judge_{measure}"] = each[:, 0, m], each[:, 1, m]
    return Ceiling(table, estimates, tuple(notes))


class _Measures:
    """Sums of the blocks → raters' mean, judge's mean and their difference, of each measure."""

    def __init__(self, blocks: int):
        self.blocks = blocks

    def by_block(self, sums: np.ndarray) -> np.ndarray:
        """… × block × (rater, judge) × measure."""
        s = sums.reshape(*sums.shape[:-1], self.blocks, 2, _WIDTH)
        n, x, y, xx, yy, xy, off, right, pairs = np.moveaxis(s, -1, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mx, my = x / n, y / n
            vx, vy, cov = xx / n - mx**2, yy / n - my**2, xy / n - mx * my
            vx, vy = np.where(vx > 1e-12, vx, np.nan), np.where(vy > 1e-12, vy, np.nan)
            kappa = 2 * cov / (vx + vy + (mx - my) ** 2)
            return np.stack([cov / np.sqrt(vx * vy), off / n, kappa, right / pairs], axis=-1)

    def __call__(self, sums: np.ndarray) -> np.ndarray:
        means = self.by_block(sums).mean(-3)
        both = np.concatenate([means, (means[..., 1, :] - means[..., 0, :])[..., None, :]], axis=-2)
        return both.reshape(*both.shape[:-2], -1)


_WIDTH = 9  # n, Σx, Σy, Σx², Σy², Σxy, Σ|x−y|, right pairs, pairs


def _padded(
    rater: np.ndarray, judge: np.ndarray, target: np.ndarray, cluster: np.ndarray, every: np.ndarray
) -> np.ndarray:
    """Sums by cluster for rater and judge, zero for clusters without a rating."""
    rows = []
    for x in (rater, judge):
        columns = np.column_stack([np.ones_like(x), x, target, x**2, target**2, x * target, np.abs(x - target)])
        pairs = counts_within(target, x, cluster)
        right = pairs.concordant + pairs.tied_both
        rows.append(np.column_stack([sums_by_cluster(columns, cluster), right, pairs.total]))
    found = np.searchsorted(np.unique(every), np.unique(cluster))
    block = np.zeros((len(np.unique(every)), 2 * _WIDTH))
    block[found] = np.concatenate(rows, axis=1)
    return block


def _row_mean(table: np.ndarray) -> np.ndarray:
    counts = np.isfinite(table).sum(1)
    total = np.where(np.isfinite(table), table, 0).sum(1)
    return np.divide(total, counts, out=np.full(len(table), np.nan), where=counts > 0)


@dataclass(frozen=True)
class InPanel:
    """Agreement of the panel without and with the judge, and the change; the weak test of a judge."""

    estimates: list[Estimate]
    alpha_level: Level
    notes: tuple[str, ...] = ()


def in_panel(
    comparison: Comparison,
    *,
    alpha_level: Level = "ordinal",
    n_boot: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> InPanel:
    """ICC(A,1) and Krippendorff's alpha of the panel with and without the judge as one more rater.

    One rater more barely moves a large panel, so a small change says little. ICC needs every cell rated and is
    left out, with a note, where one is missing.

    Raises
    ------
    StudyError : as `krippendorff_alpha` says
    """
    data = comparison.labelled()
    tables = {"panel": data.panel, "with judge": np.column_stack([data.panel, data.score])}
    values = np.unique(tables["with judge"][np.isfinite(tables["with judge"])])
    notes: tuple[str, ...] = ()
    if len(values) > _MOST_VALUES:
        alpha_level = "interval"
        notes += (f"{len(values)} distinct scores: alpha is taken at the interval level",)
    complete = bool(np.isfinite(tables["with judge"]).all())
    if not complete:
        notes += ("some cells are unrated: ICC(A,1), which needs all, is left out; see alpha",)
    codes = np.unique(data.cluster, return_inverse=True)[1]
    point, draws = {}, {}
    for name, table in tables.items():
        frame = pd.DataFrame(table)
        point[f"alpha: {name}"] = krippendorff_alpha(frame, alpha_level)
        draws[f"alpha: {name}"] = _resampled(partial(_alpha_draws, frame, alpha_level), codes, n_boot, seed)
        if complete:
            six = icc(frame).set_index("term")
            point[f"ICC(A,1): {name}"] = float(six.loc["ICC(2,1)", "estimate"])
            draws[f"ICC(A,1): {name}"] = _resampled(partial(_icc_draws, table), codes, n_boot, seed)
    estimates = []
    for measure in ("ICC(A,1)", "alpha") if complete else ("alpha",):
        before, after = f"{measure}: panel", f"{measure}: with judge"
        change = f"{measure}: change"
        point[change], draws[change] = point[after] - point[before], draws[after] - draws[before]
        for term in (before, after, change):
            error, low, high = percentiles(draws[term], term, level, groups=data.n_clusters)
            estimates.append(Estimate(term, point[term], error, np.inf, low, high, data.n, data.n_clusters))
    return InPanel(estimates, alpha_level, notes)


def _resampled(
    statistic: Callable[[np.ndarray], np.ndarray], codes: np.ndarray, n_boot: int, seed: int
) -> np.ndarray:
    """A statistic of item multiplicities, whose clusters are drawn with replacement."""
    blocks = weight_blocks(codes.max() + 1, n_boot, seed, wide=len(codes))
    return np.concatenate([statistic(weights[:, codes]) for weights in blocks])


def _alpha_draws(table: pd.DataFrame, alpha_level: Level, weights: np.ndarray) -> np.ndarray:
    if alpha_level == "interval":
        return _interval_alpha(table.to_numpy(float), weights)
    counts, values = value_counts(table)
    return coefficients(counts, counts.sum(1), weights, values, alpha_level)[:, 0]


def _interval_alpha(y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Interval alpha of resampled items, from sums."""
    filled = np.where(np.isfinite(y), y, 0)
    n = np.isfinite(y).sum(1)
    total, square = filled.sum(1), (filled**2).sum(1)
    shared = n >= 2
    within = np.where(shared, 2 * (n * square - total**2) / np.maximum(n - 1, 1), 0)
    observed, size, s, q = (weights @ np.where(shared, part, 0) for part in (within, n, total, square))
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - observed / (2 * (size * q - s**2) / (size - 1))


def _icc_draws(y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """ICC(A,1) of resampled items, from sums (McGraw & Wong 1996, case 2A)."""
    k = y.shape[1]
    n = weights.sum(1)
    means = y.mean(1)
    columns = weights @ y
    grand = columns.sum(1) / (n * k)
    items = k * (weights @ means**2 - n * grand**2)
    raters = (columns**2).sum(1) / n - n * k * grand**2
    total = weights @ (y**2).sum(1) - n * k * grand**2
    ms_items, ms_raters = items / (n - 1), raters / (k - 1)
    ms_error = (total - items - raters) / ((n - 1) * (k - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (ms_items - ms_error) / (ms_items + (k - 1) * ms_error + k * (ms_raters - ms_error) / n)
