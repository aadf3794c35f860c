"""Who may enter: people, their invitations, their visits. No name and no address is kept, only meaningless ids."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from study.errors import StudyError
from study.store import chain, schema
from study.store.database import Database, Refused
from study.store.identity import identity

VISIT_HOURS = 12
_PERSON = (schema.person.c.person_id, schema.person.c.role, schema.person.c.locale, schema.person.c.status,
           schema.person.c.panel)  # fmt: skip
_VISITOR = (
    sa.select(*_PERSON)
    .join_from(schema.visit, schema.person)
    .where(
        schema.visit.c.cookie_hash == sa.bindparam("cookie"), schema.visit.c.expires_at >= sa.bindparam("now")
    )
)  # built once: building a statement takes longer than SQLite takes to answer it


@dataclass(frozen=True)
class Person:
    """`panel` is false for a preview, whose ratings never enter the study."""

    person_id: str
    role: str
    locale: str
    status: str
    panel: bool


def invite(
    database: Database,
    person_id: str,
    *,
    role: str | None = None,
    locale: str | None = None,
    days: int = 90,
    who: str,
) -> str:
    """A fresh secret token for a person; older ones and open visits end. A new person is added in their role.

    Raises
    ------
    StudyError : for an unknown rater, a role that the person does not have, or a person who has left
    """
    with database.writing() as connection:
        now = database.now()
        person = find(connection, person_id)
        if person is None:
            if role in (None, "rater"):
                raise StudyError(f"{person_id}: is not in study.toml's [panel]; raters are named there")
            person = _add(connection, person_id, role, locale or _language(connection), now)
        if role is not None and role != person.role:
            raise StudyError(f"{person_id}: is a {person.role} already; one person has one role, "
                             "for an author must not rate and a rater must not see who wrote")
        if person.status != "active":
            raise StudyError(f"{person_id}: has left the study ({person.status}); no invitation was made")
        _close_doors(connection, person_id, now)
        token = secrets.token_urlsafe(24)
        expires = (database.clock() + timedelta(days=days)).isoformat(timespec="milliseconds")
        connection.execute(
            sa.insert(schema.invitation),
            {"token_hash": _hash(token), "person_id": person_id, "issued_at": now, "expires_at": expires},
        )
        if locale:
            _set_locale(connection, person_id, locale)
        chain.audit(connection, who, "invited", now, person=person_id)
        return token


def enter(database: Database, token: str) -> str:
    """A cookie for the bearer of a token.

    Raises
    ------
    Refused : if the token is unknown, expired, revoked, or its person has left
    """
    with database.writing() as connection:
        now = database.now()
        found = connection.execute(
            sa.select(schema.invitation, schema.person.c.status)
            .join(schema.person)
            .where(schema.invitation.c.token_hash == _hash(token))
        ).one_or_none()
        if found is None or found.revoked_at is not None or found.status != "active":
            raise Refused("this link is not valid (any more); ask the coordinator for a new one")
        if found.expires_at < now:
            raise Refused("this link has expired; ask the coordinator for a new one")
        cookie = secrets.token_urlsafe(24)
        until = (database.clock() + timedelta(hours=VISIT_HOURS)).isoformat(timespec="milliseconds")
        connection.execute(
            sa.insert(schema.visit),
            {"cookie_hash": _hash(cookie), "person_id": found.person_id, "begun_at": now, "expires_at": until},
        )
        return cookie


def visitor(connection: sa.Connection, cookie: str | None, now: str) -> Person | None:
    """Whose cookie this is, while their visit lasts."""
    if not cookie:
        return None
    row = connection.execute(_VISITOR, {"cookie": _hash(cookie), "now": now}).one_or_none()
    return Person(*row) if row and row.status == "active" else None


def find(connection: sa.Connection, person_id: str) -> Person | None:
    row = connection.execute(sa.select(*_PERSON).where(schema.person.c.person_id == person_id)).one_or_none()
    return Person(*row) if row else None


def everybody(connection: sa.Connection) -> list[Person]:
    return [Person(*row) for row in connection.execute(sa.select(*_PERSON).order_by(schema.person.c.person_id))]


def speak(database: Database, person_id: str, locale: str) -> None:
    """Remember the language that a person chose."""
    with database.writing() as connection:
        _set_locale(connection, person_id, locale)


def preview(database: Database, who: str) -> Person:
    """A rater for trying things out, with the order of the first rater; their ratings never count."""
    with database.writing() as connection:
        now = database.now()
        taken = sum(p.person_id.startswith("preview-") for p in everybody(connection))
        first = connection.execute(
            sa.select(sa.func.min(schema.assignment.c.person_id)).join(schema.person).where(schema.person.c.panel)
        ).scalar_one()
        if first is None:
            raise StudyError("no rater has an order yet; `study assign` makes them")
        person = _add(connection, f"preview-{taken + 1}", "rater", _language(connection), now)
        _copy_order(connection, first, person.person_id)
        chain.audit(connection, who, "preview", now, person=person.person_id)
        return person


def replace(database: Database, old: str, new: str, who: str) -> None:
    """Let a new rater take the place and order of one who dropped out; what the old one gave stays outside.

    Raises
    ------
    StudyError : if the old one is no active rater, or the new name is taken
    """
    with database.writing() as connection:
        now = database.now()
        person = find(connection, old)
        if person is None or person.role != "rater" or person.status != "active":
            raise StudyError(f"{old}: is not an active rater, so nobody can take their place")
        if find(connection, new) is not None:
            raise StudyError(f"{new}: is a name already taken; give the new rater another")
        leave(connection, old, "replaced", now)
        _add(connection, new, "rater", person.locale, now, panel=person.panel)
        _copy_order(connection, old, new)
        chain.audit(connection, who, "replaced", now, old=old, new=new)


def leave(connection: sa.Connection, person_id: str, status: str, now: str) -> None:
    """End a person's part: their links and visits close at once."""
    _close_doors(connection, person_id, now)
    person = schema.person
    connection.execute(sa.update(person).where(person.c.person_id == person_id).values(status=status))


def steps(connection: sa.Connection, person_id: str) -> set[str]:
    """The steps on the way to rating that a person has taken: instructions, training, …"""
    query = sa.select(schema.step.c.name).where(schema.step.c.person_id == person_id)
    return set(connection.execute(query).scalars())


def take_step(database: Database, person_id: str, name: str) -> None:
    with database.writing() as connection:
        if name not in steps(connection, person_id):
            connection.execute(
                sa.insert(schema.step), {"person_id": person_id, "name": name, "at": database.now()}
            )


def _add(
    connection: sa.Connection, person_id: str, role: str, locale: str, now: str, panel: bool = False
) -> Person:
    person = Person(person_id, role, locale, "active", panel)
    connection.execute(sa.insert(schema.person), {**vars(person), "since": now})
    connection.execute(sa.insert(schema.cursor), {"person_id": person_id, "position": 1})
    return person


def _copy_order(connection: sa.Connection, old: str, new: str) -> None:
    a = schema.assignment
    rows = sa.select(sa.literal(new), a.c.position, a.c.label, a.c.block, a.c.role).where(a.c.person_id == old)
    connection.execute(sa.insert(a).from_select(["person_id", "position", "label", "block", "role"], rows))


def _close_doors(connection: sa.Connection, person_id: str, now: str) -> None:
    invitation, visit = schema.invitation, schema.visit
    connection.execute(
        sa.update(invitation)
        .where(invitation.c.person_id == person_id, invitation.c.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    connection.execute(sa.delete(visit).where(visit.c.person_id == person_id))


def _set_locale(connection: sa.Connection, person_id: str, locale: str) -> None:
    person = schema.person
    connection.execute(sa.update(person).where(person.c.person_id == person_id).values(locale=locale))


def _language(connection: sa.Connection) -> str:
    return identity(connection).language


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
