"""Intervals of a fit's parameters: profile likelihood, and Wald.

The profile is that of the ML deviance, as in lme4. Standard deviations and correlations are profiled in
their own scale, fixed effects by a constrained residual sum of squares; every step has exact derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import brentq, minimize
from scipy.special import chdtri

from analysis.stats import estimates, inference
from analysis.stats.mixed.fit import MixedFit
from analysis.stats.mixed.objective import LOG_2PI, Criterion, criterion, layout
from analysis.stats.mixed.optimum import optimum
from study.errors import StudyError

# The deviance is flat in a standard deviation at zero, so that a search begun there stays there; it is begun a
# little above, in residual standard deviations.
_STUCK, _LIFT = 1e-3, 0.1


def wald_intervals(fit: MixedFit, level: float = 0.95, ddf: inference.Ddf = "satterthwaite") -> pd.DataFrame:
    """Fixed effects, estimate plus and minus the t quantile: term, estimate, low, high."""
    return fit.coefficients(ddf, level)[["term", "estimate", "low", "high"]]


def profile_intervals(
    fit: MixedFit,
    level: float = 0.95,
    fixed: bool = True,
    *,
    jobs: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> pd.DataFrame:
    """Profile-likelihood intervals: term, estimate, low, high.

    Terms are `sd rater`, `sd Subject Days`, `cor Subject (Intercept) Days`, `sigma`, then the coefficients. A
    standard deviation whose interval reaches zero has low 0. Estimates are those of the ML fit.

    Raises
    ------
    StudyError : for a random term of more than two columns
    """
    if max(fit.sums.widths) > 2:
        raise StudyError("Profile intervals know random terms of one or two columns; use the bootstrap instead.")
    best, _ = optimum(fit.sums, fit.outcome, "ML", fit.best.theta if fit.best.theta.any() else None)
    goal = best.value + float(chdtri(1, 1 - level))
    rows = _Components(fit, best).intervals(goal)
    if fixed:
        light = replace(fit, memory={})
        n = fit.design.fixed.p
        work = (delayed(_coefficient)(light, best, j, goal, level) for j in range(n))
        for done, row in enumerate(Parallel(n_jobs=jobs, return_as="generator")(work), 1):
            rows.append(row)
            if progress is not None:
                progress(done, n, row[0])
    return pd.DataFrame(rows, columns=["term", "estimate", "low", "high"])


@dataclass(frozen=True)
class _Components:
    """The variance parameters in their own scale: by term its SDs, then its correlation; sigma last."""

    fit: MixedFit
    best: Criterion

    def intervals(self, goal: float) -> list[tuple]:
        names, values, bounds = self._parameters()
        order = self._printed(names)
        found = [(names[k], values[k], *self._interval(k, values, bounds, goal)) for k in range(len(values))]
        return [found[k] for k in order]

    def _printed(self, names: list[str]) -> list[int]:
        """The formula's order of terms."""
        place = {grouping.term.name: i for i, grouping in enumerate(self.fit.design.groupings)}
        return sorted(range(len(names)), key=lambda k: place.get(self._group(names[k]), len(place)))

    @staticmethod
    def _group(name: str) -> str:
        parts = name.split(" ")
        return parts[1] if len(parts) > 1 else ""

    def _parameters(self) -> tuple[list[str], np.ndarray, list[tuple]]:
        sigma = np.sqrt(self.best.sigma2)
        names, values, bounds = [], [], []
        for t, factor in enumerate(layout(self.fit.sums.widths).factors(self.best.theta)):
            grouping = self.fit.design.groupings[self.fit.sums.order[t]]
            sds = sigma * np.sqrt((factor**2).sum(axis=1))
            for a, column in enumerate(grouping.columns):
                end = "" if column == "(Intercept)" else f" {column}"
                names.append(f"sd {grouping.term.name}{end}")
                values.append(sds[a])
                bounds.append((0.0, None))
            if len(factor) == 2:
                length = np.sqrt((factor[1] ** 2).sum())
                names.append(f"cor {grouping.term.name} {' '.join(grouping.columns)}")
                values.append(factor[1, 0] / length if length > 0 else 0.0)
                bounds.append((-1 + 1e-9, 1 - 1e-9))
        return [*names, "sigma"], np.array([*values, sigma]), [*bounds, (1e-6 * sigma, None)]

    def _theta(self, values: np.ndarray) -> np.ndarray:
        """Theta of the parameters, by the layout of the cross-products."""
        sigma, at, theta = values[-1], 0, []
        for c in self.fit.sums.widths:
            if c == 1:
                theta.append(values[at] / sigma)
                at += 1
            else:
                one, other, cor = values[at : at + 3]
                theta += [one / sigma, cor * other / sigma, other * np.sqrt(1 - cor**2) / sigma]
                at += 3
        return np.array(theta)

    def _deviance(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """ML deviance with the fixed effects profiled out, and its gradient by the parameters."""
        fit = self.fit
        here = criterion(fit.sums, fit.outcome, self._theta(values), "ML")
        if here is None:
            return 1e12, np.zeros(len(values))
        s2 = values[-1] ** 2
        value = here.log_v + fit.n_rows * (LOG_2PI + np.log(s2)) + here.rss / s2
        entries = here.traces[0] - here.quadratics[0] / s2
        by_theta = layout(fit.sums.widths).jacobian(here.theta).T @ entries
        slopes = self._slopes(values)
        gradient = by_theta @ slopes
        gradient[-1] += 2 * fit.n_rows / values[-1] - 2 * here.rss / values[-1] ** 3
        return float(value), gradient

    def _slopes(self, values: np.ndarray) -> np.ndarray:
        """Derivatives of theta by the parameters, by central differences of a closed form."""
        columns = []
        for k in range(len(values)):
            step = 1e-6 * max(abs(values[k]), 1e-3)
            if abs(values[k]) + step >= 1 and 0 < k < len(values) - 1 and abs(values[k]) < 1:
                step = (1 - abs(values[k])) / 2
            up, down = values.copy(), values.copy()
            up[k] += step
            down[k] -= step
            columns.append((self._theta(up) - self._theta(down)) / (2 * step))
        return np.stack(columns, axis=1)

    def _interval(self, k: int, values: np.ndarray, bounds: list[tuple], goal: float) -> tuple[float, float]:
        others = np.arange(len(values)) != k
        kept = {"start": values.copy()}

        def excess(value: float) -> float:
            whole = kept["start"].copy()
            whole[k] = value

            def inner(part: np.ndarray) -> tuple[float, np.ndarray]:
                whole[others] = part
                deviance, gradient = self._deviance(whole)
                return deviance, gradient[others]

            limits = [b for j, b in enumerate(bounds) if j != k]
            found = minimize(inner, lifted(kept["start"])[others], jac=True, bounds=limits, method="L-BFGS-B",
                             options={"ftol": 1e-14, "gtol": 1e-7})  # fmt: skip
            kept["start"][others] = found.x
            return float(found.fun) - goal

        sds = np.array([b[0] == 0.0 for b in bounds])

        def lifted(start: np.ndarray) -> np.ndarray:
            return np.where(sds & (start < _STUCK * values[-1]), _LIFT * values[-1], start)

        spread = max(abs(values[k]), 0.1 * values[-1])
        low = _crossing(excess, values[k], -0.3 * spread, bounds[k][0])
        kept["start"] = values.copy()
        return low, _crossing(excess, values[k], 0.3 * spread, bounds[k][1])


def _crossing(excess: Callable[[float], float], start: float, step: float, bound: float | None) -> float:
    """Where the profile rises to its goal, walking from the optimum; the bound if it does not."""
    excess = cache(excess)  # a search that starts elsewhere may end a hair away, on the other side of the goal
    inside = start
    for _ in range(60):
        outside = inside + step
        past = bound is not None and (outside - bound) * np.sign(step) >= 0
        if past:
            outside = bound
        if excess(outside) > 0:
            return float(brentq(excess, inside, outside, xtol=1e-7 * max(abs(start), abs(step))))
        if past:
            return float(bound)
        inside, step = outside, 1.5 * step
    return float("nan")


def _coefficient(fit: MixedFit, best: Criterion, j: int, goal: float, level: float) -> tuple:
    """The profile of one fixed effect, held at b: rss grows by (b - estimate)² over its relative variance."""
    weight = inference.in_basis(fit, np.eye(fit.design.fixed.p)[[j]])[0]
    estimate = float(weight @ best.beta)
    std_error = float(np.sqrt(best.sigma2) * np.linalg.norm(weight @ best.half_cov))
    kept = {"theta": best.theta}
    sds = np.array([row == column for _, row, column in layout(fit.sums.widths).theta])

    def excess(b: float) -> float:
        start = np.where(sds & (np.abs(kept["theta"]) < _STUCK), _LIFT, kept["theta"])
        found = minimize(lambda theta: _held(fit, theta, weight, b), start, jac=True, method="L-BFGS-B",
                         options={"ftol": 1e-14, "gtol": 1e-6})  # fmt: skip
        kept["theta"] = found.x
        return float(found.fun) - goal

    step = 0.7 * float(estimates.quantile(level, np.inf)) * std_error
    low = _crossing(excess, estimate, -step, None)
    kept["theta"] = best.theta
    return fit.design.fixed.names[j], estimate, low, _crossing(excess, estimate, step, None)


def _held(fit: MixedFit, theta: np.ndarray, weight: np.ndarray, b: float) -> tuple[float, np.ndarray]:
    """ML deviance at theta with one coefficient held, and its gradient."""
    here = criterion(fit.sums, fit.outcome, theta, "ML")
    if here is None:
        return 1e12, np.zeros(len(theta))
    n = fit.n_rows
    variance = float(((weight @ here.half_cov) ** 2).sum())
    away = b - float(weight @ here.beta)
    rss = here.rss + away**2 / variance
    units, moved = here.projected, weight @ here.transfer
    by_entry = []
    for pairs, trace, single in zip(units.entries, here.traces[0], here.quadratics[0], strict=True):
        slope = -sum(moved[units.span(a)] @ here.t[units.span(c)] for a, c in pairs)
        widened = sum(moved[units.span(a)] @ moved[units.span(c)] for a, c in pairs)
        by_rss = -single - 2 * away * slope / variance - away**2 * widened / variance**2
        by_entry.append(trace + n * by_rss / rss)
    gradient = layout(fit.sums.widths).jacobian(theta).T @ np.array(by_entry)
    return float(here.log_v + n * (1 + LOG_2PI + np.log(rss / n))), gradient
