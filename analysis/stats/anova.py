"""F tests of the fixed terms and likelihood-ratio tests of the random ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.linalg import qr
from scipy.special import chdtrc

from analysis.stats import inference
from analysis.stats.formula import Term
from analysis.stats.mixed import coding
from analysis.stats.mixed.design import FixedPart, independent_columns
from analysis.stats.mixed.fit import MixedFit, fit_like
from study.errors import StudyError

Type = Literal[1, 2, 3]


def anova(fit: MixedFit, type: Type = 3, ddf: inference.Ddf = "satterthwaite") -> pd.DataFrame:
    """F tests of the fixed terms: term, sum_sq, mean_sq, ndf, df, statistic, p_value.

    type : 3, each term given all others, averaged over the levels of the others whatever their numbers;
        2, each term given those that do not contain it; 1, in the order of the formula. The rows of
        weights are lmerTest's, whatever the coding of the fit
    """
    if type not in (1, 2, 3):
        raise StudyError(f"The type {type!r} is not known; use 1, 2 or 3.")
    inference.check_ddf(fit, ddf)
    rows = []
    for term, weights in hypotheses(fit.design.fixed, type).items():
        test = inference.f_test(fit, weights, ddf)
        mean_sq = test["statistic"] * fit.sigma**2
        rows.append(
            {"term": term, "sum_sq": mean_sq * test["ndf"], "mean_sq": mean_sq, "ndf": test["ndf"],
             "df": test["df"], "statistic": test["statistic"], "p_value": test["p_value"]}
        )  # fmt: skip
    return pd.DataFrame(rows, columns=["term", "sum_sq", "mean_sq", "ndf", "df", "statistic", "p_value"])


def hypotheses(fixed: FixedPart, type: Type) -> dict[str, np.ndarray]:
    """Rows of weights on the coefficients that are zero together, for every term but the intercept.

    The hypothesis of a term is the same in any basis of its rows; the denominator df of several rows is not,
    so the basis is lmerTest's.
    """
    if len(_terms(fixed)) == 1:
        type = 1
    rows = {1: _sequential, 2: _marginal, 3: _partial}[type](fixed)
    return {":".join(term): weights for term, weights in rows.items() if len(weights)}


def _terms(fixed: FixedPart) -> list[Term]:
    return [term for term in fixed.terms if term]


def _contain(fixed: FixedPart, term: Term) -> list[Term]:
    """The terms that add only factors to this one."""
    numbers = {f for f in term if not fixed.variables[f].is_factor}
    return [
        other for other in _terms(fixed)
        if set(term) < set(other) and {f for f in other if not fixed.variables[f].is_factor} == numbers
    ]  # fmt: skip


def _columns(fixed: FixedPart, owner: np.ndarray, term: Term) -> np.ndarray:
    return np.flatnonzero(owner == fixed.terms.index(term))


def _triangular_rows(fixed: FixedPart, order: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Rows of X'X's unit triangle for the wanted columns, with the columns in this order."""
    weighted = fixed.x[:, order] * np.sqrt(fixed.counts)[:, None]
    triangle = qr(weighted, mode="r")[0][: len(order)]
    at = np.flatnonzero(np.isin(order, wanted))
    rows = np.zeros((len(at), len(order)))
    rows[:, order] = triangle[at] / np.diagonal(triangle)[at, None]
    return rows


def _sequential(fixed: FixedPart) -> dict[Term, np.ndarray]:
    order = np.arange(fixed.p)
    return {t: _triangular_rows(fixed, order, _columns(fixed, fixed.owner, t)) for t in _terms(fixed)}


def _marginal(fixed: FixedPart) -> dict[Term, np.ndarray]:
    rows = {}
    for term in _terms(fixed):
        mine = _columns(fixed, fixed.owner, term)
        above = [_columns(fixed, fixed.owner, other) for other in _contain(fixed, term)]
        if not above:
            rows[term] = np.eye(fixed.p)[mine]
            continue
        later = np.concatenate([mine, *above])
        order = np.concatenate([np.setdiff1d(np.arange(fixed.p), later), later])
        rows[term] = _triangular_rows(fixed, order, mine)
    return rows


def _partial(fixed: FixedPart) -> dict[Term, np.ndarray]:
    """lmerTest's get_contrasts_type3, in treatment coding, then carried to the coding of the fit."""
    treated = {name: replace(v, coding="treatment") if v.is_factor else v for name, v in fixed.variables.items()}
    n = len(fixed.counts)
    x, names, owner = coding.matrix(fixed.terms, treated, fixed.cell_codes, n)
    kept = independent_columns(x, np.sqrt(fixed.counts))
    x, names, owner = x[:, kept], [names[j] for j in kept], owner[kept]
    all_levels, all_names = _all_levels(fixed, n)
    weights = np.linalg.lstsq(x, all_levels, rcond=None)[0].T
    weights[np.abs(weights) < 1e-10] = 0.0
    for term in sorted(_terms(fixed), key=len, reverse=True):
        above = [_columns(fixed, owner, other) for other in _contain(fixed, term)]
        if above:
            mine, span = _columns(fixed, owner, term), weights[:, np.concatenate(above)]
            part = weights[:, mine] - span @ np.linalg.lstsq(span, weights[:, mine], rcond=None)[0]
            part[np.abs(part) < 1e-10] = 0.0
            weights[:, mine] = part
    place = {name: i for i, name in enumerate(all_names)}
    weights = weights[[place[name] for name in names]]
    carried = np.linalg.lstsq(x, fixed.x, rcond=None)[0]
    rows = {}
    for term in _terms(fixed):
        own = weights[:, _columns(fixed, owner, term)].T
        rows[term] = own[np.abs(own).sum(axis=1) > 1e-8] @ carried
    return rows


def _all_levels(fixed: FixedPart, n: int) -> tuple[np.ndarray, list[str]]:
    """The model matrix with every factor coded by all its levels."""
    blocks, names = [], []
    for term in fixed.terms:
        block, labels = np.ones((n, 1)), [""]
        for factor in term:
            basis, ends = fixed.variables[factor].block(contrasts=False)
            block = (basis[fixed.cell_codes[factor]][:, :, None] * block[:, None, :]).reshape(n, -1)
            labels = [f"{label}:{end}" if label else end for end in ends for label in labels]
        blocks.append(block)
        names += labels if term else ["(Intercept)"]
    return np.hstack(blocks), names


def ranova(fit: MixedFit) -> pd.DataFrame:
    """Likelihood-ratio tests of the random terms: term, n_parameters, log_likelihood, aic, statistic, df, p_value.

    Each row leaves one variance out, as lmerTest's ranova: a term of one column altogether, of a term of
    several one column after the other. The chi-squared p is conservative, for a variance cannot be below
    zero; `p_boundary` is that of the even mixture of chi-squared distributions with df and df - 1 degrees
    of freedom (Self, Liang 1987).
    """
    rows = [_row("<none>", fit.n_parameters, fit, None)]
    for k, grouping in enumerate(fit.design.groupings):
        if grouping.width == 1:
            without = fit_like(fit, leave_out=[k])
            rows.append(_row(grouping.term.text, without.n_parameters - 1, without, fit))
            continue
        slopes = [term for term in grouping.term.terms if term]
        for slope in slopes:
            reduced = fit_like(fit, shrink=(k, slope))
            text = f"{':'.join(slope)} in {grouping.term.text}"
            rows.append(_row(text, reduced.n_parameters, reduced, fit))
    return pd.DataFrame(rows)


def _row(term: str, n_parameters: int, fit: MixedFit, whole: MixedFit | None) -> dict[str, object]:
    row: dict[str, object] = {
        "term": term, "n_parameters": n_parameters, "log_likelihood": fit.log_likelihood,
        "aic": fit.criterion + 2 * n_parameters, "statistic": np.nan, "df": np.nan, "p_value": np.nan,
        "p_boundary": np.nan,
    }  # fmt: skip
    if whole is not None:
        statistic = max(fit.criterion - whole.criterion, 0.0)
        df = whole.n_parameters - n_parameters
        below = chdtrc(df - 1, statistic) if df > 1 else float(statistic <= 0)
        row |= {
            "statistic": statistic, "df": float(df), "p_value": float(chdtrc(df, statistic)),
            "p_boundary": float((chdtrc(df, statistic) + below) / 2),
        }  # fmt: skip
    return row
