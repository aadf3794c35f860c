"""Columns of a formula coded as R codes them: levels, contrasts, and which columns a term has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.stats.formula import Term
from study.errors import StudyError

CODINGS = ("treatment", "sum", "helmert")
_CODED = re.compile(
    r"C\(\s*(?P<column>`[^`]+`|[^\W\d][\w.]*)\s*(?:,\s*(?:contr\.)?(?P<coding>\w+)\s*(?:\(\))?\s*)?\)"
)


@dataclass(frozen=True)
class Variable:
    """One expression of a formula, as codes into its levels (a factor) or its distinct values (a number).

    codes : one per row
    levels : a factor's levels in order, () for numbers
    values : distinct values × columns, of a number
    centre : mean over the rows, of a number
    spec : how formulaic evaluated it, of a function of columns
    """

    name: str
    codes: np.ndarray
    levels: tuple = ()
    values: np.ndarray | None = None
    centre: np.ndarray | None = None
    coding: str = "treatment"
    spec: object = None

    @property
    def is_factor(self) -> bool:
        return self.values is None

    @property
    def size(self) -> int:
        return len(self.levels) if self.is_factor else len(self.values)

    def block(self, contrasts: bool) -> tuple[np.ndarray, list[str]]:
        """One row per level (or distinct value), one column per coefficient, and the columns' names."""
        if not self.is_factor:
            many = self.values.shape[1] > 1
            return self.values, [f"{self.name}{i + 1}" if many else self.name for i in range(self.values.shape[1])]
        k = len(self.levels)
        if not contrasts:
            return np.eye(k), [f"{self.name}{level}" for level in self.levels]
        matrix = contrast_matrix(k, self.coding)
        ends = self.levels[1:] if self.coding == "treatment" else range(1, k)
        return matrix, [f"{self.name}{end}" for end in ends]

    @property
    def column(self) -> str:
        """The column of a factor or plain number: `source` for `C(source, contr.sum)`."""
        coded = _CODED.fullmatch(self.name)
        return (coded["column"] if coded else self.name).strip("`")

    def elsewhere(self, frame: pd.DataFrame) -> Variable:
        """The same expression on other rows, with this one's levels; a level it has not seen raises."""
        if self.spec is not None:
            values = np.asarray(self.spec.get_model_matrix(frame, context={"np": np}), float)
            return replace(self, codes=np.arange(len(frame)), values=values)
        if self.column not in frame.columns:
            raise StudyError(f"There is no column {self.column!r} to predict from.")
        return self.at(frame[self.column].tolist())

    def at(self, values: list) -> Variable:
        """A factor or plain number at these values, one row each."""
        if not self.is_factor:
            return replace(self, codes=np.arange(len(values)), values=np.array(values, float)[:, None])
        place = {level: i for i, level in enumerate(self.levels)}
        for value in values:
            if value not in place:
                raise StudyError(f"{self.name} has no level {value!r}; the fit knows {listed(self.levels)}.")
        return replace(self, codes=np.array([place[value] for value in values], np.intp))


def contrast_matrix(k: int, coding: str) -> np.ndarray:
    """Levels × contrasts: R's contr.treatment, contr.sum, contr.helmert."""
    if coding == "treatment":
        return np.eye(k)[:, 1:]
    if coding == "sum":
        return np.vstack([np.eye(k - 1), -np.ones(k - 1)])
    matrix = np.triu(-np.ones((k, k - 1)))
    matrix[np.arange(1, k), np.arange(k - 1)] = np.arange(1, k)
    return matrix


class Columns:
    """Columns of a frame as factors, each looked through once.

    rows : the rows in use, all of them unless given
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.rows: np.ndarray | None = None
        self._whole: dict[str, tuple[np.ndarray, list]] = {}
        self._used: dict[str, tuple[np.ndarray, list]] = {}

    def missing(self, name: str) -> np.ndarray:
        """Which rows of the frame have no value."""
        if _is_number(self.frame[name]):
            return self.frame[name].isna().to_numpy()
        return self._codes(name)[0] < 0

    def _codes(self, name: str) -> tuple[np.ndarray, list]:
        if name not in self._whole:
            self._whole[name] = factorized(self.frame[name])
        return self._whole[name]

    def factor(self, name: str) -> tuple[np.ndarray, list]:
        """Codes of the rows in use, and the levels that occur among them."""
        if name not in self._used:
            codes, levels = self._codes(name)
            self._used[name] = _occurring(codes if self.rows is None else codes[self.rows], levels)
        return self._used[name]

    def series(self, name: str) -> pd.Series:
        """A column of the rows in use."""
        return self.frame[name] if self.rows is None else self.frame[name].iloc[self.rows]


def variables(columns: Columns, terms: tuple[Term, ...], codings: Mapping[str, str]) -> dict[str, Variable]:
    """Every expression of the terms, coded over the rows in use."""
    expressions = dict.fromkeys(factor for term in terms for factor in term)
    return {expression: variable(columns, expression, codings) for expression in expressions}


def variable(columns: Columns, expression: str, codings: Mapping[str, str]) -> Variable:
    """A column, `C(column, coding)`, or a function of columns evaluated by formulaic."""
    coded = _CODED.fullmatch(expression)
    column = coded["column"].strip("`") if coded else expression.strip("`")
    coding = (coded and coded["coding"]) or codings.get(column, "treatment")
    if coding not in CODINGS:
        raise StudyError(f"{column}: the coding {coding!r} is not known; use {', '.join(CODINGS)}.")
    frame = columns.frame
    if column in frame.columns:
        if coded or not _is_number(frame[column]):
            codes, levels = columns.factor(column)
            return Variable(expression, codes, tuple(levels), coding=coding)
        return _number(expression, columns.series(column).to_numpy(float)[:, None])
    found = _evaluated(frame if columns.rows is None else frame.iloc[columns.rows], expression)
    return replace(_number(expression, np.asarray(found, float)), spec=found.model_spec)


def columns_of(terms: tuple[Term, ...], coded: Mapping[str, Variable]) -> list[tuple[Term, tuple[bool, ...]]]:
    """Each term with, per factor, whether contrasts code it.

    R's rule: a factor is coded by contrasts if the term without it is in the model; without an intercept
    the first factor of the model is coded by all its levels.
    """
    sets = {frozenset(term) for term in terms} | {frozenset()}
    first = next((t for t in terms if any(coded[f].is_factor for f in t)), None) if () not in terms else None
    rule = []
    for term in terms:
        flags = [frozenset(term) - {factor} in sets for factor in term]
        if term == first:
            flags[next(i for i, factor in enumerate(term) if coded[factor].is_factor)] = False
            first = None
        rule.append((term, tuple(flags)))
    return rule


def matrix(
    terms: tuple[Term, ...], coded: Mapping[str, Variable], codes: Mapping[str, np.ndarray], n: int
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The model matrix at n combinations of codes; names and the term of every column."""
    blocks, names, owner = [], [], []
    for index, (term, flags) in enumerate(columns_of(terms, coded)):
        block, labels = np.ones((n, 1)), [""]
        for factor, contrasts in zip(term, flags, strict=True):
            basis, ends = coded[factor].block(contrasts)
            here = basis[codes[factor]]
            block = (here[:, :, None] * block[:, None, :]).reshape(n, -1)
            labels = [f"{label}:{end}" if label else end for end in ends for label in labels]
        blocks.append(block)
        names += labels if term else ["(Intercept)"]
        owner += [index] * block.shape[1]
    return np.hstack(blocks) if blocks else np.empty((n, 0)), names, np.array(owner, int)


def cells(coded: list[Variable], n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Number the combinations that occur: one number per row, and each combination's codes by variable."""
    return combined([v.codes for v in coded], [v.size for v in coded], n)


def combined(codes: list[np.ndarray], sizes: list[int], n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Number the combinations of several codes that occur among n rows, in the order of the codes."""
    if not codes:
        return np.zeros(n, np.intp), []
    if len(codes) == 1:
        present = np.flatnonzero(np.bincount(codes[0], minlength=sizes[0]))
        if len(present) == sizes[0]:
            return codes[0].astype(np.intp), [present]
    total = float(np.prod(np.array(sizes, float)))
    if total > 2**62:
        first, inverse = combined(codes[:2], sizes[:2], n)
        rest, parts = combined([first, *codes[2:]], [len(inverse[0]), *sizes[2:]], n)
        return rest, [inverse[0][parts[0]], inverse[1][parts[0]], *parts[1:]]
    code = codes[0].astype(np.intp)
    for more, size in zip(codes[1:], sizes[1:], strict=True):
        code *= size
        code += more
    if total <= max(4 * n, 1 << 20):
        present = np.flatnonzero(np.bincount(code, minlength=int(total)))
        if len(present) < total:
            position = np.zeros(int(total), np.intp)
            position[present] = np.arange(len(present))
            code = position[code]
    else:
        present, code = np.unique(code, return_inverse=True)
    parts = []
    rest = present
    for size in reversed(sizes):
        rest, part = np.divmod(rest, size)
        parts.append(part)
    return code, parts[::-1]


def _is_number(series: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)


def compact(series: pd.Series) -> tuple[np.ndarray, int]:
    """Codes of a complete column, numbers as well as text, and how many levels occur."""
    codes, levels = _occurring(*factorized(series))
    return codes, len(levels)


def _occurring(codes: np.ndarray, levels: list) -> tuple[np.ndarray, list]:
    used = np.bincount(codes, minlength=len(levels)) > 0
    if used.all():
        return codes, levels
    return (np.cumsum(used) - 1)[codes], [level for level, here in zip(levels, used, strict=True) if here]


def factorized(series: pd.Series) -> tuple[np.ndarray, list]:
    """Codes (-1 where there is no value) and levels: categories in their order, anything else sorted."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.cat.codes.to_numpy(), list(series.cat.categories)
    try:
        codes, levels = pd.factorize(series, sort=True)
    except TypeError as error:
        raise StudyError(f"{series.name} mixes kinds of values, such as text and numbers; make it one.") from error
    return codes, list(levels)


def _number(name: str, values: np.ndarray) -> Variable:
    if not np.isfinite(values).all():
        raise StudyError(f"{name} has values that are not finite numbers; leave those rows out first.")
    if values.shape[1] == 1:
        distinct, codes = np.unique(values[:, 0], return_inverse=True)
        distinct = distinct[:, None]
    else:
        distinct, codes = np.unique(values, axis=0, return_inverse=True)
    return Variable(name, codes.ravel(), values=distinct, centre=values.mean(axis=0))


def _evaluated(frame: pd.DataFrame, expression: str) -> pd.DataFrame:
    import formulaic
    from formulaic.errors import FormulaicError

    if "(" not in expression:
        raise StudyError(f"There is no column {expression!r}; the columns are {listed(frame.columns)}.")
    try:
        return formulaic.model_matrix(f"0 + {expression}", frame, context={"np": np}, na_action="ignore")
    except (FormulaicError, NameError, KeyError, TypeError, ValueError, SyntaxError) as error:
        raise StudyError(f"{expression} cannot be evaluated on the columns: {str(error).strip()}.") from error


def listed(names: object) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:12]) + (f" and {len(shown) - 12} more" if len(shown) > 12 else "")
