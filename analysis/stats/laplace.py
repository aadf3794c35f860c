"""Marginal likelihood of a cumulative-link model with crossed random intercepts, by Laplace's approximation.

The model: P(rating ≤ j) = F(threshold_j − η), η = Xβ + Σ_k σ_k u_k, with u standard normal. For each set of
parameters the penalised likelihood is maximised over u by Newton's method; the curvature there stands for the
integral. The gradient is exact, the derivative of the curvature included.

The curvature H = ΣZ'WZΣ + I has the largest group as a diagonal block; that block is eliminated, and only the
rest is factorised densely.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.special import expit, ndtr

Link = Literal["logit", "probit"]
_TINY = 1e-300


@dataclass(frozen=True)
class Density:
    """Value and derivatives of a link's density at the upper (a) and lower (b) end of each rating's interval.

    p : probability of the rating; f, f1, f2 : density and its first two derivatives at a and b
    """

    p: np.ndarray
    fa: np.ndarray
    fb: np.ndarray
    f1a: np.ndarray
    f1b: np.ndarray

    @property
    def slope(self) -> np.ndarray:
        """−d log p / dη."""
        return (self.fa - self.fb) / self.p

    @property
    def weight(self) -> np.ndarray:
        """−d² log p / dη²."""
        return self.slope**2 - (self.f1a - self.f1b) / self.p


def density(upper: np.ndarray, lower: np.ndarray, link: Link) -> Density:
    """Probabilities and densities of the ratings whose latent intervals are (lower, upper]."""
    if link == "logit":
        cdf_a, cdf_b = expit(upper), expit(lower)
        fa, fb = cdf_a * expit(-upper), cdf_b * expit(-lower)
        # In the upper tail the difference of two numbers near one loses its digits; mirror it.
        p = np.where(lower > 0, expit(-lower) - expit(-upper), cdf_a - cdf_b)
        return Density(np.maximum(p, _TINY), fa, fb, fa * (1 - 2 * cdf_a), fb * (1 - 2 * cdf_b))
    fa, fb = _normal(upper), _normal(lower)
    p = np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
    return Density(np.maximum(p, _TINY), fa, fb, -_finite(upper) * fa, -_finite(lower) * fb)


def second_derivatives(upper: np.ndarray, lower: np.ndarray, link: Link, d: Density) -> tuple:
    """Second derivatives of the density at both ends."""
    if link == "logit":
        return d.fa * (1 - 6 * d.fa), d.fb * (1 - 6 * d.fb)
    return (_finite(upper) ** 2 - 1) * d.fa, (_finite(lower) ** 2 - 1) * d.fb


@dataclass(frozen=True)
class Curvature:
    """H = ΣZ'WZΣ + I with its largest group eliminated.

    diagonal : of the largest group; across : largest group × rest; factor : Cholesky factor of the Schur
    complement; scaled : across / diagonal
    """

    diagonal: np.ndarray
    across: np.ndarray
    scaled: np.ndarray
    factor: np.ndarray

    @property
    def log_determinant(self) -> float:
        return float(np.log(self.diagonal).sum() + 2 * np.log(np.diagonal(self.factor)).sum())

    def solve(self, right: np.ndarray) -> np.ndarray:
        """H⁻¹ right, for one or several right sides."""
        q = len(self.diagonal)
        first, rest = right[:q], right[q:]
        if not len(rest):
            return first / (self.diagonal if right.ndim == 1 else self.diagonal[:, None])
        inner, _ = lapack.dpotrs(self.factor, rest - self.scaled.T @ first, lower=1)
        inner = inner.reshape(rest.shape)
        diagonal = self.diagonal if right.ndim == 1 else self.diagonal[:, None]
        return np.concatenate([first / diagonal - self.scaled @ inner, inner])

    def inverse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Diagonal of the largest group's block of H⁻¹, its block with the rest, and the rest's block."""
        if not len(self.factor):
            return 1 / self.diagonal, self.across, self.factor
        rest, _ = lapack.dpotri(self.factor, lower=1)
        rest = np.tril(rest) + np.tril(rest, -1).T
        across = -(self.scaled @ rest)
        return 1 / self.diagonal - (across * self.scaled).sum(1), across, rest


class Laplace:
    """Negative log-likelihood and gradient in (thresholds, coefficients, σ of each group).

    Parameters
    ----------
    y : category of each row, 0 … J−1
    X : rows × coefficients, without an intercept
    groups : (level of each row, number of levels) of each random intercept
    """

    def __init__(self, y: np.ndarray, X: np.ndarray, groups: list[tuple[np.ndarray, int]], link: Link) -> None:
        self.y, self.X, self.link = y, np.ascontiguousarray(X), link
        self.n_thresholds = int(y.max())
        self.order = sorted(range(len(groups)), key=lambda k: -groups[k][1])
        self.codes = [groups[k][0] for k in self.order]
        self.sizes = [groups[k][1] for k in self.order]
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(int)
        self.Z = _indicator(self.codes, self.offsets)
        self.Zt = self.Z.T.tocsr()
        self.u = np.zeros(self.offsets[-1])
        self.evaluations = 0

    @property
    def n_parameters(self) -> int:
        return self.n_thresholds + self.X.shape[1] + len(self.sizes)

    def split(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Thresholds, coefficients, and σ in the order of the eliminated groups."""
        a, b = self.n_thresholds, self.n_thresholds + self.X.shape[1]
        return parameters[:a], parameters[a:b], parameters[b:][self.order]

    def value(self, parameters: np.ndarray) -> float:
        """Negative log-likelihood; infinite where thresholds are out of order."""
        mode = self._mode(parameters)
        return np.inf if mode is None else mode[0]

    def value_and_gradient(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Negative log-likelihood with its exact gradient."""
        mode = self._mode(parameters)
        if mode is None:
            return np.inf, np.zeros(len(parameters))
        value, upper, lower, d, curvature, sd = mode
        slope, weight, scale = d.slope, d.weight, self._scale(sd)
        diagonal, across, rest = curvature.inverse()
        leverage = self._leverage(diagonal, across, rest, sd)
        f2a, f2b = second_derivatives(upper, lower, self.link, d)
        curve = (d.f1a - d.f1b) / d.p
        weight_slope = 2 * slope**3 - 3 * slope * curve + (f2a - f2b) / d.p
        c = 0.5 * leverage * weight_slope
        direction = curvature.solve(scale * (self.Zt @ c))
        z = self.Z @ (scale * direction)
        g_beta = self.X.T @ (slope + c - weight * z)
        g_upper, g_lower = _threshold_terms(d, f2a, f2b, slope, leverage, z)
        bins = self.n_thresholds + 1
        g_threshold = np.bincount(self.y, g_upper, bins)[:-1] + np.bincount(self.y, g_lower, bins)[1:]
        g_sd = np.empty(len(self.sizes))
        for k, code in enumerate(self.codes):
            part = slice(self.offsets[k], self.offsets[k + 1])
            effect = self.u[part][code]
            trace = diagonal.sum() if k == 0 else np.trace(rest[self._rest(k), self._rest(k)])
            g = (slope + c - z * weight) @ effect - direction[part] @ np.bincount(code, slope, self.sizes[k])
            # At σ = 0 the likelihood is even in σ, so that its derivative is zero.
            g_sd[k] = g + (self.sizes[k] - trace) / sd[k] if abs(sd[k]) > 1e-8 else 0.0
        return value, np.concatenate([g_threshold, g_beta, self.as_given(g_sd)])

    def information(self, parameters: np.ndarray) -> np.ndarray:
        """Curvature of the penalised likelihood in thresholds and coefficients, u maximised out."""
        _, upper, lower, d, curvature, sd = self._mode(parameters)
        slope, weight = d.slope, d.weight
        J, n = self.n_thresholds, len(self.y)
        to_upper = d.f1a / d.p - slope * d.fa / d.p
        to_lower = -d.f1b / d.p + slope * d.fb / d.p
        cross = np.zeros((n, J))
        has_upper, has_lower = self.y < J, self.y > 0
        cross[has_upper, self.y[has_upper]] = to_upper[has_upper]
        cross[has_lower, self.y[has_lower] - 1] = to_lower[has_lower]
        own = np.zeros((J, J))
        ra, rb = d.fa / d.p, d.fb / d.p
        np.add.at(own, (self.y[has_upper],) * 2, (ra**2 - d.f1a / d.p)[has_upper])
        np.add.at(own, (self.y[has_lower] - 1,) * 2, (rb**2 + d.f1b / d.p)[has_lower])
        both = has_upper & has_lower
        np.add.at(own, (self.y[both], self.y[both] - 1), -(ra * rb)[both])
        np.add.at(own, (self.y[both] - 1, self.y[both]), -(ra * rb)[both])
        # d(−log p)/dη = slope, and thresholds enter with the opposite sign of η.
        rows = np.column_stack([cross, weight[:, None] * self.X])
        joint = np.block([[own, cross.T @ self.X], [self.X.T @ cross, self.X.T @ (weight[:, None] * self.X)]])
        to_effects = self._scale(sd)[:, None] * (self.Zt @ rows)
        return joint - to_effects.T @ curvature.solve(to_effects)

    def effects(self, parameters: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Conditional modes of each group's effects and their standard errors, in the order given."""
        _, _, _, _, curvature, sd = self._mode(parameters)
        diagonal, _, rest = curvature.inverse()
        variance = np.concatenate([diagonal, np.diagonal(rest)])
        modes, errors = [None] * len(sd), [None] * len(sd)
        for k, given in enumerate(self.order):
            part = slice(self.offsets[k], self.offsets[k + 1])
            modes[given], errors[given] = sd[k] * self.u[part], np.abs(sd[k]) * np.sqrt(variance[part])
        return modes, errors

    def _mode(self, parameters: np.ndarray) -> tuple | None:
        """Value at the mode of u for these parameters, and what was computed there."""
        thresholds, beta, sd = self.split(parameters)
        if np.any(np.diff(thresholds) <= 0) or not np.isfinite(parameters).all():
            return None
        self.evaluations += 1
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        fixed, scale = self.X @ beta, self._scale(sd)
        high, low = ends[self.y + 1] - fixed, ends[self.y] - fixed

        def at(u: np.ndarray) -> tuple:
            effect = self.Z @ (scale * u)
            upper, lower = high - effect, low - effect
            d = density(upper, lower, self.link)
            return -np.log(d.p).sum() + 0.5 * u @ u, upper, lower, d

        u = self.u
        h, upper, lower, d = at(u)
        for _ in range(100):
            curvature = self._curvature(d.weight, sd)
            step = -curvature.solve(u + scale * (self.Zt @ d.slope))
            decrement = -(step @ (u + scale * (self.Zt @ d.slope)))
            if decrement < 1e-20 * len(self.y):
                break
            length = 1.0
            while True:
                new = at(u + length * step)
                if new[0] <= h + 1e-12 * abs(h) or length < 1e-6:
                    break
                length /= 2
            u = u + length * step
            h, upper, lower, d = new
            if decrement < 1e-12:
                curvature = self._curvature(d.weight, sd)
                break
        self.u = u
        return h + 0.5 * curvature.log_determinant, upper, lower, d, curvature, sd

    def _curvature(self, weight: np.ndarray, sd: np.ndarray) -> Curvature:
        q, m = self.sizes[0], self.offsets[-1] - self.sizes[0]
        diagonal = 1 + sd[0] ** 2 * np.bincount(self.codes[0], weight, q)
        across, rest = np.empty((q, m)), np.zeros((m, m))
        for k in range(1, len(self.sizes)):
            here = self._rest(k)
            across[:, here] = sd[0] * sd[k] * self._crossed(0, k, weight)
            at = np.arange(here.start, here.stop)
            rest[at, at] = 1 + sd[k] ** 2 * np.bincount(self.codes[k], weight, self.sizes[k])
            for j in range(1, k):
                rest[here, self._rest(j)] = sd[k] * sd[j] * self._crossed(k, j, weight)
        scaled = across / diagonal[:, None]
        schur = rest - scaled.T @ across if m else rest
        factor, info = lapack.dpotrf(schur, lower=1) if m else (schur, 0)
        if info:
            raise np.linalg.LinAlgError("curvature of the penalised likelihood is not positive definite")
        return Curvature(diagonal, across, scaled, factor)

    def _crossed(self, k: int, j: int, weight: np.ndarray) -> np.ndarray:
        shape = self.sizes[k], self.sizes[j]
        return np.bincount(self.codes[k] * shape[1] + self.codes[j], weight, shape[0] * shape[1]).reshape(shape)

    def _leverage(self, diagonal: np.ndarray, across: np.ndarray, rest: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """z_i' H⁻¹ z_i of every row, z_i the row of ZΣ."""
        total = sd[0] ** 2 * diagonal[self.codes[0]]
        shifted = [self.codes[k] + self._rest(k).start for k in range(1, len(self.sizes))]
        for k, code in enumerate(shifted, start=1):
            total += 2 * sd[0] * sd[k] * across[self.codes[0], code] + sd[k] ** 2 * rest[code, code]
            for j in range(1, k):
                total += 2 * sd[k] * sd[j] * rest[code, shifted[j - 1]]
        return total

    def _rest(self, k: int) -> slice:
        """Where group k stands among the groups that are not eliminated."""
        return slice(self.offsets[k] - self.sizes[0], self.offsets[k + 1] - self.sizes[0])

    def _scale(self, sd: np.ndarray) -> np.ndarray:
        return np.repeat(sd, self.sizes)

    def as_given(self, by_order: np.ndarray) -> np.ndarray:
        """One value per group, back in the order in which the groups were given."""
        given = np.empty(len(by_order))
        given[self.order] = by_order
        return given


def _threshold_terms(
    d: Density, f2a: np.ndarray, f2b: np.ndarray, slope: np.ndarray, leverage: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each row's derivative in its upper and in its lower threshold."""
    curve = (d.f1a - d.f1b) / d.p
    slope_a = d.f1a / d.p - slope * d.fa / d.p
    slope_b = -d.f1b / d.p + slope * d.fb / d.p
    curve_a = f2a / d.p - curve * d.fa / d.p
    curve_b = -f2b / d.p + curve * d.fb / d.p
    upper = -d.fa / d.p + 0.5 * leverage * (2 * slope * slope_a - curve_a) - z * slope_a
    lower = d.fb / d.p + 0.5 * leverage * (2 * slope * slope_b - curve_b) - z * slope_b
    return upper, lower


def _indicator(codes: list[np.ndarray], offsets: np.ndarray) -> sparse.csr_array:
    """Rows × all levels, one in each group."""
    n, k = len(codes[0]), len(codes)
    columns = np.column_stack([code + offsets[i] for i, code in enumerate(codes)]).ravel()
    return sparse.csr_array((np.ones(n * k), columns, np.arange(0, n * k + 1, k)), shape=(n, int(offsets[-1])))


def _normal(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * _finite(x) ** 2) / np.sqrt(2 * np.pi)


def _finite(x: np.ndarray) -> np.ndarray:
    """x with the ends of the scale at ±40, where the normal density is zero."""
    return np.clip(x, -40, 40)
