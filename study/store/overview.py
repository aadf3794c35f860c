"""What a coordinator may know while people rate: who has come how far, how, and when. No source, no label."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from study.store import schema
from study.store.database import Database


@dataclass(frozen=True)
class Given:
    """The rating that holds in one cell of a panel rater; `item` is the item's number in no telling order."""

    person_id: str
    position: int
    role: str
    item: int
    kind: str
    metric_id: str
    value: float | None
    first_at: str
    characters: int


def given(connection: sa.Connection) -> list[Given]:
    """Every rating that holds, by active raters of the panel, in the order of raters and positions."""
    e, a, i, p, m = schema.rating_event, schema.assignment, schema.item, schema.person, schema.metric
    newest = (
        sa.select(e.c.person_id, e.c.position, e.c.metric_id, sa.func.max(e.c.version).label("version"),
                  sa.func.min(e.c.at).label("first_at"))
        .group_by(e.c.person_id, e.c.position, e.c.metric_id)
        .subquery()
    )  # fmt: skip
    cell = sa.and_(*(e.c[k] == newest.c[k] for k in ("person_id", "position", "metric_id", "version")))
    place = sa.and_(a.c.person_id == e.c.person_id, a.c.position == e.c.position)
    rows = connection.execute(
        sa.select(e.c.person_id, e.c.position, a.c.role, a.c.label, i.c.kind, e.c.metric_id, e.c.value,
                  newest.c.first_at, sa.func.coalesce(sa.func.length(i.c.text), 0))
        .select_from(newest.join(e, cell).join(a, place).join(i).join(p, p.c.person_id == e.c.person_id).join(m))
        .where(p.c.panel, p.c.status == "active", m.c.purpose == "main")
        .order_by(e.c.person_id, e.c.position, m.c.place)
    ).all()  # fmt: skip
    numbers = {label: n for n, label in enumerate(sorted({r.label for r in rows}))}
    return [Given(r[0], r[1], r[2], numbers[r.label], *r[4:]) for r in rows]


def labelled(connection: sa.Connection) -> dict[int, str]:
    """The label of each item number in `given`: for commands beside the key, not for pages."""
    e, a = schema.rating_event, schema.assignment
    place = sa.and_(a.c.person_id == e.c.person_id, a.c.position == e.c.position)
    p, m = schema.person, schema.metric
    rated = connection.execute(
        sa.select(a.c.label).select_from(e.join(a, place).join(p, p.c.person_id == e.c.person_id).join(m))
        .where(p.c.panel, p.c.status == "active", m.c.purpose == "main").distinct()
    ).scalars()
    return dict(enumerate(sorted(rated)))


def seconds_per_item(connection: sa.Connection, person_id: str) -> list[float]:
    """From an item's first showing to its last first rating, for each rated item; long pauses included."""
    x = schema.exposure
    shown = dict(
        connection.execute(
            sa.select(x.c.position, sa.func.min(x.c.at)).where(x.c.person_id == person_id).group_by(x.c.position)
        ).all()
    )
    return [_seconds(shown[p], at) for p, at in rated_at(connection, person_id) if p in shown]


def rated_at(connection: sa.Connection, person_id: str) -> list[tuple[int, str]]:
    """Each rated position, and when the last of its cells was first rated."""
    e = schema.rating_event
    rated = connection.execute(
        sa.select(e.c.position, sa.func.max(e.c.at))
        .where(e.c.person_id == person_id, e.c.version == 1)
        .group_by(e.c.position)
    )
    return [tuple(row) for row in rated]


def dwell(connection: sa.Connection) -> dict[tuple[str, int], tuple[int, int]]:
    """(person, position) → milliseconds visible, and with the keyboard."""
    d = schema.dwell
    rows = connection.execute(
        sa.select(d.c.person_id, d.c.position, sa.func.sum(d.c.visible_ms), sa.func.sum(d.c.focused_ms))
        .group_by(d.c.person_id, d.c.position)
    )  # fmt: skip
    return {(r[0], r[1]): (int(r[2]), int(r[3])) for r in rows}


def trail(connection: sa.Connection, last: int = 50) -> list[tuple[str, str, str]]:
    """The latest entries of the audit: when, who, what."""
    a = schema.audit
    rows = connection.execute(sa.select(a.c.at, a.c.who, a.c.what).order_by(a.c.seq.desc()).limit(last))
    return [tuple(r) for r in rows]


def keep_snapshot(database: Database, content: str) -> None:
    """Keep aggregates by masked source code, computed beside the key, for the coordinator's page."""
    with database.writing() as connection:
        connection.execute(sa.insert(schema.snapshot), {"content": content, "at": database.now()})


def latest_snapshot(connection: sa.Connection) -> tuple[str, str] | None:
    s = schema.snapshot
    row = connection.execute(sa.select(s.c.at, s.c.content).order_by(s.c.id.desc()).limit(1)).one_or_none()
    return tuple(row) if row else None


def _seconds(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
