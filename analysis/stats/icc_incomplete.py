"""Intraclass correlations of an item × rater table with missing cells, by variance components.

No item is dropped because a rater missed it: the crossed model score ~ 1 + (1|item) + (1|rater) is fitted by REML
to every rating, and the six forms are ratios of its components.
"""

import numpy as np
import pandas as pd
from scipy import stats

from analysis.stats.agreement import FORMS, NO_RELIABILITY, checked, single_rater, stepped_up
from analysis.stats.mixed.fit import MixedFit, fit
from study.errors import StudyError


def icc_incomplete(
    ratings: pd.DataFrame | np.ndarray,
    level: float = 0.95,
    *,
    n_draws: int = 20_000,
    seed: int = 0,
) -> pd.DataFrame:
    """The six intraclass correlations from variance components; cells may be missing.

    k is the harmonic mean of the number of ratings per item. Forms 1 and 3 have the F interval of their mean
    squares. Forms 2 have a generalized confidence interval: mean squares with the fit's variances and the
    table's degrees of freedom are drawn, turned back into components, and percentiles taken. On a complete
    table the estimates are those of `agreement.icc` unless a component is zero, and so are the F intervals.

    Returns
    -------
    The columns of `agreement.icc`, with k the harmonic mean, and `n_raters`, `cells` (items × raters).

    Raises
    ------
    StudyError : as `agreement.checked` says; if there are too few ratings to tell error from raters

    References
    ----------
    ten Hove, Jorgensen & van der Ark (2024), Psychological Methods 29, 967–979, on incomplete designs.
    Weerahandi (1993), Journal of the American Statistical Association 88, 899–905, on the intervals.
    """
    table = checked(ratings)
    per_item, per_rater = table.count(axis=1), table.count(axis=0)
    n, n_raters, n_ratings = len(table), table.shape[1], int(per_item.sum())
    df_error = n_ratings - n - n_raters + 1
    if df_error < 1:
        raise StudyError(
            f"{n_ratings} ratings of {n} items by {n_raters} raters leave nothing to tell error from raters: "
            "agreement needs more items that raters share"
        )
    variance = components(table).components().set_index("group").variance[["item", "rater", "residual"]]
    item, rater, error = variance
    k, m = (float(stats.hmean(counts.to_numpy(float))) for counts in (per_item, per_rater))
    items, raters, within = error + k * item, error + m * rater, rater + error
    df_items, df_raters = n - 1, n_raters - 1
    rng = np.random.default_rng(seed)
    absolute = _absolute(items, raters, error, (df_items, df_raters, df_error), (k, m), n_draws, rng)
    tail = 1 - (1 - level) / 2
    singles = (
        (1, single_rater(items, within, df_items, n_ratings - n, k, tail), within, n_ratings - n),
        (2, (item / (item + within), *np.quantile(absolute, [1 - tail, tail])), error, df_error),
        (3, single_rater(items, error, df_items, df_error, k, tail), error, df_error),
    )
    records = []
    for size, averaged_over in (("1", 1.0), ("k", k)):
        for form, single, base, df2 in singles:
            term, f = f"ICC({form},{size})", float(items / base)
            estimate, low, high = stepped_up(single, averaged_over)
            records.append({
                "term": term, "also": FORMS[term], "estimate": estimate, "statistic": f, "df1": df_items,
                "df2": df2, "p_value": float(stats.f.sf(f, df_items, df2)), "low": low, "high": high, "n": n,
                "k": k, "n_ratings": n_ratings, "n_raters": n_raters, "cells": table.size,
                "reason": NO_RELIABILITY if np.isnan(estimate) else None,
            })  # fmt: skip
    return pd.DataFrame(records)


def components(table: pd.DataFrame) -> MixedFit:
    """The crossed model of an item × rater table, fitted to the ratings that are there."""
    row, column = np.nonzero(table.notna().to_numpy())
    frame = pd.DataFrame({"item": row, "rater": column, "score": table.to_numpy(float)[row, column]})
    return fit(frame.astype({"item": "category", "rater": "category"}), "score ~ 1 + (1|item) + (1|rater)")


def _absolute(
    items: float,
    raters: float,
    error: float,
    degrees: tuple[int, int, int],
    sizes: tuple[float, float],
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draws of ICC(2,1): each mean square over a chi-square of its degrees of freedom, negative variances zero."""
    (k, m), (df_items, df_raters, df_error) = sizes, degrees
    error_drawn = error * df_error / rng.chisquare(df_error, n)
    item_drawn = np.maximum(items * df_items / rng.chisquare(df_items, n) - error_drawn, 0) / k
    rater_drawn = np.maximum(raters * df_raters / rng.chisquare(df_raters, n) - error_drawn, 0) / m
    return item_drawn / (item_drawn + rater_drawn + error_drawn)
