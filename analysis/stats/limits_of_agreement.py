"""How far apart judge and panel may be on one item: Bland and Altman's limits, with clustered items."""

from dataclasses import dataclass

import numpy as np

from analysis.stats.clusters import Estimate, cluster_mean
from study.errors import StudyError

REACH = 1.96  # standard deviations on either side


@dataclass(frozen=True)
class Limits:
    """Mean difference with its interval, the limits mean ± 1.96 sd with their standard error, and the slope.

    `sd` adds the variance between clusters to that within; `slope` is that of the difference on the average of the
    two: a slope says that the difference depends on the level (or that a ceiling cuts a wedge).
    """

    difference: Estimate
    sd: float
    low: float
    high: float
    std_error_limit: float
    slope: Estimate


def limits_of_agreement(
    score: np.ndarray, reference: np.ndarray, cluster: np.ndarray | None = None, *, level: float = 0.95
) -> Limits:
    """Limits of agreement of `score` − `reference`.

    Parameters
    ----------
    cluster : (n,) units that items come in; each item its own if not given

    Raises
    ------
    StudyError : fewer than three items

    References
    ----------
    Bland & Altman (1986), Lancet 327, 307–310; (1999), Statistical Methods in Medical Research 8, 135–160.
    """
    score, reference = np.asarray(score, float), np.asarray(reference, float)
    if len(score) < 3:
        raise StudyError(f"{len(score)} items: limits of agreement need three or more")
    cluster = np.arange(len(score)) if cluster is None else cluster
    difference = score - reference
    mean = cluster_mean(difference, cluster, "judge − panel", level=level)
    sd = _total_sd(difference, cluster)
    return Limits(mean, sd, mean.estimate - REACH * sd, mean.estimate + REACH * sd,
                  float(np.sqrt(3 * sd**2 / mean.n_clusters)), _slope(difference, (score + reference) / 2, cluster,
                                                                      level))  # fmt: skip


def _total_sd(values: np.ndarray, cluster: np.ndarray) -> float:
    """√(variance between + variance within), by the one-way mean squares; plain sd where no cluster has two."""
    codes = np.unique(cluster, return_inverse=True)[1]
    sizes = np.bincount(codes)
    n, groups = len(values), len(sizes)
    if groups == n or groups < 2:
        return float(values.std(ddof=1))
    means = np.bincount(codes, values) / sizes
    within = ((values - means[codes]) ** 2).sum() / (n - groups)
    between = (sizes * (means - values.mean()) ** 2).sum() / (groups - 1)
    usual = (n - (sizes**2).sum() / n) / (groups - 1)
    return float(np.sqrt(within + max((between - within) / usual, 0.0)))


def _slope(difference: np.ndarray, average: np.ndarray, cluster: np.ndarray, level: float) -> Estimate:
    """Slope by least squares, its error from clustered scores."""
    centred = average - average.mean()
    size = (centred**2).sum()
    if size < 1e-12:
        return Estimate("slope", np.nan, np.nan, np.nan, np.nan, np.nan, len(average), len(np.unique(cluster)))
    slope = float((centred * difference).sum() / size)
    residual = difference - difference.mean() - slope * centred
    influence = slope + len(average) * centred * residual / size
    found = cluster_mean(influence, cluster, "slope", level=level)
    return found
