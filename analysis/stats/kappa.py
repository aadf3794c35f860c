"""Agreement beside alpha: percent agreement, Gwet's AC1 and AC2, Cohen's kappa of two ratings."""

from typing import Literal

import numpy as np
import pandas as pd

from analysis.stats.agreement import checked, value_counts
from study.errors import StudyError

Weights = Literal["identity", "linear", "quadratic", "ordinal"]


def percent_agreement(ratings: pd.DataFrame | np.ndarray) -> float:
    """Share of equal pairs of ratings, averaged over the items that two raters share."""
    counts, values = value_counts(checked(ratings, constant=True))
    return float(observed_agreement(counts, np.eye(len(values))))


def gwet_ac(
    ratings: pd.DataFrame | np.ndarray,
    weights: Weights = "ordinal",
    categories: np.ndarray | list[float] | None = None,
) -> float:
    """Gwet's AC2, or AC1 with identity weights; stays near percent agreement where nearly all ratings agree.

    Parameters
    ----------
    categories : every value of the scale, used or not; the values found if not given

    Raises
    ------
    StudyError : if no item was rated by two raters, or a rating is no category

    References
    ----------
    Gwet (2014), Handbook of Inter-Rater Reliability, 4th ed., chapters 4 and 5.

    Examples
    --------
    21 of 22 ratings are equal: Krippendorff's alpha is 0 here.

    >>> ratings = [[3, 3, 3, 3, 3], [3, 3, 3, 3, None], [3, 3, None, 3, 3], [3, 3, None, 3, 3], [3, 3, 3, 1, 3]]
    >>> round(gwet_ac(np.array(ratings, float), "identity", categories=[1, 2, 3, 4, 5]), 2)
    0.92
    """
    counts, values = value_counts(checked(ratings, constant=True), categories)
    if len(values) < 2:
        raise StudyError(f"every rating is {values[0]:g}: AC needs the scale's categories to be estimable")
    weight = agreement_weights(values, weights)
    return float(gwet_of_counts(counts, weight))


def weighted_kappa(
    first: np.ndarray | pd.Series, second: np.ndarray | pd.Series, weights: Weights = "quadratic"
) -> float:
    """Cohen's kappa of two ratings of the same items, pairs with a missing value left out.

    Raises
    ------
    StudyError : if no pair is left or neither series varies
    """
    pairs = np.column_stack([np.asarray(first, float), np.asarray(second, float)])
    pairs = pairs[np.isfinite(pairs).all(1)]
    if len(pairs) == 0:
        raise StudyError("no item has both ratings: kappa needs items rated twice")
    values, codes = np.unique(pairs, return_inverse=True)
    if len(values) < 2:
        raise StudyError(f"both ratings are always {values[0]:g}: kappa is not estimable (100% agreement)")
    codes = codes.reshape(pairs.shape)
    joint = np.zeros((len(values), len(values)))
    np.add.at(joint, (codes[:, 0], codes[:, 1]), 1 / len(pairs))
    weight = agreement_weights(values, weights)
    chance = (weight * np.outer(joint.sum(1), joint.sum(0))).sum()
    return float(((weight * joint).sum() - chance) / (1 - chance))


def agreement_weights(values: np.ndarray, weights: Weights) -> np.ndarray:
    """Category × category agreement: 1 on the diagonal, falling with the distance of the categories."""
    distance = np.abs(np.subtract.outer(values, values))
    steps = np.abs(np.subtract.outer(np.arange(len(values)), np.arange(len(values))))
    if weights == "identity":
        return np.eye(len(values))
    if weights == "linear":
        return 1 - distance / distance.max()
    if weights == "quadratic":
        return 1 - (distance / distance.max()) ** 2
    if weights == "ordinal":
        return 1 - steps * (steps + 1) / (len(values) * (len(values) - 1))
    raise StudyError(f"weights {weights!r} are unknown; choose identity, linear, quadratic or ordinal")


def observed_agreement(counts: np.ndarray, weight: np.ndarray) -> float:
    """Weighted agreement of the pairs within an item, averaged over items with two ratings or more."""
    shared = counts[counts.sum(1) >= 2]
    total = shared.sum(1)
    pairs = ((shared @ weight) * shared).sum(1) - total
    return (pairs / (total * (total - 1))).mean()


def gwet_of_counts(counts: np.ndarray, weight: np.ndarray) -> float:
    """Gwet's coefficient from item × category counts and category × category agreement."""
    q = len(weight)
    share = (counts / counts.sum(1, keepdims=True)).mean(0)
    chance = weight.sum() / (q * (q - 1)) * (share * (1 - share)).sum()
    return (observed_agreement(counts, weight) - chance) / (1 - chance)

