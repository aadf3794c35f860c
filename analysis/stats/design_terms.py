"""The random terms that a crossed design implies, and what leaving them out does to the contrasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.stats import contrasts, inference
from analysis.stats.formula import Formula, RandomTerm, parse
from analysis.stats.mixed import coding
from analysis.stats.mixed.fit import MixedFit, fit
from study.errors import StudyError


@dataclass(frozen=True)
class Comparison:
    """A formula beside the same formula with the terms that the design implies.

    missing : the terms the formula leaves out
    table : contrast, estimate, std_error and df of both, and the ratio of the standard errors
    gain : how much the criterion falls with them
    """

    given: MixedFit
    full: MixedFit
    missing: tuple[str, ...]
    table: pd.DataFrame
    gain: float

    @property
    def sentence(self) -> str:
        """What a reader must know, in one sentence; empty if nothing is missing."""
        if not self.missing:
            return ""
        left_out = " and ".join(self.missing)
        if self.table.empty:
            return f"The design implies {left_out}, left out here; with them the criterion falls {self.gain:.1f}."
        ratio = self.table["ratio"].median()
        given, full = self.table["std_error_given"].median(), self.table["std_error_full"].median()
        return (
            f"The design implies {left_out}, left out here; with them the standard errors of the contrasts are "
            f"{ratio:.2f} times these ({given:.3f} becomes {full:.3f}), and the criterion falls {self.gain:.1f}."
        )


def implied(
    frame: pd.DataFrame,
    *,
    rater: str = "rater",
    item: Sequence[str] = ("case", "prompt"),
    source: str = "source",
) -> tuple[str, ...]:
    """Random terms of raters crossed with items and sources, as far as the rows can tell them apart.

    item : the columns that name what every source answers, `case` and `prompt`, or `case` for encounters
    """
    terms = [(rater,), tuple(item), (*item, source), (rater, source)]
    n, kept = len(frame), []
    for term in terms:
        absent = [name for name in term if name not in frame.columns]
        if absent:
            raise StudyError(f"There is no column {absent[0]!r}; the columns are {coding.listed(frame.columns)}.")
        levels = frame[list(term)].drop_duplicates().shape[0]
        if 1 < levels < n and not any(_same(frame, term, other) for other in kept):
            kept.append(term)
    return tuple(f"(1 | {':'.join(term)})" for term in kept)


def _same(frame: pd.DataFrame, one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two groups of columns part the rows alike."""
    sizes = {frame[sorted(set(columns))].drop_duplicates().shape[0] for columns in (one, other, one + other)}
    return len(sizes) == 1


def missing(model: MixedFit, frame: pd.DataFrame, terms: Sequence[str]) -> tuple[RandomTerm, ...]:
    """Terms that the formula leaves out, however it writes them.

    frame : the table that the model was fitted to
    """
    found, used = [], frame.iloc[model.design.rows]
    for text in terms:
        term = parse(f"y ~ 1 + {text}").random[0]
        codes, count = _codes(used, term)
        if not any(_alike(codes, count, g.codes, g.n_levels) for g in model.design.groupings if g.values is None):
            found.append(term)
    return tuple(found)


def _codes(frame: pd.DataFrame, term: RandomTerm) -> tuple[np.ndarray, int]:
    for name in term.group:
        if name not in frame.columns:
            raise StudyError(
                f"There is no column {name!r} for {term.text}; the columns are {coding.listed(frame.columns)}."
            )
    parts = [coding.compact(frame[name]) for name in term.group]
    codes, found = coding.combined([c for c, _ in parts], [k for _, k in parts], len(frame))
    return codes, len(found[0])


def _alike(one: np.ndarray, n_one: int, other: np.ndarray, n_other: int) -> bool:
    return n_one == n_other and len(np.unique(one.astype(np.int64) * n_other + other)) == n_one


def compare(
    frame: pd.DataFrame,
    formula: str | Formula,
    terms: Sequence[str],
    *,
    factor: str = "source",
    ddf: inference.Ddf = "satterthwaite",
    given: MixedFit | None = None,
) -> Comparison:
    """Fit a formula as given and with the terms that the design implies, and set the contrasts side by side.

    terms : as `implied` gives them; factor : whose pairwise contrasts are compared
    given : the fit of the formula, if it is at hand
    """
    wanted = parse(formula) if isinstance(formula, str) else formula
    first = fit(frame, wanted) if given is None else given
    lacking = missing(first, frame, terms)
    full = fit(frame, wanted.with_random((*wanted.random, *lacking)), method=first.method) if lacking else first
    texts = tuple(term.text for term in lacking)
    return Comparison(
        first, full, texts, _side_by_side(first, full, factor, ddf), first.criterion - full.criterion
    )


def _side_by_side(given: MixedFit, full: MixedFit, factor: str, ddf: inference.Ddf) -> pd.DataFrame:
    columns = [
        "term",
        "estimate_given",
        "std_error_given",
        "df_given",
        "estimate_full",
        "std_error_full",
        "df_full",
    ]
    if contrasts.fit_factor(given, factor) is None:
        return pd.DataFrame(columns=[*columns, "ratio"])
    tables = [contrasts.contrasts(model, factor, adjust="none", ddf=ddf) for model in (given, full)]
    parts = [tables[0]["term"]]
    for table, end in zip(tables, ("given", "full"), strict=True):
        parts += [table[name].rename(f"{name}_{end}") for name in ("estimate", "std_error", "df")]
    whole = pd.concat(parts, axis=1)
    whole["ratio"] = whole["std_error_full"] / whole["std_error_given"]
    return whole
