"""Closing a study: lock when everything is given, unblind only after that, and both leave their mark."""

import json
from dataclasses import dataclass

import sqlalchemy as sa

from study.errors import StudyError, joined
from study.store import chain, ratings, schema
from study.store.database import Database, Refused

_SHOWN = 20  # gaps that a refusal names
_LOCKED = sa.select(schema.seal.c.what).where(schema.seal.c.what == "lock")


@dataclass(frozen=True)
class Gap:
    """Cells that an active rater has not rated."""

    person_id: str
    cells: int
    first_position: int


def gaps(connection: sa.Connection) -> list[Gap]:
    """Active raters of the panel with empty cells, excused ones left out."""
    p, x = schema.person, schema.excuse
    excused = set(connection.execute(sa.select(x.c.person_id)).scalars())
    raters = connection.execute(
        sa.select(p.c.person_id)
        .where(p.c.role == "rater", p.c.panel, p.c.status == "active")
        .order_by(p.c.person_id)
    ).scalars()
    found = []
    for person_id in raters:
        if person_id not in excused and (first := ratings.first_open(connection, person_id)) is not None:
            so_far = ratings.progress(connection, person_id)
            found.append(Gap(person_id, so_far.cells - so_far.rated, first))
    return found


def locked(connection: sa.Connection) -> bool:
    return connection.execute(_LOCKED).first() is not None


def sealed(connection: sa.Connection, what: str) -> dict[str, object] | None:
    """The manifest under which the study was locked or unblinded; None if it was not."""
    s = schema.seal
    row = connection.execute(sa.select(s.c.manifest).where(s.c.what == what)).scalar_one_or_none()
    return json.loads(row) if row else None


def excuse(database: Database, person_id: str, reason: str, who: str) -> None:
    """Let a rater's empty cells be missing for a stated reason.

    Raises
    ------
    StudyError : without a reason, or if there is no such active rater
    """
    if not reason.strip():
        raise StudyError(f"{person_id}: missing ratings need a reason; give one, such as ill or left")
    with database.writing() as connection:
        p = schema.person
        active = p.c.person_id == person_id, p.c.role == "rater", p.c.status == "active"
        if connection.execute(sa.select(p.c.person_id).where(*active)).first() is None:
            raise StudyError(f"{person_id}: no such active rater")
        if connection.execute(sa.select(schema.excuse).where(schema.excuse.c.person_id == person_id)).first():
            return
        now = database.now()
        connection.execute(sa.insert(schema.excuse), {"person_id": person_id, "reason": reason.strip(), "at": now})
        chain.audit(connection, who, "excused", now, person=person_id, reason=reason)


def lock(database: Database, who: str) -> dict[str, object]:
    """Close the study for good; returns the manifest, whose hash stands for every rating given.

    Raises
    ------
    StudyError : as long as anything is neither rated nor excused; the gaps are named
    """
    with database.writing() as connection:
        if (manifest := sealed(connection, "lock")) is not None:
            return manifest
        open_places = connection.execute(sa.select(sa.func.count()).select_from(schema.assignment)).scalar_one()
        if not open_places:
            raise StudyError("nothing is assigned yet, so there is nothing to lock")
        if missing := gaps(connection):
            lines = [f"{g.person_id}: {g.cells} ratings missing, the first at position {g.first_position}"
                     for g in missing[:_SHOWN]]
            lines += [f"and {len(missing) - _SHOWN} raters more"] if len(missing) > _SHOWN else []
            raise StudyError(joined([*lines, "not locked: raters finish, or are excused with a reason first"]))
        now = database.now()
        count = connection.execute(sa.select(sa.func.count()).select_from(schema.rating_event)).scalar_one()
        manifest = {"locked_at": now, "rating_events": count, "chain": chain.head(connection)}
        chain.audit(connection, who, "locked", now, **manifest)
        row = {"what": "lock", "who": who, "manifest": json.dumps(manifest), "at": now}
        connection.execute(sa.insert(schema.seal), row)
        return manifest


def unblind(database: Database, key_digest: str, who: str) -> dict[str, object]:
    """Write down, for all to see, that the key was opened; possible only once the study is locked.

    Raises
    ------
    Refused : before the lock
    """
    with database.writing() as connection:
        if not locked(connection):
            raise Refused("the study is not locked; sources stay masked until it is")
        if (manifest := sealed(connection, "unblind")) is not None:
            return manifest
        now = database.now()
        manifest = {"unblinded_at": now, "key": key_digest, "lock": sealed(connection, "lock")["chain"]}
        chain.audit(connection, who, "unblinded", now, **manifest)
        row = {"what": "unblind", "who": who, "manifest": json.dumps(manifest), "at": now}
        connection.execute(sa.insert(schema.seal), row)
        return manifest
