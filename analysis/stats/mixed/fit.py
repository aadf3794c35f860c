"""Step four: the fitted linear mixed model, and the one call that makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.stats import inference
from analysis.stats.formula import Formula, parse
from analysis.stats.mixed import summary
from analysis.stats.mixed.crossproducts import CrossProducts, Outcome, cross_products, outcome_sums
from analysis.stats.mixed.design import Design, coefficients, design
from analysis.stats.mixed.objective import Criterion, Method, layout
from analysis.stats.mixed.optimum import SINGULAR, Optimum, optimum
from study.errors import StudyError

NO_RESIDUAL = 1e-10
"""Share of the outcome's variance below which the residual variance is rounding."""


@dataclass(frozen=True, repr=False)
class MixedFit:
    """A fitted linear mixed model.

    design, sums : the coded rows and their cross-products, shared by refits
    best : the criterion at its optimum; optimum : how it was found
    y : the outcome of the rows that were used
    """

    design: Design
    sums: CrossProducts
    outcome: Outcome
    best: Criterion
    optimum: Optimum
    method: Method
    y: np.ndarray
    memory: dict = field(default_factory=dict, repr=False, compare=False)

    @property
    def formula(self) -> Formula:
        return self.design.formula

    @property
    def n_rows(self) -> int:
        """Rows used."""
        return self.design.n

    @property
    def n_missing(self) -> dict[str, int]:
        """Rows left out, by reason."""
        return self.design.n_missing

    @property
    def criterion(self) -> float:
        """The REML criterion, or the deviance of an ML fit; minus two log likelihoods."""
        return self.best.value

    @property
    def log_likelihood(self) -> float:
        return -self.best.value / 2

    @property
    def n_parameters(self) -> int:
        """Fixed effects, thetas and sigma."""
        return self.design.fixed.p + len(self.best.theta) + 1

    @property
    def aic(self) -> float:
        return self.best.value + 2 * self.n_parameters

    @property
    def bic(self) -> float:
        return self.best.value + np.log(self.n_rows) * self.n_parameters

    @property
    def sigma(self) -> float:
        """Residual SD."""
        return float(np.sqrt(self.best.sigma2))

    @cached_property
    def factors(self) -> list[np.ndarray]:
        """The lower triangle L of every random term, in the formula's order; sigma² LL' is its covariance."""
        mine = layout(self.sums.widths).factors(self.best.theta)
        return [mine[self.sums.order.index(k)] for k in range(len(self.design.groupings))]

    @property
    def theta(self) -> np.ndarray:
        """The lower triangles of the random terms in the formula's order, column by column."""
        return np.concatenate([factor.T[np.triu_indices(len(factor))] for factor in self.factors])

    @cached_property
    def fixed(self) -> pd.Series:
        """Fixed effects by coefficient."""
        return pd.Series(coefficients(self.design.fixed, self.best.beta), index=self.design.fixed.names)

    @cached_property
    def vcov(self) -> pd.DataFrame:
        """Covariance of the fixed effects."""
        half = coefficients(self.design.fixed, self.best.half_cov.T).T
        names = self.design.fixed.names
        return pd.DataFrame(self.best.sigma2 * half @ half.T, index=names, columns=names)

    @property
    def levels(self) -> dict[str, int]:
        """Levels of every group."""
        return {grouping.term.name: grouping.n_levels for grouping in self.design.groupings}

    @property
    def dropped_columns(self) -> list[str]:
        """Coefficients left out because the data cannot tell them from the others."""
        return list(self.design.fixed.dropped)

    @property
    def singular_terms(self) -> list[str]:
        """Random terms with a variance of zero or a correlation of one."""
        pairs = zip(self.design.groupings, self.factors, strict=True)
        return [grouping.term.text for grouping, factor in pairs if np.diagonal(factor).min() < SINGULAR]

    @property
    def notes(self) -> list[str]:
        """What a reader must know about this fit, a sentence each."""
        return summary.notes(self)

    def coefficients(self, ddf: inference.Ddf = "satterthwaite", level: float = 0.95) -> pd.DataFrame:
        """Fixed effects in the broom columns, with the named degrees of freedom at any number of rows."""
        rows = np.eye(self.design.fixed.p)
        return inference.contrast_table(self, rows, self.design.fixed.names, ddf, level)

    def components(self) -> pd.DataFrame:
        """Variance components: group, name, variance, sd, share of the outcome's variance."""
        return summary.components(self)

    def correlations(self) -> pd.DataFrame:
        """Correlations of random effects within their terms: group, one, other, correlation."""
        return summary.correlations(self)

    def blups(self, group: str) -> pd.DataFrame:
        """Predicted effects of a group's levels, with their conditional SD (lme4's condVar).

        group : as written after the bar, `rater` or `case:prompt`
        columns : level, name, estimate, std_error
        """
        tables = [
            self._blups(k) for k, g in enumerate(self.design.groupings) if group in (g.term.name, g.term.text)
        ]
        if not tables:
            raise StudyError(f"The model has no random term for {group!r}; it has {', '.join(self.levels)}.")
        return pd.concat(tables, ignore_index=True)

    def _blups(self, k: int) -> pd.DataFrame:
        grouping, place = self.design.groupings[k], self.sums.order.index(k)
        q, c = grouping.n_levels, grouping.width
        between = self.factors[k] @ self.factors[k].T
        spread = np.empty((q, c, c))
        for a in range(c):
            for b in range(c):
                spread[:, a, b] = self.best.weighted.diagonal((place, a), (place, b))
        conditional = self.best.sigma2 * (between - between @ spread @ between)
        return pd.DataFrame(
            {
                "level": np.repeat(np.array(grouping.labels, object), c),
                "name": grouping.columns * q,
                "estimate": self.effects[k].ravel(),
                "std_error": np.sqrt(np.maximum(np.einsum("qaa->qa", conditional), 0.0)).ravel(),
            }
        )

    @cached_property
    def effects(self) -> list[np.ndarray]:
        """Predicted effects of every random term in the formula's order: levels × columns."""
        found = []
        for k, grouping in enumerate(self.design.groupings):
            place = self.sums.order.index(k)
            span = slice(self.sums.offsets[place], self.sums.offsets[place + 1])
            between = self.factors[k] @ self.factors[k].T
            found.append(self.best.t[span].reshape(grouping.n_levels, grouping.width) @ between)
        return found

    def fitted(self, random: bool = True) -> np.ndarray:
        """Fitted values of the rows used; without the random effects if asked."""
        values = (self.design.fixed.basis @ self.best.beta)[self.design.fixed.cell]
        if random:
            for grouping, effects in zip(self.design.groupings, self.effects, strict=True):
                if grouping.values is None:
                    values = values + effects[grouping.codes, 0]
                else:
                    values = values + np.einsum("ij,ij->i", effects[grouping.codes], grouping.values)
        return values

    @property
    def residuals(self) -> np.ndarray:
        """Outcome less fitted values, by row used."""
        return self.y - self.fitted()

    def refit(self, y: Sequence[float] | np.ndarray, start: np.ndarray | None = None) -> MixedFit:
        """The same model of another outcome on the same rows; the cross-products are shared."""
        values = np.asarray(y, float)
        if values.shape != (self.n_rows,):
            raise StudyError(f"The new outcome has {values.size} values; the fit has {self.n_rows} rows.")
        if not np.isfinite(values).all():
            raise StudyError("The new outcome has missing values; fit it from its own table instead.")
        return solve(self.design, self.sums, values, self.method, start)

    def __repr__(self) -> str:
        return summary.text(self)

    def _repr_html_(self) -> str:
        return summary.html(self)


def fit(
    frame: pd.DataFrame,
    formula: str | Formula,
    *,
    method: Method = "REML",
    contrasts: Mapping[str, str] | None = None,
) -> MixedFit:
    """Fit a linear mixed model as lme4 does: exact REML (or ML) with crossed or nested random effects.

    Parameters
    ----------
    frame : one row per rating; the columns that the formula names
    formula : lme4's grammar, `score ~ source*form + (1|rater) + (1|case:prompt)`
    contrasts : coding by column, "treatment" (default), "sum" or "helmert"

    Raises
    ------
    StudyError : for a formula or data that cannot be fitted, in one sentence

    References
    ----------
    Bates, Mächler, Bolker, Walker (2015), J. Stat. Softw. 67(1), doi.org/10.18637/jss.v067.i01
    """
    if method not in ("REML", "ML"):
        raise StudyError(f"The method {method!r} is not known; use REML or ML.")
    model, y = design(frame, parse(formula) if isinstance(formula, str) else formula, contrasts)
    return solve(model, cross_products(model), y, method)


def fit_many(
    frame: pd.DataFrame,
    outcomes: Sequence[str],
    effects: str,
    *,
    method: Method = "REML",
    contrasts: Mapping[str, str] | None = None,
) -> dict[str, MixedFit]:
    """Fit the same effects to several columns, such as the metrics of a wide table.

    Columns that are complete in the same rows share one design and its cross-products.

    effects : the right side of the formula, `source + (1|rater)`
    """
    fits: dict[str, MixedFit] = {}
    shared: dict[bytes, tuple[Design, CrossProducts]] = {}
    for name in outcomes:
        formula = parse(f"`{name}` ~ {effects}" if not name.isidentifier() else f"{name} ~ {effects}")
        complete = np.packbits(frame[name].notna().to_numpy()).tobytes() if name in frame.columns else b""
        if complete not in shared:
            model, y = design(frame, formula, contrasts)
            shared[complete] = (model, cross_products(model))
        else:
            model = replace(shared[complete][0], formula=formula)
            y = frame[name].to_numpy(float)[model.rows]
        fits[name] = solve(model, shared[complete][1], y, method)
    return fits


def fit_like(
    whole: MixedFit, leave_out: Sequence[int] = (), shrink: tuple[int, tuple[str, ...]] | None = None
) -> MixedFit:
    """The same rows and fixed effects with fewer random effects, by the same method.

    leave_out : random terms, by place in the formula, whose variance is held at zero
    shrink : a random term and one of its columns, which is taken out of it
    """
    if shrink is None:
        shape = layout(whole.sums.widths)
        places = {whole.sums.order.index(k) for k in leave_out}
        held = np.array([t in places for t, _, _ in shape.theta])
        start = np.where(held, 0.0, whole.best.theta)
        best, record = optimum(whole.sums, whole.outcome, whole.method, start, held)
        return MixedFit(whole.design, whole.sums, whole.outcome, best, record, whole.method, whole.y)
    k, column = shrink
    random = list(whole.formula.random)
    random[k] = replace(random[k], terms=tuple(term for term in random[k].terms if term != column))
    frame = pd.DataFrame(whole.design.columns).assign(**{whole.formula.outcome: whole.y})
    codings = {v.column: v.coding for v in whole.design.fixed.variables.values() if v.is_factor}
    return fit(frame, whole.formula.with_random(tuple(random)), method=whole.method, contrasts=codings)


def solve(
    model: Design, sums: CrossProducts, y: np.ndarray, method: Method, start: np.ndarray | None = None
) -> MixedFit:
    """Fit an outcome on a design whose cross-products are at hand."""
    outcome, _ = outcome_sums(model, sums.order, y)
    best, record = optimum(sums, outcome, method, start)
    if best.sigma2 < NO_RESIDUAL * outcome.yy / model.n:
        name = model.formula.outcome
        raise StudyError(f"The random effects explain {name} exactly; no residual variance is left to estimate.")
    return MixedFit(model, sums, outcome, best, record, method, y)
