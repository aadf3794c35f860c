"""One estimand in two studies, two waves or two subsets: do they say the same?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.stats import contrasts, estimates, inference
from analysis.stats.formula import Formula, parse
from analysis.stats.mixed.fit import MixedFit, fit
from study.errors import StudyError

SHARED_BY = ("rater", "prompt", "case", "label")


@dataclass(frozen=True)
class Difference:
    """A factor's contrasts in two studies and their difference.

    table : term (level − first level), first, first_error, second, second_error, then the broom columns of
        second − first
    shared : column → (levels in both, levels in either)
    joint : whether the studies were fitted together, because they share raters, prompts or items
    fits : the fits, one of both studies together or one of each
    """

    names: tuple[str, str]
    table: pd.DataFrame
    shared: dict[str, tuple[int, int]]
    joint: bool
    fits: tuple[MixedFit, ...]
    notes: list[str]


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    formula: str,
    *,
    factor: str = "source",
    names: tuple[str, str] = ("first", "second"),
    level: float = 0.95,
) -> Difference:
    """The same model in two sets of ratings, and the difference of each level's contrast with the first level.

    Studies that share no rater, prompt or item are fitted apart and their errors added (Welch's df). Studies that
    share some are fitted together, with every fixed effect free in each, since their errors go together.

    Raises
    ------
    StudyError : if a level of the factor is missing in one study; what the fits refuse
    """
    model = parse(formula)
    _same_levels(first, second, factor, names)
    shared = _shared(first, second, model)
    joint = any(both for both, _ in shared.values())
    if joint:
        table, fits = _together(first, second, model, factor, names, level)
    else:
        table, fits = _apart(first, second, model, factor, level)
    return Difference(names, table, shared, joint, fits, _notes(shared, joint, names, fits))


def _same_levels(first: pd.DataFrame, second: pd.DataFrame, factor: str, names: tuple[str, str]) -> None:
    for frame, name in zip((first, second), names, strict=True):
        if factor not in frame.columns:
            raise StudyError(f"{name}: has no column {factor}")
    one, two = (set(frame[factor].dropna().unique()) for frame in (first, second))
    for missing, name in ((two - one, names[0]), (one - two, names[1])):
        if missing:
            raise StudyError(f"{name}: has no {factor} {sorted(map(str, missing))[0]}; compare what both have")


def _shared(first: pd.DataFrame, second: pd.DataFrame, model: Formula) -> dict[str, tuple[int, int]]:
    """Levels in both and in either, of the columns by which two studies can depend on each other."""
    used = {column for term in model.random for column in term.group}
    found = {}
    for name in SHARED_BY:
        if name in used and name in first.columns and name in second.columns:
            one, two = (set(frame[name].dropna().unique()) for frame in (first, second))
            found[name] = len(one & two), len(one | two)
    return found


def _apart(
    first: pd.DataFrame, second: pd.DataFrame, model: Formula, factor: str, level: float
) -> tuple[pd.DataFrame, tuple[MixedFit, ...]]:
    fits = fit(first, model), fit(second, model)
    parts = []
    for fitted in fits:
        grid = contrasts.grid(fitted)
        rows = _mean_rows(grid, {factor: list(grid.levels[factor])})
        parts.append(inference.contrast(fitted, rows[1:] - rows[0], "satterthwaite"))
    (one, one_error, one_df), (two, two_error, two_df) = parts
    error = np.hypot(one_error, two_error)
    df = error**4 / (one_error**4 / one_df + two_error**4 / two_df)
    n = fits[0].n_rows + fits[1].n_rows
    table = estimates.table(_terms(fits[0], factor), two - one, error, df, n=n, level=level)
    return _with_parts(table, one, one_error, two, two_error), fits


def _together(
    first: pd.DataFrame, second: pd.DataFrame, model: Formula, factor: str, names: tuple[str, str], level: float
) -> tuple[pd.DataFrame, tuple[MixedFit, ...]]:
    both = pd.concat([first.assign(study=names[0]), second.assign(study=names[1])], ignore_index=True)
    both["study"] = pd.Categorical(both["study"], categories=list(names))
    order = list(first[factor].cat.categories) if isinstance(first[factor].dtype, pd.CategoricalDtype) else None
    if order is not None:
        both[factor] = pd.Categorical(both[factor], categories=order)
    random = " + ".join(term.text for term in model.random)
    fitted = fit(both, f"{model.outcome} ~ study * ({model.fixed}) + {random}")
    grid = contrasts.grid(fitted)
    cells = _mean_rows(grid, {"study": list(names), factor: list(grid.levels[factor])})
    rows = cells.reshape(2, -1, grid.rows.shape[1])
    own = rows[:, 1:] - rows[:, :1]
    one, one_error, _ = inference.contrast(fitted, own[0], "satterthwaite")
    two, two_error, _ = inference.contrast(fitted, own[1], "satterthwaite")
    table = inference.contrast_table(fitted, own[1] - own[0], _terms(fitted, factor), level=level)
    return _with_parts(table, one, one_error, two, two_error), (fitted,)


def _mean_rows(grid: contrasts.Grid, levels: dict[str, list]) -> np.ndarray:
    """Weights on the coefficients of the mean of each combination of the named columns' levels."""
    frame = grid.frame
    keys = pd.MultiIndex.from_product(list(levels.values()))
    here = pd.MultiIndex.from_frame(frame[list(levels)])
    return np.array([grid.rows[here == key].mean(axis=0) for key in keys])


def _terms(fitted: MixedFit, factor: str) -> list[str]:
    levels = contrasts.grid(fitted).levels[factor]
    return [f"{name} − {levels[0]}" for name in levels[1:]]


def _with_parts(
    table: pd.DataFrame, one: np.ndarray, one_error: np.ndarray, two: np.ndarray, two_error: np.ndarray
) -> pd.DataFrame:
    parts = {"first": one, "first_error": one_error, "second": two, "second_error": two_error}
    for place, (name, values) in enumerate(parts.items(), start=1):
        table.insert(place, name, values)
    return table


def _notes(
    shared: dict[str, tuple[int, int]], joint: bool, names: tuple[str, str], fits: Sequence[MixedFit]
) -> list[str]:
    common = [f"{both} of {either} {name}s" for name, (both, either) in shared.items() if both]
    if joint:
        first = f"{names[0]} and {names[1]} share {', '.join(common)}: they are fitted together."
    else:
        first = f"{names[0]} and {names[1]} share no {' or '.join(shared) or 'random term'}: their errors add."
    return [first, *(note for fitted in fits for note in fitted.notes)]
