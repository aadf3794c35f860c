"""Ratings by judges and rules join those of people in ratings.parquet, in place of their own earlier rows."""

import pandas as pd

from study import tables
from study.config import Study
from study.errors import StudyError


def join(study: Study, rows: pd.DataFrame) -> int:
    """Put an automated rater's rows into the study's ratings; returns how many ratings it has then.

    Raises
    ------
    StudyError : if a rater's name is a person's
    TableError : if a row breaks the contract; nothing is written then
    """
    kind, raters = rows["rater_kind"].iloc[0], set(rows["rater_id"])
    if taken := sorted(raters & set(study.raters)):
        raise StudyError(f"{study.folder}: {taken[0]} is a rater of the panel; give the {kind} another id")
    notes: dict[str, str] = {}
    if study.ratings.exists():
        before = tables.read(study.ratings, tables.RATINGS)
        notes = {k: v for k, v in tables.metadata(study.ratings).items() if k != "crossed.table"}
        own = before["rater_id"].isin(raters)
        if others := sorted(set(before.loc[own & (before["rater_kind"] != kind), "rater_id"])):
            raise StudyError(
                f"{study.ratings}: {others[0]} has ratings of another kind; give the {kind} another id"
            )
        rows = tables.stacked(before[~own], rows)
    tables.check_ratings(rows, study.metrics)
    tables.write(rows, study.ratings, tables.RATINGS, notes)
    return len(rows)
