"""Power of crossed designs in closed form: every source answers every prompt, every rater rates every answer.

The variance of a contrast is a sum of mean squares; Satterthwaite gives its degrees of freedom and the noncentral
t its power. For missing cells, incomplete blocks and rating scales see `analysis.stats.power_simulation`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq

from study.errors import StudyError

if TYPE_CHECKING:
    from analysis.stats.mixed.fit import MixedFit

# Levels that stand for "as many as one likes"; beyond this the power no longer changes in two digits.
MANY = 100_000


@dataclass(frozen=True)
class Variances:
    """Variance components of one rating of one source's answer to one prompt by one rater.

    In an encounter study the encounters of a case take the place of the prompts: give the source:case variance
    as `source_prompt`. `source_case` is the variance that the answers to the prompts of one case share.
    """

    source_prompt: float
    source_rater: float
    residual: float
    prompt: float = 0.0
    rater: float = 0.0
    source_case: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise StudyError(f"variance {name} is {value:g}; variances are zero or more")
        if self.residual == 0:
            raise StudyError("residual variance is zero: without it every difference is found")


@dataclass(frozen=True)
class Size:
    """How many sources, prompts (or cases of an encounter study) and raters; cases that hold the prompts."""

    sources: int
    prompts: float
    raters: float
    cases: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("sources", 2), ("prompts", 2), ("raters", 2)):
            if getattr(self, name) < least:
                raise StudyError(f"{getattr(self, name):g} {name}: a crossed design needs at least {least}")
        if self.cases is not None and not 2 <= self.cases <= self.prompts:
            raise StudyError(f"{self.cases:g} cases for {self.prompts:g} prompts: give 2 to {self.prompts:g}")

    @property
    def ratings(self) -> float:
        return self.sources * self.prompts * self.raters


@dataclass(frozen=True)
class Precision:
    """Standard error and Satterthwaite degrees of freedom of one contrast."""

    std_error: float
    df: float


def from_fit(fit: "MixedFit") -> Variances:
    """Components of a pilot's fit, its random terms named by the columns rater, prompt, case, source, label.

    Raises
    ------
    StudyError : if the model has no term for the single response or for rater by source, without which power
        would be overstated; if it has a term that a crossed study does not have
    """
    table = fit.components()
    found: dict[str, float] = {"residual": float(table.variance.iloc[-1])}
    for group, variance in zip(table.group[:-1], table.variance[:-1], strict=True):
        name = _role(frozenset(group.split(":")), group)
        found[name] = found.get(name, 0.0) + float(variance)
    if "source_prompt" not in found and "source_case" in found:
        found["source_prompt"] = found.pop("source_case")
    for name, term in (("source_prompt", "(1|source:prompt)"), ("source_rater", "(1|source:rater)")):
        if name not in found:
            raise StudyError(f"the pilot's model has no {term}: without it power is overstated; fit it again")
    return Variances(**found)


def _role(parts: frozenset[str], group: str) -> str:
    roles = {
        frozenset({"rater"}): "rater", frozenset({"prompt"}): "prompt", frozenset({"case"}): "prompt",
        frozenset({"case", "prompt"}): "prompt", frozenset({"source", "prompt"}): "source_prompt",
        frozenset({"source", "case", "prompt"}): "source_prompt", frozenset({"label"}): "source_prompt",
        frozenset({"source", "case"}): "source_case", frozenset({"source", "rater"}): "source_rater",
    }  # fmt: skip
    if parts not in roles:
        raise StudyError(f"the pilot's term (1|{group}) has no place in a crossed study's power")
    return roles[parts]


def source_contrast(variances: Variances, size: Size, weights: Sequence[float] = (1, -1)) -> Precision:
    """Precision of a contrast of sources' means.

    Parameters
    ----------
    weights : one per source (trailing zeros may be left out), summing to zero. Only their ratios matter: they
        are scaled so that the positive ones sum to one.
    """
    w = _scaled(weights, size.sources)
    s, p, r, v = size.sources, size.prompts, size.raters, variances
    error = v.residual
    response = error + r * v.source_prompt
    by_rater = error + p * v.source_rater
    strata = [(by_rater, 1.0, (s - 1) * (r - 1)), (error, -1.0, (s - 1) * (p - 1) * (r - 1))]
    if size.cases is None and v.source_case > 0:
        raise StudyError("answers to one case share variance (source_case): say how many cases hold the prompts")
    if size.cases is None:
        strata.append((response, 1.0, (s - 1) * (p - 1)))
    else:
        case = response + r * p / size.cases * v.source_case
        strata.append((case, 1.0, (s - 1) * (size.cases - 1)))
    return _satterthwaite(strata, float(w @ w) / (p * r))


def group_effect(variances: Variances, size: Size, prompts: tuple[float, float], groups: int = 2) -> Precision:
    """Precision of the difference between two groups of prompts within one source: a negation penalty.

    Parameters
    ----------
    prompts : how many prompts each of the two groups has
    groups : how many groups of prompts the model tells apart
    """
    s, r, v = size.sources, size.raters, variances
    response = v.residual + r * v.source_prompt
    prompt = response + s * r * v.prompt
    df = _group_df(size, groups)
    strata = [(prompt, 1 / s, df), (response, (s - 1) / s, (s - 1) * df)]
    return _satterthwaite(strata, sum(1 / n for n in prompts) / r)


def interaction(
    variances: Variances,
    size: Size,
    prompts: tuple[float, float],
    groups: int = 2,
    weights: Sequence[float] = (1, -1),
) -> Precision:
    """Precision of a difference between sources of the difference between two groups of prompts."""
    w = _scaled(weights, size.sources)
    response = variances.residual + size.raters * variances.source_prompt
    strata = [(response, 1.0, (size.sources - 1) * _group_df(size, groups))]
    return _satterthwaite(strata, float(w @ w) * sum(1 / n for n in prompts) / size.raters)


def power(precision: Precision, difference: float, alpha: float = 0.05) -> float:
    """Probability that the two-sided t test finds a true difference of this size.

    Examples
    --------
    Seventy prompts, seventeen raters, five sources:

    >>> spread = Variances(source_prompt=0.16, source_rater=0.01, residual=0.4225)
    >>> precision = source_contrast(spread, Size(sources=5, prompts=70, raters=17))
    >>> [round(power(precision, d), 2) for d in (0.15, 0.20, 0.25, 0.30)]
    [0.46, 0.7, 0.87, 0.96]
    """
    critical = stats.t.ppf(1 - alpha / 2, precision.df)
    shift = abs(difference) / precision.std_error
    if shift > 35:
        return 1.0
    above = stats.nct.sf(critical, precision.df, shift)
    below = stats.nct.cdf(-critical, precision.df, shift)
    # Far below the noncentre scipy returns nan for a probability that is zero to all digits.
    return float(above + np.nan_to_num(below))


def detectable(precision: Precision, target: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest difference that is found with probability `target`."""
    if not alpha < target < 1:
        raise StudyError(f"power {target:g} cannot be aimed at: give a number between {alpha:g} and 1")
    widest = precision.std_error * 200
    return float(brentq(lambda d: power(precision, d, alpha) - target, 0, widest, xtol=1e-10))


def power_grid(
    variances: Variances,
    sources: int,
    prompts: Sequence[int],
    raters: Sequence[int],
    differences: Sequence[float],
    *,
    cases: Sequence[int] | None = None,
    weights: Sequence[float] = (1, -1),
    alpha: float = 0.05,
    target: float = 0.8,
) -> pd.DataFrame:
    """Power of a source contrast for every combination of prompts, raters (and cases) and every difference.

    Returns
    -------
    `prompts`, `raters`, `cases` (nan if not given), `n_ratings`, `std_error`, `df`, `difference`, `power`,
    `detectable` (the difference found with probability `target`).
    """
    rows = []
    for p, r, c in product(prompts, raters, cases or [None]):
        size = Size(sources, p, r, c)
        found = source_contrast(variances, size, weights)
        least = detectable(found, target, alpha)
        rows += [
            {
                "prompts": p, "raters": r, "cases": np.nan if c is None else c, "n_ratings": size.ratings,
                "std_error": found.std_error, "df": found.df, "difference": d,
                "power": power(found, d, alpha), "detectable": least,
            }
            for d in differences
        ]  # fmt: skip
    return pd.DataFrame(rows)


def plateau(
    variances: Variances,
    size: Size,
    difference: float,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    called: str = "prompt",
) -> str:
    """Where more raters or more prompts stop helping, in a sentence or two.

    Parameters
    ----------
    called : what the items are to the reader: prompt, or case in an encounter study
    """

    def reached(**change: float) -> float:
        return power(source_contrast(variances, Size(**{**vars(size), **change})), difference, alpha)

    def with_items(n: float) -> float:
        if size.cases is None:
            return reached(prompts=n)
        return reached(cases=n, prompts=n * size.prompts / size.cases)

    now = reached()
    held = "" if size.cases is None else f" in {size.cases:g} cases"
    items = f"{called}s" if size.cases is None else f"cases of {size.prompts / size.cases:.3g} prompts"
    start = (
        f"{size.prompts:g} {called}s{held} and {size.raters:g} raters find a difference of {difference:g} with "
        f"probability {now:.2f}."
    )
    if now >= target:
        return start
    with_raters = reached(raters=MANY)
    n_items = _needed(with_items, size.prompts if size.cases is None else size.cases, target)
    n_raters = _needed(lambda n: reached(raters=n), size.raters, target)
    advice = []
    if n_raters is None:
        advice.append(
            f"More raters will not help: with any number of them it stays at {with_raters:.2f} or below"
        )
    else:
        advice.append(f"{n_raters} raters would reach {target:g}")
    if n_items is None:
        advice.append(f"no number of {items} reaches {target:g} with {size.raters:g} raters: add both")
    else:
        advice.append(f"add {items}: {n_items} reach {target:g} with {size.raters:g} raters")
    return f"{start} {advice[0][0].upper()}{advice[0][1:]}; {advice[1]}."


def _needed(reached: Callable[[int], float], now: float, target: float) -> int | None:
    """The fewest levels that reach the target, or None if none do."""
    if reached(MANY) < target:
        return None
    low, high = int(now), MANY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) >= target else (middle, high)
    return high


def _scaled(weights: Sequence[float], n: int) -> np.ndarray:
    w = np.asarray(weights, float)
    if len(w) > n:
        raise StudyError(f"{len(w)} weights for {n} sources")
    if not np.any(w) or abs(w.sum()) > 1e-9 * np.abs(w).sum():
        raise StudyError(f"contrast weights {', '.join(f'{x:g}' for x in w)} must sum to zero and not all be zero")
    return w / w[w > 0].sum()


def _group_df(size: Size, groups: int) -> float:
    if size.prompts <= groups:
        raise StudyError(f"{size.prompts:g} prompts in {groups} groups leave no degrees of freedom")
    return size.prompts - groups


def _satterthwaite(strata: Sequence[tuple[float, float, float]], factor: float) -> Precision:
    """From (expected mean square, coefficient, degrees of freedom) of each stratum."""
    total = sum(square * weight for square, weight, _ in strata)
    spread = sum((square * weight) ** 2 / df for square, weight, df in strata)
    return Precision(float(np.sqrt(factor * total)), float(total**2 / spread))


def assumed(components: Mapping[str, float]) -> Variances:
    """Variances from a mapping, such as a table of a study file; unknown names are named.

    Raises
    ------
    StudyError : for an unknown or a missing component
    """
    known = list(Variances.__dataclass_fields__)
    unknown = [name for name in components if name not in known]
    if unknown:
        raise StudyError(f"component {unknown[0]} is unknown; components are {', '.join(known)}")
    missing = [name for name in known[:3] if name not in components]
    if missing:
        raise StudyError(f"component {missing[0]} is missing; give at least {', '.join(known[:3])}")
    return Variances(**{name: float(value) for name, value in components.items()})
