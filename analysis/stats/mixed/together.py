"""Newton's method for many small problems at once, in theta free of sign (see optimum)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""(theta of some problems, which ones) → value, gradient and Hessian by gamma = theta²."""

DECREMENT = 1e-9
ZERO = 1e-4
_STEPS = 60


def newton(
    evaluate: Evaluate, start: np.ndarray, typical: np.ndarray, finish: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise every problem from its start; theta (not below zero) and which of them settled.

    typical : a usual theta of each term, for a variance at zero that wants to be positive
    finish : evaluate once more where theta was changed at the end, so that by-products are of the last theta
    """
    theta = np.array(start)
    count, k = theta.shape
    value, gradient, hessian = evaluate(theta, np.arange(count))
    settled = np.zeros(count, bool)
    active = np.arange(count)
    for _ in range(_STEPS):
        step, decrement = _step(theta[active], gradient[active], hessian[active])
        done = decrement < DECREMENT
        if done.any():
            freed = _freed(theta, gradient, active[done], typical)
            settled[np.setdiff1d(active[done], freed)] = True
            if len(freed):
                value[freed], gradient[freed], hessian[freed] = evaluate(theta[freed], freed)
            again = ~done | np.isin(active, freed)
            active = active[again]
            if not len(active):
                break
            step, decrement = _step(theta[active], gradient[active], hessian[active])
        _advance(evaluate, theta, (value, gradient, hessian), active, step, decrement)
    theta = np.abs(theta)
    small = (theta < ZERO * np.maximum(typical, 1.0)) & (theta > 0)
    if small.any():
        theta[small] = 0.0
    if finish and small.any():
        rows = np.flatnonzero(small.any(axis=1))
        evaluate(theta[rows], rows)
    return theta, settled


def _step(theta: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps in theta, and the expected gains in deviance."""
    slope = 2 * theta * gradient
    curved = 4 * theta[:, :, None] * theta[:, None, :] * hessian
    k = theta.shape[1]
    curved[:, np.arange(k), np.arange(k)] += 2 * gradient
    values, vectors = np.linalg.eigh(curved)
    largest = np.abs(values).max(axis=1, keepdims=True)
    values = np.maximum(np.abs(values), 1e-8 * np.maximum(largest, 1e-300))
    along = np.einsum("bij,bi->bj", vectors, slope)
    step = -np.einsum("bij,bj->bi", vectors, along / values)
    longest = np.abs(step).max(axis=1)
    limit = 3 * np.abs(theta).max(axis=1)
    shorten = np.minimum(1.0, limit / np.maximum(longest, 1e-300))
    return step * shorten[:, None], (along**2 / values).sum(axis=1)


def _advance(
    evaluate: Evaluate,
    theta: np.ndarray,
    known: tuple,
    active: np.ndarray,
    step: np.ndarray,
    decrement: np.ndarray,
) -> None:
    """Step every active problem downhill, halving the step of those that would climb."""
    value, gradient, hessian = known
    waiting, length = np.arange(len(active)), 1.0
    for _ in range(12):
        rows = active[waiting]
        trial = theta[rows] + length * step[waiting]
        new = evaluate(trial, rows)
        better = new[0] <= value[rows] - 1e-4 * length * decrement[waiting] + 1e-11 * np.abs(value[rows])
        taken = rows[better]
        theta[taken], value[taken] = trial[better], new[0][better]
        gradient[taken], hessian[taken] = new[1][better], new[2][better]
        waiting = waiting[~better]
        if not len(waiting):
            return
        length *= 0.4
    rows = active[waiting]
    value[rows], gradient[rows], hessian[rows] = evaluate(theta[rows], rows)


def _freed(theta: np.ndarray, gradient: np.ndarray, rows: np.ndarray, typical: np.ndarray) -> np.ndarray:
    """Problems with a variance at zero that wants to be positive; it is set to a small one."""
    stuck = (np.abs(theta[rows]) < ZERO) & (gradient[rows] < -1e-6)
    freed = rows[stuck.any(axis=1)]
    if len(freed):
        theta[freed] = np.where(stuck[stuck.any(axis=1)], 0.2 * typical, theta[freed])
    return freed
