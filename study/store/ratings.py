"""Ratings as they are given: one event per click, the newest version of each cell is what holds.

A cell is one metric at one position of a rater's order. Its versions count 1, 2, 3 …; who writes must say which
version they saw, so that nobody's value is overwritten unseen.
"""

import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import sqlalchemy as sa

from study.records import Metric
from study.store import chain, schema
from study.store.database import Conflict, Database, Refused
from study.store.identity import secret

# Statements of every click, built once: building one takes longer than SQLite takes to answer it.
_E, _A, _C = schema.rating_event, schema.assignment, schema.cursor
_ROW = (_E.c.person_id, _E.c.position, _E.c.metric_id, _E.c.value, _E.c.reason, _E.c.version, _E.c.tab, _E.c.at)
_PERSON, _POSITION = sa.bindparam("person"), sa.bindparam("position")
_BY_NONCE = sa.select(*_ROW).where(_E.c.nonce == sa.bindparam("nonce"))
_HERE = sa.select(*_ROW).where(_E.c.person_id == _PERSON, _E.c.position == _POSITION).order_by(_E.c.version)
_CELL = (
    sa.select(*_ROW)
    .where(_E.c.person_id == _PERSON, _E.c.position == _POSITION, _E.c.metric_id == sa.bindparam("metric"))
    .order_by(_E.c.version.desc())
    .limit(1)
)
_ASSIGNED = sa.select(_A.c.label).where(_A.c.person_id == _PERSON, _A.c.position == _POSITION)
_CURSOR = sa.select(_C.c.position).where(_C.c.person_id == _PERSON)
_STANDING = sa.select(
    _CURSOR.scalar_subquery(),
    sa.select(sa.func.count()).where(_E.c.person_id == _PERSON, _E.c.version == 1).scalar_subquery(),
)

REASONS = ("unclear", "outside_my_knowledge", "not_shown", "other")


@dataclass(frozen=True)
class Mark:
    """What a rater says in one cell: a value, or that they cannot judge and why. Version 0 is nothing yet."""

    value: float | None = None
    reason: str | None = None
    version: int = 0
    tab: str = ""
    at: str = ""

    @property
    def given(self) -> bool:
        return self.version > 0

    @property
    def content(self) -> tuple[float | None, str | None]:
        return (self.value, self.reason)


@dataclass(frozen=True)
class Item:
    """What stands at one position of a rater's order."""

    position: int
    block: int
    label: str
    kind: str
    case_id: str
    encounter: str
    turn: int | None


@dataclass(frozen=True)
class Turn:
    question: str
    answer: str
    turn: int


@dataclass(frozen=True)
class Progress:
    """Cells rated and to rate, and where in the rater's order they stand."""

    rated: int
    cells: int
    position: int
    positions: int
    block: int
    blocks: int

    @property
    def complete(self) -> bool:
        return self.rated >= self.cells


def save(
    database: Database,
    person_id: str,
    position: int,
    metric_id: str,
    *,
    value: float | None = None,
    reason: str | None = None,
    base_version: int,
    nonce: str,
    tab: str = "",
) -> Mark:
    """Write one rating; when this returns, it is on the disk. The same nonce again returns what it wrote.

    Raises
    ------
    Refused : for a value off the scale, an item or metric not this rater's, an unknown reason, a locked study
    Conflict : if the cell has a newer version than the one that was seen
    StoreError : if the database cannot be written now
    """
    _check_value(value, reason)
    with database.writing() as connection:
        before = connection.execute(_BY_NONCE, {"nonce": nonce}).one_or_none()
        if before is not None:
            if (before.person_id, before.position, before.metric_id) != (person_id, position, metric_id):
                raise Refused("a nonce belongs to one click only")
            return _mark(before)
        _check_assigned(connection, person_id, position)
        found = mark(connection, person_id, position, metric_id)
        if found.version != base_version:
            raise Conflict(f"{metric_id} was changed elsewhere: {found.version} holds, {base_version} was seen")
        now = database.now()
        row = {
            "nonce": nonce, "person_id": person_id, "position": position, "metric_id": metric_id,
            "version": base_version + 1, "status": "ok" if reason is None else "cannot_judge",
            "value": None if value is None else float(value), "reason": reason, "tab": tab, "at": now,
        }  # fmt: skip
        chain.append(connection, "rating", row)
        return Mark(row["value"], reason, base_version + 1, tab, now)


def mark(connection: sa.Connection, person_id: str, position: int, metric_id: str) -> Mark:
    """What holds in one cell now."""
    cell = {"person": person_id, "position": position, "metric": metric_id}
    row = connection.execute(_CELL, cell).one_or_none()
    return _mark(row) if row else Mark()


def marks(connection: sa.Connection, person_id: str, position: int) -> dict[str, Mark]:
    """What holds in each cell of one position."""
    rows = connection.execute(_HERE, {"person": person_id, "position": position})
    return {row.metric_id: _mark(row) for row in rows}


def marks_of(
    connection: sa.Connection, person_id: str, position: int, versions: Mapping[str, int]
) -> dict[str, Mark]:
    """What the cells of one position held in some earlier versions, metric by metric."""
    rows = connection.execute(_HERE, {"person": person_id, "position": position})
    return {row.metric_id: _mark(row) for row in rows if versions.get(row.metric_id) == row.version}


def metrics(connection: sa.Connection, purpose: str | None = None) -> list[Metric]:
    """The study's metrics in their order."""
    m = schema.metric
    rows = connection.execute(sa.select(m).order_by(m.c.place))
    return [
        Metric(r.metric_id, r.item, r.low, r.high, r.level, r.question, tuple(json.loads(r.anchors)), r.step)
        for r in rows
        if purpose in (None, r.purpose)
    ]


def item_at(connection: sa.Connection, person_id: str, position: int) -> Item | None:
    a, i = schema.assignment, schema.item
    row = connection.execute(
        sa.select(a.c.position, a.c.block, i.c.label, i.c.kind, i.c.case_id, i.c.encounter, i.c.turn)
        .join_from(a, i)
        .where(a.c.person_id == person_id, a.c.position == position)
    ).one_or_none()
    return Item(*row[:5], row.encounter or row.label, row.turn) if row else None


def block_at(connection: sa.Connection, person_id: str, block: int) -> tuple[int, int]:
    """The first position of a block of the rater's order, and how many positions it has."""
    a = schema.assignment
    within = sa.select(sa.func.min(a.c.position), sa.func.count())
    return tuple(connection.execute(within.where(a.c.person_id == person_id, a.c.block == block)).one())


def dialogue(connection: sa.Connection, item: Item) -> list[Turn]:
    """The turns of the item's encounter, up to and with the item's own; all of them for an encounter."""
    i, p = schema.item, schema.prompt
    query = (
        sa.select(p.c.text.label("question"), i.c.text.label("answer"), i.c.turn)
        .join_from(i, p, i.c.prompt_id == p.c.prompt_id)
        .where(i.c.encounter == item.encounter)
        .order_by(i.c.turn)
    )
    if item.turn is not None:
        query = query.where(i.c.turn <= item.turn)
    return [Turn(*row) for row in connection.execute(query)]


def case_sheet(connection: sa.Connection, case_id: str) -> tuple[str, Mapping[str, str]]:
    """A case's title and what may be read of it."""
    c = schema.case_sheet
    row = connection.execute(sa.select(c.c.title, c.c.sheet).where(c.c.case_id == case_id)).one()
    return row.title, json.loads(row.sheet)


def opaque(connection: sa.Connection, person_id: str, position: int) -> str:
    """The name under which a position travels to the browser: it says nothing, and differs between raters."""
    return hmac.new(secret(connection), f"{person_id}\n{position}".encode(), sha256).hexdigest()[:16]


def progress(connection: sa.Connection, person_id: str) -> Progress:
    """How far a rater has come; every assigned cell counts, repeats and probes too."""
    e, a, i, m, c = schema.rating_event, schema.assignment, schema.item, schema.metric, schema.cursor
    rated = sa.select(sa.func.count()).where(e.c.person_id == person_id, e.c.version == 1)
    asked = a.join(i).join(m, m.c.item == i.c.kind)
    cells = sa.select(sa.func.count()).select_from(asked).where(a.c.person_id == person_id)
    position = sa.select(c.c.position).where(c.c.person_id == person_id)
    places = sa.select(sa.func.count()).where(a.c.person_id == person_id)
    block = sa.select(a.c.block).where(a.c.person_id == person_id, a.c.position == position.scalar_subquery())
    blocks = sa.select(sa.func.max(a.c.block)).where(a.c.person_id == person_id)
    parts = [q.scalar_subquery() for q in (rated, cells, position, places, block, blocks)]
    return Progress(*(n or 0 for n in connection.execute(sa.select(*parts)).one()))


def standing(connection: sa.Connection, person_id: str) -> tuple[int, int]:
    """The rater's cursor, and how many cells they have rated."""
    return tuple(connection.execute(_STANDING, {"person": person_id}).one())


def position_of(connection: sa.Connection, person_id: str) -> int:
    return connection.execute(_CURSOR, {"person": person_id}).scalar_one()


def missing_at(connection: sa.Connection, person_id: str, position: int) -> list[str]:
    """The metrics of one position that have no mark yet."""
    a, i, m = schema.assignment, schema.item, schema.metric
    asked = connection.execute(
        sa.select(m.c.metric_id)
        .select_from(a.join(i).join(m, m.c.item == i.c.kind))
        .where(a.c.person_id == person_id, a.c.position == position)
        .order_by(m.c.place)
    ).scalars()
    given = marks(connection, person_id, position)
    return [metric_id for metric_id in asked if metric_id not in given]


def first_open(connection: sa.Connection, person_id: str) -> int | None:
    """The first position of a rater's order with an empty cell."""
    a, i, m, e = schema.assignment, schema.item, schema.metric, schema.rating_event
    given = sa.and_(
        e.c.person_id == a.c.person_id, e.c.position == a.c.position,
        e.c.metric_id == m.c.metric_id, e.c.version == 1,
    )  # fmt: skip
    return connection.execute(
        sa.select(sa.func.min(a.c.position))
        .select_from(a.join(i).join(m, m.c.item == i.c.kind).outerjoin(e, given))
        .where(a.c.person_id == person_id, e.c.seq.is_(None))
    ).scalar_one_or_none()


def advance(database: Database, person_id: str, seen: int) -> bool:
    """Step on from the position that was seen, if all of it is rated; false if somebody stepped already.

    Raises
    ------
    Refused : if something there is not rated yet
    """
    with database.writing() as connection:
        if position_of(connection, person_id) != seen:
            return False
        if missing := missing_at(connection, person_id, seen):
            raise Refused(f"not everything here is rated yet: {', '.join(missing)}")
        return _move(connection, person_id, seen, seen + 1)


def retreat(database: Database, person_id: str, seen: int) -> bool:
    """Step back from the position that was seen; false at the first one, or if somebody stepped already."""
    with database.writing() as connection:
        return seen > 1 and _move(connection, person_id, seen, seen - 1)


def jump(database: Database, person_id: str, seen: int) -> bool:
    """Go to the first position that is not wholly rated, or behind the last if all are."""
    with database.writing() as connection:
        a = schema.assignment
        last = connection.execute(
            sa.select(sa.func.max(a.c.position)).where(a.c.person_id == person_id)
        ).scalar_one_or_none()
        return _move(connection, person_id, seen, first_open(connection, person_id) or (last or 0) + 1)


def _move(connection: sa.Connection, person_id: str, seen: int, to: int) -> bool:
    c = schema.cursor
    moved = connection.execute(
        sa.update(c).where(c.c.person_id == person_id, c.c.position == seen).values(position=to)
    )
    return moved.rowcount == 1


def _check_value(value: object, reason: object) -> None:
    if (value is None) == (reason is None):
        raise Refused("a rating is a value, or a reason why none can be given")
    if reason is not None and reason not in REASONS:
        raise Refused(f"{reason!r} is no reason; there are {', '.join(REASONS)}")
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
    ):
        raise Refused(f"{value!r} is not a value of the scale")


def _check_assigned(connection: sa.Connection, person_id: str, position: int) -> None:
    found = connection.execute(_ASSIGNED, {"person": person_id, "position": position}).one_or_none()
    if found is None:
        raise Refused("this item is not assigned to this person")


def _mark(row: sa.Row) -> Mark:
    return Mark(row.value, row.reason, row.version, row.tab, row.at)
