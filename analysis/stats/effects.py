"""Effect sizes of a mixed model, and its predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.stats import contrasts, inference
from analysis.stats import estimates as tables
from analysis.stats.mixed.fit import MixedFit
from study.errors import StudyError


def total_sd(fit: MixedFit) -> float:
    """SD of one rating about its fixed part: the square root of all variance components together."""
    parts = fit.components()
    return float(np.sqrt(parts["variance"].iloc[-1] / parts["share"].iloc[-1]))


def standardized(fit: MixedFit, table: pd.DataFrame) -> pd.DataFrame:
    """A table of estimates with each also in units of the total SD: d, d_low, d_high.

    Westfall, Kenny, Judd (2014). The interval is that of the estimate; the SD is taken as known.
    """
    sd = total_sd(fit)
    columns = {"d": table["estimate"] / sd, "d_low": table["low"] / sd, "d_high": table["high"] / sd}
    return table.assign(**columns)


def r_squared(fit: MixedFit) -> dict[str, float]:
    """Share of the variance by the fixed effects, and by fixed and random together (Nakagawa, Schielzeth 2013)."""
    fixed = float(np.var(fit.fitted(random=False)))
    total = total_sd(fit) ** 2
    return {
        "marginal": fixed / (fixed + total),
        "conditional": (fixed + total - fit.best.sigma2) / (fixed + total),
    }


def predict(fit: MixedFit, frame: pd.DataFrame, *, random: bool = True, level: float = 0.95) -> pd.DataFrame:
    """Expected outcomes of new rows: estimate, std_error, low, high.

    random : add the predicted effects of the groups' levels; a level that the fit has not seen counts as
        average. The standard error is that of the fixed part
    """
    rows = contrasts.model_rows(fit, frame)
    if not np.isfinite(rows).all():
        raise StudyError("Some rows combine levels that the data cannot estimate together.")
    estimate, std_error, df = inference.contrast(fit, rows, "satterthwaite")
    if random:
        estimate = estimate + _effects(fit, frame)
    half = tables.quantile(level, df) * std_error
    return pd.DataFrame(
        {"estimate": estimate, "std_error": std_error, "low": estimate - half, "high": estimate + half},
        index=frame.index,
    )


def _effects(fit: MixedFit, frame: pd.DataFrame) -> np.ndarray:
    total = np.zeros(len(frame))
    for grouping, effects in zip(fit.design.groupings, fit.effects, strict=True):
        if grouping.values is not None:
            raise StudyError(
                f"Predictions with random slopes, {grouping.term.text}, are for the fitted rows only."
            )
        places = {label: i for i, label in enumerate(grouping.labels)}
        names = frame[list(grouping.term.group)].astype(str).agg(":".join, axis=1)
        codes = names.map(places)
        known = codes.notna().to_numpy()
        total[known] += effects[codes[known].astype(int), 0]
    return total
