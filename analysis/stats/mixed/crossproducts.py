"""Sums over the rows that a fit needs; after them nothing depends on the number of rows.

Random effects are ordered level by level, and within a level column by column. The term with the most
effects comes first: its own cross-product is block diagonal, one block per level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from analysis.stats.mixed.design import Design, FixedPart, Grouping
from study.errors import StudyError

_DENSE = 1 << 24
"""Largest table of counts (level × cell) that is held whole."""
_NOTHING_LEFT = 1e-10
_LARGEST = 3e8
"""Most entries of the tables that couple the random terms (2.4 GB)."""


@dataclass(frozen=True)
class CrossProducts:
    """Cross-products of Z (random effects) and X (orthonormal fixed effects) of one design.

    order : the design's random terms, the first of them blocked
    sizes, widths : levels and columns per level of the terms in that order
    blocks : q1 × c1 × c1, Z1'Z1 by level
    border : (q1 c1) × m, Z1'[Zr X]
    rest : m × m, [Zr X]'[Zr X]
    """

    order: tuple[int, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    blocks: np.ndarray
    border: np.ndarray
    rest: np.ndarray
    n: int
    p: int
    log_triangle: float

    @property
    def q1(self) -> int:
        return self.sizes[0] * self.widths[0]

    @property
    def qr(self) -> int:
        return self.rest.shape[0] - self.p

    @cached_property
    def offsets(self) -> list[int]:
        """Where each term's effects start among all of them."""
        return [0, *np.cumsum(np.multiply(self.sizes, self.widths)).tolist()]


@dataclass(frozen=True)
class Outcome:
    """One outcome's sums, taken from its residual on the fixed effects alone, so that they lose no digits.

    start : ordinary least-squares coefficients in the basis
    zy : Z'r by effect, in the order of the cross-products; yy : r'r
    """

    start: np.ndarray
    zy: np.ndarray
    yy: float


def cross_products(design: Design) -> CrossProducts:
    """Sum the design's products over its rows."""
    order = sorted(range(len(design.groupings)), key=lambda k: -_effects(design.groupings[k]))
    terms = [design.groupings[k] for k in order]
    sums = _summed(design.fixed, terms, tuple(order))
    _refuse_the_same(terms, sums)
    _refuse_explained(sums, terms)
    return sums


def partial_products(design: Design, order: tuple[int, ...], rows: np.ndarray) -> CrossProducts:
    """The share of some rows in a design's cross-products, in the same basis."""
    fixed = replace(
        design.fixed,
        cell=design.fixed.cell[rows],
        counts=np.bincount(design.fixed.cell[rows], minlength=len(design.fixed.counts)).astype(float),
    )
    return _summed(fixed, [design.groupings[k].on(rows) for k in order], order)


def _summed(fixed: FixedPart, terms: list[Grouping], order: tuple[int, ...]) -> CrossProducts:
    first, others = terms[0], terms[1:]
    _refuse_too_many(first, others)
    qr, p = sum(map(_effects, others)), fixed.p
    rest = np.zeros((qr + p, qr + p))
    border = np.empty((_effects(first), qr + p))
    border[:, qr:] = _with_fixed(first, fixed)
    rest[qr:, qr:] = (fixed.basis * fixed.counts[:, None]).T @ fixed.basis
    spans = np.concatenate([[0], np.cumsum([_effects(g) for g in others])]).astype(int)
    for i, here in enumerate(others):
        at = slice(spans[i], spans[i + 1])
        border[:, at] = _between(first, here)
        rest[at, qr:] = _with_fixed(here, fixed)
        rest[qr:, at] = rest[at, qr:].T
        rest[at, at] = _block_diagonal(_within(here))
        for j in range(i + 1, len(others)):
            to = slice(spans[j], spans[j + 1])
            rest[at, to] = _between(here, others[j])
            rest[to, at] = rest[at, to].T
    return CrossProducts(
        order, tuple(g.n_levels for g in terms), tuple(g.width for g in terms), _within(first), border,
        rest, len(fixed.cell), p, float(np.log(np.abs(np.diagonal(fixed.triangle))).sum()),
    )  # fmt: skip


def outcome_sums(design: Design, order: tuple[int, ...], y: np.ndarray) -> tuple[Outcome, np.ndarray]:
    """The outcome's sums, and its residual on the fixed effects by row."""
    fixed = design.fixed
    start, residual = np.zeros(fixed.p), y
    for _ in range(2):
        step = fixed.basis.T @ np.bincount(fixed.cell, residual, len(fixed.counts))
        residual = residual - (fixed.basis @ step)[fixed.cell]
        start = start + step
    yy = float(residual @ residual)
    _refuse_without_spread(design, y, yy)
    return Outcome(start, effect_sums(design, order, residual), yy), residual


def effect_sums(design: Design, order: tuple[int, ...], residual: np.ndarray) -> np.ndarray:
    """Z'r by effect."""
    parts = []
    for k in order:
        grouping = design.groupings[k]
        columns = [
            np.bincount(grouping.codes, residual if v is None else residual * v, grouping.n_levels)
            for v in _columns(grouping)
        ]
        parts.append(np.stack(columns, axis=1).ravel())
    return np.concatenate(parts)


def _effects(grouping: Grouping) -> int:
    return grouping.n_levels * grouping.width


def _columns(grouping: Grouping) -> list[np.ndarray | None]:
    if grouping.values is None:
        return [None]
    return [grouping.values[:, a] for a in range(grouping.width)]


def _times(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    if a is None or b is None:
        return b if a is None else a
    return a * b


def _within(grouping: Grouping) -> np.ndarray:
    """Levels × columns × columns."""
    c = grouping.width
    block = np.empty((grouping.n_levels, c, c))
    columns = _columns(grouping)
    for a in range(c):
        for b in range(a, c):
            block[:, a, b] = block[:, b, a] = np.bincount(
                grouping.codes, _times(columns[a], columns[b]), grouping.n_levels
            )
    return block


def _block_diagonal(blocks: np.ndarray) -> np.ndarray:
    q, c, _ = blocks.shape
    whole = np.zeros((q, c, q, c))
    whole[np.arange(q), :, np.arange(q), :] = blocks
    return whole.reshape(q * c, q * c)


def _between(one: Grouping, other: Grouping) -> np.ndarray:
    """Z_one'Z_other."""
    pair = one.codes * np.intp(other.n_levels) + other.codes
    size = one.n_levels * other.n_levels
    table = np.empty((one.n_levels, one.width, other.n_levels, other.width))
    for a, left in enumerate(_columns(one)):
        for b, right in enumerate(_columns(other)):
            counts = np.bincount(pair, _times(left, right), size)
            table[:, a, :, b] = counts.reshape(one.n_levels, other.n_levels)
    return table.reshape(_effects(one), _effects(other))


def _with_fixed(grouping: Grouping, fixed: FixedPart) -> np.ndarray:
    """Z'X in the basis."""
    n_cells = len(fixed.counts)
    parts = []
    for values in _columns(grouping):
        if grouping.n_levels * n_cells <= _DENSE:
            pair = grouping.codes * np.intp(n_cells) + fixed.cell
            table = np.bincount(pair, values, grouping.n_levels * n_cells).reshape(grouping.n_levels, n_cells)
        else:
            weights = np.ones(len(fixed.cell)) if values is None else values
            table = sparse.csr_matrix((weights, (grouping.codes, fixed.cell)), shape=(grouping.n_levels, n_cells))
        parts.append(table @ fixed.basis)
    return np.stack(parts, axis=1).reshape(_effects(grouping), fixed.p)


def _refuse_too_many(first: Grouping, others: list[Grouping]) -> None:
    rest = sum(map(_effects, others))
    entries = float(_effects(first)) * rest + float(rest) ** 2
    if entries > _LARGEST:
        raise StudyError(
            f"{first.term.text} has {_effects(first):,} random effects beside {rest:,} of the other terms; "
            f"their table would take {8e-9 * entries:,.0f} GB, so leave a term out or fit a part of the rows."
        )


def _refuse_the_same(terms: list[Grouping], sums: CrossProducts) -> None:
    """Two terms that part the rows alike."""
    starts = [place - sums.q1 for place in sums.offsets]
    for i, one in enumerate(terms):
        for j in range(i + 1, len(terms)):
            other = terms[j]
            if one.n_levels != other.n_levels or one.values is not None or other.values is not None:
                continue
            to = slice(starts[j], starts[j + 1])
            table = sums.border[:, to] if i == 0 else sums.rest[starts[i] : starts[i + 1], to]
            if np.count_nonzero(table) == one.n_levels:
                raise StudyError(
                    f"{one.term.text} and {other.term.text} group the rows in the same way, so their variances "
                    "cannot be told apart; keep one of them."
                )


def _refuse_explained(sums: CrossProducts, terms: list[Grouping]) -> None:
    """A random term that the fixed effects already hold level by level."""
    fixed = np.vstack([sums.border[:, sums.qr :], sums.rest[: sums.qr, sums.qr :]])
    total = np.concatenate([np.einsum("qaa->qa", sums.blocks).ravel(), np.diagonal(sums.rest)[: sums.qr]])
    left = total - (fixed**2).sum(axis=1)
    for k, grouping in enumerate(terms):
        span = slice(sums.offsets[k], sums.offsets[k + 1])
        if left[span].sum() <= _NOTHING_LEFT * total[span].sum():
            raise StudyError(
                f"{grouping.term.text} is already in the fixed effects, level by level; take one of the two out."
            )


def _refuse_without_spread(design: Design, y: np.ndarray, yy: float) -> None:
    name = design.formula.outcome
    spread = float(np.ptp(y))
    if spread == 0:
        raise StudyError(f"{name} is {y[0]:g} in every row; there is nothing to explain.")
    if yy <= 1e-20 * len(y) * max(spread, np.abs(y).max() * 1e-4) ** 2:
        raise StudyError(f"The fixed effects explain {name} exactly; no residual variance is left to estimate.")
    if design.n <= design.fixed.p:
        raise StudyError(f"The model has {design.fixed.p} fixed effects for {design.n} rows; take some out.")
