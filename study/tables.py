"""Every table of a study: its columns, key and allowed values. The only Parquet code."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from study.errors import TableError, joined
from study.records import RULE_METRICS, EncounterStatus, Metric

Type = Literal["text", "integer", "real", "boolean", "time"]

_ARROW = {
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
}
_SHOWN = 5  # how many offending rows a message names


@dataclass(frozen=True)
class Column:
    """One column: `null` allows missing values, `optional` allows the column itself to be absent."""

    name: str
    type: Type = "text"
    null: bool = False
    allowed: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def column(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]


KINDS = ("utterance", "encounter")
RATER_KINDS = ("human", "judge", "rule")

RESPONSES = Table(
    "responses",
    (
        Column("prompt_id"),
        Column("case_id"),
        Column("source_id"),
        Column("status"),
        Column("text", null=True),
        Column("detail", null=True),
        # What is known of a model's answer; embedded sources and imported answers have none of it.
        Column("flags", null=True, optional=True),  # names of generation.flags.FLAGS, comma-separated
        Column("model", null=True, optional=True),  # as the server names it
        Column("response_id", null=True, optional=True),
        Column("request_id", null=True, optional=True),
        Column("fingerprint", null=True, optional=True),
        Column("finish", null=True, optional=True),
        Column("prompt_tokens", "integer", null=True, optional=True),
        Column("cached_tokens", "integer", null=True, optional=True),
        Column("completion_tokens", "integer", null=True, optional=True),
        Column("reasoning_tokens", "integer", null=True, optional=True),
        Column("cost", "real", null=True, optional=True),  # null: unknown, never 0
        Column("seconds", "real", null=True, optional=True),
        Column("attempts", "integer", null=True, optional=True),
        Column("asked_at", "time", null=True, optional=True),
        Column("answered_at", "time", null=True, optional=True),
        Column("prompt_hash", null=True, optional=True),  # SHA-256 of all that was sent
        Column("question", null=True, optional=True),  # names what was asked of whom, with which settings
        Column("replicate", "integer", null=True, optional=True),
        Column("demo", "boolean", null=True, optional=True),  # not fit for a study's release
    ),
    key=("prompt_id", "source_id"),
)
ITEMS = Table(
    "items",
    (
        Column("label"),
        Column("kind", allowed=KINDS),
        Column("case_id", null=True),
        Column("prompt_id", null=True),
        Column("encounter", null=True),
        Column("turn", "integer", null=True),
        Column("category", null=True),
        Column("form", null=True),
        Column("text", null=True),
    ),
    key=("label",),
)
KEY = Table("key", (Column("label"), Column("source_id")), key=("label",))
ASSIGNMENT = Table(
    "assignment",
    (
        Column("rater_id"),
        Column("position", "integer"),
        Column("label"),
        Column("block", "integer"),
        Column("role", allowed=("main", "repeat", "probe", "train")),
    ),
    key=("rater_id", "position"),
)
RATINGS = Table(
    "ratings",
    (
        Column("rater_id"),
        Column("rater_kind", allowed=RATER_KINDS),
        Column("label"),
        Column("metric_id"),
        Column("occasion", "integer"),
        Column("value", "real", null=True),
        Column("status"),
        Column("reason", null=True),
        Column("simulated", "boolean"),
        # Of judges only.
        Column("model", null=True, optional=True),
        Column("prompt_hash", null=True, optional=True),
        Column("cost", "real", null=True, optional=True),  # a call's cost, in equal parts on its metrics
    ),
    key=("rater_id", "label", "metric_id", "occasion"),
)
ENCOUNTERS = Table(
    "encounters",
    (
        Column("encounter_id"),
        Column("case_id"),
        Column("source_id"),  # the doctor
        Column("patient_id"),  # who played the patient
        Column("replicate", "integer"),
        Column("status", allowed=get_args(EncounterStatus)),
        Column("detail", null=True),
        Column("rounds", "integer"),
        Column("turns"),  # JSON: [{"round", "speaker", "text", "flags"}, …]
        Column("diagnosis", null=True),
        Column("candidates", null=True),  # JSON: [[name, 0 to 100], …]
        Column("flags", null=True),  # comma-separated
        *(
            Column(f"{role}_{name}", kind, null=True)
            for role in ("doctor", "patient")
            for name, kind in (
                ("model", "text"), ("calls", "integer"), ("prompt_tokens", "integer"),
                ("cached_tokens", "integer"), ("completion_tokens", "integer"), ("reasoning_tokens", "integer"),
                ("cost", "real"),
            )
        ),
        Column("cost", "real", null=True),  # null: unknown, never 0
        Column("started", "time", null=True),
        Column("ended", "time", null=True),
        Column("config"),
        Column("demo", "boolean"),
    ),
    key=("encounter_id",),
)  # fmt: skip
TABLES = {t.name: t for t in (RESPONSES, ITEMS, KEY, ASSIGNMENT, RATINGS, ENCOUNTERS)}
MADE_BY = {  # the command that writes a study's file
    "responses": "generation run",
    "items": "study assign",
    "key": "study assign",
    "assignment": "study assign",
    "ratings": "annotation_app export or study import",
}


def read(path: Path, table: Table) -> pd.DataFrame:
    """A table from its Parquet file, checked against its contract.

    Raises
    ------
    TableError : if the file is absent, is not Parquet, or breaks the contract
    """
    return check(read_parquet(path), table, str(path))


def write(frame: pd.DataFrame, path: Path, table: Table, metadata: Mapping[str, str] | None = None) -> None:
    """Check a table and write it whole or not at all; `metadata` goes into the file's schema.

    Raises
    ------
    TableError : if the frame breaks the contract; nothing is written then
    """
    content = _content(frame, table, metadata)
    replaced(path, lambda half: pq.write_table(content, half))


def write_parts(
    frames: Iterable[pd.DataFrame], path: Path, table: Table, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a table that comes in parts, whole or not at all, holding one part in memory at a time.

    The parts have the same columns. A row that stands in two parts is not noticed.

    Raises
    ------
    TableError : if a part breaks the contract, or there is none; nothing is written then
    """

    def written(half: Path) -> None:
        writer = None
        try:
            for frame in frames:
                content = _content(frame, table, metadata)
                writer = writer or pq.ParquetWriter(half, content.schema)
                writer.write_table(content.replace_schema_metadata(writer.schema.metadata))
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise TableError(f"{table.name}: has no row to write")

    replaced(path, written)


def _content(frame: pd.DataFrame, table: Table, metadata: Mapping[str, str] | None) -> pa.Table:
    check(frame, table, table.name)
    present = [c for c in table.columns if c.name in frame.columns]
    schema = pa.schema([pa.field(c.name, _ARROW[c.type], nullable=c.null) for c in present])
    try:
        content = pa.Table.from_pandas(frame[[c.name for c in present]], schema, preserve_index=False)
    except (ValueError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TableError(f"{table.name}: {error}") from None
    notes = {"crossed.table": table.name} | dict(metadata or {})
    return content.replace_schema_metadata({**(content.schema.metadata or {}), **notes})


def typed(rows: Sequence[Mapping[str, object]], table: Table, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a frame in the table's types, with all of its columns or those named; times may be ISO texts."""
    types = {"integer": "Int64", "real": "float64", "boolean": "boolean"}
    made = pd.DataFrame(rows, columns=list(columns or table.names))
    for column in (table.column(name) for name in made.columns):
        if column.type == "time":
            made[column.name] = pd.to_datetime(made[column.name], utc=True, format="ISO8601").astype(
                "datetime64[us, UTC]"
            )
        elif column.type in types:
            made[column.name] = made[column.name].astype(types[column.type])
    return made


def stacked(before: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Two tables of ratings as one, with the columns of either."""
    columns = [c for c in RATINGS.names if c in before.columns or c in rows.columns]
    parts = [f.reindex(columns=columns).astype(object) for f in (before, rows) if len(f)]
    both = pd.concat(parts, ignore_index=True)
    both = both.where(both.notna(), None)
    return both.astype({"occasion": "int64", "value": "float64", "simulated": "bool"})


def metadata(path: Path) -> dict[str, str]:
    """What a Parquet file says about itself (`crossed.…` entries only)."""
    raw = pq.read_schema(path).metadata or {}
    return {k.decode(): v.decode() for k, v in raw.items() if k.startswith(b"crossed.")}


def types(path: Path) -> dict[str, Type | None]:
    """The columns of a Parquet file in their order, each with its type; None for a type that no table has.

    Raises
    ------
    TableError : if the file is absent or is not Parquet
    """
    if not path.is_file():
        raise TableError(f"{path}: no such file")
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError):
        raise TableError(f"{path}: is not a Parquet file") from None
    known = {arrow: name for name, arrow in _ARROW.items()} | {pa.large_string(): "text"}
    return {field.name: known.get(field.type) for field in schema}


def batches(path: Path) -> Iterator[pd.DataFrame]:
    """The rows of any Parquet file in parts, so that a large one is read in little memory."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield batch.to_pandas()


def read_parquet(path: Path) -> pd.DataFrame:
    """Any Parquet file as a frame; a clear sentence where it is none."""
    if not path.is_file():
        maker = MADE_BY.get(path.stem)
        raise TableError(f"{path}: no such file" + (f"; {maker} makes it" if maker else ""))
    try:
        return pq.read_table(path).to_pandas()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError):
        raise TableError(f"{path}: is not a Parquet file; give a .parquet or a .csv file") from None


def replaced(path: Path, writing: Callable[[Path], object]) -> None:
    """Write a file beside `path` and move it there, so that `path` is never half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        writing(half)
        with open(half, "rb") as written:
            os.fsync(written.fileno())
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)


def check(frame: pd.DataFrame, table: Table, where: str) -> pd.DataFrame:
    """The frame itself, if it keeps the table's contract.

    Raises
    ------
    TableError : with all problems, one a line, each naming the column and the first rows concerned
    """
    missing = [c.name for c in table.columns if c.name not in frame.columns and not c.optional]
    unknown = [str(c) for c in frame.columns if c not in table.names]
    problems = [
        f"{where}: column {name} is missing; {table.name} has {', '.join(table.names)}" for name in missing
    ]
    problems += [
        f"{where}: column {name} is unknown; {table.name} has {', '.join(table.names)}" for name in unknown
    ]
    if not problems:
        for column in table.columns:
            if column.name in frame.columns:
                problems += _column_problems(frame[column.name], column, where)
        problems += _key_problems(frame, table, where)
    if problems:
        raise TableError(joined(problems))
    return frame


def check_ratings(ratings: pd.DataFrame, metrics: Iterable[Metric], where: str = "ratings") -> pd.DataFrame:
    """Ratings that keep their contract and their metrics' scales: a value exactly where status is ok.

    Raises
    ------
    TableError : for an unknown metric, a value off the scale, or a value that does not go with its status
    """
    check(ratings, RATINGS, where)
    asked = {m.metric_id: m for m in metrics}
    scales = {m.metric_id: m for m in RULE_METRICS} | asked
    unknown = ratings.loc[~ratings["metric_id"].isin(scales), "metric_id"].unique()
    problems = [
        f"{where}: metric {name} is not in study.toml; its metrics are {', '.join(asked)}" for name in unknown
    ]
    for metric_id, rows in ratings.groupby("metric_id", sort=False, observed=True):
        if metric_id in scales:
            problems += _scale_problems(rows, scales[metric_id], where)
    ok = ratings["status"] == "ok"
    problems += [
        f"{where}: {_who(row)} has status ok and no value" for row in _first(ratings[ok & ratings["value"].isna()])
    ]
    problems += [
        f"{where}: {_who(row)} has status {row.status} and a value; only ok has one"
        for row in _first(ratings[~ok & ratings["value"].notna()])
    ]
    if problems:
        raise TableError(joined(problems))
    return ratings


def _scale_problems(rows: pd.DataFrame, metric: Metric, where: str) -> list[str]:
    value = rows["value"]
    outside = rows[value.notna() & ~value.between(metric.low, metric.high)]
    problems = [
        f"{where}: {row.value:g} by {row.rater_id} on {row.label} is outside {metric.metric_id}'s "
        f"{metric.low:g} to {metric.high:g}"
        for row in _first(outside)
    ]
    if metric.step:
        steps = (value - metric.low) / metric.step
        between = rows[value.between(metric.low, metric.high) & ((steps - steps.round()).abs() > 1e-9)]
        problems += [
            f"{where}: {row.value:g} by {row.rater_id} on {row.label} lies between the points of "
            f"{metric.metric_id}'s scale, which go by {metric.step:g}"
            for row in _first(between)
        ]
    return problems


def _column_problems(values: pd.Series, column: Column, where: str) -> list[str]:
    problems = []
    if not column.null and values.isna().any():
        rows = ", ".join(str(i + 1) for i in _positions(values.isna()))
        problems.append(f"{where}: column {column.name} is empty in row {rows}; it may not be")
    present = values.dropna()
    wrong = present[~_has_type(present, column.type)]
    if len(wrong):
        rows = ", ".join(
            f"{v!r} in row {i + 1}"
            for i, v in zip(_positions(values.index.isin(wrong.index)), wrong, strict=False)
        )
        problems.append(f"{where}: column {column.name} holds {rows}; it takes {column.type}")
    elif column.allowed:
        for found in sorted(set(present) - set(column.allowed)):
            problems.append(f"{where}: column {column.name} holds {found!r}; it takes {', '.join(column.allowed)}")
    return problems


def _key_problems(frame: pd.DataFrame, table: Table, where: str) -> list[str]:
    key = list(table.key)
    if not set(key) <= set(frame.columns):
        return []
    again = frame[frame.duplicated(key)]
    return [
        f"{where}: {', '.join(f'{k} {row[k]}' for k in key)} stands more than once (row {i + 1}); "
        f"a {table.name} row is named by {', '.join(key)}"
        for i, (_, row) in zip(_positions(frame.duplicated(key)), again.head(_SHOWN).iterrows(), strict=False)
    ]


def _has_type(values: pd.Series, kind: Type) -> pd.Series:
    """Which values have a column's type; whole columns of the right dtype need no look at each value."""
    if kind == "time":
        return pd.Series(pd.api.types.is_datetime64_any_dtype(values), index=values.index)
    if kind == "integer" and pd.api.types.is_integer_dtype(values):
        return pd.Series(True, index=values.index)
    if kind == "real" and pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return pd.Series(True, index=values.index)
    if kind == "boolean" and pd.api.types.is_bool_dtype(values):
        return pd.Series(True, index=values.index)
    tests = {
        "text": lambda v: isinstance(v, str),
        "integer": lambda v: not isinstance(v, bool | str) and float(v) == int(v),
        "real": lambda v: not isinstance(v, bool | str),
        "boolean": lambda v: isinstance(v, bool),
    }
    return values.map(tests[kind]).astype(bool)


def _positions(mask: "pd.Series | object") -> list[int]:
    return [i for i, hit in enumerate(mask) if hit][:_SHOWN]


def _first(rows: pd.DataFrame) -> list[object]:
    return list(rows.head(_SHOWN).itertuples())


def _who(row: object) -> str:
    return f"{row.metric_id} by {row.rater_id} on {row.label}"
