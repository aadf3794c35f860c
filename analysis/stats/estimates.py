"""Estimates with t, z or F probabilities as tables in the broom columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import fdtrc, ndtr, ndtri, stdtr, stdtrit

COLUMNS = ["term", "estimate", "std_error", "df", "statistic", "p_value", "low", "high", "n"]


def two_sided(statistic: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Two-sided p of t values; infinite df is the normal distribution."""
    size = -np.abs(np.asarray(statistic, float))
    df = np.broadcast_to(np.asarray(df, float), size.shape)
    finite = np.isfinite(df)
    return 2 * np.where(finite, stdtr(np.where(finite, df, 1.0), size), ndtr(size))


def quantile(level: float, df: np.ndarray) -> np.ndarray:
    """The t (or normal) quantile that encloses `level` on both sides."""
    df = np.asarray(df, float)
    finite = np.isfinite(df)
    upper = (1 + level) / 2
    return np.where(finite, stdtrit(np.where(finite, df, 1.0), upper), ndtri(upper))


def f_tail(statistic: float, df1: float, df2: float) -> float:
    """P(F > statistic)."""
    return float(fdtrc(df1, df2, statistic))


def table(
    terms: Sequence[str],
    estimate: np.ndarray,
    std_error: np.ndarray,
    df: np.ndarray,
    *,
    n: int,
    level: float = 0.95,
    critical: np.ndarray | None = None,
    p_value: np.ndarray | None = None,
) -> pd.DataFrame:
    """Estimates in the broom columns; a missing estimate (not estimable) stays missing throughout.

    critical : half the interval's width in standard errors, where it is not the t quantile
    p_value : adjusted p values, where they are not those of t
    """
    estimate, std_error = np.asarray(estimate, float), np.asarray(std_error, float)
    df = np.broadcast_to(np.asarray(df, float), estimate.shape)
    statistic = np.full(estimate.shape, np.nan)
    np.divide(estimate, std_error, out=statistic, where=std_error > 0)
    half = (quantile(level, df) if critical is None else critical) * std_error
    p = two_sided(statistic, df) if p_value is None else p_value
    values = [list(terms), estimate, std_error, df, statistic, p, estimate - half, estimate + half, n]
    return pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))
