"""Step one of a fit: frame and formula become factor codes and the fixed effects' cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy.linalg import qr, solve_triangular

from analysis.stats.formula import Formula, RandomTerm, Term
from analysis.stats.mixed import coding
from study.errors import StudyError

_DEPENDENT = 1e-7
"""A column whose part beyond the columns before it is smaller than this share of it is dropped (R's tolerance)."""


@dataclass(frozen=True)
class Grouping:
    """One random term on the rows: the level of every row and the value of every column.

    codes : level of each row
    labels : one per level, as `case:prompt` values joined by a colon
    columns : names of the term's columns
    values : rows × columns, None for an intercept alone
    """

    term: RandomTerm
    codes: np.ndarray
    labels: list[str]
    columns: list[str]
    values: np.ndarray | None

    @property
    def n_levels(self) -> int:
        return len(self.labels)

    @property
    def width(self) -> int:
        return len(self.columns)

    def on(self, rows: np.ndarray) -> Grouping:
        """The same levels and columns on some of the rows."""
        values = None if self.values is None else self.values[rows]
        return replace(self, codes=self.codes[rows], values=values)


@dataclass(frozen=True)
class FixedPart:
    """The fixed effects on their distinct cells, and the basis in which the algebra is done.

    cell : cell of each row; counts : rows per cell
    x : cells × kept columns; basis : the same space, orthonormal over the rows
    triangle : x = basis @ triangle
    """

    terms: tuple[Term, ...]
    variables: dict[str, coding.Variable]
    cell: np.ndarray
    cell_codes: dict[str, np.ndarray]
    counts: np.ndarray
    x: np.ndarray
    basis: np.ndarray
    triangle: np.ndarray
    names: list[str]
    owner: np.ndarray
    dropped: list[str]
    kept: np.ndarray
    everything: np.ndarray = field(repr=False)

    @property
    def p(self) -> int:
        return self.x.shape[1]


@dataclass(frozen=True)
class Design:
    """Formula, rows and codes of one model; the outcome stands beside it, so that designs are shared."""

    formula: Formula
    fixed: FixedPart
    groupings: tuple[Grouping, ...]
    rows: np.ndarray
    n_missing: dict[str, int]
    columns: dict[str, pd.Series] = field(repr=False)

    @property
    def n(self) -> int:
        return len(self.fixed.cell)


def design(
    frame: pd.DataFrame, formula: Formula, codings: Mapping[str, str] | None = None
) -> tuple[Design, np.ndarray]:
    """Codes of the rows that are complete, and their outcome.

    Raises
    ------
    StudyError : for a column that is not there, ratings that are text, a factor with one level, …
    """
    outcome = _outcome(frame, formula)
    needed = _needed(frame, formula)
    columns = coding.Columns(frame)
    kept, n_missing = _complete(columns, formula.outcome, outcome, needed)
    rows = np.flatnonzero(kept)
    if not len(rows):
        raise StudyError(f"No row has a value of {formula.outcome} and of every column of the formula.")
    if len(rows) < len(frame):
        columns.rows, outcome = rows, outcome[rows]
    fixed = _fixed(columns, len(rows), formula.terms, codings or {})
    groupings = tuple(_grouping(columns, len(rows), term) for term in formula.random)
    _refuse_impossible(groupings, len(rows))
    used = {name: columns.series(name) for name in needed}
    return Design(formula, fixed, groupings, rows, n_missing, used), outcome


def _outcome(frame: pd.DataFrame, formula: Formula) -> np.ndarray:
    if not formula.random:
        raise StudyError(f'The formula "{formula.text}" has no random term; add one such as (1|rater).')
    if not formula.terms:
        raise StudyError(f'The formula "{formula.text}" has no fixed effect; keep at least the intercept.')
    if not len(frame):
        raise StudyError("There are no rows to fit: the table is empty.")
    name = formula.outcome
    if name not in frame.columns:
        raise StudyError(f"There is no column {name!r}; the columns are {coding.listed(frame.columns)}.")
    series = frame[name]
    if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_complex_dtype(series):
        values = series.to_numpy(dtype=float, na_value=np.nan)
        if np.isinf(values).any():
            raise StudyError(f"{name} has infinite values; leave those rows out first.")
        return values
    example = next((value for value in series if pd.notna(value)), "")
    kind = type(example).__name__
    shown = f"text, such as {example!r}" if isinstance(example, str) else f"{kind}, such as {example}"
    raise StudyError(f"{name} holds {shown}; ratings must be numbers.")


def _needed(frame: pd.DataFrame, formula: Formula) -> list[str]:
    """Columns of the frame that the formula speaks of."""
    import re

    expressions = {factor for term in formula.terms for factor in term}
    for term in formula.random:
        expressions |= {factor for column in term.terms for factor in column}
    names: dict[str, None] = {}
    for expression in sorted(expressions):
        plain = expression.strip("`")
        if plain in frame.columns:
            names[plain] = None
        else:
            names |= {n: None for n in re.findall(r"[^\W\d][\w.]*", expression) if n in frame.columns}
    for term in formula.random:
        for name in term.group:
            if name not in frame.columns:
                raise StudyError(
                    f"There is no column {name!r} for {term.text}; the columns are {coding.listed(frame.columns)}."
                )
            names[name] = None
    return list(names)


def _complete(
    columns: coding.Columns, name: str, outcome: np.ndarray, needed: list[str]
) -> tuple[np.ndarray, dict[str, int]]:
    """Which rows are complete, and how many are not, by reason."""
    frame = columns.frame
    kept = np.isfinite(outcome)
    n_missing: dict[str, int] = {}
    if not kept.all():
        if "status" in frame.columns:
            reasons = frame["status"][~kept].astype(str).where(lambda s: s != "ok", f"{name} missing")
            n_missing = {str(reason): int(count) for reason, count in reasons.value_counts().items()}
        else:
            n_missing = {f"{name} missing": int((~kept).sum())}
    for column in needed:
        lacking = columns.missing(column) & kept
        if lacking.any():
            n_missing[f"{column} missing"] = int(lacking.sum())
            kept &= ~lacking
    return kept, n_missing


def _fixed(columns: coding.Columns, n: int, terms: tuple[Term, ...], codings: Mapping[str, str]) -> FixedPart:
    coded = coding.variables(columns, terms, codings)
    for variable in coded.values():
        if variable.is_factor and variable.size < 2:
            raise StudyError(
                f"{variable.name} has one level ({variable.levels[0]}); drop it from the fixed effects."
            )
    cell, parts = coding.cells(list(coded.values()), n)
    codes = dict(zip(coded, parts, strict=True))
    n_cells = len(parts[0]) if parts else 1
    counts = np.bincount(cell, minlength=n_cells).astype(float)
    full, names, owner = coding.matrix(terms, coded, codes, n_cells)
    kept, basis, triangle = orthonormal(full, np.sqrt(counts))
    x = full if len(kept) == len(names) else full[:, kept]
    dropped = [names[j] for j in range(len(names)) if j not in set(kept.tolist())]
    return FixedPart(
        terms, coded, cell, codes, counts, x, basis, triangle, [names[j] for j in kept], owner[kept],
        dropped, kept, full,
    )  # fmt: skip


def orthonormal(full: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns that are independent of those before them, and their orthonormal basis over the rows."""
    weighted = full * weights[:, None]
    size = np.sqrt(np.einsum("ij,ij->j", weighted, weighted))
    kept = np.arange(full.shape[1])
    if not len(kept):
        return kept, full, np.empty((0, 0))
    if len(full) >= full.shape[1]:
        q, r = qr(weighted, mode="economic", overwrite_a=True, check_finite=False)
        if (np.abs(np.diagonal(r)) > _DEPENDENT * size).all():
            q /= weights[:, None]
            return kept, q, r
    kept = independent_columns(full, weights)
    q, r = qr(full[:, kept] * weights[:, None], mode="economic", overwrite_a=True, check_finite=False)
    return kept, q / weights[:, None], r


def independent_columns(full: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Gram–Schmidt with one repetition: the first columns stay, what they already span goes."""
    weighted = full * weights[:, None]
    size = np.sqrt((weighted**2).sum(axis=0))
    basis = np.empty((len(weighted), 0))
    kept = []
    for j in range(weighted.shape[1]):
        rest = weighted[:, j]
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        length = np.linalg.norm(rest)
        if length > _DEPENDENT * size[j]:
            kept.append(j)
            basis = np.column_stack([basis, rest / length])
    return np.array(kept, int)


def _grouping(frame: coding.Columns, n: int, term: RandomTerm) -> Grouping:
    found = [frame.factor(name) for name in term.group]
    codes, parts = coding.combined([c for c, _ in found], [len(levels) for _, levels in found], n)
    texts = [
        np.array(list(map(str, levels)), object)[part] for (_, levels), part in zip(found, parts, strict=True)
    ]
    labels = [":".join(names) for names in zip(*texts, strict=True)]
    if term.terms == ((),):
        return Grouping(term, codes, labels, ["(Intercept)"], None)
    coded = coding.variables(frame, term.terms, {})
    cell, cell_parts = coding.cells(list(coded.values()), n)
    n_cells = len(cell_parts[0])
    values, columns, _ = coding.matrix(term.terms, coded, dict(zip(coded, cell_parts, strict=True)), n_cells)
    return Grouping(term, codes, labels, columns, values[cell])


def _refuse_impossible(groupings: tuple[Grouping, ...], n: int) -> None:
    for grouping in groupings:
        name = grouping.term.name
        if grouping.n_levels < 2:
            raise StudyError(f"{name} has one level ({grouping.labels[0]}); a random effect needs two or more.")
        if grouping.n_levels >= n:
            raise StudyError(
                f"{grouping.term.text} has {grouping.n_levels} levels for {n} rows; its variance cannot be told "
                "from the residual one, so leave it out."
            )
        if grouping.n_levels * grouping.width >= n:
            raise StudyError(
                f"{grouping.term.text} has {grouping.n_levels * grouping.width} random effects for {n} rows; "
                "leave a column out."
            )


def coefficients(fixed: FixedPart, in_basis: np.ndarray) -> np.ndarray:
    """Coefficients of the columns of x from those of the basis (last axis: coefficients)."""
    return solve_triangular(fixed.triangle, in_basis.T, check_finite=False).T if fixed.p else in_basis
