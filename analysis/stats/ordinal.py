"""Cumulative-link mixed models: ratings as ordered categories, with crossed random intercepts.

The sensitivity analysis beside the linear mixed model: the same formula, no assumption that 1 to 2 is as far
as 4 to 5, and no mean that runs into the ceiling of the scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import stats

from analysis.stats.formula import Formula, parse
from analysis.stats.laplace import Link
from analysis.stats.mixed.design import Design, design
from analysis.stats.ordinal_optimum import Maximum, Problem, maximum
from study.errors import StudyError

MAX_CATEGORIES = 30
_MOST_STEPS = 100
# A coefficient whose standard error is this large on the latent scale has no finite estimate.
_INFINITE_ERROR = 50.0


@dataclass(frozen=True)
class OrdinalOptimum:
    """How the likelihood's maximum was found.

    decrement : g'H⁻¹g at the end, twice the log-likelihood still to be gained
    """

    evaluations: int
    decrement: float
    converged: bool
    singular: bool


@dataclass(frozen=True)
class OrdinalFit:
    """A fitted cumulative-link mixed model.

    P(rating ≤ j) = F(threshold_j − η): a positive coefficient means higher ratings. Coefficients are on the
    latent scale of the link (log odds, or standard deviations for probit).

    categories : the categories that occur, in order, and how often
    nodes : 1 for Laplace's approximation, else the nodes of the quadrature
    log_likelihood : at the maximum
    singular_terms : random terms whose variance is estimated at zero
    """

    formula: str
    link: Link
    nodes: int
    n_rows: int
    n_missing: dict[str, int]
    categories: pd.DataFrame
    thresholds_: pd.Series
    fixed: pd.Series
    vcov: pd.DataFrame
    sd: pd.Series
    levels: dict[str, int]
    log_likelihood: float
    optimum: OrdinalOptimum
    singular_terms: list[str]
    dropped_columns: list[str]
    notes: list[str]
    effects: dict[str, pd.DataFrame] = field(repr=False)
    design: Design = field(repr=False)

    @property
    def n_parameters(self) -> int:
        return len(self.thresholds_) + len(self.fixed) + len(self.sd)

    @property
    def aic(self) -> float:
        return 2 * self.n_parameters - 2 * self.log_likelihood

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """Fixed effects as term, estimate, std_error, df (infinite), statistic (z), p_value, low, high, n."""
        return _wald(self.fixed, self.vcov, level, self.n_rows)

    def thresholds(self, level: float = 0.95) -> pd.DataFrame:
        """Thresholds `1|2`, `2|3`, … with the columns of `coefficients`; their p-values mean little."""
        return _wald(self.thresholds_, self.vcov, level, self.n_rows)

    def components(self) -> pd.DataFrame:
        """Random terms as group, name, variance, sd, share of the latent variance (the link's residual too)."""
        residual = np.pi**2 / 3 if self.link == "logit" else 1.0
        variance = np.append(self.sd.to_numpy() ** 2, residual)
        return pd.DataFrame({
            "group": [*self.sd.index, "Residual"],
            "name": ["(Intercept)"] * len(self.sd) + [f"{self.link} link"],
            "variance": variance, "sd": np.sqrt(variance), "share": variance / variance.sum(),
        })  # fmt: skip

    def blups(self, group: str) -> pd.DataFrame:
        """Conditional modes of one random term: level, estimate, std_error."""
        if group not in self.effects:
            raise StudyError(f"the model has no random term {group}; it has {', '.join(self.effects)}")
        return self.effects[group].copy()

    def contrast(self, rows: np.ndarray, terms: list[str], level: float = 0.95) -> pd.DataFrame:
        """Combinations of coefficients in the columns of `coefficients`.

        Parameters
        ----------
        rows : one per combination, weights on the design's fixed columns; the intercept's is ignored
        """
        kept = [i for i, name in enumerate(self.design.fixed.names) if name != "(Intercept)"]
        weights = np.atleast_2d(rows)[:, kept]
        vcov = weights @ self.vcov.loc[self.fixed.index, self.fixed.index].to_numpy() @ weights.T
        values = pd.Series(weights @ self.fixed.to_numpy(), terms)
        return _wald(values, pd.DataFrame(vcov, terms, terms), level, self.n_rows)

    def __repr__(self) -> str:
        random = self.components()[["group", "variance", "sd"]].to_string(index=False)
        counts = ", ".join(f"{c.category:g}: {c.n}" for c in self.categories.itertuples())
        fixed = self.coefficients().drop(columns=["df", "n"]).to_string(index=False)
        cuts = self.thresholds()[["term", "estimate", "std_error"]].to_string(index=False)
        groups = ", ".join(f"{name} {n}" for name, n in self.levels.items())
        how = "Laplace approximation" if self.nodes == 1 else f"quadrature at {self.nodes} nodes"
        lines = [
            f"Cumulative {self.link} mixed model, {how}", f"Formula: {self.formula}",
            f"Log-likelihood: {self.log_likelihood:.4f}   AIC: {self.aic:.2f}",
            f"{self.n_rows} ratings ({counts}); {groups}", "", "Random effects:", random, "",
            "Fixed effects:", fixed, "", "Thresholds:", cuts,
        ]  # fmt: skip
        return "\n".join(lines + [""] * bool(self.notes) + self.notes)


def fit_ordinal(
    frame: pd.DataFrame,
    formula: str | Formula,
    *,
    link: Link = "logit",
    nodes: int = 1,
    contrasts: Mapping[str, str] | None = None,
) -> OrdinalFit:
    """Fit a cumulative-link mixed model with crossed or nested random intercepts by Laplace's approximation.

    Takes the frame, the formula and the contrasts of `mixed.fit.fit`. Categories that nobody used are left
    out, with a note; a source that never received some category is no obstacle, since thresholds are shared.

    Parameters
    ----------
    nodes : 1 is Laplace's approximation; more are adaptive quadrature, for a single random term

    Raises
    ------
    StudyError : scores that are no scale (more than 30 values); one category; a random slope; what the
        linear model's design refuses

    References
    ----------
    Christensen (2019), Cumulative link models for ordinal regression with the R package ordinal.
    """
    if link not in ("logit", "probit"):
        raise StudyError(f"link {link!r} is unknown; choose logit or probit")
    model, outcome = design(frame, parse(formula) if isinstance(formula, str) else formula, contrasts)
    y, categories = _categories(outcome, model.formula.outcome)
    X, names = _without_intercept(model)
    groups = _intercepts(model)
    if nodes < 1 or (nodes > 1 and len(groups) > 1):
        raise StudyError(f"{nodes} quadrature nodes for {len(groups)} random terms: crossed terms allow 1 only")
    whole = Problem(y, X, names, groups, link, nodes)
    best, singular = maximum(whole)
    return _result(model, categories, whole, best, singular)


def _categories(outcome: np.ndarray, name: str) -> tuple[np.ndarray, pd.DataFrame]:
    values, y, counts = np.unique(outcome, return_inverse=True, return_counts=True)
    if len(values) < 2:
        raise StudyError(f"every {name} is {values[0]:g}: an ordinal model needs two categories or more")
    if len(values) > MAX_CATEGORIES:
        raise StudyError(
            f"{name} has {len(values)} different values; an ordinal model needs a rating scale of at most "
            f"{MAX_CATEGORIES} categories"
        )
    return y, pd.DataFrame({"category": values, "n": counts})


def _without_intercept(model: Design) -> tuple[np.ndarray, list[str]]:
    """Fixed columns by row; the thresholds stand in for the intercept."""
    fixed = model.fixed
    if () not in fixed.terms:
        raise StudyError(f'"{model.formula.text}": keep the intercept, whose place the thresholds take')
    kept = [i for i, name in enumerate(fixed.names) if name != "(Intercept)"]
    return fixed.x[:, kept][fixed.cell], [fixed.names[i] for i in kept]


def _intercepts(model: Design) -> dict[str, tuple[np.ndarray, int]]:
    slopes = [g.term.text for g in model.groupings if g.columns != ["(Intercept)"]]
    if slopes:
        raise StudyError(f"ordinal models take random intercepts only; write {slopes[0]} as (1 | group)")
    return {g.term.name: (g.codes.astype(np.intp), g.n_levels) for g in model.groupings}


def _result(
    model: Design, categories: pd.DataFrame, problem: Problem, best: Maximum, singular: list[str]
) -> OrdinalFit:
    values = categories.category
    cuts = [f"{low:g}|{high:g}" for low, high in zip(values[:-1], values[1:], strict=True)]
    names = [*cuts, *problem.names, *(f"sd {name}" for name in problem.groups)]
    parameters = pd.Series(best.parameters, names)
    free = [name for name in names if name.removeprefix("sd ") not in singular or name in problem.names]
    vcov = pd.DataFrame(np.linalg.pinv(best.hessian, hermitian=True), free, free)
    sd = pd.Series(np.abs(best.parameters[-len(problem.groups) :]), list(problem.groups))
    notes = _notes(values, singular)
    fixed, vcov, infinite = _without_infinite(parameters[problem.names], vcov)
    notes += infinite
    return OrdinalFit(
        formula=str(model.formula), link=problem.link, nodes=problem.nodes,
        n_rows=len(problem.y), n_missing=model.n_missing,
        categories=categories, thresholds_=parameters[cuts], fixed=fixed, vcov=vcov, sd=sd,
        levels={name: n for name, (_, n) in problem.groups.items()}, log_likelihood=-best.value,
        optimum=OrdinalOptimum(
            best.evaluations, best.decrement, best.decrement < 1e-6 and not infinite, bool(singular)
        ),
        singular_terms=singular, dropped_columns=model.fixed.dropped, notes=notes,
        effects=_effects(model, best), design=model,
    )  # fmt: skip


def _notes(values: pd.Series, singular: list[str]) -> list[str]:
    notes = [
        f"The variance of (1 | {name}) is estimated at zero; the other standard errors are those without it."
        for name in singular
    ]
    used = set(values)
    # A scale of more steps than this is none on which anybody could have used every step.
    counted = _whole(values) and values.max() - values.min() <= _MOST_STEPS
    unused = sorted(set(range(int(values.min()), int(values.max()))) - used) if counted else []
    if unused:
        shown = ", ".join(map(str, unused))
        notes.append(f"Nobody used {shown}; the thresholds pass over what is not used.")
    return notes


def _whole(values: pd.Series) -> bool:
    return bool((values == values.round()).all())


def _without_infinite(fixed: pd.Series, vcov: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame, list[str]]:
    """Coefficients that run to infinity become nan, with a note: all ratings there lie at one end."""
    error = _errors(vcov, fixed.index)
    infinite = fixed.index[np.isnan(error) | (error > _INFINITE_ERROR) | (fixed.abs() > _INFINITE_ERROR)]
    if not len(infinite):
        return fixed, vcov, []
    fixed, vcov = fixed.copy(), vcov.copy()
    notes = [
        f"{name} has no finite estimate ({'up' if fixed[name] > 0 else 'down'}ward without end): "
        "its ratings or the reference's all lie at one end of the scale."
        for name in infinite
    ]
    fixed[infinite] = np.nan
    vcov.loc[infinite, :] = np.nan
    vcov.loc[:, infinite] = np.nan
    return fixed, vcov, notes


def _effects(model: Design, best: Maximum) -> dict[str, pd.DataFrame]:
    modes, errors = best.model.effects(best.parameters)
    return {
        g.term.name: pd.DataFrame({"level": g.labels, "estimate": mode, "std_error": error})
        for g, mode, error in zip(model.groupings, modes, errors, strict=True)
    }


def _wald(estimates: pd.Series, vcov: pd.DataFrame, level: float, n: int) -> pd.DataFrame:
    error = _errors(vcov, estimates.index)
    value = estimates.to_numpy()
    half = stats.norm.ppf((1 + level) / 2) * error
    return pd.DataFrame({
        "term": estimates.index, "estimate": value, "std_error": error, "df": np.inf, "statistic": value / error,
        "p_value": 2 * stats.norm.sf(np.abs(value / error)), "low": value - half, "high": value + half, "n": n,
    })  # fmt: skip


def _errors(vcov: pd.DataFrame, names: pd.Index) -> np.ndarray:
    """Standard errors; nan where the likelihood is flat and has none."""
    variance = np.diag(vcov.loc[names, names])
    return np.sqrt(np.where(variance > 0, variance, np.nan))
