"""Step two of a fit: the profiled REML or ML criterion at theta, with its exact first and second derivatives.

Bates, Mächler, Bolker, Walker (2015), J. Stat. Softw. 67(1). V = I + Σ Z_t (I ⊗ L_t L_t') Z_t' is the
covariance relative to sigma²; theta holds the lower triangles of the L_t, column by column, as in lme4.
The derivatives are those of linear covariance structures: with T = Z'PZ and t = Z'Py everything is a
trace or a product of blocks of T, and V's own inverse (n × n) is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.linalg import blas, lapack

from analysis.stats.mixed.crossproducts import CrossProducts, Outcome

Method = Literal["REML", "ML"]
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Layout:
    """Where each theta sits: the term, row and column of its L, and the entries of G = LL' by term."""

    widths: tuple[int, ...]
    theta: tuple[tuple[int, int, int], ...]
    entries: tuple[tuple[int, int, int], ...]

    def factors(self, theta: np.ndarray) -> list[np.ndarray]:
        """The lower triangles L_t."""
        matrices = [np.zeros((c, c)) for c in self.widths]
        for value, (t, i, j) in zip(theta, self.theta, strict=True):
            matrices[t][i, j] = value
        return matrices

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Entries of the G_t × theta: derivatives of G = LL'."""
        factors = self.factors(theta)
        slopes = np.zeros((len(self.entries), len(self.theta)))
        for e, (t, a, b) in enumerate(self.entries):
            for k, (s, i, j) in enumerate(self.theta):
                if s == t:
                    slopes[e, k] = (a == i) * factors[t][b, j] + (b == i) * factors[t][a, j]
        return slopes

    def curvature(self, weights: np.ndarray) -> np.ndarray:
        """Σ weights · second derivatives of the entries of G with respect to theta."""
        second = np.zeros((len(self.theta), len(self.theta)))
        for weight, (t, a, b) in zip(weights, self.entries, strict=True):
            for k, (s, i, j) in enumerate(self.theta):
                for m, (r, u, v) in enumerate(self.theta):
                    if s == r == t and j == v:
                        second[k, m] += weight * ((a == i) * (b == u) + (b == i) * (a == u))
        return second


@lru_cache(maxsize=256)
def layout(widths: tuple[int, ...]) -> Layout:
    """The order of theta (column-wise lower triangles) and of the covariance entries for such terms."""
    theta = tuple((t, i, j) for t, c in enumerate(widths) for j in range(c) for i in range(j, c))
    return Layout(widths, theta, theta)


@dataclass(frozen=True)
class Criterion:
    """The criterion at one theta, and the pieces from which everything else is computed."""

    sums: CrossProducts
    outcome: Outcome
    method: Method
    theta: np.ndarray
    value: float
    rss: float
    log_v: float
    log_x: float
    weights: np.ndarray
    border: np.ndarray
    rest: np.ndarray
    scaled: np.ndarray
    chol: np.ndarray
    kappa: np.ndarray
    zy: np.ndarray

    @property
    def degrees(self) -> int:
        """Rows that the residual variance is divided by."""
        return self.sums.n - self.sums.p if self.method == "REML" else self.sums.n

    @property
    def sigma2(self) -> float:
        return self.rss / self.degrees

    @cached_property
    def whitened(self) -> np.ndarray:
        """K, with T = W − KK': effects × (rest + fixed)."""
        solved, _ = lapack.dtrtrs(self.chol, self.scaled.T, lower=1)
        return solved.T

    @cached_property
    def t(self) -> np.ndarray:
        """Z'Py by effect."""
        return self.zy - self.whitened @ self.kappa

    @cached_property
    def beta(self) -> np.ndarray:
        """Fixed effects in the basis."""
        qr = self.sums.qr
        late, _ = lapack.dtrtrs(self.chol[qr:, qr:], self.kappa[qr:], lower=1, trans=1)
        return self.outcome.start + late.ravel()

    @cached_property
    def half_cov(self) -> np.ndarray:
        """C with CC' = (X'V⁻¹X)⁻¹ in the basis."""
        qr = self.sums.qr
        inverse, _ = lapack.dtrtri(self.chol[qr:, qr:], lower=1)
        return np.tril(inverse).T

    @cached_property
    def transfer(self) -> np.ndarray:
        """(X'V⁻¹X)⁻¹ X'V⁻¹Z: fixed effects × random effects, in the basis."""
        return self.half_cov @ self.whitened[:, self.sums.qr :].T

    @cached_property
    def projected(self) -> Projected:
        """Z'PZ."""
        return Projected(self, self.whitened)

    @cached_property
    def weighted(self) -> Projected:
        """Z'V⁻¹Z."""
        return Projected(self, np.ascontiguousarray(self.whitened[:, : self.sums.qr]))

    @cached_property
    def traces(self) -> tuple[np.ndarray, np.ndarray]:
        """tr(A dV_i) and tr(A dV_i A dV_j) over the covariance entries; A is P for REML, V⁻¹ for ML."""
        return self.projected.traces() if self.method == "REML" else self.weighted.traces()

    @cached_property
    def quadratics(self) -> tuple[np.ndarray, np.ndarray]:
        """y'P dV_i Py and y'P dV_i P dV_j Py over the covariance entries."""
        return self.projected.quadratics(self.t)

    @cached_property
    def by_entry(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian with respect to the covariance entries."""
        (trace, double), (single, twice) = self.traces, self.quadratics
        share = self.degrees / self.rss
        gradient = trace - share * single
        hessian = -double + share * (2 * twice - np.outer(single, single) / self.rss)
        return gradient, hessian

    @cached_property
    def derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian with respect to theta."""
        gradient, hessian = self.by_entry
        shape = layout(self.sums.widths)
        slopes = shape.jacobian(self.theta)
        return slopes.T @ gradient, slopes.T @ hessian @ slopes + shape.curvature(gradient)


def criterion(sums: CrossProducts, outcome: Outcome, theta: np.ndarray, method: Method) -> Criterion | None:
    """The criterion at theta; None where the arithmetic has no answer (an absurdly large theta)."""
    factors = layout(sums.widths).factors(theta)
    weights, middle, border, zy1, log_v = _first_block(sums, outcome.zy[: sums.q1], factors[0])
    qr, p, q1 = sums.qr, sums.p, sums.q1
    rest = sums.rest - _crossed(sums, middle)
    drawn = _applied(middle, outcome.zy[:q1])
    right = -(sums.border.T @ drawn)
    right[:qr] += outcome.zy[q1:]
    yy = outcome.yy - outcome.zy[:q1] @ drawn
    scaled = np.vstack([border, rest[:qr]])
    system = rest.copy()
    target = right.copy()
    for k in range(1, len(sums.sizes)):
        at = slice(sums.offsets[k] - q1, sums.offsets[k + 1] - q1)
        scaled[:, at] = _times_factor(scaled[:, at], factors[k])
        system[:, at] = _times_factor(system[:, at], factors[k])
        system[at, :] = _times_factor(system[at, :].T, factors[k]).T
        target[at] = _times_factor(target[None, at], factors[k])[0]
    system[np.arange(qr), np.arange(qr)] += 1
    chol, info = lapack.dpotrf(system, lower=1, clean=1)
    if info:
        return None
    kappa = lapack.dtrtrs(chol, target, lower=1)[0].ravel()
    rss = float(yy - kappa @ kappa)
    if not rss > 1e-14 * outcome.yy:
        return None
    diagonal = np.log(np.diagonal(chol))
    log_v = log_v + 2 * float(diagonal[:qr].sum())
    log_x = 2 * float(diagonal[qr:].sum())
    degrees = sums.n - p if method == "REML" else sums.n
    value = log_v + degrees * (1 + LOG_2PI + np.log(rss / degrees))
    if method == "REML":
        value += log_x + 2 * sums.log_triangle
    zy = np.concatenate([zy1, right[:qr]])
    return Criterion(
        sums, outcome, method, np.array(theta, float), float(value), rss, log_v, log_x, weights, border, rest,
        scaled, chol, kappa, zy,
    )  # fmt: skip


def _first_block(
    sums: CrossProducts, zy: np.ndarray, factor: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """W = (I+NG)⁻¹N, the middle G(I+NG)⁻¹, and (I+NG)⁻¹ applied to the border and to Z1'y; log|I+NG|."""
    q, c = sums.sizes[0], sums.widths[0]
    if c == 1:
        counts = sums.blocks[:, 0, 0]
        gamma = float(factor[0, 0] ** 2)
        shrink = 1 / (1 + gamma * counts)
        return (
            (counts * shrink)[:, None, None], (gamma * shrink)[:, None, None], sums.border * shrink[:, None],
            zy * shrink, -float(np.log(shrink).sum()),
        )  # fmt: skip
    between = factor @ factor.T
    inverse = np.linalg.inv(np.eye(c) + sums.blocks @ between)
    border = (inverse @ sums.border.reshape(q, c, -1)).reshape(q * c, -1)
    middle = between @ inverse
    middle = (middle + middle.transpose(0, 2, 1)) / 2
    log_v = -float(np.linalg.slogdet(inverse)[1].sum())
    return inverse @ sums.blocks, middle, border, (inverse @ zy.reshape(q, c, 1)).ravel(), log_v


def _applied(middle: np.ndarray, zy: np.ndarray) -> np.ndarray:
    q, c, _ = middle.shape
    return (middle @ zy.reshape(q, c, 1)).ravel()


def _crossed(sums: CrossProducts, middle: np.ndarray) -> np.ndarray:
    """border' · middle · border."""
    q, c = sums.sizes[0], sums.widths[0]
    if c == 1:
        half = sums.border * np.sqrt(middle[:, :, 0])
        lower = blas.dsyrk(1.0, half, trans=1, lower=1)
        return lower + np.tril(lower, -1).T
    return sums.border.T @ (middle @ sums.border.reshape(q, c, -1)).reshape(q * c, -1)


def _times_factor(block: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """block · (I ⊗ L)."""
    if factor.shape == (1, 1):
        return block * factor[0, 0]
    c = len(factor)
    return (block.reshape(len(block), -1, c) @ factor).reshape(block.shape)


class Projected:
    """T = W − KK' by blocks of units; a unit is one column of one term.

    The block of the first term is never formed: its W is block diagonal and its K is thin.
    """

    def __init__(self, at: Criterion, whitened: np.ndarray) -> None:
        sums = at.sums
        self.sums = sums
        self.units = [(t, a) for t, c in enumerate(sums.widths) for a in range(c)]
        self.k = whitened
        self.w = at.weights
        q1, qr = sums.q1, sums.qr
        late = whitened[q1:]
        self.border = at.border[:, :qr] - whitened[:q1] @ late.T
        self.rest = at.rest[:qr, :qr] - late @ late.T

    def span(self, unit: tuple[int, int]) -> slice:
        t, a = unit
        start, stop = self.sums.offsets[t], self.sums.offsets[t + 1]
        return slice(start + a, stop, self.sums.widths[t])

    def _late(self, unit: tuple[int, int]) -> slice:
        span = self.span(unit)
        return slice(span.start - self.sums.q1, span.stop - self.sums.q1, span.step)

    def block(self, u: tuple[int, int], v: tuple[int, int]) -> np.ndarray:
        """T between two units, not both of the first term."""
        if u[0] == 0:
            return self.border[self.span(u), self._late(v)]
        if v[0] == 0:
            return self.border[self.span(v), self._late(u)].T
        return self.rest[self._late(u), self._late(v)]

    def times(self, u: tuple[int, int], v: tuple[int, int], vectors: np.ndarray) -> np.ndarray:
        """T_uv · vectors (levels of v × any)."""
        if u[0] == v[0] == 0:
            weight = self.w[:, u[1], v[1]]
            weighted = weight * vectors if vectors.ndim == 1 else weight[:, None] * vectors
            return weighted - self.k[self.span(u)] @ (self.k[self.span(v)].T @ vectors)
        return self.block(u, v) @ vectors

    def trace(self, u: tuple[int, int], v: tuple[int, int]) -> float:
        """tr T_uv of two units of one term."""
        return float(self.diagonal(u, v).sum())

    def diagonal(self, u: tuple[int, int], v: tuple[int, int]) -> np.ndarray:
        """diag T_uv of two units of one term."""
        if u[0] == 0:
            return self.w[:, u[1], v[1]] - np.einsum("ij,ij->i", self.k[self.span(u)], self.k[self.span(v)])
        return np.diagonal(self.rest[self._late(u), self._late(v)]).copy()

    @cached_property
    def _grams(self) -> dict[tuple[int, int], np.ndarray]:
        c = self.sums.widths[0]
        parts = [self.k[self.span((0, a))] for a in range(c)]
        return {(a, b): parts[a].T @ parts[b] for a in range(c) for b in range(c)}

    def double(self, b: tuple, c: tuple, d: tuple, a: tuple) -> float:
        """tr(T_bc T_da); a, b are units of one term and c, d of one term."""
        if b[0] or c[0]:
            return float(np.vdot(self.block(b, c), self.block(d, a).T))
        k = {unit: self.k[self.span(unit)] for unit in (a, b, c, d)}
        w_bc, w_da = self.w[:, b[1], c[1]], self.w[:, d[1], a[1]]
        crossed = w_bc @ np.einsum("ij,ij->i", k[d], k[a]) + w_da @ np.einsum("ij,ij->i", k[b], k[c])
        return float(w_bc @ w_da - crossed + np.vdot(self._grams[a[1], b[1]], self._grams[d[1], c[1]]))

    @cached_property
    def entries(self) -> list[list[tuple[tuple[int, int], tuple[int, int]]]]:
        """Each covariance entry as the ordered pairs of units in dV = Σ Z_a Z_b'."""
        pairs = []
        for t, i, j in layout(self.sums.widths).entries:
            u, v = (t, i), (t, j)
            pairs.append([(u, u)] if i == j else [(u, v), (v, u)])
        return pairs

    def traces(self) -> tuple[np.ndarray, np.ndarray]:
        """tr(T dG_i) and tr(T dG_i T dG_j)."""
        size = len(self.entries)
        single = np.array([sum(self.trace(b, a) for a, b in pairs) for pairs in self.entries])
        double = np.empty((size, size))
        for i in range(size):
            for j in range(i, size):
                double[i, j] = double[j, i] = sum(
                    self.double(b, c, d, a) for a, b in self.entries[i] for c, d in self.entries[j]
                )
        return single, double

    def quadratics(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """t'dG_i t and t'dG_i T dG_j t."""
        size = len(self.entries)
        parts = {unit: t[self.span(unit)] for unit in self.units}
        single = np.array([sum(parts[a] @ parts[b] for a, b in pairs) for pairs in self.entries])
        image: dict[tuple, np.ndarray] = {}
        twice = np.empty((size, size))
        for i in range(size):
            for j in range(i, size):
                total = 0.0
                for a, b in self.entries[i]:
                    for c, d in self.entries[j]:
                        if (b, c, d) not in image:
                            image[b, c, d] = self.times(b, c, parts[d])
                        total += float(parts[a] @ image[b, c, d])
                twice[i, j] = twice[j, i] = total
        return single, twice
