"""Ratings with a row each, collected elsewhere → our tables."""

from dataclasses import dataclass, replace

import pandas as pd

from study.errors import StudyError, joined
from study.records import Metric, RaterKind

ONLY_SOURCE = "all"
ONLY_METRIC = "score"
_SHOWN = 5


@dataclass(frozen=True)
class Columns:
    """Which column of the file holds what. `item` may be left out where source and prompt name the item."""

    rater: str
    score: str
    item: str | None = None
    source: str | None = None
    prompt: str | None = None
    case: str | None = None
    metric: str | None = None
    category: str | None = None
    form: str | None = None
    occasion: str | None = None

    def given(self) -> dict[str, str]:
        return {name: column for name, column in vars(self).items() if column is not None}


@dataclass(frozen=True)
class Imported:
    """The three tables of a study made of ratings from elsewhere, and the sources and metrics found in them.

    Sources and metrics stand in the order in which the file first names them.
    """

    items: pd.DataFrame
    key: pd.DataFrame
    ratings: pd.DataFrame
    sources: tuple[str, ...]
    metrics: tuple[Metric, ...]


def tables(
    frame: pd.DataFrame,
    columns: Columns,
    where: str,
    *,
    rater_kind: RaterKind = "human",
    metric_name: str = ONLY_METRIC,
    levels: tuple[str, ...] = (),
    scale: tuple[float, float] | None = None,
    item_kind: str = "utterance",
) -> Imported:
    """Items, key and ratings of a long table.

    Parameters
    ----------
    levels : words of an ordinal scale from low to high; they become 1, 2, …
    scale : lowest and highest possible score; else the lowest and highest found

    Raises
    ------
    StudyError : for a missing column, a score that is no number, a duplicate rating, an item with two sources,
        a rater without any score
    """
    _check_columns(frame, columns, where)
    if columns.item is None and (columns.source is None or columns.prompt is None):
        raise StudyError(f"{where}: name the item's column (--item), or both --source and --prompt")
    rows = pd.DataFrame(
        {
            name: _text(frame[column])
            for name, column in columns.given().items()
            if name not in ("score", "occasion")
        }
    )
    rows["value"] = scores(frame[columns.score], columns.score, where, levels)
    rows["occasion"] = frame[columns.occasion].astype("int64") if columns.occasion else 1
    rows["source"] = rows["source"] if columns.source else ONLY_SOURCE
    rows["metric"] = rows["metric"] if columns.metric else metric_name
    rows["label"] = rows["item"] if columns.item else rows["source"] + ":" + rows["prompt"]
    _check_present(rows, columns, where)
    _check_once(rows, where)
    _check_raters(rows, where)
    if scale is not None:
        _check_one_scale(rows, scale, where)
    return Imported(
        items=_items(rows, item_kind, where),
        key=_key(rows, where),
        ratings=_ratings(rows, rater_kind),
        sources=tuple(rows["source"].unique()),
        metrics=_metrics(rows, scale, bool(levels), levels, item_kind),
    )


def scores(values: pd.Series, column: str, where: str, levels: tuple[str, ...] = ()) -> pd.Series:
    """Scores as numbers, missing as nan; words become their place in `levels`.

    Raises
    ------
    StudyError : for a word that is no number and not among the levels, naming its row
    """
    if levels:
        place = {word: float(i) for i, word in enumerate(levels, 1)}
        found = values.map(place).astype(float)
        what = f"one of the levels {', '.join(levels)}"
    else:
        found = pd.to_numeric(values, errors="coerce").astype("Float64").astype(float)
        what = "a number (words take --levels low,…,high)"
    wrong = values.notna() & found.isna()
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise StudyError(f"{where}: row {row + 1}, column {column}: {values.iloc[row]!r} is not {what}")
    return found


def of_known_items(imported: Imported, items: pd.DataFrame, where: str) -> Imported:
    """Ratings to be added to a study that has its items already, say a judge's beside a panel's.

    Raises
    ------
    StudyError : if a rated item is not among the study's
    """
    strangers = imported.ratings.loc[~imported.ratings["label"].isin(items["label"]), "label"]
    if len(strangers):
        raise StudyError(
            f"{where}: item {strangers.iloc[0]} is not among the {len(items)} items of the study; "
            "import it into a folder of its own"
        )
    return replace(imported, items=items)


def _text(values: pd.Series) -> pd.Series:
    """Names as text; whole numbers without a decimal point."""
    if pd.api.types.is_float_dtype(values) and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    return values.astype("string").astype(object).where(values.notna(), None)


def _check_columns(frame: pd.DataFrame, columns: Columns, where: str) -> None:
    missing = [(name, c) for name, c in columns.given().items() if c not in frame.columns]
    if missing:
        present = ", ".join(map(str, frame.columns))
        raise StudyError(
            joined([f"{where}: column {c} (--{name}) is missing; it has {present}" for name, c in missing])
        )


def _check_present(rows: pd.DataFrame, columns: Columns, where: str) -> None:
    for name in ("rater", "label", "metric", "source"):
        empty = rows[name].isna()
        if empty.any():
            row = int(empty.to_numpy().argmax())
            raise StudyError(f"{where}: row {row + 1} has no {name}; every rating needs one")


def _check_one_scale(rows: pd.DataFrame, scale: tuple[float, float], where: str) -> None:
    """One scale is given for all metrics; where some of them go beyond it, there is another way to say theirs."""
    ends = rows.groupby("metric", sort=False)["value"].agg(["min", "max"])
    beyond = ends[(ends["min"] < scale[0]) | (ends["max"] > scale[1])]
    if len(ends) > 1 and len(beyond):
        found = "; ".join(f"{m.Index} from {m.min:g} to {m.max:g}" for m in beyond.itertuples())
        raise StudyError(
            f"{where}: --scale {scale[0]:g}:{scale[1]:g} is taken for every metric, but scores go beyond it on "
            f"{found}; leave --scale out, then set low and high of each metric in study.toml"
        )


def _check_once(rows: pd.DataFrame, where: str) -> None:
    key = ["rater", "label", "metric", "occasion"]
    again = rows.duplicated(key)
    if again.any():
        row = rows[again].iloc[0]
        same = rows.index[(rows[key] == row[key]).all(axis=1)][:2]
        raise StudyError(
            f"{where}: {row.rater} rated {row.label} on {row.metric} twice "
            f"(rows {same[0] + 1} and {same[1] + 1}); "
            "keep one, or name the column that tells the occasions apart (--occasion)"
        )


def _check_raters(rows: pd.DataFrame, where: str) -> None:
    any_score = rows.groupby("rater")["value"].count()
    if (any_score == 0).any():
        rater = any_score.index[any_score == 0][0]
        raise StudyError(f"{where}: rater {rater} has no rating (every score is empty); take the rows out")


def _items(rows: pd.DataFrame, kind: str, where: str) -> pd.DataFrame:
    columns = [c for c in ("case", "prompt", "category", "form") if c in rows]
    first = rows.drop_duplicates("label").sort_values("label", ignore_index=True)
    for column in columns:
        _check_single(rows, column, where)
    absent = pd.Series([None] * len(first), dtype=object)
    return pd.DataFrame(
        {
            "label": first["label"],
            "kind": kind,
            "case_id": first.get("case", absent),
            "prompt_id": first.get("prompt", absent),
            "encounter": absent,
            "turn": pd.Series([None] * len(first), dtype="Int64"),
            "category": first.get("category", absent),
            "form": first.get("form", absent),
            "text": absent,
        }
    )


def _key(rows: pd.DataFrame, where: str) -> pd.DataFrame:
    _check_single(rows, "source", where)
    key = rows[["label", "source"]].drop_duplicates("label").sort_values("label", ignore_index=True)
    return key.rename(columns={"source": "source_id"})


def _check_single(rows: pd.DataFrame, column: str, where: str) -> None:
    kinds = rows.groupby("label")[column].nunique(dropna=False)
    if (kinds > 1).any():
        label = kinds.index[kinds > 1][0]
        found = rows.loc[rows["label"] == label, column].unique()[:2]
        raise StudyError(
            f"{where}: item {label} has two values of {column} ({found[0]} and {found[1]}); "
            "an item is one response of one source: name a column that tells them apart, "
            "or leave --item out and give --source and --prompt"
        )


def _ratings(rows: pd.DataFrame, rater_kind: RaterKind) -> pd.DataFrame:
    ok = rows["value"].notna()
    return pd.DataFrame(
        {
            "rater_id": rows["rater"],
            "rater_kind": rater_kind,
            "label": rows["label"],
            "metric_id": rows["metric"],
            "occasion": rows["occasion"].astype("int64"),
            "value": rows["value"],
            "status": ok.map({True: "ok", False: "missing"}),
            "reason": ok.map({True: None, False: "empty in the imported file"}),
            "simulated": False,
        }
    )


def _metrics(
    rows: pd.DataFrame, scale: tuple[float, float] | None, ordinal: bool, levels: tuple[str, ...], kind: str
) -> tuple[Metric, ...]:
    metrics = []
    for name, values in rows.groupby("metric", sort=False)["value"]:
        low, high = scale or ((1.0, float(len(levels))) if ordinal else (values.min(), values.max()))
        whole = bool((values.dropna() % 1 == 0).all())
        if high <= low:
            high = low + 1
        metrics.append(
            Metric(name, kind, low, high, "ordinal" if whole else "interval", "", levels, 1.0 if whole else None)
        )
    return tuple(metrics)
