"""The maximum of an ordinal model's likelihood: quasi-Newton, then Newton, variances at zero held there."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logit, ndtri

from analysis.stats.laplace import Laplace, Link
from analysis.stats.quadrature import Quadrature

# A σ below this share of the latent residual's is zero to any reader; the likelihood is flat there.
SMALL_SD = 1e-3


@dataclass(frozen=True)
class Problem:
    """One likelihood: categories, fixed columns, random intercepts by name."""

    y: np.ndarray
    X: np.ndarray
    names: list[str]
    groups: dict[str, tuple[np.ndarray, int]]
    link: Link
    nodes: int

    @property
    def likelihood(self) -> Laplace:
        groups = list(self.groups.values())
        if self.nodes > 1:
            return Quadrature(self.y, self.X, groups[0], self.link, self.nodes)
        return Laplace(self.y, self.X, groups, self.link)

    @property
    def residual_sd(self) -> float:
        return np.pi / np.sqrt(3) if self.link == "logit" else 1.0


@dataclass(frozen=True)
class Maximum:
    """Where the likelihood is highest.

    parameters : thresholds, coefficients, σ of each group (zero where held there)
    value : negative log-likelihood; hessian : of the parameters that are free
    decrement : g'H⁻¹g, what is left to gain
    """

    parameters: np.ndarray
    value: float
    hessian: np.ndarray
    decrement: float
    evaluations: int
    model: Laplace


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


def maximum(problem: Problem) -> tuple[Maximum, list[str]]:
    """The maximum; random terms whose variance goes to zero there are held at zero and named."""
    model = problem.likelihood
    start = _start(problem)
    free = np.ones(len(start), bool)
    parameters = _quasi_newton(model, start)
    first_sd = len(start) - len(problem.groups)
    small = np.abs(parameters) < SMALL_SD * problem.residual_sd
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


def _polished(likelihood: _Free, free: np.ndarray) -> Maximum:
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
    return Maximum(parameters, value, hessian, decrement, likelihood.model.evaluations, likelihood.model)


def _start(problem: Problem) -> np.ndarray:
    """Thresholds of the pooled ratings, no effects, every σ at three tenths of the latent residual's."""
    share = np.bincount(problem.y).cumsum()[:-1] / len(problem.y)
    thresholds = logit(share) if problem.link == "logit" else ndtri(share)
    sd = 0.3 * problem.residual_sd
    inflated = thresholds * np.sqrt(1 + len(problem.groups) * 0.3**2)
    return np.concatenate([inflated, np.zeros(problem.X.shape[1]), np.full(len(problem.groups), sd)])
