"""What stands of a study: every file checked against its contract and against the others."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from study import tables
from study.config import Study
from study.errors import StudyError


@dataclass(frozen=True)
class Arrow:
    """One step of the flow: its file, whether it stands, and what it holds in words."""

    file: str
    made_by: str
    stands: bool
    says: str


def status(study: Study) -> list[Arrow]:
    """Each file of the flow and how far it has come, in the order of the flow."""
    arrows = [
        _arrow(study, study.responses, tables.MADE_BY["responses"], tables.RESPONSES, _responses_say),
        _arrow(study, study.items, tables.MADE_BY["items"], tables.ITEMS, _items_say),
        _arrow(study, study.assignment, tables.MADE_BY["assignment"], tables.ASSIGNMENT, _assignment_says),
        _arrow(study, study.ratings, tables.MADE_BY["ratings"], tables.RATINGS, _ratings_say),
    ]
    return arrows if study.content_files else [a for a in arrows if a.stands]


def problems(study: Study) -> list[str]:
    """What is wrong with a study's files, each as one sentence; empty if nothing is."""
    found = []
    for name in ("responses", "items", "key", "assignment", "ratings"):
        path: Path = getattr(study, name)
        if path.exists():
            try:
                tables.read(path, tables.TABLES[name])
            except StudyError as error:
                found += str(error).splitlines()
    return found or _content_problems(study) + _crossing_problems(study)


def unrated(study: Study, ratings: pd.DataFrame) -> list[str]:
    """Raters of the panel who have no rating, once people have rated at all."""
    if not (ratings["rater_kind"] == "human").any():
        return []
    given = set(ratings.loc[ratings["status"] == "ok", "rater_id"])
    return [r for r in study.raters if r not in given]


def _content_problems(study: Study) -> list[str]:
    if study.content_files is None:
        return []
    try:
        content = study.content()
    except StudyError as error:
        return str(error).splitlines()
    if not study.responses.exists():
        return []
    responses = tables.read(study.responses, tables.RESPONSES)
    strangers = sorted(set(responses["prompt_id"]) - {p.prompt_id for p in content.prompts})
    sources = sorted(set(responses["source_id"]) - {s.source_id for s in study.sources})
    return [f"{study.responses}: prompt {p} is not among the study's prompts" for p in strangers] + [
        f"{study.responses}: source {s} is not in study.toml" for s in sources
    ]


def _crossing_problems(study: Study) -> list[str]:
    if not study.items.exists():
        return []
    items = set(tables.read(study.items, tables.ITEMS)["label"])
    found = []
    for name in ("key", "assignment", "ratings"):
        path: Path = getattr(study, name)
        if path.exists():
            frame = tables.read(path, tables.TABLES[name])
            strangers = sorted(set(frame["label"]) - items)
            found += [f"{path}: {label} is not among the items" for label in strangers[:5]]
    if study.ratings.exists():
        ratings = tables.read(study.ratings, tables.RATINGS)
        try:
            tables.check_ratings(ratings, study.metrics, str(study.ratings))
        except StudyError as error:
            found += str(error).splitlines()
        found += [
            f"{study.ratings}: rater {r} of the panel has no rating; "
            "take the name out of [panel] or wait for the ratings"
            for r in unrated(study, ratings)
        ]
    return found


def _arrow(
    study: Study, path: Path, made_by: str, table: tables.Table, says: Callable[[Study, pd.DataFrame], str]
) -> Arrow:
    if not path.exists():
        return Arrow(path.name, made_by, False, f"not there yet: {made_by}")
    return Arrow(path.name, made_by, True, says(study, tables.read(path, table)))


def _responses_say(study: Study, responses: pd.DataFrame) -> str:
    ok = int((responses["status"] == "ok").sum())
    text = f"{ok} of {len(responses)} answered, by {responses['source_id'].nunique()} sources"
    failed = responses.loc[responses["status"] != "ok", "status"].value_counts()
    return text + "".join(f", {n} {status}" for status, n in failed.items())


def _items_say(study: Study, items: pd.DataFrame) -> str:
    count = items["kind"].value_counts()
    return ", ".join(f"{count.get(kind, 0)} {kind}s" for kind in tables.KINDS)


def _assignment_says(study: Study, assignment: pd.DataFrame) -> str:
    each = assignment.groupby("rater_id").size()
    span = f"{each.min()}" if each.min() == each.max() else f"{each.min()} to {each.max()}"
    return f"{len(each)} raters, {span} items each"


def _ratings_say(study: Study, ratings: pd.DataFrame) -> str:
    ok = int((ratings["status"] == "ok").sum())
    text = f"{ok} of {len(ratings)} rows with a value, by {ratings['rater_id'].nunique()} raters"
    if ratings["simulated"].any():
        text += f"; {int(ratings['simulated'].sum())} rows are simulated"
    return text
