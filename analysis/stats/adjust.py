"""Probabilities and intervals of a family of comparisons, adjusted for its size."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import fdtrc, fdtri, ndtri, stdtrit

from analysis.stats import estimates, tukey
from study.errors import StudyError

Adjust = Literal["none", "holm", "tukey", "BY", "BH", "bonferroni", "sidak", "scheffe"]
ADJUSTS = ("none", "holm", "tukey", "BY", "BH", "bonferroni", "sidak", "scheffe")


def check(adjust: str) -> None:
    if adjust not in ADJUSTS:
        raise StudyError(f"The adjustment {adjust!r} is not known; use {', '.join(ADJUSTS)}.")


def p_values(statistic: np.ndarray, df: np.ndarray, adjust: Adjust, *, n_means: int, rank: int) -> np.ndarray:
    """Adjusted two-sided p values of one family; missing statistics are not part of it.

    n_means : means that are compared pairwise (Tukey); rank : independent contrasts (Scheffé)
    """
    statistic, df = np.asarray(statistic, float), np.asarray(df, float)
    adjusted = np.full(statistic.shape, np.nan)
    here = np.isfinite(statistic)
    adjusted[here] = _of_family(statistic[here], df[here], adjust, n_means, rank)
    return adjusted


@lru_cache(maxsize=4096)
def _tukey(level: float, n_means: int, df: float) -> float:
    return float(tukey.quantile(level, n_means, np.array([df]))[0] / np.sqrt(2))


def _of_family(statistic: np.ndarray, df: np.ndarray, adjust: Adjust, n_means: int, rank: int) -> np.ndarray:
    if adjust == "tukey":
        return tukey.tail(np.abs(statistic) * np.sqrt(2), n_means, df)
    if adjust == "scheffe":
        many = np.where(np.isfinite(df), df, 1e12)
        return fdtrc(rank, many, statistic**2 / rank)
    return adjusted(estimates.two_sided(statistic, df), adjust)


def adjusted(p: np.ndarray, adjust: Adjust) -> np.ndarray:
    """p values of one family adjusted by Holm, Benjamini–Yekutieli, Benjamini–Hochberg, Bonferroni or Šidák."""
    p = np.asarray(p, float)
    n = len(p)
    if adjust == "none" or n < 2:
        return p.copy()
    if adjust == "bonferroni":
        return np.minimum(n * p, 1.0)
    if adjust == "sidak":
        return -np.expm1(n * np.log1p(-np.minimum(p, 1 - 1e-16)))
    order = np.argsort(p, kind="stable")
    back = np.empty(n, int)
    back[order] = np.arange(n)
    ranked = p[order]
    if adjust == "holm":
        return np.minimum(np.maximum.accumulate((n - np.arange(n)) * ranked), 1.0)[back]
    if adjust not in ("BH", "BY"):
        raise StudyError(f"The adjustment {adjust!r} needs more than p values.")
    penalty = (1 / np.arange(1, n + 1)).sum() if adjust == "BY" else 1.0
    scaled = penalty * n / np.arange(1, n + 1) * ranked
    return np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)[back]


def critical(df: np.ndarray, level: float, adjust: Adjust, *, n: int, n_means: int, rank: int) -> np.ndarray:
    """Half width of the simultaneous interval in standard errors.

    Stepwise procedures (Holm, BY, BH) have no intervals of their own: theirs are Bonferroni's, as in emmeans.
    """
    df = np.asarray(df, float)
    if adjust == "none" or (n < 2 and adjust != "scheffe"):
        return estimates.quantile(level, df)
    if adjust == "tukey":
        return np.array([_tukey(level, n_means, float(f"{value:.11g}")) for value in df])
    if adjust == "scheffe":
        many = np.where(np.isfinite(df), df, 1e12)
        return np.sqrt(rank * fdtri(rank, many, level))
    outside = -np.expm1(np.log(level) / n) if adjust == "sidak" else (1 - level) / n
    finite = np.isfinite(df)
    return -np.where(finite, stdtrit(np.where(finite, df, 1.0), outside / 2), ndtri(outside / 2))
