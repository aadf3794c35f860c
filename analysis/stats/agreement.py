"""How far raters agree: the six intraclass correlations, Krippendorff's alpha, Gwet's AC, kappa.

Every function takes `ratings` as an item × rater table: one row per item, one column per rater, missing as
nan. `rating_matrix` makes it from the tidy frame, so that rows and columns cannot be exchanged by mistake.
"""

from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from study.errors import StudyError

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")

# A reliability stepped up this close to its pole is no number.
_POLE = 1e-9
NO_RELIABILITY = "items differ less than raters' error alone would make them: no reliability to estimate"

# Shrout & Fleiss (1979) beside McGraw & Wong (1996): the same six coefficients under two names.
FORMS = {
    "ICC(1,1)": "ICC(1)",
    "ICC(2,1)": "ICC(A,1)",
    "ICC(3,1)": "ICC(C,1)",
    "ICC(1,k)": "ICC(k)",
    "ICC(2,k)": "ICC(A,k)",
    "ICC(3,k)": "ICC(C,k)",
}


def rating_matrix(
    frame: pd.DataFrame,
    *,
    item: str | list[str] = "label",
    rater: str = "rater",
    score: str = "score",
) -> pd.DataFrame:
    """Item × rater table of scores from a frame with one row per rating; missing as nan.

    Parameters
    ----------
    item : the column, or columns together, that say what was rated

    Raises
    ------
    StudyError : if a rater rated an item twice (choose one metric and one occasion first)
    """
    items = [item] if isinstance(item, str) else list(item)
    absent = [name for name in [*items, rater, score] if name not in frame.columns]
    if absent:
        raise StudyError(f"ratings have no column {', '.join(absent)}; they have {', '.join(frame.columns)}")
    kept = frame[[*items, rater, score]].dropna(subset=[*items, rater])
    twice = kept.duplicated([*items, rater])
    if twice.any():
        first = kept[twice].iloc[0]
        where = ", ".join(str(first[name]) for name in items)
        raise StudyError(
            f"{first[rater]} rated {where} more than once ({int(twice.sum())} such rows): "
            "keep one metric and one occasion, or average them first"
        )
    return kept.pivot(index=items if len(items) > 1 else items[0], columns=rater, values=score)


def checked(ratings: pd.DataFrame | np.ndarray, *, constant: bool = False) -> pd.DataFrame:
    """`ratings` as numbers, without raters and items that hold no rating at all.

    Raises
    ------
    StudyError : text; fewer than two raters or items; no item rated by two raters; no variation (unless
        `constant` ratings will do)
    """
    table = ratings if isinstance(ratings, pd.DataFrame) else pd.DataFrame(np.asarray(ratings))
    table = _numbers(table).dropna(axis=0, how="all").dropna(axis=1, how="all")
    if table.shape[1] < 2:
        raters = ", ".join(map(str, table.columns)) or "nobody"
        raise StudyError(f"only {raters} rated: agreement needs at least two raters")
    if table.shape[0] < 2:
        raise StudyError(f"only {table.shape[0]} item was rated: agreement needs at least two items")
    per_item = table.notna().sum(axis=1)
    if per_item.max() < 2:
        raise StudyError("no item was rated by two raters: agreement needs items that raters share")
    values = table.to_numpy()
    if not constant and np.nanmin(values) == np.nanmax(values):
        raise StudyError(
            f"every rating is {np.nanmin(values):g}: reliability is not estimable "
            "(100% agreement, no variation)"
        )
    return table


def raters_without_ratings(ratings: pd.DataFrame) -> list[str]:
    """Names of the columns that hold no rating; `checked` leaves them out."""
    return [str(name) for name in ratings.columns[ratings.isna().all()]]


def icc(ratings: pd.DataFrame | np.ndarray, level: float = 0.95) -> pd.DataFrame:
    """The six intraclass correlations of a complete item × rater table, with exact intervals.

    Returns
    -------
    One row per form: `term` (Shrout–Fleiss name), `also` (McGraw–Wong name), `estimate`, `statistic` (F),
    `df1`, `df2`, `p_value`, `low`, `high`, `n` (items, the targets), `k` (raters), `n_ratings`, `reason` (why
    there is no estimate). Perfect agreement, and items that do not differ at all, leave the interval nan: it has
    no width to estimate. The interval of a mean of k raters is that of one rater, stepped up; it reaches down to
    -inf where that one falls below -1/(k - 1).

    Raises
    ------
    StudyError : if a cell is missing (see `analysis.stats.icc_incomplete`), or as `checked` says

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30–46, tables 4, 5 and 7.

    Examples
    --------
    Shrout & Fleiss (1979), table 2: four judges, six targets.

    >>> judges = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> icc(judges).set_index("term").estimate.round(2).to_dict()  # doctest: +NORMALIZE_WHITESPACE
    {'ICC(1,1)': 0.17, 'ICC(2,1)': 0.29, 'ICC(3,1)': 0.71,
     'ICC(1,k)': 0.44, 'ICC(2,k)': 0.62, 'ICC(3,k)': 0.91}
    """
    table = checked(ratings)
    if table.isna().to_numpy().any():
        missing = int(table.isna().to_numpy().sum())
        raise StudyError(
            f"{missing} of {table.size} item × rater cells are missing: the closed forms need complete "
            "ratings; use variance components instead of dropping items"
        )
    squares = mean_squares(table.to_numpy())
    return pd.DataFrame(_six_forms(squares, *table.shape, level))


def mean_squares(y: np.ndarray) -> dict[str, float]:
    """Two-way mean squares of a complete item × rater table: items, raters, error, and within items."""
    n, k = y.shape
    items, raters, grand = y.mean(1), y.mean(0), y.mean()
    ss_items = k * ((items - grand) ** 2).sum()
    ss_raters = n * ((raters - grand) ** 2).sum()
    residual = y - items[:, None] - raters[None, :] + grand
    ss_error = (residual**2).sum()
    return {
        "items": ss_items / (n - 1),
        "raters": ss_raters / (k - 1),
        "error": ss_error / ((n - 1) * (k - 1)),
        "within": (ss_raters + ss_error) / (n * (k - 1)),
    }


def averaged(single: np.ndarray | float, k: float, below: float = np.nan) -> np.ndarray | float:
    """Spearman–Brown: the reliability of a mean of k raters from that of one.

    At -1/(k - 1) the formula has a pole, and beyond it climbs down from plus infinity. No mean of k raters has a
    reliability there: it is `below`, which is -inf for the end of an interval.
    """
    single = np.asarray(single, float)
    scale = 1 + (k - 1) * single
    nothing = np.where(np.isnan(single), np.nan, below)
    above = np.isfinite(scale) & (scale > _POLE)
    return np.divide(k * single, scale, out=nothing, where=above)[()]


def stepped_up(single: tuple[float, float, float], k: float) -> tuple[float, float, float]:
    """Estimate and interval of a mean of k raters from those of one; all nan where there is no estimate."""
    estimate = float(averaged(single[0], k))
    if np.isnan(estimate):
        return np.nan, np.nan, np.nan
    low, high = (float(averaged(end, k, below=-np.inf)) for end in single[1:])
    return estimate, low, high


def krippendorff_alpha(ratings: pd.DataFrame | np.ndarray, level: Level = "ordinal") -> float:
    """Krippendorff's alpha of an item × rater table, missing ratings allowed.

    Works on the counts of each value in each item, so its cost grows with items × distinct values and never
    with the number of pairs.

    Parameters
    ----------
    level : level of measurement of the scale

    Raises
    ------
    StudyError : as `checked` says; also if the items that two raters share do not vary

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability, repository.upenn.edu/asc_papers/43.

    Examples
    --------
    >>> nan = float("nan")
    >>> by_rater = [[1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
    ...             [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan]]
    >>> round(krippendorff_alpha(np.transpose(by_rater), "ordinal"), 3)
    0.815
    """
    counts, values = value_counts(shared_items(checked(ratings)))
    return float(alpha_of_counts(counts, values, level))


def value_counts(
    ratings: pd.DataFrame, categories: np.ndarray | list[float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """How often each value was given to each item, and the values in order.

    Parameters
    ----------
    categories : every value of the scale, used or not; the values found if not given

    Raises
    ------
    StudyError : if a rating is not one of the categories
    """
    y = ratings.to_numpy(float)
    filled = np.isfinite(y)
    found = np.unique(y[filled])
    values = found if categories is None else np.unique(np.asarray(categories, float))
    strange = np.setdiff1d(found, values)
    if len(strange):
        scale = ", ".join(f"{value:g}" for value in values)
        raise StudyError(f"rating {strange[0]:g} is not one of the categories {scale}")
    codes = np.searchsorted(values, np.where(filled, y, values[0]))
    cells = (np.arange(len(y))[:, None] * len(values) + codes)[filled]
    counts = np.bincount(cells, minlength=len(y) * len(values)).reshape(len(y), len(values))
    return counts.astype(float), values


def shared_items(ratings: pd.DataFrame) -> pd.DataFrame:
    """The items that two raters or more rated.

    Raises
    ------
    StudyError : if all their ratings are the same
    """
    shared = ratings[ratings.notna().sum(axis=1) >= 2]
    values = np.unique(shared.to_numpy()[shared.notna().to_numpy()])
    if len(values) < 2:
        raise StudyError(
            f"every item that two raters share was rated {values[0]:g}: alpha is not estimable "
            "(100% agreement)"
        )
    return shared


def alpha_of_counts(counts: np.ndarray, values: np.ndarray, level: Level) -> float:
    """Alpha from item × value counts (every item with two ratings or more)."""
    marginal = counts.sum(0)
    place = scale_places(marginal, values, level)
    per_item = counts.sum(1)
    observed = (disagreement(counts, place, level, values) / (per_item - 1)).sum()
    expected = float(disagreement(marginal[None, :], place, level, values)[0]) / (marginal.sum() - 1)
    return 1 - observed / expected


def scale_places(marginal: np.ndarray, values: np.ndarray, level: Level) -> np.ndarray:
    """Where each value stands: its mid-rank if the level is ordinal, else the value itself.

    Krippendorff's ordinal difference of two values is the squared difference of their mid-ranks among all
    ratings, so that ordinal alpha is interval alpha of mid-ranks. `marginal` may carry leading axes.
    """
    if level not in LEVELS:
        raise StudyError(f"{level!r} is no level of measurement; choose one of {', '.join(LEVELS)}")
    if level == "ordinal":
        return np.cumsum(marginal, -1) - marginal / 2
    if level == "ratio" and values.min() < 0:
        raise StudyError(f"ratio level needs ratings of zero or more; found {values.min():g}")
    return values


def disagreement(counts: np.ndarray, place: np.ndarray, level: Level, values: np.ndarray) -> np.ndarray:
    """Sum of squared differences over the ordered pairs of ratings in each row of `counts`."""
    total = counts.sum(-1)
    if level == "nominal":
        return total**2 - (counts**2).sum(-1)
    if level == "ratio":
        sums = np.add.outer(values, values)
        difference = np.subtract.outer(values, values) / np.where(sums == 0, 1, sums)
        return ((counts @ difference**2) * counts).sum(-1)
    return 2 * (total * (counts @ place**2) - (counts @ place) ** 2)


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The table as floats; text is refused even where it spells a number, infinities too."""
    for _, column in table.items():
        if pd.api.types.is_numeric_dtype(column):
            continue
        strange = [value for value in column.dropna() if not isinstance(value, (int, float, np.number))]
        if strange:
            raise StudyError(f"ratings hold {strange[0]!r}, which is not a number; give each rating as a number")
    numbers = table.astype(float)
    if np.isinf(numbers.to_numpy()).any():
        raise StudyError("ratings hold an infinite value; give each rating as a finite number")
    return numbers


def _six_forms(squares: dict[str, float], n: int, k: int, level: float) -> list[dict]:
    """Records of the six forms from the mean squares; formulas of McGraw & Wong (1996)."""
    items, raters, error, within = (squares[name] for name in ("items", "raters", "error", "within"))
    tail = 1 - (1 - level) / 2
    df_items, df_error, df_within = n - 1, (n - 1) * (k - 1), n * (k - 1)
    one_way = single_rater(items, within, df_items, df_within, k, tail)
    consistent = single_rater(items, error, df_items, df_error, k, tail)
    absolute = _absolute(items, raters, error, n, k, tail)
    records = []
    for number, single, base, df2 in (
        (1, one_way, within, df_within),
        (2, absolute, error, df_error),
        (3, consistent, error, df_error),
    ):
        f = items / base if base > 0 else np.inf
        for size in ("1", "k"):
            estimate, low, high = single if size == "1" else stepped_up(single, k)
            term = f"ICC({number},{size})"
            records.append({
                "term": term, "also": FORMS[term], "estimate": estimate, "statistic": f, "df1": df_items,
                "df2": df2, "p_value": float(stats.f.sf(f, df_items, df2)), "low": low, "high": high,
                "n": n, "k": k, "n_ratings": n * k, "reason": NO_RELIABILITY if np.isnan(estimate) else None,
            })  # fmt: skip
    return sorted(records, key=lambda record: list(FORMS).index(record["term"]))


def single_rater(items: float, error: float, df1: int, df2: int, k: float, tail: float) -> tuple:
    """ICC(1,1) or ICC(3,1) and its exact interval, from an F ratio; `tail` is 0.975 for a 95% interval."""
    if error <= 0:
        return 1.0, np.nan, np.nan
    f = items / error
    if f <= _POLE:  # items that do not differ at all: an interval of no width would be no interval
        return float((f - 1) / (f + k - 1)), np.nan, np.nan
    low, high = f / stats.f.ppf(tail, df1, df2), f * stats.f.ppf(tail, df2, df1)
    return tuple(float((x - 1) / (x + k - 1)) for x in (f, low, high))


def _absolute(items: float, raters: float, error: float, n: int, k: int, tail: float) -> tuple:
    """ICC(2,1) with Satterthwaite's approximate interval."""
    spread = k * raters + (k * n - k - n) * error
    total = items + (k - 1) * error + k * (raters - error) / n
    if total <= _POLE * error:
        return np.nan, np.nan, np.nan
    estimate = (items - error) / total
    if error <= 0:
        return float(estimate), np.nan, np.nan
    a = k * estimate / (n * (1 - estimate))
    b = 1 + k * estimate * (n - 1) / (n * (1 - estimate))
    its_variance = (a * raters) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    if its_variance == 0 or spread == 0 or items <= _POLE * error:
        return float(estimate), np.nan, np.nan
    df = (a * raters + b * error) ** 2 / its_variance
    f_low, f_high = stats.f.ppf(tail, n - 1, df), stats.f.ppf(tail, df, n - 1)
    # Both quantiles may be infinite where the estimate leaves next to no degrees of freedom.
    low = n * (items / f_low - error) / (spread + n * items / f_low)
    high = 1.0 if np.isinf(f_high) else n * (f_high * items - error) / (spread + n * f_high * items)
    return float(estimate), float(low), float(high)
