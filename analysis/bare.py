"""Ratings collected elsewhere: one CSV or Parquet file, its columns named by the caller."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from study import tables
from study.errors import StudyError, TableError, joined
from study.records import Metric

TIDY = (
    "rater", "rater_kind", "label", "kind", "case", "prompt", "source", "category", "form", "turn", "metric",
    "occasion", "score", "status", "simulated",
)  # fmt: skip
FACTORS = ("rater", "label", "case", "prompt", "source", "category", "form", "metric")
_MAY_BE_EMPTY = ("category", "form")

# The names under which a column is found where the caller gives none.
_KNOWN_AS = {
    "rater": ("rater", "rater_id"),
    "item": ("item", "label", "item_id"),
    "score": ("score", "value", "rating"),
    "source": ("source", "source_id"),
    "prompt": ("prompt", "prompt_id"),
    "case": ("case", "case_id"),
    "category": ("category",),
    "form": ("form",),
    "metric": ("metric", "metric_id"),
    "occasion": ("occasion",),
    "status": ("status",),
}
_SHOWN = 5


@dataclass(frozen=True)
class Columns:
    """Which column of a bare file means what; None looks for the usual names.

    `scale` is the lowest and highest rating possible, `reference` the source that others are compared with.
    """

    rater: str | None = None
    item: str | None = None
    score: str | None = None
    source: str | None = None
    prompt: str | None = None
    case: str | None = None
    category: str | None = None
    form: str | None = None
    metric: str | None = None
    scale: tuple[float, float] | None = None
    reference: str | None = None

    def named(self) -> list[str]:
        """The options that were given."""
        return [f.name for f in fields(self) if getattr(self, f.name) is not None]


@dataclass(frozen=True)
class Read:
    frame: pd.DataFrame
    metrics: tuple[Metric, ...]
    notes: tuple[str, ...]


def read(path: Path, columns: Columns) -> Read:
    """A bare ratings file as the tidy frame; its other columns keep their names and stay.

    Raises
    ------
    StudyError : for a file that is not a table, a column that is not there, a rating that is no number or off the
        scale, a rating given twice; all problems of the file in one message
    """
    raw = _table(path)
    if raw.empty:
        raise StudyError(f"{path}: has no row; a ratings file has one row per rating")
    found = _found(path, raw, columns)
    frame = raw.copy()
    for meaning, column in found.items():
        name = "label" if meaning == "item" else meaning
        if name in raw.columns and name != column:
            raise StudyError(
                f"{path}: column {name} would be hidden, as --{meaning} takes {column}; rename {name}"
            )
        frame[name] = raw[column]
    frame["score"] = _numbers(path, raw[found["score"]], found["score"])
    frame, notes = _items(_completed(frame))
    _check(path, frame, columns.scale)
    orders = {"source": (columns.reference,) if columns.reference else ()}
    names = [n for n in FACTORS if n in frame.columns]
    if columns.reference and columns.reference not in set(_text(frame.get("source", pd.Series(dtype=str)))):
        raise StudyError(f"{path}: --reference {columns.reference} is not among the sources")
    factors = {n: factor(_text(frame[n]), orders.get(n, ())) for n in names}
    frame = frame.assign(**factors)
    metrics = tuple(_metric(str(m), frame, columns.scale) for m in frame["metric"].cat.categories)
    return Read(frame, metrics, tuple(notes))


def factor(values: pd.Series, order: Iterable[str]) -> pd.Categorical:
    """Values as a Categorical of the levels that occur: those of `order` first, then as they appear."""
    present = pd.unique(values.dropna())
    levels = [v for v in order if v in set(present)]
    levels += [v for v in present if v not in set(levels)]
    return pd.Categorical(values, categories=levels)


def _table(path: Path) -> pd.DataFrame:
    if not path.exists():
        raise StudyError(f"{path}: no such file or study folder")
    head = path.read_bytes()[:4096] if path.stat().st_size < 4096 else _head(path)
    if head.startswith(b"PAR1"):
        return tables.read_parquet(path)
    if not head.strip():
        raise StudyError(f"{path}: is empty; a ratings file has a header and one row per rating")
    if b"\0" in head or head.startswith((b"\x89PNG", b"PK\x03\x04", b"%PDF")):
        raise StudyError(f"{path}: is not a table of text; give a CSV or a Parquet file")
    if head.lstrip().startswith((b"{", b"[")):
        raise StudyError(f"{path}: is JSON; give a CSV or a Parquet file, or bring it in with `study import`")
    return _csv(path, head)


def _head(path: Path) -> bytes:
    with open(path, "rb") as content:
        return content.read(4096)


def _csv(path: Path, head: bytes) -> pd.DataFrame:
    first = head.splitlines()[0].decode("utf-8", errors="replace")
    separator = max(",;\t", key=first.count)
    try:
        frame = pd.read_csv(path, sep=separator, encoding="utf-8-sig", skipinitialspace=True)
    except UnicodeDecodeError:
        raise StudyError(f"{path}: is not UTF-8 text; save the CSV as UTF-8") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise StudyError(f"{path}: is not a CSV table ({_reason(error)})") from None
    again = [c for c in frame.columns if c.endswith(".1") and c[:-2] in frame.columns]
    if again:
        raise StudyError(f"{path}: column {again[0][:-2]} stands twice in the header; rename one")
    return frame


def _found(path: Path, raw: pd.DataFrame, columns: Columns) -> dict[str, str]:
    """Meaning → column of the file, for every meaning that the file has."""
    there = ", ".join(map(str, raw.columns))
    found, problems = {}, []
    for meaning, names in _KNOWN_AS.items():
        given = getattr(columns, meaning, None)
        if given is not None and given not in raw.columns:
            option = "metric-column" if meaning == "metric" else meaning
            problems.append(f"{path}: has no column {given} (--{option}); its columns are {there}")
        column = given or next((n for n in names if n in raw.columns), None)
        if column is not None:
            found[meaning] = column
    if "score" not in found:
        problems.append(
            f"{path}: column score is missing; name the column of ratings with --score, its columns are {there}"
        )
    if problems:
        raise TableError(joined(problems))
    return found


def _numbers(path: Path, values: pd.Series, column: str) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    wrong = values[values.notna() & numbers.isna()]
    if len(wrong):
        row = values.index.get_loc(wrong.index[0]) + 1
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise StudyError(
            f"{path}: {wrong.iloc[0]!r} in row {row} of column {column} is not a number{more}; "
            "give ratings as numbers, empty where missing"
        )
    if np.isinf(numbers).any():
        raise StudyError(
            f"{path}: row {int(np.flatnonzero(np.isinf(numbers))[0]) + 1} of column {column} "
            "is infinite; leave it empty where missing"
        )
    return numbers


def _completed(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that a bare file may leave out, filled with what their absence means."""
    default = {"metric": "score", "rater_kind": "human", "occasion": 1, "simulated": False}
    frame = frame.assign(**{n: v for n, v in default.items() if n not in frame.columns})
    if "status" not in frame.columns:
        frame["status"] = np.where(frame["score"].notna(), "ok", "missing")
    frame["simulated"] = frame["simulated"].astype(str).str.lower().isin(("true", "1", "yes"))
    frame.loc[frame["status"] != "ok", "score"] = np.nan
    frame.loc[frame["score"].isna() & (frame["status"] == "ok"), "status"] = "missing"
    return frame


def _items(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A label for each rated response, where the columns tell it."""
    has = set(frame.columns)
    if "label" in has and "source" in has:
        shared = frame.groupby("label", observed=True)["source"].nunique() > 1
        if shared.any() and "prompt" not in has:
            name = shared.index[shared][0]
            frame = frame.assign(prompt=frame["label"])
            frame["label"] = _text(frame["prompt"]) + ":" + _text(frame["source"])
            return frame, [
                f"item {name} was answered by several sources, so items are taken as prompts, "
                "and a rated response is prompt × source"
            ]
    if "label" not in has and {"prompt", "source"} <= has:
        frame = frame.assign(label=_text(frame["prompt"]) + ":" + _text(frame["source"]))
    elif "label" not in has and "prompt" in has:
        frame = frame.assign(label=frame["prompt"])
    return frame, []


def _check(path: Path, frame: pd.DataFrame, scale: tuple[float, float] | None) -> None:
    problems = []
    for name, empty in _nameless(frame).items():
        what = "item" if name == "label" else name
        if empty.all():
            problems.append(f"{path}: no row names its {what}; fill the column, or leave it out of the file")
        else:
            rows = ", ".join(str(i + 1) for i in np.flatnonzero(empty)[:_SHOWN])
            problems.append(f"{path}: no {what} in row {rows}; every rating has one")
    if scale is not None:
        outside = frame["score"].notna() & ~frame["score"].between(*scale)
        for row in np.flatnonzero(outside)[:_SHOWN]:
            problems.append(
                f"{path}: {frame['score'].iloc[row]:g} in row {row + 1} is outside the scale's "
                f"{scale[0]:g} to {scale[1]:g}"
            )
    if {"rater", "label"} <= set(frame.columns):
        again = frame.duplicated(["rater", "label", "metric", "occasion"])
        again = (again & frame[["rater", "label"]].notna().all(axis=1)).to_numpy()
        for row in np.flatnonzero(again)[:_SHOWN]:
            r = frame.iloc[row]
            problems.append(
                f"{path}: {r['rater']} rated {r['label']} on {r['metric']} more than once "
                f"(row {row + 1}); keep one, or number them in a column occasion"
            )
    if problems:
        raise TableError(joined(problems))


def _nameless(frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Where a rating does not name its rater, item, prompt …; an item lacks a name of its own only where it should
    have one though prompt and source have theirs."""
    named = [n for n in FACTORS if n in frame.columns and n not in _MAY_BE_EMPTY]
    empty = {n: frame[n].isna() for n in named}
    if "label" in empty:
        for part in ("prompt", "source"):
            empty["label"] = empty["label"] & ~empty.get(part, False)
    return {n: where for n, where in empty.items() if where.any()}


def _text(values: pd.Series) -> pd.Series:
    """Names as text: 3 and 3.0 both become "3"."""
    if pd.api.types.is_float_dtype(values) and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    return values.astype("string").astype(object).where(values.notna(), None)


def _metric(name: str, frame: pd.DataFrame, scale: tuple[float, float] | None) -> Metric:
    """A metric with the scale given, or with the range of the ratings found."""
    score = frame.loc[frame["metric"] == name, "score"].dropna()
    low, high = scale or ((score.min(), score.max()) if len(score) else (0.0, 1.0))
    whole = bool((score % 1 == 0).all()) and high - low <= 20
    return Metric(
        name, "utterance", float(low), float(high), "ordinal" if whole else "interval", step=1.0 if whole else None
    )


def _reason(error: Exception) -> str:
    """A parser's complaint without the parser's own preface."""
    return str(error).strip().splitlines()[-1].split("C error: ")[-1]
