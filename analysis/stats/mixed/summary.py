"""What a fit says of itself: components, notes, and the printed summary an lmerTest user expects."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from analysis.stats.mixed.fit import MixedFit


def components(fit: MixedFit) -> pd.DataFrame:
    """group, name, variance, sd, share; the share is of the variance of a row's outcome given its fixed part."""
    rows, parts = [], []
    for grouping, factor in zip(fit.design.groupings, fit.factors, strict=True):
        covariance = fit.best.sigma2 * factor @ factor.T
        for a, name in enumerate(grouping.columns):
            rows.append((grouping.term.name, name, float(covariance[a, a])))
            parts.append(_mean_product(grouping.values, a, a) * covariance[a, a])
        for a in range(grouping.width):
            for b in range(a):
                parts.append(2 * _mean_product(grouping.values, a, b) * covariance[a, b])
    rows.append(("residual", "", float(fit.best.sigma2)))
    total = sum(parts) + fit.best.sigma2
    table = pd.DataFrame(rows, columns=["group", "name", "variance"])
    table["sd"] = np.sqrt(table["variance"])
    squares = [_mean_product(g.values, a, a) for g in fit.design.groupings for a in range(g.width)] + [1.0]
    table["share"] = table["variance"] * squares / total
    return table


def _mean_product(values: np.ndarray | None, a: int, b: int) -> float:
    return 1.0 if values is None else float((values[:, a] * values[:, b]).mean())


def correlations(fit: MixedFit) -> pd.DataFrame:
    """group, one, other, correlation; missing where a variance is zero."""
    rows = []
    for grouping, factor in zip(fit.design.groupings, fit.factors, strict=True):
        covariance = factor @ factor.T
        for a in range(grouping.width):
            for b in range(a):
                scale = np.sqrt(covariance[a, a] * covariance[b, b])
                value = covariance[a, b] / scale if scale > 0 else np.nan
                rows.append((grouping.term.name, grouping.columns[b], grouping.columns[a], float(value)))
    return pd.DataFrame(rows, columns=["group", "one", "other", "correlation"])


def notes(fit: MixedFit) -> list[str]:
    """A sentence each: rows left out, columns dropped, variances of zero, a search that did not settle."""
    said = []
    if fit.n_missing:
        reasons = ", ".join(f"{reason} {count}" for reason, count in fit.n_missing.items())
        total = sum(fit.n_missing.values())
        said.append(f"{total:,} {'row is' if total == 1 else 'rows are'} left out: {reasons}.")
    if fit.dropped_columns:
        said.append(
            "Left out, for the data cannot tell them from other coefficients (empty cells, or columns that follow "
            f"from others): {', '.join(fit.dropped_columns)}."
        )
    for grouping, factor in zip(fit.design.groupings, fit.factors, strict=True):
        if grouping.term.text in fit.singular_terms:
            said.append(_singular(grouping.term.text, factor))
    if not fit.optimum.converged:
        said.append(
            f"The search did not settle: a deviance of {fit.optimum.decrement:.2g} may still be gained. "
            "Look at the scale of the numeric columns or take a random term out."
        )
    return said


def _singular(text: str, factor: np.ndarray) -> str:
    if len(factor) == 1:
        return (
            f"The variance of {text} is estimated as zero: its levels differ no more than the rest of the model "
            "makes them differ. Fixed effects are as without it; keep it if the design asks for it."
        )
    return (
        f"{text} is singular: a variance of zero or a correlation of one among its columns. Write it with || or "
        "with fewer columns if that is not what the design asks for."
    )


def headline(fit: MixedFit) -> str:
    kind = "REML criterion" if fit.method == "REML" else "Deviance (ML)"
    state = "converged" if fit.optimum.converged else "NOT converged"
    state += ", singular" if fit.singular_terms else ""
    return f"{kind} {fit.criterion:.4f} ({state}; {fit.optimum.evaluations} evaluations)"


def sizes(fit: MixedFit) -> str:
    groups = ", ".join(f"{name} {count:,}" for name, count in fit.levels.items())
    return f"{fit.n_rows:,} rows; levels: {groups}"


def text(fit: MixedFit) -> str:
    """The summary in plain text."""
    residuals = np.quantile(fit.residuals / fit.sigma, [0, 0.25, 0.5, 0.75, 1])
    names = ("min", "1Q", "median", "3Q", "max")
    quartiles = "  ".join(f"{name} {value:.3f}" for name, value in zip(names, residuals, strict=True))
    parts = [
        f"Linear mixed model fit by {fit.method}; Satterthwaite degrees of freedom",
        f"Formula: {fit.formula}",
        headline(fit),
        sizes(fit),
        f"Scaled residuals: {quartiles}",
        "",
        "Random effects:",
        _block(components(fit), {"variance": 5, "sd": 5, "share": 3}),
    ]
    if len(correlations(fit)):
        parts += ["", "Correlations:", _block(correlations(fit), {"correlation": 3})]
    table = fit.coefficients()
    table = table.drop(columns="n")
    parts += [
        "",
        "Fixed effects:",
        _block(table, dict.fromkeys(table.columns[1:], 4) | {"df": 2, "statistic": 3}),
    ]
    parts += ["", *(f"Note: {note}" for note in fit.notes)] if fit.notes else []
    return "\n".join(parts)


def _block(table: pd.DataFrame, digits: dict[str, int]) -> str:
    shown = table.copy()
    for column, places in digits.items():
        if column == "p_value":
            shown[column] = [_probability(value) for value in table[column]]
        else:
            shown[column] = [f"{value:.{places}f}" if np.isfinite(value) else "—" for value in table[column]]
    first = shown.columns[0]
    shown[first] = shown[first].str.ljust(max(len(first), int(shown[first].str.len().max())))
    return shown.to_string(index=False)


def _probability(value: float) -> str:
    if not np.isfinite(value):
        return "—"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def html(fit: MixedFit) -> str:
    """The summary for a notebook."""
    fixed = fit.coefficients().drop(columns="n")
    style = {"p_value": _probability, "term": str}
    numbers = {c: "{:.4g}".format for c in fixed.columns if c not in style}
    body = [
        f"<p><b>Linear mixed model</b> by {fit.method}: <code>{escape(str(fit.formula))}</code><br>"
        f"{escape(headline(fit))}<br>{escape(sizes(fit))}</p>",
        components(fit).to_html(index=False, float_format="{:.4g}".format, border=0),
        fixed.to_html(index=False, formatters=style | numbers, border=0),
    ]
    body += [f"<p>{escape(note)}</p>" for note in fit.notes]
    return "<div>" + "".join(body) + "</div>"
