"""Inference when items come in clusters: five answers to one prompt are not five independent observations.

Every statistic here is either a mean, or a function of sums over items. A resample of clusters is then one
matrix product, so that a thousand replicates cost about as much as one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import special

from study.errors import StudyError

FEWEST = 10  # clusters below which a cluster-t interval is refused
FEW = 30  # clusters below which it comes with a warning
CELLS_AT_ONCE = 2_000_000  # replicate × cluster cells held at once: 16 MB

Alternative = Literal["two-sided", "larger", "smaller"]
Statistic = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; `n` items in `n_clusters` clusters, `df` of the t quantile."""

    term: str
    estimate: float
    std_error: float
    df: float
    low: float
    high: float
    n: int
    n_clusters: int
    statistic: float = np.nan
    p_value: float = np.nan

    def record(self) -> dict[str, float | str | int]:
        """The estimate in the broom convention."""
        names = ("term", "estimate", "std_error", "df", "statistic", "p_value", "low", "high", "n", "n_clusters")
        return {name: getattr(self, name) for name in names}


def enough(cluster: np.ndarray, unit: str, what: str) -> tuple[str, ...]:
    """A note where clusters are few.

    Raises
    ------
    StudyError : below ten clusters, where no cluster-robust interval keeps its level
    """
    found, unit = len(np.unique(cluster)), "item" if unit == "label" else unit
    if found < FEWEST:
        plural = "" if found == 1 else "s"
        raise StudyError(
            f"{what} cannot be supported by {found} {unit}{plural}: items of one {unit} are not independent, and "
            f"fewer than {FEWEST} {unit}s give intervals that do not keep their level; rate more {unit}s"
        )
    if found < FEW:
        return (f"{what}: only {found} {unit}s, fewer than {FEW}; take the interval as rough",)
    return ()


def cluster_mean(
    values: np.ndarray,
    cluster: np.ndarray,
    term: str = "mean",
    *,
    null: float = 0.0,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> Estimate:
    """The mean of `values`, with the cluster-robust (CR1) standard error and t on clusters − 1.

    With equal cluster sizes this is the t interval of the cluster means. One cluster gives nan, never zero.

    Parameters
    ----------
    values, cluster : (n,), no value missing
    null, alternative : of the test; "larger" tests against a mean above `null` and gives [low, inf]

    References
    ----------
    Miller (2024), arXiv 2411.00640; Cameron & Miller (2015), Journal of Human Resources 50, 317–372.
    """
    n, groups = len(values), len(np.unique(cluster))
    mean = float(values.mean()) if n else np.nan
    error = clustered_se(values, cluster)
    df = groups - 1.0
    low, high = t_interval(mean, error, df, level, alternative)
    statistic, p_value = t_test(mean - null, error, df, alternative)
    return Estimate(term, mean, error, df, low, high, n, groups, statistic, p_value)


def clustered_se(values: np.ndarray, cluster: np.ndarray, correction: Literal["CR0", "CR1"] = "CR1") -> float:
    """Standard error of a mean whose items come in clusters; nan with fewer than two clusters."""
    codes = np.unique(cluster, return_inverse=True)[1]
    sums = np.bincount(codes, values - values.mean() if len(values) else values)
    groups = len(sums)
    if groups < 2:
        return np.nan
    factor = groups / (groups - 1) if correction == "CR1" else 1.0
    error = np.sqrt(factor * (sums**2).sum()) / len(values)
    # Deviations of equal numbers cancel only to rounding; such an error is no spread at all.
    return float(error) if error > 1e-12 * max(1.0, np.abs(values).max()) else 0.0


def t_interval(
    estimate: float, error: float, df: float, level: float = 0.95, alternative: Alternative = "two-sided"
) -> tuple[float, float]:
    """A t interval, normal where `df` is infinite; one-sided ones end in infinity."""
    if not np.isfinite(error) or df < 1:
        return np.nan, np.nan
    tail = (1 - level) / 2 if alternative == "two-sided" else 1 - level
    estimate, reach = float(estimate), float(t_quantile(1 - tail, df) * error)
    low = -np.inf if alternative == "smaller" else estimate - reach
    high = np.inf if alternative == "larger" else estimate + reach
    return low, high


def t_test(
    difference: float, error: float, df: float, alternative: Alternative = "two-sided"
) -> tuple[float, float]:
    """t and its p; with no spread at all, p is 0 or 1 by the sign of the difference, and nan where that is 0."""
    if not np.isfinite(error) or df < 1:
        return np.nan, np.nan
    if error == 0:
        if abs(difference) < 1e-12:
            return np.nan, np.nan
        t = np.inf if difference > 0 else -np.inf
    else:
        t = difference / error
    if alternative == "two-sided":
        return float(t), 2 * _t_below(-abs(t), df)
    return float(t), _t_below(-t if alternative == "larger" else t, df)


def t_quantile(p: float, df: float) -> float:
    """Student's quantile; the normal's where `df` is infinite."""
    return float(special.ndtri(p) if np.isinf(df) else special.stdtrit(df, p))


def _t_below(t: float, df: float) -> float:
    return float(special.ndtr(t) if np.isinf(df) else special.stdtr(df, t))


def sums_by_cluster(columns: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Cluster × column sums of item × column values."""
    codes = np.unique(cluster, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes[order])) + 1])
    return np.add.reduceat(columns[order], starts, axis=0)


def jackknife(
    sums: np.ndarray, statistic: Statistic, terms: list[str], n: int, level: float = 0.95
) -> list[Estimate]:
    """Estimates of a smooth function of sums, with delete-one-cluster standard errors and t on clusters − 1.

    A term that cannot be estimated without one of the clusters has no interval: nan.

    Parameters
    ----------
    sums : cluster × column
    statistic : … × column sums → … × term values
    """
    estimates, covariance = jackknife_covariance(sums, statistic)
    groups, found = len(sums), []
    for term, estimate, error in zip(terms, estimates, np.sqrt(np.diag(covariance)), strict=True):
        low, high = t_interval(estimate, error, groups - 1.0, level)
        t, p = t_test(estimate, error, groups - 1.0)
        found.append(Estimate(term, float(estimate), float(error), groups - 1.0, low, high, n, groups, t, p))
    return found


def jackknife_covariance(sums: np.ndarray, statistic: Statistic) -> tuple[np.ndarray, np.ndarray]:
    """Values and covariance of a function of sums, by leaving out one cluster at a time."""
    total = sums.sum(0)
    estimates = np.asarray(statistic(total[None, :]))[0]
    without = np.asarray(statistic(total - sums))
    centred = np.where(np.isfinite(without), without, np.nan) - without.mean(0)
    groups = len(sums)
    return estimates, (groups - 1) / groups * centred.T @ centred


def bootstrap(sums: np.ndarray, statistic: Statistic, *, n_boot: int = 1000, seed: int = 0) -> np.ndarray:
    """n_boot × term values of a function of sums, clusters drawn with replacement.

    The same seed draws the same clusters for every statistic, so that differences of statistics are paired.
    """
    blocks = weight_blocks(len(sums), n_boot, seed)
    return np.concatenate([np.asarray(statistic(weights @ sums)) for weights in blocks])


def weight_blocks(groups: int, n_boot: int, seed: int, wide: int = 0) -> Iterator[np.ndarray]:
    """Replicate × cluster multiplicities, block by block; `wide` is the longest row that is made of them."""
    rows = max(1, min(n_boot, CELLS_AT_ONCE // max(groups, wide)))
    for block, start in enumerate(range(0, n_boot, rows)):
        yield _weights(groups, min(rows, n_boot - start), seed, block)


@lru_cache(maxsize=8)
def _weights(groups: int, rows: int, seed: int, block: int) -> np.ndarray:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))
    weights = multiplicity(groups, rows, rng)
    weights.flags.writeable = False
    return weights


def percentiles(draws: np.ndarray, term: str, level: float = 0.95, *, groups: int) -> tuple[float, float, float]:
    """Standard deviation, low and high of bootstrap draws; nan below ten clusters, which support no interval.

    Raises
    ------
    StudyError : if more than one draw in twenty could not be estimated
    """
    if groups < FEWEST:
        return np.nan, np.nan, np.nan
    kept = draws[np.isfinite(draws)]
    if len(kept) < 0.95 * len(draws):
        raise StudyError(
            f"{term}: {len(draws) - len(kept)} of {len(draws)} bootstrap samples could not be estimated, "
            "too many for an interval; there are too few clusters, or nearly all ratings are equal"
        )
    tail = (1 - level) / 2
    low, high = np.quantile(kept, [tail, 1 - tail])
    return float(kept.std(ddof=1)), float(low), float(high)


def bootstrapped(
    estimates: np.ndarray, draws: np.ndarray, terms: list[str], n: int, groups: int, level: float = 0.95
) -> list[Estimate]:
    """Estimates with percentile intervals from the draws."""
    found = []
    for i, term in enumerate(terms):
        error, low, high = percentiles(draws[:, i], term, level, groups=groups)
        found.append(Estimate(term, float(estimates[i]), error, np.inf, low, high, n, groups))
    return found


def multiplicity(groups: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of `groups` clusters is drawn in each of n samples with replacement."""
    drawn = rng.integers(0, groups, (n, groups)) + groups * np.arange(n)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * groups).reshape(n, groups).astype(float)
