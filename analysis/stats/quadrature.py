"""Adaptive Gauss–Hermite quadrature for one random intercept: what Laplace's approximation approximates."""

import numpy as np

from analysis.stats.laplace import Laplace, Link, density

# Step of the four-point differences of the likelihood: their error is of order step⁴.
_STEP = 1e-4


class Quadrature(Laplace):
    """Negative log-likelihood with one random intercept, integrated at several nodes per level.

    Levels are independent given the parameters, so that each is a one-dimensional integral around its own mode.
    One node is Laplace's approximation. The gradient is taken by differences.
    """

    def __init__(
        self, y: np.ndarray, X: np.ndarray, group: tuple[np.ndarray, int], link: Link, nodes: int
    ) -> None:
        super().__init__(y, X, [group], link)
        self.nodes, weights = np.polynomial.hermite.hermgauss(nodes)
        self.log_weights = np.log(weights) + self.nodes**2

    def value(self, parameters: np.ndarray) -> float:
        """Negative log-likelihood; infinite where thresholds are out of order."""
        mode = self._mode(parameters)
        if mode is None:
            return np.inf
        _, upper, lower, _, curvature, sd = mode
        code, q, u = self.codes[0], self.sizes[0], self.u
        width = np.sqrt(2 / curvature.diagonal)
        terms = np.empty((len(self.nodes), q))
        for k, (node, log_weight) in enumerate(zip(self.nodes, self.log_weights, strict=True)):
            moved = u + width * node
            shift = sd[0] * (moved - u)[code]
            log_p = np.log(density(upper - shift, lower - shift, self.link).p)
            terms[k] = log_weight + np.bincount(code, log_p, q) - moved**2 / 2
        largest = terms.max(0)
        by_level = largest + np.log(np.exp(terms - largest).sum(0)) + np.log(width) - 0.5 * np.log(2 * np.pi)
        return float(-by_level.sum())

    def value_and_gradient(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Negative log-likelihood and its gradient by four-point differences."""
        value = self.value(parameters)
        if not np.isfinite(value):
            return value, np.zeros(len(parameters))
        gradient = np.empty(len(parameters))
        for j, size in enumerate(np.maximum(1.0, np.abs(parameters))):
            step = np.zeros(len(parameters))
            step[j] = _STEP * size
            one, two, minus_one, minus_two = (self.value(parameters + times * step) for times in (1, 2, -1, -2))
            gradient[j] = (8 * (one - minus_one) - (two - minus_two)) / (12 * step[j])
        return value, gradient
