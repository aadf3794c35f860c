"""Ratings with a row for each item and a column for each rater → a long table, which `long` takes further."""

import pandas as pd

from study.errors import StudyError, joined

RATER, SCORE = "rater", "score"


def lengthened(frame: pd.DataFrame, raters: tuple[str, ...], where: str) -> pd.DataFrame:
    """One row per item and rater, with columns `rater` and `score` beside the file's other columns.

    Raises
    ------
    StudyError : if a rater's column is missing, or a column is already called rater or score
    """
    missing = [r for r in raters if r not in frame.columns]
    if missing:
        present = ", ".join(map(str, frame.columns))
        raise StudyError(joined([f"{where}: column {r} (--wide) is missing; it has {present}" for r in missing]))
    others = [c for c in frame.columns if c not in raters]
    taken = [c for c in others if c in (RATER, SCORE)]
    if taken:
        raise StudyError(f"{where}: column {taken[0]} stands beside raters' columns; rename it")
    return frame.melt(id_vars=others, value_vars=list(raters), var_name=RATER, value_name=SCORE)
