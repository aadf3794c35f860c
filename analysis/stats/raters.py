"""Rater by rater: who is severe, whose absence changes agreement, and who agrees with themselves."""

import numpy as np
import pandas as pd

from analysis.stats import inference
from analysis.stats.agreement import (
    Level,
    alpha_of_counts,
    averaged,
    checked,
    icc,
    mean_squares,
    shared_items,
    value_counts,
)
from analysis.stats.estimates import COLUMNS
from analysis.stats.icc_incomplete import components
from analysis.stats.kappa import observed_agreement, weighted_kappa
from analysis.stats.mixed.fit import fit
from study.errors import StudyError

# At this share of equal pairs a scale's variation is gone, and alpha says little of the raters.
CEILING = 0.8


def severity(ratings: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """How far each rater lies above (lenient) or below (severe) the panel's mean on the same items.

    Raters are fixed, items random, so that a rater who happened to get better answers is not called lenient.

    Returns
    -------
    One row per rater, severest first: the broom columns (`term` the rater, `n` its ratings), `mean`, `sd`,
    `at_top` and `at_bottom` (shares of its ratings at the table's highest and lowest value), `rest_correlation`
    (with the mean of the others on its items; nan where either does not vary).

    Raises
    ------
    StudyError : as `agreement.checked` says
    """
    table = checked(ratings)
    raters = list(table.columns)
    row, column = np.nonzero(table.notna().to_numpy())
    y = table.to_numpy(float)
    frame = pd.DataFrame({"item": row, "rater": column, "score": y[row, column]})
    fitted = fit(frame.astype({"item": "category", "rater": "category"}), "score ~ rater + (1|item)")
    k = len(raters)
    # The first rater is the reference: a rater's mean is intercept + own, the panel's the average of those.
    rows = np.column_stack([np.zeros(k), np.eye(k)[:, 1:] - 1 / k])
    found = inference.contrast_table(fitted, rows, [str(name) for name in raters], level=level)
    found["n"] = table.count().to_numpy()
    low, high = np.nanmin(y), np.nanmax(y)
    found = found[COLUMNS].assign(
        mean=table.mean().to_numpy(), sd=table.std().to_numpy(),
        at_top=(table == high).sum().to_numpy() / found.n, at_bottom=(table == low).sum().to_numpy() / found.n,
        rest_correlation=[_rest_correlation(y, j) for j in range(k)],
    )  # fmt: skip
    return found.sort_values("estimate").reset_index(drop=True)


def leave_one_rater_out(ratings: pd.DataFrame, level: Level = "ordinal") -> pd.DataFrame:
    """Agreement of the panel without each rater in turn, and what that rater's absence changes.

    Returns
    -------
    First row `nobody`, then one per rater, the one whose absence raises alpha most first: `left_out`, `icc_1`
    (ICC(2,1)), `icc_k` (ICC(2,k), k without the rater), `alpha`, `percent_agreement`, `change_icc_1`,
    `change_alpha` (without minus with), `reason` (why there is no estimate).

    Raises
    ------
    StudyError : for two raters; as `agreement.checked` says
    """
    table = checked(ratings)
    if table.shape[1] < 3:
        raise StudyError("two raters leave one when one is left out: agreement needs three raters or more here")
    y = table.to_numpy(float)
    values = np.unique(y[np.isfinite(y)])
    indicator = (y[:, :, None] == values).astype(float)
    counts = indicator.sum(1)
    rows = [{"left_out": "nobody"} | _agreement(y, counts, values, level)]
    for j, name in enumerate(table.columns):
        rest = _agreement(np.delete(y, j, axis=1), counts - indicator[:, j], values, level)
        rows.append({"left_out": str(name)} | rest)
    found = pd.DataFrame(rows)
    found["change_icc_1"] = found.icc_1 - found.icc_1[0]
    found["change_alpha"] = found.alpha - found.alpha[0]
    rest = found[1:].sort_values("change_alpha", ascending=False)
    order = ["left_out", "icc_1", "icc_k", "alpha", "percent_agreement", "change_icc_1", "change_alpha", "reason"]
    return pd.concat([found[:1], rest], ignore_index=True)[order]


def repeats(
    frame: pd.DataFrame,
    *,
    item: str = "label",
    rater: str = "rater",
    occasion: str = "occasion",
    score: str = "score",
) -> pd.DataFrame:
    """How far raters agree with themselves on items that came back unannounced.

    Returns
    -------
    First row `all raters`, then one per rater with repeats: `rater`, `n` (pairs), `icc` (ICC(3,1) of first and
    second rating), `low`, `high`, `kappa` (quadratic weights), `equal` (share of equal pairs), `within_one` (share
    within one scale step), `shift` (mean second minus first), `reason` (why there is no coefficient).

    Raises
    ------
    StudyError : if nobody rated an item twice
    """
    pairs = _pairs(frame, item, rater, occasion, score)
    groups = [("all raters", pairs), *((str(name), own) for name, own in pairs.groupby(rater, observed=True))]
    return pd.DataFrame([{"rater": name} | _self_agreement(own) for name, own in groups])


def ceiling_note(ratings: pd.DataFrame, level: Level = "ordinal") -> str | None:
    """Why alpha is low although raters agree, in a sentence; None where that is not so.

    Examples
    --------
    >>> table = pd.DataFrame([[3, 3, 3, 3, 3]] * 4 + [[3, 3, 3, 1, 3]])
    >>> ceiling_note(table)  # doctest: +NORMALIZE_WHITESPACE
    '24 of 25 ratings are 3 and 92% of pairs agree, but alpha is 0.00: it counts agreement beyond chance,
     and where nearly all ratings are equal chance alone gives 92%. Read percent agreement and AC2 beside it.'
    """
    table = shared_items(checked(ratings))
    counts, values = value_counts(table)
    marginal = counts.sum(0)
    n = marginal.sum()
    equal = observed_agreement(counts, np.eye(len(values)))
    alpha = alpha_of_counts(counts, values, level)
    by_chance = (marginal * (marginal - 1)).sum() / (n * (n - 1))
    if equal < CEILING or alpha > equal - 0.3:
        return None
    most = int(marginal.argmax())
    low = f"{max(alpha, 0.0) if abs(alpha) < 5e-3 else alpha:.2f}".replace("-", "−")
    return (
        f"{marginal[most]:.0f} of {n:.0f} ratings are {values[most]:g} and {equal:.0%} of pairs agree, but "
        f"alpha is {low}: it counts agreement beyond chance, and "
        f"where nearly all ratings are equal chance alone gives {by_chance:.0%}. Read percent agreement and AC2 "
        "beside it."
    )


def _rest_correlation(y: np.ndarray, j: int) -> float:
    """Correlation of a rater with the mean of the others, on the items that both rated."""
    others = np.delete(y, j, axis=1)
    both = np.isfinite(y[:, j]) & np.isfinite(others).any(1)
    own, rest = y[both, j], np.nanmean(others[both], axis=1)
    if len(own) < 3 or own.std() == 0 or rest.std() == 0:
        return float("nan")
    return float(np.corrcoef(own, rest)[0, 1])


def _agreement(y: np.ndarray, counts: np.ndarray, values: np.ndarray, level: Level) -> dict:
    """Coefficients of item × rater scores and their counts; what cannot be estimated is nan with its reason."""
    shared = counts[counts.sum(1) >= 2]
    used = shared.sum(0) > 0
    if used.sum() < 2:
        what = f"every shared rating is {values[used][0]:g}" if used.any() else "no item has two ratings"
        nothing = dict.fromkeys(("icc_1", "icc_k", "alpha", "percent_agreement"), np.nan)
        return nothing | {"reason": f"{what}: not estimable"}
    reason = None
    try:
        single, mean = _absolute(y)
    except StudyError as refused:
        single = mean = np.nan
        reason = f"ICC: {refused}"
    alpha = alpha_of_counts(shared[:, used], values[used], level)
    equal = float(observed_agreement(shared, np.eye(len(values))))
    return {"icc_1": single, "icc_k": mean, "alpha": alpha, "percent_agreement": equal, "reason": reason}


def _absolute(y: np.ndarray) -> tuple[float, float]:
    """ICC(2,1) and ICC(2,k), without intervals."""
    if np.isfinite(y).all():
        n, k = y.shape
        squares = mean_squares(y)
        items, raters, error = squares["items"], squares["raters"], squares["error"]
        total = items + (k - 1) * error + k * (raters - error) / n
        single = (items - error) / total if abs(total) > 1e-12 else np.nan
    else:
        table = checked(y)
        variance = components(table).components().set_index("group").variance
        single, k = variance["item"] / variance.sum(), len(table) / (1 / table.count(axis=1)).sum()
    return float(single), float(averaged(single, k))


def _pairs(frame: pd.DataFrame, item: str, rater: str, occasion: str, score: str) -> pd.DataFrame:
    """First and last rating of every rater × item that was rated on two occasions or more."""
    absent = [name for name in (item, rater, occasion, score) if name not in frame.columns]
    if absent:
        raise StudyError(f"ratings have no column {', '.join(absent)}; they have {', '.join(frame.columns)}")
    rated = frame[[item, rater, occasion, score]].dropna().sort_values(occasion)
    grouped = rated.groupby([rater, item], observed=True)[score]
    both = pd.DataFrame({"first": grouped.first(), "second": grouped.last(), "times": grouped.size()})
    both = both[both.times > 1].reset_index()
    if both.empty:
        raise StudyError("no rater rated an item on two occasions: there are no hidden repeats to compare")
    return both


def _self_agreement(pairs: pd.DataFrame) -> dict[str, float | int | str | None]:
    difference = pairs["second"] - pairs["first"]
    row = {
        "n": len(pairs), "icc": np.nan, "low": np.nan, "high": np.nan, "kappa": np.nan,
        "equal": float((difference == 0).mean()), "within_one": float((difference.abs() <= 1).mean()),
        "shift": float(difference.mean()), "reason": None,
    }  # fmt: skip
    try:
        found = icc(pairs[["first", "second"]]).set_index("term").loc["ICC(3,1)"]
        kappa = weighted_kappa(pairs["first"], pairs["second"])
    except StudyError as error:
        return row | {"reason": str(error)}
    return row | {"icc": found.estimate, "low": found.low, "high": found.high, "kappa": kappa}

