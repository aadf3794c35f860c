"""The rate at which a panel would have said yes, from a judge that errs at known rates (Rogan–Gladen)."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from study.errors import StudyError


@dataclass(frozen=True)
class Rate:
    """A corrected rate: `estimate` lies in [0, 1], `unclipped` is what the formula gave.

    `std_error` is the delta method's, `low`, `high` Lee et al.'s; `specificity` and `sensitivity` are the
    judge's q0 and q1, from `negatives` and `positives` panel-rated items.
    """

    estimate: float
    unclipped: float
    std_error: float
    low: float
    high: float
    rate_of_judge: float
    n: int
    specificity: float
    sensitivity: float
    negatives: int
    positives: int

    @property
    def clipped(self) -> bool:
        return self.estimate != self.unclipped


def rogan_gladen(
    rate: float,
    n: int,
    specificity: float,
    sensitivity: float,
    negatives: int,
    positives: int,
    level: float = 0.95,
) -> Rate:
    """The corrected rate of yes, with the interval of Lee et al.

    Parameters
    ----------
    rate, n : share of yes by the judge among n items that the panel did not rate
    specificity, negatives : share of no by the judge among the panel's so many no (q0)
    sensitivity, positives : share of yes by the judge among the panel's so many yes (q1)

    Raises
    ------
    StudyError : if specificity + sensitivity ≤ 1, or a sample is empty

    References
    ----------
    Rogan & Gladen (1978), American Journal of Epidemiology 107, 71–76; Lee et al. (2025), arXiv 2511.21140.
    """
    _check(n, specificity, sensitivity, negatives, positives)
    theta, error = _delta(rate, n, specificity, sensitivity, negatives, positives)
    z = float(special.ndtri((1 + level) / 2))
    p = (n * rate + z**2 / 2) / (n + z**2)
    q0, q1 = (negatives * specificity + 1) / (negatives + 2), (positives * sensitivity + 1) / (positives + 2)
    middle, reach = _delta(p, n + z**2, q0, q1, negatives + 2, positives + 2)
    clear = q0 + q1 - 1
    shift = 2 * z**2 * (
        -(1 - middle) * q0 * (1 - q0) / (negatives + 2) + middle * q1 * (1 - q1) / (positives + 2)
    ) if clear > 0 else 0.0  # fmt: skip
    ends = np.clip([middle + shift - z * reach, middle + shift + z * reach], 0, 1)
    value = float(np.clip(theta, 0, 1))
    return Rate(value, theta, error, float(ends[0]), float(ends[1]), rate, n, specificity, sensitivity,
                negatives, positives)  # fmt: skip


def from_counts(judge_unlabelled: np.ndarray, judge: np.ndarray, panel: np.ndarray, level: float = 0.95) -> Rate:
    """The corrected rate from yes/no arrays: judged items, and judge and panel of those both rated.

    Raises
    ------
    StudyError : as `rogan_gladen` says; also if the panel said only yes or only no
    """
    judge, panel, more = (np.asarray(a, bool) for a in (judge, panel, judge_unlabelled))
    positives, negatives = int(panel.sum()), int((~panel).sum())
    if not positives or not negatives:
        said = "yes" if positives else "no"
        raise StudyError(f"the panel said {said} to all {len(panel)} items: the judge's error on the other answer "
                         "is unknown; report the panel's own count with its exact interval")  # fmt: skip
    return rogan_gladen(float(more.mean()) if len(more) else np.nan, len(more), float((~judge[~panel]).mean()),
                        float(judge[panel].mean()), negatives, positives, level)  # fmt: skip


def allocation(
    rate: float, specificity: float, sensitivity: float, total: int, pilot: int = 10
) -> tuple[int, int]:
    """How to split `total` panel-rated items into (no, yes), given rates from a pilot of `pilot` items of each."""
    kappa = (pilot * (1 - specificity) + 1) / (pilot * (1 - sensitivity) + 1)
    positives = int(round(total / (1 + (1 / rate - 1) * np.sqrt(kappa))))
    return total - positives, positives


def clopper_pearson(yes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share."""
    if n < 1 or not 0 <= yes <= n:
        raise StudyError(f"{yes} of {n}: a share needs at least one item, and no more than all")
    tail = (1 - level) / 2
    low = float(special.betaincinv(yes, n - yes + 1, tail)) if yes else 0.0
    high = float(special.betaincinv(yes + 1, n - yes, 1 - tail)) if yes < n else 1.0
    return low, high


def _check(n: int, specificity: float, sensitivity: float, negatives: int, positives: int) -> None:
    if n < 1:
        raise StudyError(
            "labels used twice: the judge's error rates come from these items, so they cannot also be the sample "
            "whose rate is corrected; judge items that the panel did not rate, or report the panel's own count"
        )
    if negatives < 1 or positives < 1:
        raise StudyError(f"{negatives} no and {positives} yes by the panel: the judge's error needs some of both")
    if specificity + sensitivity <= 1 + 1e-12:
        raise StudyError(
            f"q0 + q1 = {specificity:.2f} + {sensitivity:.2f} is not above 1: the judge's yes says no more than "
            "chance about the panel's, so its rate cannot be corrected"
        )


def _delta(p: float, n: float, q0: float, q1: float, m0: float, m1: float) -> tuple[float, float]:
    clear = q0 + q1 - 1
    theta = (p + q0 - 1) / clear
    variance = p * (1 - p) / n + (1 - theta) ** 2 * q0 * (1 - q0) / m0 + theta**2 * q1 * (1 - q1) / m1
    return float(theta), float(np.sqrt(variance) / clear)
