"""Whether a fit can be trusted: residuals, ceilings, and the raters or prompts it hangs on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtri

from analysis.stats.mixed.coding import combined, compact
from analysis.stats.mixed.crossproducts import CrossProducts, Outcome, effect_sums, partial_products
from analysis.stats.mixed.design import coefficients
from analysis.stats.mixed.fit import MixedFit
from analysis.stats.mixed.objective import criterion
from analysis.stats.mixed.optimum import optimum
from study.errors import StudyError


def residual_table(fit: MixedFit, low: float | None = None, high: float | None = None) -> pd.DataFrame:
    """One row of what the residuals say.

    columns : n, sd, skewness, excess_kurtosis, normality (correlation with normal scores; 1 is normal),
        at_low and at_high (share of ratings at the scale's ends; of the observed ends if none are given)
    """
    residuals = fit.residuals
    scaled = (residuals - residuals.mean()) / residuals.std()
    bottom = fit.y.min() if low is None else low
    top = fit.y.max() if high is None else high
    theoretical, ordered = normal_scores(fit)
    return pd.DataFrame(
        [
            {
                "n": fit.n_rows,
                "sd": float(residuals.std(ddof=1)),
                "skewness": float((scaled**3).mean()),
                "excess_kurtosis": float((scaled**4).mean() - 3),
                "normality": float(np.corrcoef(theoretical, ordered)[0, 1]),
                "at_low": float((fit.y <= bottom).mean()),
                "at_high": float((fit.y >= top).mean()),
            }
        ]
    )


def normal_scores(fit: MixedFit) -> tuple[np.ndarray, np.ndarray]:
    """Expected normal quantiles (Blom) and the ordered standardised residuals, for a quantile plot."""
    n = fit.n_rows
    return ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25)), np.sort(fit.residuals) / fit.sigma


def spread_by(fit: MixedFit, column: str, high: float | None = None) -> pd.DataFrame:
    """Residual SD and share of ratings at the scale's top, by the levels of a column of the model."""
    if column not in fit.design.columns:
        raise StudyError(f"{column!r} is not a column of the model; it has {', '.join(fit.design.columns)}.")
    top = fit.y.max() if high is None else high
    rows = pd.DataFrame(
        {
            column: fit.design.columns[column].to_numpy(),
            "residual": fit.residuals,
            "top": fit.y >= top,
        }
    )
    grouped = rows.groupby(column, sort=True, observed=True)
    return pd.DataFrame(
        {"n": grouped.size(), "sd": grouped["residual"].std(), "at_high": grouped["top"].mean()}
    ).reset_index()


@dataclass(frozen=True)
class Influence:
    """What leaving out each level of a group does to the fixed effects.

    table : level, n_rows, cooks_distance, term (the coefficient that changes most), change (in its standard
        errors); missing where the coefficients cannot be estimated without the level
    changes : levels × coefficients, estimate without the level less estimate with it
    """

    table: pd.DataFrame
    changes: pd.DataFrame


def influence(fit: MixedFit, group: str, refit: bool = False) -> Influence:
    """Leave out every level of a group in turn (a rater, `case:prompt`), from the cross-products.

    refit : find the variances anew without the level; otherwise they stay
    """
    labels, codes = _levels(fit, group)
    order = np.argsort(codes, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(labels)))])
    changes = np.full((len(labels), fit.design.fixed.p), np.nan)
    residual = fit.y - (fit.design.fixed.basis @ fit.outcome.start)[fit.design.fixed.cell]
    for i in range(len(labels)):
        beta = _without(fit, order[bounds[i] : bounds[i + 1]], residual, refit)
        if beta is not None:
            changes[i] = beta - fit.best.beta
    carried = coefficients(fit.design.fixed, changes)
    inverse = np.linalg.inv(fit.best.sigma2 * fit.best.half_cov @ fit.best.half_cov.T)
    distance = np.einsum("ij,jk,ik->i", changes, inverse, changes) / fit.design.fixed.p
    relative = carried / np.sqrt(np.diagonal(fit.vcov.to_numpy()))
    largest = np.argmax(np.abs(np.nan_to_num(relative)), axis=1)
    lost = np.isnan(distance)
    names = np.array(fit.design.fixed.names, object)[largest]
    names[lost] = None
    table = pd.DataFrame(
        {
            "level": labels, "n_rows": np.diff(bounds), "cooks_distance": distance, "term": names,
            "change": relative[np.arange(len(labels)), largest],
        }
    )  # fmt: skip
    return Influence(table, pd.DataFrame(carried, index=labels, columns=fit.design.fixed.names))


def _levels(fit: MixedFit, group: str) -> tuple[list[str], np.ndarray]:
    for grouping in fit.design.groupings:
        if grouping.term.name == group:
            return grouping.labels, grouping.codes
    names = group.split(":")
    for name in names:
        if name not in fit.design.columns:
            raise StudyError(f"{group!r} is not a group of the model; it has {', '.join(fit.levels)}.")
    parts = [compact(fit.design.columns[name]) for name in names]
    codes, _ = combined([c for c, _ in parts], [k for _, k in parts], fit.n_rows)
    joined = pd.Series(fit.design.columns[names[0]].astype(str).to_numpy())
    for name in names[1:]:
        joined = joined + ":" + fit.design.columns[name].astype(str).to_numpy()
    first = np.unique(codes, return_index=True)[1]
    return joined.iloc[first].tolist(), codes


def _without(fit: MixedFit, rows: np.ndarray, residual: np.ndarray, refit: bool) -> np.ndarray | None:
    """Coefficients in the basis without these rows; None if they cannot be estimated."""
    design, order, sums = fit.design, fit.sums.order, fit.sums
    part = partial_products(design, order, rows)
    some = replace(design, groupings=tuple(grouping.on(rows) for grouping in design.groupings))
    zy = fit.outcome.zy - effect_sums(some, order, residual[rows])
    cells = np.bincount(design.fixed.cell[rows], residual[rows], len(design.fixed.counts))
    xy = -(design.fixed.basis.T @ cells)
    rest, border = sums.rest - part.rest, sums.border - part.border
    own = rest[sums.qr :, sums.qr :]
    if np.linalg.eigvalsh(own)[0] < 1e-9:
        return None
    step = np.linalg.solve(own, xy)
    crossed = np.vstack([border[:, sums.qr :], rest[: sums.qr, sums.qr :]])
    yy = fit.outcome.yy - float(residual[rows] @ residual[rows]) - float(step @ xy)
    outcome = Outcome(fit.outcome.start + step, zy - crossed @ step, yy)
    left = CrossProducts(
        order, sums.sizes, sums.widths, sums.blocks - part.blocks, border, rest, sums.n - len(rows), sums.p,
        sums.log_triangle,
    )  # fmt: skip
    if refit:
        return optimum(left, outcome, fit.method, fit.best.theta)[0].beta
    there = criterion(left, outcome, fit.best.theta, fit.method)
    return None if there is None else there.beta
