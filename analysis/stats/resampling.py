"""What one chunk of bootstrap replicates does: draw, sum, fit."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from threadpoolctl import threadpool_limits

from analysis.stats.mixed import coding, many
from analysis.stats.mixed.crossproducts import cross_products, outcome_sums
from analysis.stats.mixed.design import Design, FixedPart, coefficients, orthonormal
from analysis.stats.mixed.fit import MixedFit
from analysis.stats.mixed.optimum import optimum
from study.errors import StudyError


@dataclass(frozen=True)
class ModelWork:
    """Parametric and residual replicates of fits that share one design."""

    fits: list[MixedFit]
    space: many.Space
    solvers: list
    kind: str

    def chunk(self, count: int, seed: np.random.SeedSequence) -> list[many.Solutions]:
        """Solutions of `count` replicates for every fit, all from the same draws."""
        with threadpool_limits(1):
            return [
                self._settled(fit, solver, self._sums(fit, count, seed))
                for fit, solver in zip(self.fits, self.solvers, strict=True)
            ]

    def _settled(
        self, fit: MixedFit, solver: many.Commuting | many.Eliminated | many.OneByOne, sums: many.Sums
    ) -> many.Solutions:
        """The solutions; those that the common search did not settle are sought one by one."""
        found = solver.fit(sums)
        rows = np.flatnonzero(~found.converged)
        if not len(rows):
            return found
        again = many.OneByOne(self.space, fit.best).fit(many.Sums(sums.start[rows], sums.zy[rows], sums.yy[rows]))
        for field in fields(many.Solutions):
            getattr(found, field.name)[rows] = getattr(again, field.name)
        return found

    def _sums(self, fit: MixedFit, count: int, seed: np.random.SeedSequence) -> many.Sums:
        rng = np.random.default_rng(seed)
        if self.kind == "parametric":
            return self.space.simulated(fit.best, count, rng)
        pools = _rescaled_effects(fit)
        residuals = fit.residuals - fit.residuals.mean()
        residuals = residuals * fit.sigma / residuals.std()
        centre = fit.fitted(random=False)
        outcomes = []
        for _ in range(count):
            y = centre + residuals[rng.integers(0, fit.n_rows, fit.n_rows)]
            for grouping, pool in zip(fit.design.groupings, pools, strict=True):
                drawn = pool[rng.integers(0, len(pool), len(pool))][grouping.codes]
                y = y + (drawn[:, 0] if grouping.values is None else (drawn * grouping.values).sum(axis=1))
            outcomes.append(outcome_sums(fit.design, fit.sums.order, y)[0])
        return many.sums_of(outcomes)


def _rescaled_effects(fit: MixedFit) -> list[np.ndarray]:
    """Predicted effects with the covariance that the model estimates, for prediction shrinks them."""
    pools = []
    for effects, factor in zip(fit.effects, fit.factors, strict=True):
        centred = effects - effects.mean(axis=0)
        have = centred.T @ centred / len(centred)
        want = fit.best.sigma2 * factor @ factor.T
        values, vectors = np.linalg.eigh(have)
        good = values > 1e-12 * max(values.max(), 1e-300)
        white = centred @ (vectors[:, good] / np.sqrt(values[good])) @ vectors[:, good].T
        spread, turned = np.linalg.eigh(want)
        pools.append(white @ (turned * np.sqrt(np.maximum(spread, 0))) @ turned.T)
    return pools


@dataclass(frozen=True)
class Plan:
    """How clusters are drawn: by cluster, the level of every row, and which random terms lie within it."""

    codes: list[np.ndarray]
    counts: list[int]
    within: list[list[bool]]


def plan(design: Design, clusters: tuple[str, ...]) -> Plan:
    """Find the clusters' levels and the random terms whose levels are new with every draw of a cluster."""
    codes, counts, within = [], [], []
    for cluster in clusters:
        names = [name.strip() for name in cluster.split(":")]
        for name in names:
            if name not in design.columns:
                raise StudyError(f"{name!r} is not a column of the model; it has {', '.join(design.columns)}.")
        found = [coding.compact(design.columns[name]) for name in names]
        code, parts = coding.combined([c for c, _ in found], [k for _, k in found], design.n)
        count = len(parts[0])
        if count < 2:
            raise StudyError(f"{cluster} has one level; there is nothing to draw.")
        codes.append(code)
        counts.append(count)
        within.append([_nested(g.codes, g.n_levels, code, count) for g in design.groupings])
    return Plan(codes, counts, within)


def _nested(codes: np.ndarray, n_levels: int, cluster: np.ndarray, n_clusters: int) -> bool:
    """Whether every level lies in one cluster."""
    pairs = np.unique(codes.astype(np.int64) * n_clusters + cluster)
    return len(pairs) == n_levels


@dataclass(frozen=True)
class ClusterWork:
    """Cluster replicates of fits that share one design."""

    fits: list[MixedFit]
    plan: Plan

    def chunk(self, count: int, seed: np.random.SeedSequence) -> list[many.Solutions]:
        """Solutions of `count` replicates for every fit, all from the same draws."""
        rng = np.random.default_rng(seed)
        with threadpool_limits(1):
            found = [self._replicate(rng) for _ in range(count)]
        columns = [zip(*rows, strict=True) for rows in zip(*found, strict=True)]
        return [many.Solutions(*(np.array(list(values)) for values in column)) for column in columns]

    def _replicate(self, rng: np.random.Generator) -> list[tuple]:
        """theta, sigma2, coefficients, criterion, converged of every fit; not converged if a column is lost."""
        rows, draws = np.arange(self.fits[0].n_rows), []
        for code, count in zip(self.plan.codes, self.plan.counts, strict=True):
            drawn = rng.integers(0, count, count)
            rows, place = _expanded(code[rows], drawn, count, rows)
            draws = [old[place[1]] for old in draws] + [place[0]]
        design = self._design(rows, draws)
        if design is None:
            return [self._lost(fit) for fit in self.fits]
        sums = cross_products(design)
        return [self._solved(fit, design, sums, rows) for fit in self.fits]

    def _solved(self, fit: MixedFit, design: Design, sums: object, rows: np.ndarray) -> tuple:
        outcome, _ = outcome_sums(design, sums.order, fit.y[rows])
        best, record = optimum(sums, outcome, fit.method)
        theta = best.theta
        if sums.order != fit.sums.order:
            theta = theta[[sums.order.index(k) for k in fit.sums.order]]
        return theta, best.sigma2, coefficients(design.fixed, best.beta), best.value, record.converged

    def _lost(self, fit: MixedFit) -> tuple:
        return (
            np.full(len(fit.best.theta), np.nan),
            np.nan,
            np.full(fit.design.fixed.p, np.nan),
            np.nan,
            False,
        )

    def _design(self, rows: np.ndarray, draws: list[np.ndarray]) -> Design | None:
        whole = self.fits[0].design
        fixed = _fixed_of(whole.fixed, rows)
        if fixed is None:
            return None
        groupings = []
        for k, grouping in enumerate(whole.groupings):
            parts, sizes = [grouping.codes[rows]], [grouping.n_levels]
            for nested, draw, count in zip(
                [within[k] for within in self.plan.within], draws, self.plan.counts, strict=True
            ):
                if nested:
                    parts.append(draw)
                    sizes.append(count)
            codes, found = coding.combined(parts, sizes, len(rows))
            values = None if grouping.values is None else grouping.values[rows]
            groupings.append(replace(grouping, codes=codes, labels=[""] * len(found[0]), values=values))
        return replace(whole, fixed=fixed, groupings=tuple(groupings), rows=rows, columns={})


def _expanded(
    code: np.ndarray, drawn: np.ndarray, count: int, rows: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Rows of the drawn clusters; for each the draw it belongs to and its place among the old rows."""
    order = np.argsort(code, kind="stable")
    sizes = np.bincount(code, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    lengths = sizes[drawn]
    draw = np.repeat(np.arange(len(drawn)), lengths)
    inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    place = order[np.repeat(starts[drawn], lengths) + inside]
    return rows[place], (draw, place)


def _fixed_of(fixed: FixedPart, rows: np.ndarray) -> FixedPart | None:
    """The fixed effects on drawn rows; None if they no longer estimate every coefficient."""
    counts = np.bincount(fixed.cell[rows], minlength=len(fixed.counts)).astype(float)
    here = counts > 0
    x = fixed.x[here]
    kept, basis, triangle = orthonormal(x, np.sqrt(counts[here]))
    if len(kept) < fixed.p:
        return None
    position = np.cumsum(here) - 1
    return replace(
        fixed, cell=position[fixed.cell[rows]], counts=counts[here], x=x, basis=basis, triangle=triangle
    )
