"""Degrees of freedom, F tests and tests of random terms, at any number of rows.

Everything is computed from T = Z'PZ and A = (X'V⁻¹X)⁻¹X'V⁻¹Z, whose size is that of the random and
fixed effects. Satterthwaite as in lmerTest (Kuznetsova, Brockhoff, Christensen 2017), with the exact
Hessian; Kenward and Roger (1997) as in pbkrtest (Halekoh, Højsgaard 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from scipy.linalg import solve_triangular

from analysis.stats import estimates
from analysis.stats.mixed.objective import layout
from study.errors import StudyError

if TYPE_CHECKING:
    from analysis.stats.mixed.fit import MixedFit

Ddf = Literal["satterthwaite", "kenward-roger", "z"]
DDFS = ("satterthwaite", "kenward-roger", "z")


@dataclass(frozen=True)
class Spread:
    """How the covariance of the fixed effects depends on the variance parameters.

    parameters : covariance of the variance parameters' estimates (theta not at zero, then sigma²)
    """

    parameters: np.ndarray
    free: np.ndarray


@dataclass(frozen=True)
class KenwardRoger:
    """The adjusted covariance in the basis, and the covariance of the variance parameters' estimates.

    The parameters are the entries of sigma²G by term, then sigma²; all are kept, zero or not, as in pbkrtest.
    """

    covariance: np.ndarray
    parameters: np.ndarray


def in_basis(fit: MixedFit, rows: np.ndarray) -> np.ndarray:
    """Rows of weights on the coefficients, as rows of weights on the basis."""
    rows = np.atleast_2d(np.asarray(rows, float))
    if rows.shape[1] != fit.design.fixed.p:
        raise ValueError(f"{rows.shape[1]} weights for {fit.design.fixed.p} coefficients")
    return solve_triangular(fit.design.fixed.triangle, rows.T, trans=1, check_finite=False).T


def contrast_table(
    fit: MixedFit, rows: np.ndarray, terms: list[str], ddf: Ddf = "satterthwaite", level: float = 0.95
) -> pd.DataFrame:
    """Estimates of rows of weights on the coefficients."""
    estimate, std_error, df = contrast(fit, rows, ddf)
    return estimates.table(terms, estimate, std_error, df, n=fit.n_rows, level=level)


def contrast(fit: MixedFit, rows: np.ndarray, ddf: Ddf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimate, standard error and degrees of freedom of each row of weights."""
    check_ddf(fit, ddf)
    weights = in_basis(fit, rows)
    estimate = weights @ fit.best.beta
    if ddf == "kenward-roger":
        variance = np.einsum("ij,jk,ik->i", weights, kenward_roger(fit).covariance, weights)
    else:
        variance = fit.best.sigma2 * ((weights @ fit.best.half_cov) ** 2).sum(axis=1)
    return estimate, np.sqrt(variance), degrees(fit, weights, ddf)


def check_ddf(fit: MixedFit, ddf: str) -> None:
    if ddf not in DDFS:
        raise StudyError(f"The degrees of freedom {ddf!r} are not known; use {', '.join(DDFS)}.")
    if ddf == "kenward-roger" and fit.method != "REML":
        raise StudyError("Kenward-Roger needs a REML fit; this one is ML.")


def degrees(fit: MixedFit, weights: np.ndarray, ddf: Ddf) -> np.ndarray:
    """Denominator degrees of freedom of single rows of weights on the basis."""
    if ddf == "z":
        return np.full(len(weights), np.inf)
    variance = fit.best.sigma2 * ((weights @ fit.best.half_cov) ** 2).sum(axis=1)
    slopes = variance_slopes(fit, weights)
    if ddf == "kenward-roger":
        parameters = kenward_roger(fit).parameters
    else:
        spread = satterthwaite_spread(fit)
        parameters, slopes = spread.parameters, _by_theta(fit, slopes, spread.free)
    return 2 * variance**2 / np.einsum("ij,jk,ik->i", slopes, parameters, slopes)


def variance_slopes(fit: MixedFit, weights: np.ndarray) -> np.ndarray:
    """Derivatives of each row's variance by the entries of sigma²G and by sigma²."""
    best, units = fit.best, fit.best.projected
    moved = weights @ best.transfer
    slopes = [
        sum(np.einsum("ij,ij->i", moved[:, units.span(a)], moved[:, units.span(b)]) for a, b in pairs)
        for pairs in units.entries
    ]
    variance = best.sigma2 * ((weights @ best.half_cov) ** 2).sum(axis=1)
    levels = (best.sigma2 * _entry_values(fit)) @ np.array(slopes)
    return np.column_stack([*slopes, (variance - levels) / best.sigma2])


def slope_matrices(fit: MixedFit, weights: np.ndarray) -> np.ndarray:
    """Derivatives of weights·Cov(β)·weights' by the entries of sigma²G and by sigma², one matrix each."""
    best, units = fit.best, fit.best.projected
    moved, half = weights @ best.transfer, weights @ best.half_cov
    slopes = [
        sum(moved[:, units.span(a)] @ moved[:, units.span(b)].T for a, b in pairs) for pairs in units.entries
    ]
    levels = np.tensordot(best.sigma2 * _entry_values(fit), np.array(slopes), axes=1)
    return np.array([*slopes, (best.sigma2 * half @ half.T - levels) / best.sigma2])


def _entry_values(fit: MixedFit) -> np.ndarray:
    """The entries of G at the optimum."""
    shape = layout(fit.sums.widths)
    between = [factor @ factor.T for factor in shape.factors(fit.best.theta)]
    return np.array([between[t][a, b] for t, a, b in shape.entries])


def _by_theta(fit: MixedFit, slopes: np.ndarray, free: np.ndarray) -> np.ndarray:
    """From derivatives by (sigma²G, sigma²) to derivatives by (theta, sigma²)."""
    shape = layout(fit.sums.widths)
    entries, residual = slopes[:, :-1], slopes[:, -1]
    by_theta = fit.best.sigma2 * entries @ shape.jacobian(fit.best.theta)[:, free]
    return np.column_stack([by_theta, entries @ _entry_values(fit) + residual])


def satterthwaite_spread(fit: MixedFit) -> Spread:
    """Twice the inverse Hessian of the deviance in (theta, sigma²), thetas at zero left out as in lmerTest."""
    if "spread" not in fit.memory:
        best, shape = fit.best, layout(fit.sums.widths)
        (trace, double), (single, twice) = best.traces, best.quadratics
        s2 = best.sigma2
        slopes = shape.jacobian(best.theta)
        by_theta = slopes.T @ (-double + 2 * twice / s2) @ slopes + shape.curvature(trace - single / s2)
        crossed = slopes.T @ single / s2**2
        free = free_thetas(fit)
        k = int(free.sum())
        hessian = np.empty((k + 1, k + 1))
        hessian[:k, :k] = by_theta[np.ix_(free, free)]
        hessian[:k, k] = hessian[k, :k] = crossed[free]
        hessian[k, k] = best.degrees / s2**2
        fit.memory["spread"] = Spread(2 * _inverse(hessian), free)
    return fit.memory["spread"]


def free_thetas(fit: MixedFit) -> np.ndarray:
    """Thetas whose column of L is not zero."""
    theta = layout(fit.sums.widths).theta
    sizes: dict[tuple[int, int], float] = {}
    for value, (t, _, j) in zip(fit.best.theta, theta, strict=True):
        sizes[t, j] = max(sizes.get((t, j), 0.0), abs(value))
    return np.array([sizes[t, j] > 0 for t, _, j in theta])


def _inverse(symmetric: np.ndarray) -> np.ndarray:
    """Inverse after scaling to a unit diagonal; directions without curvature are left out."""
    scale = np.sqrt(np.maximum(np.abs(np.diagonal(symmetric)), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(symmetric / np.outer(scale, scale))
    good = values > 1e-10 * values.max()
    vectors = vectors[:, good] / scale[:, None]
    return (vectors / values[good]) @ vectors.T


def kenward_roger(fit: MixedFit) -> KenwardRoger:
    """The Kenward–Roger adjusted covariance of the fixed effects, without a matrix of the rows' size."""
    if "kenward_roger" not in fit.memory:
        check_ddf(fit, "kenward-roger")
        fit.memory["kenward_roger"] = _kenward_roger(fit)
    return fit.memory["kenward_roger"]


def _kenward_roger(fit: MixedFit) -> KenwardRoger:
    best, units = fit.best, fit.best.projected
    s2, entries = best.sigma2, _entry_values(fit)
    transfer = best.transfer
    size = len(units.entries)
    moved = {}
    adjusted = np.empty((size + 1, size + 1, len(transfer), len(transfer)))
    for i in range(size):
        for j in range(i, size):
            total = 0.0
            for a, b in units.entries[i]:
                for c, d in units.entries[j]:
                    if (b, c, d) not in moved:
                        moved[b, c, d] = units.times(b, c, np.ascontiguousarray(transfer[:, units.span(d)].T))
                    total = total + transfer[:, units.span(a)] @ moved[b, c, d]
            adjusted[i, j] = total / s2
            adjusted[j, i] = adjusted[i, j].T
    phi = s2 * entries
    # The covariance is homogeneous in its parameters: the residual variance's part follows from the others.
    for i in range(size):
        adjusted[i, size] = -np.einsum("j,jab->ab", phi, adjusted[i, :size]) / s2
        adjusted[size, i] = adjusted[i, size].T
    adjusted[size, size] = -np.einsum("j,jab->ab", phi, adjusted[size, :size]) / s2
    parameters = 2 * _inverse(_expected_information(fit))
    covariance = s2 * best.half_cov @ best.half_cov.T
    covariance = covariance + 2 * np.einsum("ij,ijab->ab", parameters, adjusted)
    return KenwardRoger((covariance + covariance.T) / 2, parameters)


def _expected_information(fit: MixedFit) -> np.ndarray:
    """tr(P dV_i P dV_j) in the scale of the data, the residual variance last."""
    best, entries = fit.best, _entry_values(fit)
    trace, double = best.projected.traces()
    size = len(trace)
    information = np.empty((size + 1, size + 1))
    information[:size, :size] = double
    crossed = trace - double @ entries
    information[:size, size] = information[size, :size] = crossed
    information[size, size] = (fit.n_rows - fit.design.fixed.p - entries @ trace) - entries @ crossed
    return information / best.sigma2**2


def f_test(fit: MixedFit, rows: np.ndarray, ddf: Ddf = "satterthwaite") -> dict[str, float]:
    """F, numerator and denominator degrees of freedom and p of several rows of weights being zero together."""
    check_ddf(fit, ddf)
    weights = _independent_rows(in_basis(fit, rows))
    if ddf == "kenward-roger":
        return _kr_f_test(fit, weights)
    half = weights @ fit.best.half_cov
    values, vectors = np.linalg.eigh(fit.best.sigma2 * half @ half.T)
    values, turned = values[::-1], (vectors.T @ weights)[::-1]
    squared = (turned @ fit.best.beta) ** 2 / values
    ndf = len(values)
    statistic = float(squared.sum() / ndf)
    ddf_value = _pooled(degrees(fit, turned, ddf))
    p_value = estimates.f_tail(statistic, ndf, ddf_value)
    return {"statistic": statistic, "ndf": ndf, "df": ddf_value, "p_value": p_value}


def _independent_rows(weights: np.ndarray) -> np.ndarray:
    """The same hypothesis without rows that follow from others."""
    _, values, turned = np.linalg.svd(weights, full_matrices=False)
    good = values > 1e-8 * values[0]
    return weights if good.all() else turned[good] * values[good, None]


def _pooled(dfs: np.ndarray) -> float:
    """Denominator df of a joint test from those of its orthogonal parts (Fai, Cornelius 1996)."""
    if not np.isfinite(dfs).all():
        return float("inf")
    if np.ptp(dfs) < 1e-8:
        return float(dfs.mean())
    if (dfs <= 2).any():
        return 2.0
    expected = (dfs / (dfs - 2)).sum()
    return float(2 * expected / (expected - len(dfs)))


def _kr_f_test(fit: MixedFit, weights: np.ndarray) -> dict[str, float]:
    kr = kenward_roger(fit)
    best = fit.best
    ndf = len(weights)
    half = weights @ best.half_cov
    inverse = np.linalg.inv(best.sigma2 * half @ half.T)
    slopes = slope_matrices(fit, weights)
    moved = np.einsum("ab,ibc->iac", inverse, slopes)
    traces = np.einsum("iaa->i", moved)
    a1 = float(traces @ kr.parameters @ traces)
    a2 = float(np.einsum("ij,iab,jba->", kr.parameters, moved, moved))
    scale, ddf = _kr_moments(ndf, a1, a2)
    estimate = weights @ best.beta
    wald = float(estimate @ np.linalg.solve(weights @ kr.covariance @ weights.T, estimate)) / ndf
    statistic = scale * wald
    return {"statistic": statistic, "ndf": ndf, "df": ddf, "p_value": estimates.f_tail(statistic, ndf, ddf)}


def _kr_moments(q: int, a1: float, a2: float) -> tuple[float, float]:
    """Scale of the Wald statistic and denominator df (Kenward, Roger 1997, section 3; names as there)."""
    if q == 1:
        return 1.0, 2 / a2
    b = (a1 + 6 * a2) / (2 * q)
    g = ((q + 1) * a1 - (q + 4) * a2) / ((q + 2) * a2)
    below = 3 * q + 2 * (1 - g)
    c1, c2, c3 = g / below, (q - g) / below, (q + 2 - g) / below
    v0, v1, v2 = 1 + c1 * b, 1 - c2 * b, 1 - c3 * b
    v0 = 0.0 if abs(v0) < 1e-10 else v0
    lost = 1 - a2 / q
    ratio = 1.0 if abs(lost) < 1e-14 and abs(v1) < 1e-14 else lost / v1
    rho = ratio**2 * v0 / (q * v2) if v2 != 0 else np.inf
    ddf = 4 + (q + 2) / (q * rho - 1)
    expected = 1 / lost if lost != 0 else np.inf
    return ddf / (expected * (ddf - 2)), ddf
