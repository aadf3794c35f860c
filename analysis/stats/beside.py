"""The linear mixed model beside the ordinal one: would treating ratings as categories change what is said?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.stats import contrasts, inference
from analysis.stats.mixed.fit import MixedFit
from analysis.stats.ordinal import OrdinalFit
from study.errors import StudyError


@dataclass(frozen=True)
class Beside:
    """Two models of the same ratings, compared.

    coefficients : term, linear_estimate, linear_p, ordinal_estimate, ordinal_p, same_direction,
        same_significance
    contrasts : the same columns for each level of the factor against its first, averaged over the other factors
    ranks : level, linear_mean, linear_rank, ordinal_mean (latent), ordinal_rank
    notes : a sentence each on what agrees and what does not
    """

    factor: str
    coefficients: pd.DataFrame
    contrasts: pd.DataFrame
    ranks: pd.DataFrame
    notes: list[str]


def beside(linear: MixedFit, ordinal: OrdinalFit, factor: str = "source", alpha: float = 0.05) -> Beside:
    """Compare direction, significance and the order of a factor's levels in two fits of one formula.

    Raises
    ------
    StudyError : if the fits have other fixed effects or rows, or the factor is none of their factors
    """
    if linear.design.fixed.names != ordinal.design.fixed.names or linear.n_rows != ordinal.n_rows:
        raise StudyError("the two fits differ in fixed effects or rows: fit the same formula to the same ratings")
    levels, rows = _level_rows(linear, factor)
    coefficients = _pair(linear.coefficients(), ordinal.coefficients(), alpha)
    differences, terms = rows[1:] - rows[0], [f"{level} − {levels[0]}" for level in levels[1:]]
    by_level = _pair(
        inference.contrast_table(linear, differences, terms), ordinal.contrast(differences, terms), alpha
    )
    ranks = pd.DataFrame({
        "level": levels, "linear_mean": rows @ linear.fixed.to_numpy(),
        "ordinal_mean": ordinal.contrast(rows, list(map(str, levels))).estimate,
    })  # fmt: skip
    for model in ("linear", "ordinal"):
        ranks[f"{model}_rank"] = ranks[f"{model}_mean"].rank(ascending=False)
    return Beside(factor, coefficients, by_level, ranks, _notes(by_level, ranks, factor))


def _level_rows(fit: MixedFit, factor: str) -> tuple[list, np.ndarray]:
    """Levels of a factor, and the weights on the coefficients of each one's mean over the reference grid."""
    grid = contrasts.grid(fit)
    if factor not in grid.levels:
        raise StudyError(f"{factor!r} is not among the fixed effects' columns: {', '.join(grid.levels)}")
    levels = grid.levels[factor]
    names = grid.frame[factor].to_numpy()
    return levels, np.array([grid.rows[names == level].mean(axis=0) for level in levels])


def _pair(linear: pd.DataFrame, ordinal: pd.DataFrame, alpha: float) -> pd.DataFrame:
    table = linear[["term", "estimate", "p_value"]].merge(
        ordinal[["term", "estimate", "p_value"]], on="term", suffixes=("_l", "_o")
    )
    table.columns = ["term", "linear_estimate", "linear_p", "ordinal_estimate", "ordinal_p"]
    known = table.notna().all(axis=1)
    same_sign = np.sign(table.linear_estimate) == np.sign(table.ordinal_estimate)
    same_side = (table.linear_p < alpha) == (table.ordinal_p < alpha)
    return table.assign(
        same_direction=same_sign.astype("boolean").where(known),
        same_significance=same_side.astype("boolean").where(known),
    )


def _notes(by_level: pd.DataFrame, ranks: pd.DataFrame, factor: str) -> list[str]:
    n, notes = len(by_level), []
    for column, what in (("same_direction", "direction"), ("same_significance", "significance")):
        apart = by_level[~by_level[column].fillna(True).astype(bool)].term
        if len(apart):
            notes.append(f"The models differ in {what} for {', '.join(apart)} ({len(apart)} of {n} contrasts).")
        else:
            notes.append(f"The models agree in {what} for all {n} contrasts of {factor}.")
    unknown = by_level[by_level.ordinal_estimate.isna()].term
    if len(unknown):
        notes.append(f"The ordinal model has no finite estimate for {', '.join(unknown)}.")
    elif (ranks.linear_rank == ranks.ordinal_rank).all():
        notes.append(f"Both put the levels of {factor} in the same order.")
    else:
        moved = ranks[ranks.linear_rank != ranks.ordinal_rank].level.astype(str)
        notes.append(f"They order {', '.join(moved)} differently.")
    return notes
