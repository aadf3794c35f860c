"""The same question put to two studies, two waves or two subsets of one study."""

from pathlib import Path

import pandas as pd

from analysis import display, models, results, tables
from analysis.load import Loaded, Selected, select
from analysis.results import Answer, Result
from analysis.stats import formula as formulas
from analysis.stats import two_studies
from study.errors import StudyError


def compare(
    first: Loaded,
    second: Loaded,
    metric_id: str,
    *,
    formula: str | None = None,
    factor: str = "source",
    where: tuple[str, str] | None = None,
    raters: str = "auto",
    level: float = 0.95,
) -> Answer:
    """A factor's contrasts in two sets of ratings, and their differences.

    where : two conditions COLUMN=VALUE that take the two sets out of one study

    Raises
    ------
    StudyError : if a condition leaves nothing, or a level of the factor is missing in one set
    """
    one, two = select(first, metric_id, raters), select(second, metric_id, raters)
    names = (Path(first.name).name, Path(second.name).name)
    if where is not None:
        one, two = _taken(one, where[0]), _taken(two, where[1])
        names = where
    elif first.name == second.name:
        raise StudyError(f"{first.name}: cannot be compared with itself; give --with another, or --where twice")
    elif names[0] == names[1]:
        names = (first.name, second.name)
    asked = formula or models.model(one, first.study).formula
    if formula is None and where is not None:
        asked = _with_response(asked, pd.concat([one.frame, two.frame], ignore_index=True))
    try:
        _check(asked, factor, {names[0]: one.frame, names[1]: two.frame})
        found = two_studies.compare(one.frame, two.frame, asked, factor=factor, names=names, level=level)
    except StudyError as error:
        raise StudyError(f"{metric_id}: {error}") from None
    source = {"first": results.provenance(first, one, formula=asked),
              "second": results.provenance(second, two, formula=asked)}  # fmt: skip
    values = {"metric": metric_id, "names": list(names), "factor": factor, "joint": found.joint,
              "shared": found.shared, "notes": found.notes, "estimates": found.table}  # fmt: skip
    simulated = " (simulated ratings)" if one.simulated or two.simulated else ""
    how = "fitted together, as they share raters, prompts or items" if found.joint else "fitted apart"
    lines = [
        f"{metric_id}: {names[0]} beside {names[1]}{simulated}; {how}",
        f"Formula: {asked}",
        f"Ratings: {len(one.frame):,} and {len(two.frame):,}",
        "",
        tables.as_text(_table(found.table, names), "  "),
        *(f"note: {note}" for note in found.notes),
    ]
    return Answer(Result("compare", source, values), "\n".join(lines), first)


def _taken(selected: Selected, condition: str) -> Selected:
    column, _, value = condition.partition("=")
    frame = selected.frame
    if column not in frame.columns or not value:
        raise StudyError(f"--where {condition}: write COLUMN=VALUE; the columns are {', '.join(frame.columns)}")
    kept = frame[frame[column].astype(str) == value]
    if kept.empty:
        known = ", ".join(map(str, pd.unique(frame[column].dropna())[:12]))
        raise StudyError(f"--where {condition}: no rating; {column} has {known}")
    factors = [c for c in kept.columns if isinstance(kept[c].dtype, pd.CategoricalDtype)]
    kept = kept.assign(**{c: kept[c].cat.remove_unused_categories() for c in factors})
    return Selected(selected.metric, kept, selected.left_out, selected.notes)


def _with_response(asked: str, both: pd.DataFrame) -> str:
    """The model with a term for the response, where both sets rated the same ones; each alone may not have it."""
    unit = models.response_columns(both)
    response = (*unit, "source") if unit and models.levels(both, "source") > 1 else ("label",)
    term = f"(1|{':'.join(response)})"
    again = 0 < models.levels(both, *response) < len(both)
    return f"{asked} + {term}" if again and term.replace(" ", "") not in asked.replace(" ", "") else asked


def _check(asked: str, factor: str, sets: dict[str, pd.DataFrame]) -> None:
    """Refuse a model that one set of ratings has no columns for, or that does not have the factor."""
    model = formulas.parse(asked)
    fixed = [column for term in model.terms for column in term]
    for column in (*fixed, *(column for term in model.random for column in term.group)):
        for name, frame in sets.items():
            if column.isidentifier() and (column not in frame.columns or frame[column].isna().all()):
                raise StudyError(
                    f"{name} has no {column}, which the model {asked} needs; give both the same columns, or a "
                    "model of your own with --formula"
                )
    if factor not in fixed:
        raise StudyError(
            f"{factor} is not a fixed factor of the model {asked}, so that it has no contrasts; "
            "name one that varies in both sets with --of"
        )


def _table(found: pd.DataFrame, names: tuple[str, str]) -> tables.Table:
    rows = tuple(
        (str(r.term), f"{display.number(r.first)} ({display.number(r.first_error, 3)})",
         f"{display.number(r.second)} ({display.number(r.second_error, 3)})",
         display.estimate(r.estimate, r.low, r.high), display.df(r.df), display.p_value(r.p_value))
        for r in found.itertuples()
    )  # fmt: skip
    columns = ("contrast", f"{names[0]} (SE)", f"{names[1]} (SE)", "second − first [95% interval]", "df", "p")
    return tables.Table("compare", "", columns, rows)
