"""Bootstrap of a mixed model: parametric, by residuals, or by clusters (raters, prompts, both).

Replicates are made in chunks of a fixed size, each with its own branch of the seed, so that the number of
jobs changes nothing but the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from analysis.stats import resampling
from analysis.stats.mixed import many
from analysis.stats.mixed.design import coefficients
from analysis.stats.mixed.fit import MixedFit
from study.errors import StudyError

Kind = Literal["parametric", "residual", "cluster"]
Interval = Literal["percentile", "basic", "normal"]
Progress = Callable[[int, int, str], None]
CHUNK = {"parametric": 100, "residual": 50, "cluster": 20}
"""Replicates per chunk."""


@dataclass(frozen=True)
class Bootstrap:
    """Replicates of one fit.

    coefficients : replicates × fixed effects; variances : replicates × components, the residual last
    n_asked : replicates asked for; n_failed : those left out because the resampled rows could not estimate
        every coefficient or the search did not settle
    """

    kind: Kind
    seed: int
    n_asked: int
    coefficients: pd.DataFrame
    variances: pd.DataFrame
    criterion: np.ndarray
    fit: MixedFit

    @property
    def n_failed(self) -> int:
        return self.n_asked - len(self.coefficients)

    def coefficient_table(self, level: float = 0.95, interval: Interval = "percentile") -> pd.DataFrame:
        """Fixed effects: term, estimate, std_error, low, high, n (replicates)."""
        return self.contrast(np.eye(self.coefficients.shape[1]), list(self.coefficients), level, interval)

    def contrast(
        self, rows: np.ndarray, terms: Sequence[str], level: float = 0.95, interval: Interval = "percentile"
    ) -> pd.DataFrame:
        """Rows of weights on the coefficients, such as those of a contrast."""
        rows = np.atleast_2d(rows)
        return _table(
            terms, rows @ self.fit.fixed.to_numpy(), self.coefficients.to_numpy() @ rows.T, level, interval
        )

    def component_table(self, level: float = 0.95, interval: Interval = "percentile") -> pd.DataFrame:
        """Standard deviations of the components: term, estimate, std_error, low, high, n (replicates)."""
        sds = np.sqrt(self.variances.to_numpy())
        return _table(list(self.variances), self.fit.components()["sd"].to_numpy(), sds, level, interval)


def _table(
    terms: Sequence[str], estimate: np.ndarray, draws: np.ndarray, level: float, interval: Interval
) -> pd.DataFrame:
    if len(draws) < 2:
        raise StudyError(f"{len(draws)} replicates are too few for an interval.")
    tails = [(1 - level) / 2, (1 + level) / 2]
    std_error = draws.std(axis=0, ddof=1)
    low, high = np.quantile(draws, tails, axis=0)
    if interval == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    elif interval == "normal":
        half = ndtri(tails[1]) * std_error
        bias = draws.mean(axis=0) - estimate
        low, high = estimate - bias - half, estimate - bias + half
    elif interval != "percentile":
        raise StudyError(f"The interval {interval!r} is not known; use percentile, basic or normal.")
    columns = {"term": list(terms), "estimate": estimate, "std_error": std_error, "low": low, "high": high}
    return pd.DataFrame(columns | {"n": len(draws)})


def bootstrap(
    fit: MixedFit,
    n: int = 1000,
    *,
    seed: int,
    kind: Kind = "parametric",
    clusters: Sequence[str] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> Bootstrap:
    """Replicates of one fit.

    kind : "parametric", outcomes drawn from the model; "residual", predicted effects and residuals drawn with
        replacement, rescaled to the estimated variances (Carpenter, Goldstein, Rasbash 2003); "cluster",
        whole clusters drawn with replacement
    clusters : for "cluster", one or two of the columns that group the rows, such as ("rater", "case:prompt");
        with two, both are drawn and their crossings kept
    progress : told after every chunk how many replicates are done, of how many, and their kind
    """
    how = {"seed": seed, "kind": kind, "clusters": clusters, "jobs": jobs, "progress": progress}
    return bootstrap_many({"": fit}, n, **how)[""]


def bootstrap_many(
    fits: Mapping[str, MixedFit],
    n: int = 1000,
    *,
    seed: int,
    kind: Kind = "parametric",
    clusters: Sequence[str] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> dict[str, Bootstrap]:
    """Replicates of several fits; those of one design get the same draws, so that metrics can be compared."""
    if kind not in CHUNK:
        raise StudyError(f"The bootstrap {kind!r} is not known; use {', '.join(CHUNK)}.")
    if n < 1:
        raise StudyError(f"A bootstrap needs one replicate or more; {n} were asked for.")
    if kind == "cluster" and not 1 <= len(clusters) <= 2:
        raise StudyError("A cluster bootstrap needs one or two clusters, such as rater and case:prompt.")
    sizes = [CHUNK[kind]] * (n // CHUNK[kind]) + ([n % CHUNK[kind]] if n % CHUNK[kind] else [])
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    found: dict[str, Bootstrap] = {}
    for names in _by_design(fits):
        group = [fits[name] for name in names]
        parts = _run(kind, group, tuple(clusters), sizes, seeds, jobs, progress)
        for name, fit, solutions in zip(names, group, zip(*parts, strict=True), strict=True):
            found[name] = _collected(fit, kind, seed, n, solutions)
    return {name: found[name] for name in fits}


def _by_design(fits: Mapping[str, MixedFit]) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for name, fit in fits.items():
        groups.setdefault(id(fit.sums), []).append(name)
    return list(groups.values())


def _run(
    kind: Kind,
    fits: list[MixedFit],
    clusters: tuple[str, ...],
    sizes: list[int],
    seeds: list,
    jobs: int,
    progress: Progress | None,
) -> list[list[many.Solutions]]:
    """Solutions by chunk, and within it by fit."""
    light = [replace(fit, memory={}) for fit in fits]
    if kind == "cluster":
        plan = resampling.plan(fits[0].design, clusters)
        work = resampling.ClusterWork(light, plan)
    else:
        space = many.space(fits[0].sums)
        solvers = [many.solver(space, fit.best) for fit in fits]
        work = resampling.ModelWork(light, space, solvers, kind)
    if jobs == 1:
        made = (work.chunk(size, seed) for size, seed in zip(sizes, seeds, strict=True))
    else:
        from joblib import Parallel, delayed

        tasks = (delayed(work.chunk)(size, seed) for size, seed in zip(sizes, seeds, strict=True))
        made = Parallel(n_jobs=jobs, return_as="generator")(tasks)
    parts = []
    for done, part in zip(np.cumsum(sizes).tolist(), made, strict=True):
        parts.append(part)
        if progress is not None:
            progress(done, sum(sizes), kind)
    return parts


def _collected(fit: MixedFit, kind: Kind, seed: int, n: int, parts: Sequence[many.Solutions]) -> Bootstrap:
    ok = np.concatenate([part.converged for part in parts])
    beta = np.concatenate([part.beta for part in parts])[ok]
    theta, sigma2 = (np.concatenate([getattr(part, key) for part in parts])[ok] for key in ("theta", "sigma2"))
    value = np.concatenate([part.value for part in parts])[ok]
    coefs = beta if kind == "cluster" else coefficients(fit.design.fixed, beta)
    table = pd.DataFrame(coefs, columns=fit.design.fixed.names)
    return Bootstrap(kind, seed, n, table, _variances(fit, theta, sigma2), value, fit)


def _variances(fit: MixedFit, theta: np.ndarray, sigma2: np.ndarray) -> pd.DataFrame:
    """Replicates × components, in the order of `components`."""
    from analysis.stats.mixed.objective import layout

    shape = layout(fit.sums.widths)
    columns = {}
    for k, grouping in enumerate(fit.design.groupings):
        place = fit.sums.order.index(k)
        for a, name in enumerate(grouping.columns):
            at = [i for i, (t, row, _) in enumerate(shape.theta) if t == place and row == a]
            label = grouping.term.name if name == "(Intercept)" else f"{grouping.term.name} {name}"
            columns[label] = (theta[:, at] ** 2).sum(axis=1) * sigma2
    return pd.DataFrame(columns | {"residual": sigma2})
