"""What would the panel have said? A panel's mean from few panel ratings and many judged items (PPI, PPI++)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.stats.clusters import (
    FEW,
    FEWEST,
    Alternative,
    Estimate,
    sums_by_cluster,
    t_interval,
    t_quantile,
    t_test,
)
from study.errors import StudyError

Tuning = float | Literal["tuned"]
_MOST_CLUSTERS = 1_000_000


@dataclass(frozen=True)
class Powered:
    """A prediction-powered mean.

    `tuning` is the weight of the judge, 0 (the panel alone) to 1; `correlation` that of judge and panel over
    labelled units; `n_effective` how many panel units alone would be as precise. `classical` is the panel alone.
    """

    estimate: Estimate
    classical: Estimate
    tuning: float
    correlation: float
    n_labelled: int
    n_unlabelled: int
    n_effective: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moments:
    """All that a prediction-powered mean needs of its units: sizes, means, variances (n − 1) and a covariance."""

    n: int
    n_unlabelled: int
    mean: float
    judge: float
    judge_unlabelled: float
    variance: float
    judge_variance: float
    covariance: float
    judge_unlabelled_variance: float
    judge_pooled_variance: float

    @property
    def correlation(self) -> float:
        size = np.sqrt(self.variance * self.judge_variance)
        return float(self.covariance / size) if size > 0 else 0.0


def ppi_mean(
    panel: np.ndarray,
    judge: np.ndarray,
    judge_unlabelled: np.ndarray,
    *,
    cluster: np.ndarray | None = None,
    cluster_unlabelled: np.ndarray | None = None,
    tuning: Tuning = "tuned",
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    ddof: int = 1,
    quantile: Literal["t", "normal"] = "t",
    clip: bool = True,
    term: str = "mean",
) -> Powered:
    """The panel's mean over labelled and unlabelled units, from a judge that rated all of them.

    Valid where the panel rated a random part. Clusters become their means and count alike.

    Parameters
    ----------
    panel, judge : scores of the labelled items
    judge_unlabelled : the judge's scores of items without panel ratings
    cluster, cluster_unlabelled : (n,) and (N,); each item its own if not given
    tuning : "tuned" (PPI++) or a fixed weight: 1 is plain PPI, 0 the panel alone
    alternative : of the interval; "larger" gives [low, inf]
    ddof, quantile, clip : 1, t and True here; ppi-python uses 0, normal and True, GLIDE 1, normal and False

    Raises
    ------
    StudyError : fewer than ten labelled clusters or two unlabelled ones where clusters are given; fewer than two
        units otherwise

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), arXiv 2311.01453.
    """
    labelled = _units(np.column_stack([panel, judge]), cluster)
    unlabelled = _units(np.asarray(judge_unlabelled, float)[:, None], cluster_unlabelled)[:, 0]
    notes = _enough(len(labelled), cluster is not None)
    found = moments(labelled[:, 0], labelled[:, 1], unlabelled, ddof)
    return of_moments(found, tuning=tuning, alternative=alternative, level=level, quantile=quantile, clip=clip,
                      term=term, n_items=len(panel), notes=notes)  # fmt: skip


def moments(panel: np.ndarray, judge: np.ndarray, unlabelled: np.ndarray, ddof: int = 1) -> Moments:
    """The moments of labelled and unlabelled units.

    Raises
    ------
    StudyError : with fewer than two units of a kind
    """
    if len(panel) < 2 or len(unlabelled) < 2:
        raise StudyError(f"{len(panel)} labelled and {len(unlabelled)} unlabelled units: a prediction-powered "
                         "mean needs two of each or more")  # fmt: skip
    covariance = np.cov(panel, judge, ddof=ddof)
    return Moments(
        n=len(panel), n_unlabelled=len(unlabelled), mean=float(panel.mean()), judge=float(judge.mean()),
        judge_unlabelled=float(unlabelled.mean()), variance=float(covariance[0, 0]),
        judge_variance=float(covariance[1, 1]), covariance=float(covariance[0, 1]),
        judge_unlabelled_variance=float(unlabelled.var(ddof=ddof)),
        judge_pooled_variance=float(np.concatenate([judge, unlabelled]).var(ddof=1)),
    )  # fmt: skip


def of_moments(
    m: Moments,
    *,
    tuning: Tuning = "tuned",
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    quantile: Literal["t", "normal"] = "t",
    clip: bool = True,
    term: str = "mean",
    n_items: int | None = None,
    notes: tuple[str, ...] = (),
) -> Powered:
    """The prediction-powered mean of given moments; see `ppi_mean`."""
    weight = _tuned(m, clip) if tuning == "tuned" else float(tuning)
    value = weight * m.judge_unlabelled + m.mean - weight * m.judge
    rest = m.variance - 2 * weight * m.covariance + weight**2 * m.judge_variance
    error = float(np.sqrt(weight**2 * m.judge_unlabelled_variance / m.n_unlabelled + max(rest, 0) / m.n))
    df = m.n - 1.0 if quantile == "t" else np.inf
    size = n_items or m.n
    made = [
        Estimate(name, v, e, df, *t_interval(v, e, df, level, alternative), size, m.n, *t_test(v, e, df))
        for name, v, e in ((term, value, error), (term, m.mean, float(np.sqrt(m.variance / m.n))))
    ]
    return Powered(
        estimate=made[0], classical=made[1], tuning=weight, correlation=m.correlation, n_labelled=m.n,
        n_unlabelled=m.n_unlabelled, n_effective=effective_size(m.n, m.n_unlabelled, m.correlation), notes=notes,
    )  # fmt: skip


def stratified(strata: Sequence[Powered], weights: Sequence[float], *, level: float = 0.95) -> Estimate:
    """The weighted mean of independent strata, each with its own tuning; df by Welch–Satterthwaite.

    Raises
    ------
    StudyError : if weights do not sum to 1

    References
    ----------
    Fisch et al. (2024), arXiv 2406.04291.
    """
    w = np.asarray(weights, float)
    if len(w) != len(strata) or abs(w.sum() - 1) > 1e-9:
        raise StudyError(f"{len(w)} weights of sum {w.sum():g} for {len(strata)} strata: give one each, sum 1")
    parts = w**2 * np.array([s.estimate.std_error**2 for s in strata])
    value = float((w * [s.estimate.estimate for s in strata]).sum())
    error, df = float(np.sqrt(parts.sum())), np.array([s.n_labelled - 1.0 for s in strata])
    pooled = float(parts.sum() ** 2 / (parts**2 / df).sum()) if parts.sum() > 0 else float(df.sum())
    n, groups = sum(s.estimate.n for s in strata), sum(s.n_labelled for s in strata)
    return Estimate("mean", value, error, pooled, *t_interval(value, error, pooled, level), n, groups,
                    *t_test(value, error, pooled))  # fmt: skip


def effective_size(n: int, n_unlabelled: float, correlation: float) -> float:
    """How many panel units alone would give the precision of n with so many judged ones beside them."""
    return float(n / (1 - correlation**2 * n_unlabelled / (n + n_unlabelled)))


def needed(sd: float, correlation: float, width: float, n_judged: float, level: float = 0.95) -> int | None:
    """How many panel units make the interval no wider than `width`, with `n_judged` units judged in all.

    Parameters
    ----------
    sd : of the panel's mean over units
    width : of the whole interval
    n_judged : labelled and unlabelled units together; inf for as many as you like

    Returns
    -------
    None where even a panel rating of every judged unit is too few.
    """
    if width <= 0:
        raise StudyError(f"width {width:g}: give the wanted width of the interval, above 0")

    def wide(n: int) -> float:
        share = 1.0 if np.isinf(n_judged) else max(n_judged - n, 0) / n_judged
        error = sd / np.sqrt(n) * np.sqrt(1 - correlation**2 * share)
        return 2 * t_quantile((1 + level) / 2, n - 1.0) * error

    low, high = 2, int(min(n_judged, _MOST_CLUSTERS))
    if high < 2 or wide(high) > width:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if wide(middle) <= width else (middle + 1, high)
    return low


def _tuned(m: Moments, clip: bool) -> float:
    if m.judge_pooled_variance <= 0:
        return 0.0
    weight = m.covariance / ((1 + m.n / m.n_unlabelled) * m.judge_pooled_variance)
    return float(min(max(weight, 0.0), 1.0)) if clip else float(weight)


def _units(columns: np.ndarray, cluster: np.ndarray | None) -> np.ndarray:
    """Cluster means, or the items themselves."""
    columns = np.asarray(columns, float)
    if cluster is None:
        return columns
    sums = sums_by_cluster(np.column_stack([np.ones(len(columns)), columns]), np.asarray(cluster))
    return sums[:, 1:] / sums[:, :1]


def _enough(labelled: int, clustered: bool) -> tuple[str, ...]:
    if clustered and labelled < FEWEST:
        raise StudyError(f"{labelled} labelled clusters: a prediction-powered mean needs {FEWEST} or more, "
                         f"and {FEW} to be sure of its interval; have the panel rate more prompts")  # fmt: skip
    return (
        (f"only {labelled} labelled units, fewer than {FEW}: take the interval as rough",)
        if labelled < FEW
        else ()
    )
