"""Step three of a fit: the theta of least criterion, by Newton's method with exact derivatives.

theta is left free in sign: the criterion is even in every column of an L, so a variance of zero is an
ordinary stationary point and needs no constraint. Where it is a saddle, the modified Newton step leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.stats.mixed.crossproducts import CrossProducts, Outcome
from analysis.stats.mixed.objective import Criterion, Method, criterion, layout
from study.errors import StudyError

DECREMENT = 1e-9
"""Newton decrement (expected gain in deviance) below which one last full step is taken."""
SINGULAR = 1e-4
"""A theta on the diagonal below this is a variance of zero (lme4's tolerance)."""
_STEPS = 200


@dataclass(frozen=True)
class Optimum:
    """What the search did and where it ended.

    decrement : g'H⁻¹g at the end, the deviance still to be gained
    gradient : largest absolute derivative with respect to a free theta
    """

    evaluations: int
    iterations: int
    gradient: float
    decrement: float
    converged: bool
    singular: bool


def optimum(
    sums: CrossProducts,
    outcome: Outcome,
    method: Method,
    start: np.ndarray | None = None,
    fixed: np.ndarray | None = None,
) -> tuple[Criterion, Optimum]:
    """Minimise the criterion.

    start : theta to begin from; default_start otherwise
    fixed : mask of thetas held at their start (at zero: the model without them)
    """
    search = _Search(sums, outcome, method, fixed)
    theta = search.moments() if start is None else np.array(start, float)
    best = search.at(theta)
    if best is None:
        best = search.at(search.start if fixed is None else np.where(fixed, theta, search.start))
    if best is None:
        raise StudyError("The criterion has no value: next to no residual variance is left to estimate.")
    best, iterations, settled = search.descend(best)
    for _ in range(len(theta)):
        best, moved = search.off_the_boundary(best)
        if not moved:
            break
        best, more, settled = search.descend(best)
        iterations += more
    best = search.tidy(best)
    gradient, decrement, _ = search.newton(best)
    free = search.free
    diagonal = [best.theta[k] for k, (_, i, j) in enumerate(layout(sums.widths).theta) if i == j]
    record = Optimum(
        search.evaluations, iterations, float(np.abs(gradient[free]).max(initial=0.0)), float(decrement),
        bool(settled and decrement < 1e-6), bool(min(diagonal) < SINGULAR),
    )  # fmt: skip
    return best, record


def default_start(sums: CrossProducts) -> np.ndarray:
    """Half the residual SD for every term, per typical size of its column; correlations of zero."""
    squares = np.concatenate([np.einsum("qaa->qa", sums.blocks).ravel(), np.diagonal(sums.rest)[: sums.qr]])
    theta = []
    for t, i, j in layout(sums.widths).theta:
        span = slice(sums.offsets[t] + i, sums.offsets[t + 1], sums.widths[t])
        size = float(np.sqrt(squares[span].sum() / sums.n))
        theta.append(0.5 / size if i == j and size > 0 else 0.0)
    return np.array(theta)


class _Search:
    def __init__(self, sums: CrossProducts, outcome: Outcome, method: Method, fixed: np.ndarray | None) -> None:
        self.sums, self.outcome, self.method = sums, outcome, method
        self.shape = layout(sums.widths)
        self.free = np.ones(len(self.shape.theta), bool) if fixed is None else ~fixed
        self.start = default_start(sums)
        self.longest = 2 * float(self.start.max())
        self.evaluations = 0

    def moments(self) -> np.ndarray:
        """Theta by moments (MINQUE from no random effects), which for balanced data is the optimum itself.

        A variance that the moments put below zero, or too small to move from, begins at a small one.
        """
        none = self.at(np.zeros(len(self.shape.theta)))
        if none is None:
            return self.start
        (trace, double), (single, _) = none.projected.traces(), none.quadratics
        size = len(trace)
        system = np.empty((size + 1, size + 1))
        system[:size, :size], system[size, size] = double, self.sums.n - self.sums.p
        system[:size, size] = system[size, :size] = trace
        scale = np.sqrt(np.diagonal(system))
        if not (scale > 0).all():
            return self.start
        found = np.linalg.lstsq(system / np.outer(scale, scale), np.append(single, none.rss) / scale, rcond=1e-10)
        variances = found[0] / scale
        if not variances[size] > 1e-6 * none.rss / self.sums.n:
            return self.start
        return self._from_entries(variances[:size] / variances[size])

    def _from_entries(self, entries: np.ndarray) -> np.ndarray:
        between = [np.zeros((c, c)) for c in self.shape.widths]
        least = [np.zeros(c) for c in self.shape.widths]
        for value, start, (t, i, j) in zip(entries, self.start, self.shape.theta, strict=True):
            between[t][i, j] = between[t][j, i] = value
            if i == j:
                least[t][i] = 0.2 * start
        factors = []
        for matrix, floor in zip(between, least, strict=True):
            scaled = matrix / np.outer(floor, floor)
            values, vectors = np.linalg.eigh(scaled)
            positive = (vectors * np.maximum(values, 1.0)) @ vectors.T
            factors.append(floor[:, None] * np.linalg.cholesky(positive))
        return np.array([factors[t][i, j] for t, i, j in self.shape.theta])

    def at(self, theta: np.ndarray) -> Criterion | None:
        self.evaluations += 1
        return criterion(self.sums, self.outcome, theta, self.method)

    def newton(self, here: Criterion) -> tuple[np.ndarray, float, np.ndarray]:
        """Gradient, decrement and step; directions of negative curvature are walked downhill."""
        gradient, hessian = here.derivatives
        free = self.free
        step = np.zeros(len(gradient))
        if not free.any():
            return gradient, 0.0, step
        values, vectors = np.linalg.eigh(hessian[np.ix_(free, free)])
        values = np.maximum(np.abs(values), 1e-8 * max(1.0, np.abs(values).max()))
        along = vectors.T @ gradient[free]
        step[free] = -vectors @ (along / values)
        return gradient, float(along @ (along / values)), step

    def descend(self, here: Criterion) -> tuple[Criterion, int, bool]:
        """Newton steps until the decrement is negligible, then one more."""
        for iteration in range(_STEPS):
            _, decrement, step = self.newton(here)
            longest = np.abs(step).max(initial=0.0)
            if longest <= 1e-14 * (1 + np.abs(here.theta).max()):
                return here, iteration, True
            if decrement < DECREMENT:
                there = self.at(here.theta + step)
                noise = 1e-9 + 1e-13 * abs(here.value)
                better = there is not None and there.value <= here.value + noise
                return (there if better else here), iteration, True
            there = self._step(here, step, decrement)
            if there is None:
                return here, iteration, decrement < 1e-6
            here = there
        return here, _STEPS, False

    def _step(self, here: Criterion, step: np.ndarray, decrement: float) -> Criterion | None:
        limit = 4.0 * np.abs(here.theta).max() + self.longest
        length = min(1.0, limit / np.abs(step).max())
        while length > 1e-8:
            there = self.at(here.theta + length * step)
            promised = 1e-4 * length * decrement - 1e-12 * abs(here.value)
            if there is not None and there.value <= here.value - promised:
                return there
            length *= 0.35
        return None

    def _columns(self) -> list[list[int]]:
        """Thetas of each column of each L."""
        found: dict[tuple[int, int], list[int]] = {}
        for k, (t, _, j) in enumerate(self.shape.theta):
            found.setdefault((t, j), []).append(k)
        return list(found.values())

    def off_the_boundary(self, here: Criterion) -> tuple[Criterion, bool]:
        """A column at zero that the criterion would rather have positive is started anew."""
        gradient, _ = here.by_entry
        for column in self._columns():
            at_zero = self.free[column].all() and np.abs(here.theta[column]).max() < SINGULAR
            if at_zero and gradient[column[0]] < -1e-7 * (1 + abs(here.traces[0][column[0]])):
                theta = here.theta.copy()
                theta[column[0]] = 0.1 * self.start[column[0]]
                there = self.at(theta)
                if there is not None and there.value < here.value:
                    return there, True
        return here, False

    def tidy(self, here: Criterion) -> Criterion:
        """Diagonals made positive, and columns that are zero but for rounding made zero."""
        theta = here.theta.copy()
        for column in self._columns():
            if theta[column[0]] < 0:
                theta[column] *= -1
        zero = [c for c in self._columns() if self.free[c].all() and 0 < np.abs(theta[c]).max() < SINGULAR]
        for column in zero:
            trial = theta.copy()
            trial[column] = 0.0
            there = self.at(trial)
            if there is not None and there.value <= here.value + 1e-7:
                theta = trial
        if np.array_equal(theta, here.theta):
            return here
        return self.at(theta) or here
