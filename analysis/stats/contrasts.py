"""Estimated marginal means and their contrasts, with one kind of degrees of freedom at any number of rows.

The reference grid holds every combination of the levels of the fixed factors, and the mean of every number;
means are averages over it, each level counting the same. Lenth's emmeans is the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd

from analysis.stats import adjust as adjustment
from analysis.stats import estimates, inference
from analysis.stats.adjust import Adjust
from analysis.stats.mixed import coding
from analysis.stats.mixed.fit import MixedFit
from study.errors import StudyError

Method = str | Mapping[str, Sequence[float] | Mapping[str, float]]
"""pairwise, reference, sum, or named weights on the levels: {"negation": {"neg": -1, "pos": 1}}."""


@dataclass(frozen=True)
class Grid:
    """The reference grid: every combination of its columns' levels, the last column varying fastest.

    rows : combinations × coefficients, the weights of each; missing where the data cannot estimate it
    share : what each combination counts in an average
    """

    levels: dict[str, list]
    rows: np.ndarray
    share: np.ndarray

    @property
    def frame(self) -> pd.DataFrame:
        return _combinations(self.levels)


def grid(fit: MixedFit, at: Mapping[str, Sequence] | None = None, weights: str = "equal") -> Grid:
    """The reference grid of a fit.

    at : values to use for a column instead of all levels, or of the mean
    weights : "equal", or "proportional" to the rows of each combination
    """
    levels = _grid_levels(fit, dict(at or {}))
    rows = _level_rows(fit, levels)
    if weights == "equal":
        return Grid(levels, rows, np.ones(len(rows)))
    if weights == "proportional":
        return Grid(levels, rows, _frequencies(fit, _combinations(levels)))
    raise StudyError(f"The weights {weights!r} are not known; use equal or proportional.")


def _combinations(levels: Mapping[str, list]) -> pd.DataFrame:
    sizes = [len(values) for values in levels.values()]
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.empty((0, 1), int)
    columns = {}
    for (name, values), codes in zip(levels.items(), places, strict=True):
        if isinstance(values[0], float):
            columns[name] = np.array(values)[codes]
        else:
            columns[name] = pd.Categorical.from_codes(codes, categories=values)
    return pd.DataFrame(columns, index=range(places.shape[1]))


def model_rows(fit: MixedFit, frame: pd.DataFrame) -> np.ndarray:
    """Weights on the coefficients at each row of a frame; missing where a row cannot be estimated."""
    here = {name: variable.elsewhere(frame) for name, variable in fit.design.fixed.variables.items()}
    return _rows(fit, here, {name: variable.codes for name, variable in here.items()}, len(frame))


def _level_rows(fit: MixedFit, levels: Mapping[str, list]) -> np.ndarray:
    """Weights on the coefficients at every combination of levels."""
    sizes = [len(values) for values in levels.values()]
    n = int(np.prod(sizes, dtype=int))
    places = dict(zip(levels, np.indices(sizes).reshape(len(sizes), n), strict=True))
    here, codes = {}, {}
    for name, variable in fit.design.fixed.variables.items():
        if variable.spec is None:
            here[name] = variable.at(levels[variable.column])
            codes[name] = here[name].codes[places[variable.column]]
        else:
            here[name] = variable.elsewhere(_combinations(levels))
            codes[name] = here[name].codes
    return _rows(fit, here, codes, n)


def _rows(
    fit: MixedFit, here: Mapping[str, coding.Variable], codes: Mapping[str, np.ndarray], n: int
) -> np.ndarray:
    fixed = fit.design.fixed
    full, _, _ = coding.matrix(fixed.terms, here, codes, n)
    rows = full[:, fixed.kept]
    if len(fixed.kept) < full.shape[1]:
        follow = np.linalg.lstsq(fixed.x, fixed.everything, rcond=None)[0]
        lost = np.abs(full - rows @ follow).max(axis=1) > 1e-6
        rows = rows.copy()
        rows[lost] = np.nan
    return rows


def fit_factor(fit: MixedFit, name: str) -> coding.Variable | None:
    """The variable of a fixed factor by its column."""
    return next((v for v in fit.design.fixed.variables.values() if v.is_factor and v.column == name), None)


def _grid_columns(fit: MixedFit) -> list[str]:
    """Columns of the fixed effects in the order of the formula."""
    import re

    names: dict[str, None] = {}
    for expression, variable in fit.design.fixed.variables.items():
        if variable.spec is None:
            names[variable.column] = None
        else:
            found = re.findall(r"[^\W\d][\w.]*", expression)
            names |= {name: None for name in found if name in fit.design.columns}
    return list(names)


def _grid_levels(fit: MixedFit, at: dict[str, Sequence]) -> dict[str, list]:
    levels: dict[str, list] = {}
    for name in _grid_columns(fit):
        factor = fit_factor(fit, name)
        if factor is not None:
            levels[name] = list(at.pop(name)) if name in at else list(factor.levels)
        elif name in at:
            levels[name] = [float(value) for value in at.pop(name)]
        else:
            levels[name] = [float(fit.design.columns[name].mean())]
    if at:
        raise StudyError(f"{', '.join(at)} is not among the fixed effects' columns: {', '.join(levels)}.")
    return levels


def _frequencies(fit: MixedFit, frame: pd.DataFrame) -> np.ndarray:
    factors = [name for name in frame.columns if fit_factor(fit, name) is not None]
    counts = pd.DataFrame({name: fit.design.columns[name] for name in factors}).astype(object).value_counts()
    keys = map(tuple, frame[factors].astype(object).to_numpy())
    found = counts.to_dict()
    return np.array([found.get(key, 0) for key in keys], float)


def means(
    fit: MixedFit,
    factors: str | Sequence[str],
    *,
    by: str | Sequence[str] = (),
    at: Mapping[str, Sequence] | None = None,
    weights: str = "equal",
    ddf: inference.Ddf = "satterthwaite",
    level: float = 0.95,
) -> pd.DataFrame:
    """Estimated marginal means: the `by` and factor columns, then the broom columns.

    A mean that empty cells leave without an estimate is a row of missing values, not a number.
    """
    names = [*_listed(by), *_listed(factors)]
    levels, rows = _averages(fit, names, at, weights)
    labels = _combinations(levels)
    terms = _titles({name: levels[name] for name in _listed(factors)}) * (
        len(rows) // _count(levels, _listed(factors))
    )
    return pd.concat([labels, _table(fit, rows, terms, ddf, level)], axis=1)


def _titles(levels: Mapping[str, list]) -> list[str]:
    return [", ".join(map(str, values)) for values in product(*levels.values())]


def _count(levels: Mapping[str, list], names: Sequence[str]) -> int:
    return int(np.prod([len(levels[name]) for name in names], dtype=int))


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _averages(
    fit: MixedFit, names: list[str], at: Mapping[str, Sequence] | None, weights: str
) -> tuple[dict[str, list], np.ndarray]:
    """The named columns' levels, and the average weights on the coefficients of each of their combinations."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise StudyError(f"{twice[0]} is named twice; a factor is compared, compared across, or a group (by).")
    whole = grid(fit, at, weights)
    for name in names:
        if name not in whole.levels:
            known = ", ".join(whole.levels) or "there are none, so that nothing can be compared"
            raise StudyError(f"{name!r} is not among the fixed effects' columns: {known}.")
    sizes = [len(values) for values in whole.levels.values()]
    share = whole.share.reshape(sizes)
    rows = np.where(whole.share[:, None] > 0, whole.rows, 0.0).reshape(*sizes, -1)
    kept = [list(whole.levels).index(name) for name in names]
    others = tuple(i for i in range(len(sizes)) if i not in kept)
    order = np.argsort(np.argsort(kept))
    total = share.sum(axis=others).transpose(order)
    summed = (rows * share[..., None]).sum(axis=others).transpose(*order, len(kept))
    with np.errstate(invalid="ignore", divide="ignore"):
        average = summed / total[..., None]
    return {name: whole.levels[name] for name in names}, average.reshape(total.size, -1)


def _table(fit: MixedFit, rows: np.ndarray, terms: list[str], ddf: inference.Ddf, level: float) -> pd.DataFrame:
    return estimates.table(terms, *_estimated(fit, rows, ddf), n=fit.n_rows, level=level)


def _estimated(fit: MixedFit, rows: np.ndarray, ddf: inference.Ddf) -> np.ndarray:
    """Estimate, standard error and df of every row of weights, missing where the weights are."""
    known = np.isfinite(rows).all(axis=1)
    values = np.full((3, len(rows)), np.nan)
    if known.any():
        values[:, known] = inference.contrast(fit, rows[known], ddf)
    return values


def contrasts(
    fit: MixedFit,
    factors: str | Sequence[str],
    method: Method = "pairwise",
    *,
    by: str | Sequence[str] = (),
    reference: str | None = None,
    adjust: Adjust = "holm",
    at: Mapping[str, Sequence] | None = None,
    weights: str = "equal",
    ddf: inference.Ddf = "satterthwaite",
    level: float = 0.95,
) -> pd.DataFrame:
    """Contrasts of estimated marginal means within each `by` group, adjusted within it.

    method : "pairwise"; "reference", each level less the reference (the first level unless named);
        "sum", each level less the mean of all; or named weights
    """
    adjustment.check(adjust)
    within, inside = _listed(by), _listed(factors)
    levels, rows = _averages(fit, [*within, *inside], at, weights)
    titles = _titles({name: levels[name] for name in inside})
    names, wanted = contrast_weights(titles, method, reference)
    groups = {name: levels[name] for name in within}
    return _families(fit, rows, wanted, names, groups, adjust, ddf, level)


def interaction(
    fit: MixedFit,
    methods: Mapping[str, Method],
    *,
    by: str | Sequence[str] = (),
    reference: Mapping[str, str] | None = None,
    adjust: Adjust = "holm",
    at: Mapping[str, Sequence] | None = None,
    weights: str = "equal",
    ddf: inference.Ddf = "satterthwaite",
    level: float = 0.95,
) -> pd.DataFrame:
    """Contrasts of contrasts: one method per factor, every combination of their contrasts.

    The negation penalty of each source against a reference is
    `interaction(fit, {"source": "reference", "form": {"penalty": {"negative": -1, "plain": 1}}})`.
    """
    adjustment.check(adjust)
    within = _listed(by)
    levels, rows = _averages(fit, [*within, *methods], at, weights)
    names, wanted = [""], np.ones((1, 1))
    for factor, method in methods.items():
        ends, more = contrast_weights([str(v) for v in levels[factor]], method, (reference or {}).get(factor))
        names = [f"{name} : {end}" if name else end for name in names for end in ends]
        wanted = np.kron(wanted, more)
    groups = {name: levels[name] for name in within}
    return _families(fit, rows, wanted, names, groups, adjust, ddf, level)


def custom(
    fit: MixedFit,
    weights: Mapping[str, Mapping[str, float]],
    *,
    adjust: Adjust = "none",
    ddf: inference.Ddf = "satterthwaite",
    level: float = 0.95,
) -> pd.DataFrame:
    """Linear combinations of coefficients: name → {coefficient: weight}."""
    names = fit.design.fixed.names
    rows = np.zeros((len(weights), len(names)))
    for i, (title, parts) in enumerate(weights.items()):
        for name, weight in parts.items():
            if name not in names:
                raise StudyError(f"{title}: there is no coefficient {name!r}; there are {', '.join(names)}.")
            rows[i, names.index(name)] = weight
    adjustment.check(adjust)
    if adjust == "tukey":
        raise StudyError("Tukey's adjustment is for all pairs of means; use holm for combinations of your own.")
    return _adjusted(fit, rows[None], list(weights), len(weights), adjust, ddf, level)


def contrast_weights(
    levels: Sequence[str], method: Method, reference: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Names and weights (contrasts × levels) of a method on these levels."""
    k = len(levels)
    if not isinstance(method, str):
        return list(method), np.array([_named(levels, title, given) for title, given in method.items()])
    if k < 2:
        raise StudyError(f"There is one level ({', '.join(levels)}); nothing to compare.")
    if method == "pairwise":
        pairs = list(combinations(range(k), 2))
        names = [f"{levels[i]} - {levels[j]}" for i, j in pairs]
        return names, np.array([np.eye(k)[i] - np.eye(k)[j] for i, j in pairs])
    if method == "reference":
        first = _place(levels, reference or levels[0])
        others = [i for i in range(k) if i != first]
        return [f"{levels[i]} - {levels[first]}" for i in others], np.eye(k)[others] - np.eye(k)[first]
    if method == "sum":
        return [f"{level} - mean" for level in levels], np.eye(k) - 1 / k
    raise StudyError(f"The contrast {method!r} is not known; use pairwise, reference, sum or named weights.")


def _named(levels: Sequence[str], title: str, given: Sequence[float] | Mapping[str, float]) -> np.ndarray:
    if isinstance(given, Mapping):
        row = np.zeros(len(levels))
        for level, weight in given.items():
            row[_place(levels, str(level))] = weight
    else:
        row = np.asarray(given, float)
        if row.shape != (len(levels),):
            raise StudyError(f"{title}: {row.size} weights for {len(levels)} levels ({', '.join(levels)}).")
    if abs(row.sum()) > 1e-8 * max(1.0, np.abs(row).sum()):
        raise StudyError(f"{title}: the weights of a contrast sum to zero; these sum to {row.sum():g}.")
    return row


def _place(levels: Sequence[str], level: str) -> int:
    if level not in levels:
        raise StudyError(f"There is no level {level!r}; the levels are {', '.join(levels)}.")
    return list(levels).index(level)


def _families(
    fit: MixedFit,
    rows: np.ndarray,
    wanted: np.ndarray,
    names: list[str],
    groups: dict[str, list],
    adjust: Adjust,
    ddf: inference.Ddf,
    level: float,
) -> pd.DataFrame:
    """The same contrasts in every group, one family each; the group columns stand first."""
    k = wanted.shape[1]
    if adjust == "tukey" and len(names) != k * (k - 1) // 2:
        raise StudyError("Tukey's adjustment is for all pairs of means; use holm for other contrasts.")
    contrasted = np.stack([_weighted(wanted, part) for part in rows.reshape(-1, k, rows.shape[1])])
    table = _adjusted(fit, contrasted, names, k, adjust, ddf, level)
    labels = _combinations(groups)
    for place, name in enumerate(groups):
        table.insert(place, name, labels[name].repeat(len(names)).array)
    return table


def _weighted(wanted: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Contrasts of rows; a row that cannot be estimated harms only the contrasts that use it."""
    lost = ~np.isfinite(rows).all(axis=1)
    weights = wanted @ np.where(lost[:, None], 0.0, rows)
    weights[(wanted[:, lost] != 0).any(axis=1)] = np.nan
    return weights


def _adjusted(
    fit: MixedFit,
    rows: np.ndarray,
    names: list[str],
    n_means: int,
    adjust: Adjust,
    ddf: inference.Ddf,
    level: float,
) -> pd.DataFrame:
    """families × contrasts × coefficients, as one table adjusted family by family."""
    families, size, p = rows.shape
    if adjust == "none":
        return _table(fit, rows.reshape(-1, p), names * families, ddf, level)
    estimate, std_error, df = _estimated(fit, rows.reshape(-1, p), ddf)
    statistic = np.full(estimate.shape, np.nan)
    np.divide(estimate, std_error, out=statistic, where=std_error > 0)
    p_value, half = np.full(estimate.shape, np.nan), np.full(estimate.shape, np.nan)
    for family in range(families):
        at = np.arange(family * size, (family + 1) * size)
        at = at[np.isfinite(statistic[at])]
        if len(at):
            rank = int(np.linalg.matrix_rank(rows.reshape(-1, p)[at])) if adjust == "scheffe" else 0
            p_value[at] = adjustment.p_values(statistic[at], df[at], adjust, n_means=n_means, rank=rank)
            half[at] = adjustment.critical(df[at], level, adjust, n=len(at), n_means=n_means, rank=rank)
    return estimates.table(names * families, estimate, std_error, df, n=fit.n_rows, critical=half, p_value=p_value)
