"""The model that a design asks for, in lme4 notation."""

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from analysis.load import Selected
from study.config import Study

Kind = Literal["design", "published"]


@dataclass(frozen=True)
class Model:
    """A formula, why it is this one, and the terms that the design has but the data do not allow."""

    formula: str
    origin: str
    notes: tuple[str, ...] = ()


def model(selected: Selected, study: Study | None = None, kind: Kind = "design") -> Model:
    """The formula for the ratings of one metric: the study's own if study.toml gives one, else the design's.

    The design's random terms are rater, case:prompt, the response (case:prompt:source) and rater:source; an
    encounter has its case in the place of the prompt. Terms whose columns are absent or do not vary are left
    out and named. `published` keeps rater and prompt only, as published studies of this design have done; its
    tests of sources are too sharp (the ratings of one response are not independent).
    """
    given = getattr(study.analysis, selected.metric.item) if study else None
    if given and kind == "design":
        return Model(given, "study.toml")
    frame, notes = selected.frame, []
    fixed = _fixed(frame, notes)
    random = _random(frame, notes, fuller=kind == "design")
    return Model(f"score ~ {' + '.join([fixed, *random])}", kind, tuple(notes))


def levels(frame: pd.DataFrame, *columns: str) -> int:
    """How many combinations of the columns occur; 0 if a column is absent or empty."""
    if any(c not in frame.columns or frame[c].isna().all() for c in columns):
        return 0
    return len(frame[list(columns)].drop_duplicates())


def response_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns that together name what all sources answered: case and prompt, as far as they are there."""
    unit = tuple(c for c in ("case", "prompt") if levels(frame, c) > 1)
    if "prompt" in unit and "case" not in unit and levels(frame, "case") == 1:
        return ("case", "prompt")
    return unit


def _fixed(frame: pd.DataFrame, notes: list[str]) -> str:
    if levels(frame, "source") < 2:
        if levels(frame, "source") == 1:
            notes.append(f"one source ({frame['source'].iloc[0]}): there is nothing to compare it with")
        return "1"
    within = [c for c in ("category", "form") if levels(frame, c) > 1 and frame[c].notna().all()]
    for name in ("category", "form"):
        if levels(frame, name) and name not in within:
            reason = "has one level" if levels(frame, name) == 1 else "is empty in some rows"
            notes.append(f"{name} is not in the model: it {reason}")
    return " + ".join(f"source*{c}" for c in within) or "source"


def _random(frame: pd.DataFrame, notes: list[str], *, fuller: bool) -> list[str]:
    """The random intercepts of the design that the ratings can tell apart."""
    unit, several = response_columns(frame), levels(frame, "rater") > 1
    sources = levels(frame, "source") > 1
    terms: list[tuple[str, ...]] = [("rater",)] if several else []
    if not several and "rater" in frame.columns:
        notes.append("one rater: no rater term")
    if unit:
        terms.append(unit)
    elif levels(frame, "label") > max(levels(frame, "source"), 1):
        terms.append(("label",))
    elif levels(frame, "label") > 1:
        notes.append("(1|label) is not in the model: each source has one item, so that the two are one")
    if fuller and sources:
        terms += [(*unit, "source")] if unit else []
        terms += [("rater", "source")] if several else []
    kept = []
    for term in terms:
        if levels(frame, *term) < len(frame):
            kept.append(f"(1|{':'.join(term)})")
        else:
            notes.append(f"(1|{':'.join(term)}) is not in the model: every rating is its own level")
    return kept
