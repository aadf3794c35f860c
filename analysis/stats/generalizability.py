"""Generalizability: where the variance of ratings comes from, and what a study of another size would measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd

from study.errors import StudyError

Effect = tuple[str, ...]


@dataclass(frozen=True)
class GStudy:
    """Variance components of a random-effects design, seen from one object of measurement.

    object : the facet whose levels are to be told apart, such as source
    sizes : levels of every facet in the study, a nested facet's per level of its parent (harmonic mean)
    nested : facet → the facet that holds it
    components : term, df, sum_sq, mean_sq, estimate (as estimated), std_error, used (never below zero), share
        (of the used ones); the last term holds what cannot be told from the residual
    method : "ANOVA" (balanced, one rating per cell), "REML" or "assumed"
    """

    object: str
    sizes: dict[str, float]
    nested: dict[str, str]
    components: pd.DataFrame
    method: str
    n_ratings: int
    notes: list[str]

    @property
    def facets(self) -> list[str]:
        """What is sampled: every facet but the object."""
        return [name for name in self.sizes if name != self.object]

    def error_shares(self, sizes: Mapping[str, float] | None = None) -> pd.DataFrame:
        """Each component's part of the error variance of a source's mean: term, relative, absolute, share.

        relative : what differs between objects rated under the same conditions; absolute : all error
        """
        n = {**self.sizes, **(sizes or {})}
        rows = []
        for term, used in zip(self.components.term, self.components.used, strict=True):
            effect = _effect(term)
            if effect == (self.object,):
                continue
            variance = used / np.prod([n[name] for name in effect if name != self.object])
            rows.append((term, variance if self.object in effect else 0.0, variance))
        table = pd.DataFrame(rows, columns=["term", "relative", "absolute"])
        total = table.relative.sum()
        return table.assign(share=table.relative / total if total > 0 else np.nan)

    def universe_variance(self) -> float:
        """Variance between the objects themselves."""
        return float(self.components.set_index("term").used[self.object])


def g_study(
    frame: pd.DataFrame,
    facets: Sequence[str] = ("source", "prompt", "rater"),
    *,
    object: str = "source",
    nested: Mapping[str, str] | None = None,
    score: str = "score",
) -> GStudy:
    """Variance components of `score` over crossed facets, one of them the object of measurement.

    Balanced data with one rating per cell are decomposed by expected mean squares, so that components may come
    out negative; they are shown as estimated and used as zero. Missing cells, repeated cells and nested facets
    are fitted by REML.

    Parameters
    ----------
    nested : facet → parent, as {"prompt": "case"} for prompts that belong to a case

    Raises
    ------
    StudyError : a facet that is no column or has one level; no variation; ratings that are not numbers

    References
    ----------
    Brennan (2001), Generalizability Theory, chapters 4 and 5.
    """
    inside = dict(nested or {})
    names = list(facets)
    _check(frame, names, object, inside, score)
    rated = frame.dropna(subset=[*names, score])
    y = _array(rated, names, inside, score)
    if y is None:
        return _by_reml(rated, names, object, inside, score)
    return _by_mean_squares(y, names, object, inside)


def assumed(
    components: Mapping[str, float], sizes: Mapping[str, float], object: str = "source"
) -> GStudy:
    """A G-study from components that are assumed or published, as {"source": 0.2, "source:prompt": 0.16}."""
    table = pd.DataFrame({"term": list(components), "estimate": list(components.values())})
    for term in table.term:
        unknown = [name for name in _effect(term) if name not in sizes]
        if unknown:
            raise StudyError(f"component {term} names {unknown[0]}, which has no size; give one for each facet")
    if object not in set(table.term):
        raise StudyError(f"no component {object}: the variance between {object}s is what a study measures")
    return GStudy(object, dict(sizes), {}, _used(table), "assumed", 0, [])


def d_study(
    study: GStudy,
    sizes: Mapping[str, Sequence[float]],
    *,
    cost_per_rating: float = 0.0,
    cost_per_level: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """What studies of other sizes would measure: one row for each combination of `sizes`.

    Parameters
    ----------
    sizes : facet → numbers of levels; facets not named keep the study's
    cost_per_rating, cost_per_level : in any currency; {"rater": 40, "prompt": 5} adds that for each rater, prompt

    Returns
    -------
    One column per facet, then `n_ratings`, `e_rho2` (for comparing objects), `phi` (for reading a score on its
    own), `relative_sd`, `absolute_sd` (standard error of an object's mean), `se_difference` (standard error of the
    difference of two objects), `cost` (nan without costs).

    Raises
    ------
    StudyError : for a facet that the study does not have, or a size below one

    Examples
    --------
    Brennan (2001), synthetic data set 1, twelve items:

    >>> study = assumed({"p": 0.0574, "i": 0.0754, "p:i": 0.1269}, {"p": 10, "i": 12}, object="p")
    >>> d_study(study, {"i": [12]})[["e_rho2", "phi"]].round(3).to_dict("records")
    [{'e_rho2': 0.844, 'phi': 0.773}]
    """
    _check_sizes(study, sizes)
    per_level = dict(cost_per_level or {})
    rows = []
    for combination in product(*sizes.values()):
        n = {**study.sizes, **dict(zip(sizes, combination, strict=True))}
        errors = study.error_shares(n)
        between, relative, absolute = study.universe_variance(), errors.relative.sum(), errors.absolute.sum()
        n_ratings = float(np.prod(list(n.values())))
        cost = cost_per_rating * n_ratings + sum(price * n[name] for name, price in per_level.items())
        rows.append({
            **{name: n[name] for name in study.facets}, "n_ratings": n_ratings,
            "e_rho2": _ratio(between, relative), "phi": _ratio(between, absolute),
            "relative_sd": np.sqrt(relative), "absolute_sd": np.sqrt(absolute),
            "se_difference": np.sqrt(2 * relative), "cost": cost if cost_per_rating or per_level else np.nan,
        })  # fmt: skip
    return pd.DataFrame(rows)


def cheapest(grid: pd.DataFrame, target: float, by: str = "se_difference") -> pd.DataFrame:
    """Rows of a D-study that reach `target`, cheapest first (fewest ratings without costs)."""
    reached = grid[grid[by] <= target] if by.endswith(("difference", "sd")) else grid[grid[by] >= target]
    return reached.sort_values("cost" if grid.cost.notna().all() else "n_ratings").reset_index(drop=True)


def bottleneck(study: GStudy, sizes: Mapping[str, float] | None = None) -> str:
    """A sentence that says which facet limits the precision of a difference between two objects."""
    n = {**study.sizes, **(sizes or {})}
    now = np.sqrt(2 * study.error_shares(n).relative.sum())
    if now == 0:
        return f"Nothing limits the difference between two {study.object}s: no error variance is left."
    gains = {name: 1 - _se(study, {**n, name: 2 * n[name]}) / now for name in study.facets}
    best, worst = max(gains, key=gains.get), min(gains, key=gains.get)
    return (
        f"{best.capitalize()}s, not {worst}s, limit precision: twice as many {best}s narrow the difference of two "
        f"{study.object}s by {gains[best]:.0%}, twice as many {worst}s by {gains[worst]:.0%}."
    )


def _se(study: GStudy, sizes: Mapping[str, float]) -> float:
    return float(np.sqrt(2 * study.error_shares(sizes).relative.sum()))


def _ratio(between: float, error: float) -> float:
    return between / (between + error) if between + error > 0 else float("nan")


def _effect(term: str) -> Effect:
    return tuple(term.split(":"))


def _check(frame: pd.DataFrame, names: list[str], object: str, nested: dict[str, str], score: str) -> None:
    absent = [name for name in [*names, score] if name not in frame.columns]
    if absent:
        raise StudyError(f"ratings have no column {', '.join(absent)}; they have {', '.join(frame.columns)}")
    if object not in names:
        raise StudyError(f"{object} is not among the facets {', '.join(names)}")
    outside = [name for pair in nested.items() for name in pair if name not in names]
    if outside:
        raise StudyError(f"nested facet {outside[0]} is not among the facets {', '.join(names)}")
    if not pd.api.types.is_numeric_dtype(frame[score]):
        raise StudyError(f"{score} holds {frame[score].dropna().iloc[0]!r}; ratings must be numbers")
    rated = frame.dropna(subset=[*names, score])
    for name in names:
        if rated[name].nunique() < 2:
            raise StudyError(f"{name} has {rated[name].nunique()} level: a facet needs two or more")
    if rated[score].nunique() < 2:
        raise StudyError(f"every {score} is {rated[score].iloc[0]:g}: there is no variance to take apart")


def _check_sizes(study: GStudy, sizes: Mapping[str, Sequence[float]]) -> None:
    for name, numbers in sizes.items():
        if name not in study.facets:
            raise StudyError(f"{name} is no facet of the study; it has {', '.join(study.facets)}")
        if min(numbers) < 1:
            raise StudyError(f"{min(numbers):g} {name}s: sizes start at one")


def _array(frame: pd.DataFrame, names: list[str], nested: dict[str, str], score: str) -> np.ndarray | None:
    """Scores with one axis per facet, a nested facet numbered within its parent; None if not balanced."""
    codes = {name: pd.factorize(frame[name], sort=True)[0] for name in names}
    for name, parent in nested.items():
        own = pd.DataFrame({"parent": codes[parent], "own": codes[name]})
        codes[name] = own.groupby("parent").own.transform(lambda s: pd.factorize(s, sort=True)[0]).to_numpy()
    shape = tuple(int(codes[name].max()) + 1 for name in names)
    cell = np.ravel_multi_index(tuple(codes.values()), shape)
    if len(frame) != np.prod(shape) or np.bincount(cell).max() > 1:
        return None
    y = np.empty(shape)
    y.ravel()[cell] = frame[score].to_numpy(float)
    return y


def _by_mean_squares(y: np.ndarray, names: list[str], object: str, nested: dict[str, str]) -> GStudy:
    """Balanced facets: mean squares, and the components whose expected mean squares they are."""
    effects = _all_effects(names, nested)
    size = dict(zip(names, y.shape, strict=True))
    squares = _sums_of_squares(y, names, effects)
    table = pd.DataFrame([(":".join(e), *squares[e]) for e in effects], columns=["term", "df", "sum_sq"])
    table["mean_sq"] = table.sum_sq / table.df
    # A mean square holds every component that contains its facets, once per observation of that component.
    expected = np.array([
        [(set(own) <= set(other)) * np.prod([size[f] for f in names if f not in other]) for other in effects]
        for own in effects
    ])  # fmt: skip
    weights = np.linalg.inv(expected)
    table["estimate"] = weights @ table.mean_sq
    table["std_error"] = np.sqrt(weights**2 @ (2 * table.mean_sq**2 / table.df))
    table = _used(table)
    negative = table[table.estimate < 0]
    notes = [f"{row.term} is estimated at {row.estimate:.4g} and used as zero." for row in negative.itertuples()]
    return GStudy(object, {name: float(n) for name, n in size.items()}, nested, table, "ANOVA", y.size, notes)


def _sums_of_squares(y: np.ndarray, names: list[str], effects: list[Effect]) -> dict[Effect, tuple[int, float]]:
    """Degrees of freedom and sum of squares of each effect: what its cell means hold beyond smaller effects."""
    centred = y - y.mean()
    found: dict[Effect, tuple[int, float]] = {}
    for effect in effects:
        others = tuple(axis for axis, name in enumerate(names) if name not in effect)
        means = centred.mean(axis=others)
        below = [found[smaller] for smaller in found if set(smaller) < set(effect)]
        df = means.size - 1 - sum(df for df, _ in below)
        found[effect] = df, float((means**2).sum() * y.size / means.size - sum(ss for _, ss in below))
    return found


def _by_reml(frame: pd.DataFrame, names: list[str], object: str, nested: dict[str, str], score: str) -> GStudy:
    """Any layout: every effect a random term, the highest one the residual unless cells are repeated."""
    from analysis.stats.mixed.fit import fit

    effects = _all_effects(names, nested)
    whole = effects[-1]
    repeated = frame.duplicated(list(whole)).any()
    columns = frame[[*names, score]].rename(columns={score: "score"})
    random = [effect for effect in effects if effect != whole or repeated]
    fitted = fit(columns, "score ~ 1 + " + " + ".join(f"(1|{':'.join(effect)})" for effect in random))
    variance = fitted.components().set_index("group").variance
    estimates = {":".join(effect): float(variance[":".join(effect)]) for effect in random}
    last = float(variance["residual"])
    estimates[":".join(whole)] = estimates.get(":".join(whole), 0.0) + last
    table = _used(pd.DataFrame({"term": list(estimates), "estimate": list(estimates.values())}))
    sizes = {name: _levels(frame, name, nested) for name in names}
    notes = ["Components are REML estimates, which are never negative."]
    if repeated:
        notes.append(f"Cells are rated more than once; {':'.join(whole)} holds the residual too.")
    return GStudy(object, sizes, nested, table, "REML", len(frame), notes)


def _levels(frame: pd.DataFrame, name: str, nested: dict[str, str]) -> float:
    """Levels of a facet, per level of its parent if it is nested."""
    if name not in nested:
        return float(frame[name].nunique())
    per_parent = frame.groupby(nested[name], observed=True)[name].nunique()
    return float(len(per_parent) / (1 / per_parent).sum())


def _all_effects(names: list[str], nested: dict[str, str]) -> list[Effect]:
    """Every set of facets that is a term: whoever has a nested facet has its parent; the smaller first."""
    sets = [effect for size in range(1, len(names) + 1) for effect in combinations(names, size)]
    return [effect for effect in sets if all(nested.get(name, name) in effect for name in effect)]


def _used(table: pd.DataFrame) -> pd.DataFrame:
    used = table.estimate.clip(lower=0)
    wanted = table.reindex(columns=["term", "df", "sum_sq", "mean_sq", "estimate", "std_error"])
    return wanted.assign(used=used, share=used / used.sum() if used.sum() > 0 else np.nan)
