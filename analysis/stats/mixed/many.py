"""Many outcomes of one design, fitted together: what makes bootstraps and simulations everyday tools.

The fixed effects are projected out once. Where the random terms' covariances commute (balanced designs) one
basis diagonalises them all and a fit is a few sums over strata; otherwise the largest term is diagonalised
once and every fit factors a matrix of the other terms' size. Random slopes and ML go one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from analysis.stats.mixed.crossproducts import CrossProducts, Outcome
from analysis.stats.mixed.objective import Criterion, criterion, layout
from analysis.stats.mixed.optimum import optimum
from analysis.stats.mixed.together import newton

_LARGEST_JOINT = 1200
"""Largest rank for which a joint basis is looked for."""


@dataclass(frozen=True)
class Sums:
    """Sums of many outcomes, one row each.

    start : least-squares coefficients in the basis; zy : Z'r; yy : r'r, with r the residual on X
    """

    start: np.ndarray
    zy: np.ndarray
    yy: np.ndarray


@dataclass(frozen=True)
class Solutions:
    """Fits of many outcomes, one row each: theta, sigma2, beta in the basis, criterion, converged."""

    theta: np.ndarray
    sigma2: np.ndarray
    beta: np.ndarray
    value: np.ndarray
    converged: np.ndarray


@dataclass(frozen=True)
class Space:
    """A design with its fixed effects projected out.

    inner : q × q, Z'QZ; root : r × q with root'root = inner; crossed : q × p, Z'X
    """

    sums: CrossProducts
    inner: np.ndarray
    root: np.ndarray
    crossed: np.ndarray

    @property
    def degrees(self) -> int:
        return self.sums.n - self.sums.p

    def span(self, k: int) -> slice:
        """Where the effects of the k-th term stand."""
        return slice(self.sums.offsets[k], self.sums.offsets[k + 1])

    def simulated(self, at: Criterion, count: int, rng: np.random.Generator) -> Sums:
        """Sums of outcomes drawn from the fitted model, without drawing a single row.

        Z'r and r'r follow from the random effects, a normal vector of the rank of Z'QZ and a chi-squared
        remainder; the coefficients from an independent normal vector.
        """
        q, rank, p = self.root.shape[1], len(self.root), self.sums.p
        sigma = np.sqrt(at.sigma2)
        effects = sigma * rng.standard_normal((count, q))
        for k, factor in enumerate(layout(self.sums.widths).factors(at.theta)):
            c = len(factor)
            part = effects[:, self.span(k)].reshape(count, -1, c)
            effects[:, self.span(k)] = (part @ factor.T).reshape(count, -1)
        seen = effects @ self.root.T + sigma * rng.standard_normal((count, rank))
        beyond = at.sigma2 * rng.chisquare(self.degrees - rank, count) if self.degrees > rank else 0.0
        start = at.beta + effects @ self.crossed + sigma * rng.standard_normal((count, p))
        return Sums(start, seen @ self.root, (seen**2).sum(axis=1) + beyond)


def space(sums: CrossProducts) -> Space:
    """Project the fixed effects out of a design's cross-products."""
    q1, qr = sums.q1, sums.qr
    q = q1 + qr
    inner = np.zeros((q, q))
    c = sums.widths[0]
    blocks = inner[:q1, :q1].reshape(sums.sizes[0], c, sums.sizes[0], c)
    blocks[np.arange(sums.sizes[0]), :, np.arange(sums.sizes[0]), :] = sums.blocks
    inner[:q1, q1:] = sums.border[:, :qr]
    inner[q1:, :q1] = sums.border[:, :qr].T
    inner[q1:, q1:] = sums.rest[:qr, :qr]
    crossed = np.vstack([sums.border[:, qr:], sums.rest[:qr, qr:]])
    inner = inner - crossed @ crossed.T
    lower, pivots, rank, _ = lapack.dpstrf(inner, lower=1, tol=1e-9 * np.diagonal(inner).max())
    root = np.zeros((rank, q))
    root[:, pivots - 1] = np.tril(lower)[:, :rank].T
    return Space(sums, inner, root, crossed)


def solver(here: Space, at: Criterion) -> Commuting | Eliminated | OneByOne:
    """The fastest way to fit many outcomes that are like the one fitted."""
    if at.method != "REML" or max(here.sums.widths) > 1:
        return OneByOne(here, at)
    joint = _joint_basis(here)
    return Eliminated(here, at) if joint is None else Commuting(here, at, joint)


def _joint_basis(here: Space) -> np.ndarray | None:
    """The basis that diagonalises every term's covariance, if they commute."""
    rank = len(here.root)
    parts = [here.root[:, here.span(k)] for k in range(len(here.sums.sizes))]
    if rank > _LARGEST_JOINT:
        return None
    probe = np.cos(np.arange(1, rank + 1))
    for i, one in enumerate(parts):
        for other in parts[:i]:
            there = one @ (one.T @ (other @ (other.T @ probe)))
            back = other @ (other.T @ (one @ (one.T @ probe)))
            size = np.linalg.norm(one) ** 2 * np.linalg.norm(other) ** 2 / rank
            if np.linalg.norm(there - back) > 1e-9 * size:
                return None
    mixed = np.zeros((rank, rank))
    for k, part in enumerate(parts):
        mixed += (1 + 0.37 * k) * part.shape[1] / (part**2).sum() * (part @ part.T)
    basis = np.linalg.eigh(mixed)[1]
    for part in parts:
        turned = basis.T @ part
        product = turned @ turned.T
        off = product - np.diag(np.diagonal(product))
        if np.abs(off).max() > 1e-7 * np.abs(product).max():
            return None
    return basis


@dataclass(frozen=True)
class Commuting:
    """Fits by sums over strata: directions in which every term has one and the same eigenvalue."""

    here: Space
    at: Criterion
    basis: np.ndarray

    @cached_property
    def turned(self) -> np.ndarray:
        """r × q: the root in the joint basis."""
        return self.basis.T @ self.here.root

    @cached_property
    def strata(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues (terms × strata), directions per stratum, and the stratum of each direction."""
        values = np.stack([(self.turned[:, self.here.span(k)] ** 2).sum(axis=1) for k in range(self._count)])
        values[values < 1e-8 * values.max(axis=1, keepdims=True)] = 0.0
        scale = values.max(axis=1, keepdims=True)
        _, first, member = np.unique(np.round(values / scale, 7), axis=1, return_index=True, return_inverse=True)
        member = member.ravel()
        means = np.stack([np.bincount(member, v) for v in values]) / np.bincount(member)
        return means, np.bincount(member).astype(float), member

    @property
    def _count(self) -> int:
        return len(self.here.sums.sizes)

    def fit(self, sums: Sums) -> Solutions:
        """Fit every outcome."""
        values, sizes, member = self.strata
        seen = (sums.zy @ self.turned.T) / (self.turned**2).sum(axis=1)
        squares = np.zeros((len(seen), len(sizes)))
        np.add.at(squares.T, member, (seen**2).T)
        beyond = np.maximum(sums.yy - squares.sum(axis=1), 0.0)
        degrees = self.here.degrees

        def evaluate(theta: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            inverse = 1 / (1 + theta**2 @ values)
            part = squares[rows] * inverse
            rss = beyond[rows] + part.sum(axis=1)
            value = -(sizes * np.log(inverse)).sum(axis=1) + degrees * np.log(rss)
            share = degrees / rss
            single = (part * inverse) @ values.T
            gradient = (sizes * inverse) @ values.T - share[:, None] * single
            pairs = np.einsum("ks,ls->skl", values, values)
            twice = np.einsum("bs,skl->bkl", part * inverse**2, pairs)
            double = np.einsum("bs,skl->bkl", sizes * inverse**2, pairs)
            crossed = single[:, :, None] * single[:, None, :]
            hessian = -double + share[:, None, None] * (2 * twice - crossed / rss[:, None, None])
            return value, gradient, hessian

        start = np.tile(np.maximum(self.at.theta, 0.1 * _typical(self.here.sums)), (len(sums.yy), 1))
        theta, converged = newton(evaluate, start, _typical(self.here.sums))
        inverse = 1 / (1 + theta**2 @ values)
        rss = beyond + (squares * inverse).sum(axis=1)
        shrunk = (seen * inverse[:, member]) @ self.turned
        return _solutions(self.here, sums, theta, rss, shrunk, converged, -(sizes * np.log(inverse)).sum(axis=1))


def _typical(sums: CrossProducts) -> np.ndarray:
    squares = np.concatenate([np.einsum("qaa->qa", sums.blocks).ravel(), np.diagonal(sums.rest)[: sums.qr]])
    sizes = [squares[sums.offsets[k] : sums.offsets[k + 1]].sum() / sums.n for k in range(len(sums.sizes))]
    return 0.5 / np.sqrt(np.array(sizes))


def _solutions(
    here: Space,
    sums: Sums,
    theta: np.ndarray,
    rss: np.ndarray,
    t: np.ndarray,
    converged: np.ndarray,
    log_det: np.ndarray,
) -> Solutions:
    """Coefficients from t = Z'Py: what least squares gives, less what the random effects explain of it."""
    effects = t * np.repeat(theta**2, here.sums.sizes, axis=1)
    degrees = here.degrees
    constant = degrees * (1 + np.log(2 * np.pi / degrees)) + 2 * here.sums.log_triangle
    return Solutions(
        theta,
        rss / degrees,
        sums.start - effects @ here.crossed,
        log_det + degrees * np.log(rss) + constant,
        converged,
    )


class Eliminated:
    """Fits with the largest term diagonal and the others in one matrix, outcome by outcome.

    The traces of the Hessian do not depend on the outcome; they are followed from the fit by their slope.
    """

    def __init__(self, here: Space, at: Criterion) -> None:
        self.here, self.at = here, at
        q1 = here.sums.q1
        values, vectors = np.linalg.eigh(here.inner[:q1, :q1])
        kept = values > 1e-9 * values[-1]
        self.values, self.vectors = values[kept], vectors[:, kept]
        self.border = np.ascontiguousarray(self.vectors.T @ here.inner[:q1, q1:])
        self.rest = np.asfortranarray(here.inner[q1:, q1:])
        self.spans = [
            slice(here.span(k).start - q1, here.span(k).stop - q1) for k in range(1, len(here.sums.sizes))
        ]
        self.typical = _typical(here.sums)
        self._follow_traces()

    def _follow_traces(self) -> None:
        """log tr(T_ij T_ji) and its slope by log gamma."""
        self.centre = np.maximum(self.at.theta, 0.3 * self.typical)
        outcome = self.at.outcome

        def traces(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return criterion(self.here.sums, outcome, theta, "REML").projected.traces()

        def doubles(theta: np.ndarray) -> np.ndarray:
            return logarithms(traces(theta)[1])

        def logarithms(double: np.ndarray) -> np.ndarray:
            size = np.sqrt(np.diagonal(double))
            return np.log(np.maximum(double, 1e-8 * np.outer(size, size)))

        self.trace, double = traces(self.centre)
        base = logarithms(double)
        steps = np.eye(len(self.centre)) * 0.05
        self.base = base
        self.slopes = np.stack([(doubles(self.centre * np.exp(step / 2)) - base) / 0.05 for step in steps])

    def _doubles(self, theta: np.ndarray) -> np.ndarray:
        moved = np.clip(2 * np.log(np.maximum(np.abs(theta), 1e-12) / self.centre), -1.2, 1.2)
        return np.exp(self.base + np.tensordot(moved, self.slopes, axes=1))

    def _moments(self, sums: Sums) -> np.ndarray:
        """Theta of every outcome by moments at the fit (MIVQUE), all at once: next to the optimum already."""
        gamma, degrees = self.centre**2, self.here.degrees
        spread = np.repeat(gamma, self.here.sums.sizes)
        system = np.eye(len(spread)) + self.here.inner * spread
        t = np.linalg.solve(system, sums.zy.T).T
        single = np.stack([(t[:, self.here.span(k)] ** 2).sum(axis=1) for k in range(len(gamma))], axis=1)
        rss = sums.yy - (sums.zy * spread * t).sum(axis=1)
        double = np.exp(self.base)
        crossed = self.trace - double @ gamma
        information = np.empty((len(gamma) + 1, len(gamma) + 1))
        information[:-1, :-1] = double
        information[:-1, -1] = information[-1, :-1] = crossed
        information[-1, -1] = degrees - gamma @ self.trace - gamma @ crossed
        right = np.column_stack([single, rss - single @ gamma])
        variances = np.linalg.solve(information, right.T).T
        residual = np.maximum(variances[:, -1:], 0.1 * rss[:, None] / degrees)
        return np.sqrt(np.maximum(variances[:, :-1] / residual, (0.3 * self.typical) ** 2 * 0.3))

    def fit(self, sums: Sums) -> Solutions:
        """Fit every outcome."""
        q1, count = self.here.sums.q1, len(sums.yy)
        first, late = sums.zy[:, :q1] @ self.vectors, sums.zy[:, q1:]
        images = np.empty(sums.zy.shape)
        rss, log_det = np.empty(count), np.empty(count)

        def evaluate(theta: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            k = theta.shape[1]
            value, gradient, hessian = (
                np.empty(len(rows)),
                np.empty((len(rows), k)),
                np.empty((len(rows), k, k)),
            )
            for i, row in enumerate(rows):
                value[i], gradient[i], hessian[i], rss[row], log_det[row], images[row] = self._at(
                    theta[i], first[row], late[row], sums.yy[row]
                )
            return value, gradient, hessian

        theta, converged = newton(evaluate, self._moments(sums), self.typical, finish=True)
        return _solutions(self.here, sums, theta, rss, images, converged, log_det)

    def _at(self, theta: np.ndarray, first: np.ndarray, late: np.ndarray, yy: float) -> tuple:
        """Criterion, gradient and Hessian by gamma, residual sum of squares, log determinant, Z'Py."""
        degrees = self.here.degrees
        gamma = theta[0] ** 2
        shrink = 1 / (1 + gamma * self.values)
        scale = np.repeat(theta[1:], self.here.sums.sizes[1:])
        drawn = shrink * first
        right = late - gamma * (drawn @ self.border)
        seen = self.border * np.sqrt(gamma * shrink)[:, None]
        lower = blas.dsyrk(-1.0, seen.T, beta=1.0, c=self.rest, lower=1)
        whole = np.tril(lower) + np.tril(lower, -1).T
        system = whole * scale * scale[:, None]
        system[np.diag_indices_from(system)] += 1
        chol, info = lapack.dpotrf(system, lower=1, clean=1)
        if info:
            return np.inf, np.zeros(len(theta)), np.eye(len(theta)), np.nan, np.nan, np.nan
        kappa = lapack.dtrtrs(chol, scale * right, lower=1)[0].ravel()
        rss = yy - gamma * (first @ drawn) - kappa @ kappa
        log_det = -np.log(shrink).sum() + 2 * np.log(np.diagonal(chol)).sum()
        k1 = lapack.dtrtrs(chol, np.asfortranarray((self.border * shrink[:, None]).T * scale[:, None]), lower=1)[0]
        k2 = lapack.dtrtrs(chol, whole * scale[:, None], lower=1)[0]
        t1, t2 = drawn - kappa @ k1, right - kappa @ k2
        trace, square, image, moved = self._by_term(shrink, whole, k1, k2, t1, t2)
        share = degrees / rss
        twice = np.empty((len(theta), len(theta)))
        for i in range(len(theta)):
            for j in range(i, len(theta)):
                twice[i, j] = twice[j, i] = moved[i][j] - image[i] @ image[j]
        gradient = trace - share * square
        hessian = -self._doubles(theta) + share * (2 * twice - np.outer(square, square) / rss)
        value = log_det + degrees * np.log(rss)
        return value, gradient, hessian, rss, log_det, np.concatenate([self.vectors @ t1, t2])

    def _by_term(
        self,
        shrink: np.ndarray,
        whole: np.ndarray,
        k1: np.ndarray,
        k2: np.ndarray,
        t1: np.ndarray,
        t2: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], list[list[float]]]:
        """tr T_kk, t_k't_k, K_k't_k and t_i'W_ij t_j."""
        diagonal = np.diagonal(whole) - np.einsum("ij,ij->j", k2, k2)
        trace = [float(self.values @ shrink - np.vdot(k1, k1))]
        square, image = [float(t1 @ t1)], [k1 @ t1]
        bordered = (shrink * t1) @ self.border
        moved = [[float((self.values * shrink * t1) @ t1), *(float(bordered[s] @ t2[s]) for s in self.spans)]]
        for i, span in enumerate(self.spans):
            part = t2[span]
            trace.append(float(diagonal[span].sum()))
            square.append(float(part @ part))
            image.append(k2[:, span] @ part)
            across = part @ whole[span]
            row = [moved[0][i + 1], *(float(across[other] @ t2[other]) for other in self.spans)]
            moved.append(row)
        return np.array(trace), np.array(square), image, moved


@dataclass(frozen=True)
class OneByOne:
    """Fits with random slopes, or by ML: each by the ordinary search, begun at the fit."""

    here: Space
    at: Criterion

    def fit(self, sums: Sums) -> Solutions:
        """Fit every outcome."""
        start = np.where(np.abs(self.at.theta) > 0, self.at.theta, 0.0)
        found = []
        for begin, zy, yy in zip(sums.start, sums.zy, sums.yy, strict=True):
            outcome = replace(self.at.outcome, start=begin, zy=zy, yy=float(yy))
            best, record = optimum(self.here.sums, outcome, self.at.method, start)
            found.append((best.theta, best.sigma2, best.beta, best.value, record.converged))
        theta, sigma2, beta, value, converged = zip(*found, strict=True)
        return Solutions(np.array(theta), np.array(sigma2), np.array(beta), np.array(value), np.array(converged))


def sums_of(outcomes: list[Outcome]) -> Sums:
    """Sums of outcomes that are at hand, row by row."""
    return Sums(
        np.array([o.start for o in outcomes]),
        np.array([o.zy for o in outcomes]),
        np.array([o.yy for o in outcomes]),
    )
