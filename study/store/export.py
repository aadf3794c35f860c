"""From the database to tables: ratings.parquet as the analysis reads it, and beside it everything else given.

The same database gives the same bytes every time.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import sqlalchemy as sa

from study import tables
from study.errors import StudyError
from study.store import chain, schema, seals
from study.store.database import Database

_COLUMNS = [c.name for c in tables.RATINGS.columns]


@dataclass(frozen=True)
class Exported:
    """Frames of everything given.

    ratings : the table `ratings`, items of role main, one row per rater × item × metric of the study
    repeats, probes : the same for the items of those roles; a repeat's occasion counts from 2
    blinding : what raters guessed about who wrote an encounter's answers
    history : every rating event, corrected ones too
    notes, references, training : comments and flags, the experts' answers, results of the training
    """

    ratings: pd.DataFrame
    repeats: pd.DataFrame
    probes: pd.DataFrame
    blinding: pd.DataFrame
    history: pd.DataFrame
    notes: pd.DataFrame
    references: pd.DataFrame
    training: pd.DataFrame
    chain: str
    locked: bool


def export(database: Database) -> Exported:
    """Everything that active raters of the panel gave; what they did not rate has status missing."""
    with database.reading() as connection:
        cells = _cells(connection)
        main, blinding = cells[cells["purpose"] == "main"], cells[cells["purpose"] == "blinding"]
        active = set(cells["rater_id"])
        return Exported(
            ratings=_ratings(main[main["role"] == "main"]),
            repeats=_ratings(main[main["role"] == "repeat"]),
            probes=_ratings(main[main["role"].isin(["probe", "train"])]),
            blinding=_ratings(blinding[blinding["role"] == "main"]),
            history=_history(connection, active),
            notes=_notes(connection, active),
            references=_references(connection),
            training=_training(connection, active),
            chain=chain.head(connection),
            locked=seals.locked(connection),
        )


def write(database: Database, path: Path, extras: Path | None = None) -> dict[str, int]:
    """Write ratings.parquet and its CSV twin, and the other frames into the folder `extras`.

    Rows of judges and rules that `path` holds stay in it, after those of people.

    Returns
    -------
    the number of rows in each file

    Raises
    ------
    StudyError : if `path` holds simulated ratings, or there is nothing to export
    """
    if path.exists() and tables.metadata(path).get("crossed.simulated") == "true":
        raise StudyError(f"{path}: holds simulated ratings, which an export would bury; export to another file")
    found = export(database)
    if found.ratings.empty:
        raise StudyError("the database has no assigned items, so there is nothing to export")
    locked = str(found.locked).lower()
    notes = {"crossed.chain": found.chain, "crossed.locked": locked, "crossed.simulated": "false"}
    ratings = _with_automated(found.ratings, path)
    tables.write(ratings, path, tables.RATINGS, notes)
    _write_csv(ratings, path.with_suffix(".csv"))
    extras = extras or path.with_name(f"{path.stem}-more")
    rows = {path.name: len(ratings), path.with_suffix(".csv").name: len(ratings)}
    for name in ("repeats", "probes", "blinding", "history", "notes", "references", "training"):
        frame = getattr(found, name)
        _write_csv(frame, extras / f"{name}.csv")
        rows[f"{extras.name}/{name}.csv"] = len(frame)
    return rows


def _with_automated(ratings: pd.DataFrame, path: Path) -> pd.DataFrame:
    """People's ratings, and those of judges and rules that a file holds."""
    if not path.exists():
        return ratings
    before = tables.read(path, tables.RATINGS)
    others = before[before["rater_kind"] != "human"]
    return tables.stacked(ratings, others) if len(others) else ratings


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    tables.replaced(path, lambda half: frame.to_csv(half, index=False, lineterminator="\n"))


def _cells(connection: sa.Connection) -> pd.DataFrame:
    """Every assigned cell of active panel raters, with what holds in it."""
    a, i, m, p = schema.assignment, schema.item, schema.metric, schema.person
    e, x = schema.rating_event, schema.excuse
    newest = (
        sa.select(e.c.person_id, e.c.position, e.c.metric_id, sa.func.max(e.c.version).label("version"))
        .group_by(e.c.person_id, e.c.position, e.c.metric_id)
        .subquery()
    )
    where = sa.and_(
        newest.c.person_id == a.c.person_id, newest.c.position == a.c.position, newest.c.metric_id == m.c.metric_id
    )
    cell = sa.and_(*(e.c[k] == newest.c[k] for k in ("person_id", "position", "metric_id", "version")))
    rows = connection.execute(
        sa.select(
            a.c.person_id.label("rater_id"), a.c.position, a.c.role, a.c.label, m.c.metric_id, m.c.purpose,
            e.c.status, e.c.value, e.c.reason, x.c.reason.label("excuse"),
        )
        .select_from(
            a.join(p).join(i).join(m, m.c.item == i.c.kind)
            .outerjoin(newest, where).outerjoin(e, cell).outerjoin(x, x.c.person_id == a.c.person_id)
        )
        .where(p.c.panel, p.c.status == "active")
        .order_by(a.c.person_id, a.c.position, m.c.place)
    )  # fmt: skip
    frame = pd.DataFrame(rows.all(), columns=list(rows.keys()))
    frame["value"] = frame["value"].astype("float64")
    for name in ("status", "reason", "excuse"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    return frame


def _ratings(cells: pd.DataFrame) -> pd.DataFrame:
    missing = cells["status"].isna()
    nth = cells.groupby(["rater_id", "label", "metric_id"], sort=False).cumcount()
    return pd.DataFrame(
        {
            "rater_id": cells["rater_id"],
            "rater_kind": "human",
            "label": cells["label"],
            "metric_id": cells["metric_id"],
            "occasion": (nth + 1 + (cells["role"] == "repeat")).astype("int64"),
            "value": cells["value"],
            "status": cells["status"].where(~missing, "missing"),
            "reason": cells["reason"].where(~missing, cells["excuse"]),
            "simulated": False,
        },
        columns=_COLUMNS,
    ).reset_index(drop=True)


def _history(connection: sa.Connection, raters: set[str]) -> pd.DataFrame:
    e, a = schema.rating_event, schema.assignment
    place = sa.and_(a.c.person_id == e.c.person_id, a.c.position == e.c.position)
    return _frame(
        connection,
        sa.select(e.c.person_id.label("rater_id"), e.c.position, a.c.role, a.c.label, e.c.metric_id, e.c.version,
                  e.c.status, e.c.value, e.c.reason, e.c.at)
        .join_from(e, a, place)
        .where(e.c.person_id.in_(raters))
        .order_by(e.c.seq),
    )  # fmt: skip


def _notes(connection: sa.Connection, raters: set[str]) -> pd.DataFrame:
    n, a = schema.note, schema.assignment
    return _frame(
        connection,
        sa.select(
            n.c.person_id.label("rater_id"), n.c.position, a.c.label, n.c.version, n.c.flag, n.c.text, n.c.at
        )
        .join_from(n, a)
        .where(n.c.person_id.in_(raters))
        .order_by(n.c.person_id, n.c.position, n.c.version),
    )  # fmt: skip


def _references(connection: sa.Connection) -> pd.DataFrame:
    r, p = schema.reference, schema.prompt
    return _frame(
        connection,
        sa.select(r.c.prompt_id, r.c.person_id.label("author_id"), r.c.text, r.c.blind, r.c.at)
        .join_from(r, p)
        .order_by(r.c.person_id, p.c.place),
    )


def _training(connection: sa.Connection, raters: set[str]) -> pd.DataFrame:
    t = schema.training_result
    return _frame(
        connection,
        sa.select(
            t.c.person_id.label("rater_id"), t.c.attempt, t.c.form, t.c.stage, t.c.result, t.c.passed, t.c.at
        )
        .where(t.c.person_id.in_(raters))
        .order_by(t.c.person_id, t.c.attempt),
    )


def _frame(connection: sa.Connection, query: sa.Select) -> pd.DataFrame:
    rows = connection.execute(query)
    return pd.DataFrame(rows.all(), columns=list(rows.keys()))

