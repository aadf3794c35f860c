"""Cumulative-link mixed models: ratings as ordered categories, with crossed random intercepts.

The sensitivity analysis beside the linear mixed model: the same formula, no assumption that 1 to 2 is as far
as 4 to 5, and no mean that runs into the ceiling of the scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logit, ndtri

from analysis.stats.formula import Formula, parse
from analysis.stats.laplace import Laplace, Link
from analysis.stats.mixed.design import Design, design
from study.errors import StudyError

MAX_CATEGORIES = 30
# A σ below this share of the latent residual's is zero to any reader; the likelihood is flat there.
_SMALL_SD = 1e-3
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
    log_likelihood : at the maximum, by Laplace's approximation
    singular_terms : random terms whose variance is estimated at zero
    """

    formula: str
    link: Link
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
        lines = [
            f"Cumulative {self.link} mixed model, Laplace approximation", f"Formula: {self.formula}",
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
    contrasts: Mapping[str, str] | None = None,
) -> OrdinalFit:
    """Fit a cumulative-link mixed model with crossed or nested random intercepts by Laplace's approximation.

    Takes the frame, the formula and the contrasts of `mixed.fit.fit`. Categories that nobody used are left
    out, with a note; a source that never received some category is no obstacle, since thresholds are shared.

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
    whole = _Problem(y, X, names, groups, link)
    best, singular = _maximum(whole)
    return _result(model, categories, whole, best, singular)


@dataclass(frozen=True)
class _Problem:
    """One likelihood: categories, fixed columns, random intercepts by name."""

    y: np.ndarray
    X: np.ndarray
    names: list[str]
    groups: dict[str, tuple[np.ndarray, int]]
    link: Link

    @property
    def n_thresholds(self) -> int:
        return int(self.y.max())

    @property
    def residual_sd(self) -> float:
        return np.pi / np.sqrt(3) if self.link == "logit" else 1.0


@dataclass(frozen=True)
class _Maximum:
    parameters: np.ndarray
    value: float
    hessian: np.ndarray
    decrement: float
    evaluations: int
    model: Laplace


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


class _Free:
    """The likelihood in the parameters that are not held at zero."""

    def __init__(self, model: Laplace, free: np.ndarray) -> None:
        self.model, self.free = model, free

    def whole(self, free: np.ndarray) -> np.ndarray:
        parameters = np.zeros(len(self.free))
        parameters[self.free] = free
        return parameters

    def value(self, free: np.ndarray) -> float:
        return self.model.value(self.whole(free))

    def value_and_gradient(self, free: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.model.value_and_gradient(self.whole(free))
        return value, gradient[self.free]

    def hessian(self, free: np.ndarray) -> np.ndarray:
        """Central differences of the exact gradient, each from the same mode of the effects."""
        mode = self.model.u.copy()
        rows = []
        for j in range(len(free)):
            shift = np.zeros(len(free))
            shift[j] = 1e-5 * max(1.0, abs(free[j]))
            sides = []
            for sign in (1, -1):
                self.model.u = mode.copy()
                sides.append(self.value_and_gradient(free + sign * shift)[1])
            rows.append((sides[0] - sides[1]) / (2 * shift[j]))
        self.model.u = mode
        return (np.array(rows) + np.array(rows).T) / 2


def _maximum(problem: _Problem) -> tuple[_Maximum, list[str]]:
    """The maximum; random terms whose variance goes to zero there are held at zero and named."""
    model = Laplace(problem.y, problem.X, list(problem.groups.values()), problem.link)
    start = _start(problem)
    free = np.ones(len(start), bool)
    parameters = _quasi_newton(model, start)
    first_sd = len(start) - len(problem.groups)
    small = np.abs(parameters) < _SMALL_SD * problem.residual_sd
    small[:first_sd] = False
    for j in np.flatnonzero(small):
        raised = parameters.copy()
        raised[j] = 0.1 * problem.residual_sd
        # σ = 0 is always stationary; only a likelihood that falls away from it makes it the estimate.
        if model.value(raised) < model.value(parameters) - 1e-8:
            parameters = _quasi_newton(model, raised)
        else:
            free[j], parameters[j] = False, 0.0
    best = _polished(_Free(model, free), parameters[free])
    return best, [name for name, kept in zip(problem.groups, free[first_sd:], strict=True) if not kept]


def _quasi_newton(model: Laplace, start: np.ndarray) -> np.ndarray:
    """BFGS whose first metric is the penalised likelihood's curvature."""
    k = len(model.sizes)
    hessian = np.zeros((len(start),) * 2)
    hessian[:-k, :-k] = model.information(start)
    sizes = model.as_given(np.array(model.sizes, float))
    hessian[-k:, -k:] = np.diag(2 * sizes / np.maximum(start[-k:] ** 2, 1e-2))
    values, vectors = np.linalg.eigh(hessian)
    inverse = (vectors / np.maximum(values, 1e-6 * values.max())) @ vectors.T
    return minimize(
        model.value_and_gradient, start, jac=True, method="BFGS",
        options={"gtol": 1e-4, "maxiter": 500, "hess_inv0": (inverse + inverse.T) / 2},
    ).x  # fmt: skip


def _polished(likelihood: _Free, free: np.ndarray) -> _Maximum:
    """Newton steps until nothing is left to gain, and the Hessian at the end."""
    value, gradient = likelihood.value_and_gradient(free)
    hessian = likelihood.hessian(free)
    for _ in range(20):
        values, vectors = np.linalg.eigh(hessian)
        step = -vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-6))
        decrement = float(-gradient @ step)
        if decrement < 1e-9:
            break
        length = 1.0
        while likelihood.value(free + length * step) > value + 1e-10 * abs(value) and length > 1e-4:
            length /= 2
        free = free + length * step
        value, gradient = likelihood.value_and_gradient(free)
        if decrement > 1e-6:
            hessian = likelihood.hessian(free)
    parameters = likelihood.whole(free)
    return _Maximum(parameters, value, hessian, decrement, likelihood.model.evaluations, likelihood.model)


def _start(problem: _Problem) -> np.ndarray:
    """Thresholds of the pooled ratings, no effects, every σ at three tenths of the latent residual's."""
    share = np.bincount(problem.y).cumsum()[:-1] / len(problem.y)
    thresholds = logit(share) if problem.link == "logit" else ndtri(share)
    sd = 0.3 * problem.residual_sd
    inflated = thresholds * np.sqrt(1 + len(problem.groups) * 0.3**2)
    return np.concatenate([inflated, np.zeros(problem.X.shape[1]), np.full(len(problem.groups), sd)])


def _result(
    model: Design, categories: pd.DataFrame, problem: _Problem, best: _Maximum, singular: list[str]
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
        formula=str(model.formula), link=problem.link, n_rows=len(problem.y), n_missing=model.n_missing,
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
    unused = sorted(set(range(int(values.min()), int(values.max()))) - set(values)) if _whole(values) else []
    if unused:
        shown = ", ".join(map(str, unused))
        notes.append(f"Nobody used {shown}; the thresholds pass over what is not used.")
    return notes


def _whole(values: pd.Series) -> bool:
    return bool((values == values.round()).all())


def _without_infinite(fixed: pd.Series, vcov: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame, list[str]]:
    """Coefficients that run to infinity become nan, with a note: all ratings there lie at one end."""
    error = np.sqrt(np.diag(vcov.loc[fixed.index, fixed.index]))
    infinite = fixed.index[(error > _INFINITE_ERROR) | (fixed.abs() > _INFINITE_ERROR)]
    if not len(infinite):
        return fixed, vcov, []
    fixed, vcov = fixed.copy(), vcov.copy()
    notes = [
        f"{name} has no finite estimate ({'up' if fixed[name] > 0 else 'down'}ward without end): "
        "its ratings all lie at one end of the scale."
        for name in infinite
    ]
    fixed[infinite] = np.nan
    vcov.loc[infinite, :] = np.nan
    vcov.loc[:, infinite] = np.nan
    return fixed, vcov, notes


def _effects(model: Design, best: _Maximum) -> dict[str, pd.DataFrame]:
    modes, errors = best.model.effects(best.parameters)
    return {
        g.term.name: pd.DataFrame({"level": g.labels, "estimate": mode, "std_error": error})
        for g, mode, error in zip(model.groupings, modes, errors, strict=True)
    }


def _wald(estimates: pd.Series, vcov: pd.DataFrame, level: float, n: int) -> pd.DataFrame:
    error = np.sqrt(np.diag(vcov.loc[estimates.index, estimates.index]))
    value = estimates.to_numpy()
    half = stats.norm.ppf((1 + level) / 2) * error
    return pd.DataFrame({
        "term": estimates.index, "estimate": value, "std_error": error, "df": np.inf, "statistic": value / error,
        "p_value": 2 * stats.norm.sf(np.abs(value / error)), "low": value - half, "high": value + half, "n": n,
    })  # fmt: skip
