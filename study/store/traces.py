"""What surrounds a rating: what was on whose screen and when, for how long, flags and comments, unsent text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from study.store import schema
from study.store.database import Conflict, Database, Refused

FLAGS = ("offensive", "identifies_somebody", "display_error", "not_answerable")
_LONGEST_TEXT = 20_000  # characters
_LONGEST_STAY = 60 * 60 * 1000  # ms that one report may claim; nobody looks at an item for longer
_N, _D = schema.note, schema.draft
_NOTE = (
    sa.select(_N.c.flag, _N.c.text, _N.c.version, _N.c.tab)
    .where(_N.c.person_id == sa.bindparam("person"), _N.c.position == sa.bindparam("position"))
    .order_by(_N.c.version.desc())
    .limit(1)
)
_DRAFT = sa.select(_D.c.text).where(
    _D.c.person_id == sa.bindparam("person"), _D.c.place == sa.bindparam("place")
)


@dataclass(frozen=True)
class Note:
    """Flag and comment on one position; version 0 is none yet."""

    flag: str = ""
    text: str = ""
    version: int = 0
    tab: str = ""


def show(
    database: Database, person_id: str, *, position: int | None, label: str | None = None,
    prompt_id: str | None = None, tab: str, versions: Mapping[str, int], what: str = "item",
) -> None:  # fmt: skip
    """Write down that something is on a person's screen, and which versions of their ratings it shows.

    Raises
    ------
    Refused : if an author would see an answer to a question that they have not answered
    """
    row = {
        "person_id": person_id, "what": what, "label": label, "prompt_id": prompt_id, "position": position,
        "tab": tab, "versions": json.dumps(dict(versions)), "at": database.now(),
    }  # fmt: skip
    with database.writing() as connection:
        connection.execute(sa.insert(schema.exposure), row)


def seen(connection: sa.Connection, person_id: str, position: int, tab: str) -> dict[str, int] | None:
    """The versions of a position's cells that a window shows: those it was last given, or wrote itself since.

    None if the window has never shown the position.
    """
    x, e = schema.exposure, schema.rating_event
    last = connection.execute(
        sa.select(x.c.versions)
        .where(x.c.person_id == person_id, x.c.position == position, x.c.tab == tab)
        .order_by(x.c.id.desc())
        .limit(1)
    ).scalar_one_or_none()
    if last is None:
        return None
    versions = json.loads(last)
    own = connection.execute(
        sa.select(e.c.metric_id, sa.func.max(e.c.version))
        .where(e.c.person_id == person_id, e.c.position == position, e.c.tab == tab)
        .group_by(e.c.metric_id)
    )
    for metric_id, version in own:
        versions[metric_id] = max(version, versions.get(metric_id, 0))
    return versions


def note_at(connection: sa.Connection, person_id: str, position: int) -> Note:
    row = connection.execute(_NOTE, {"person": person_id, "position": position}).one_or_none()
    return Note(*row) if row else Note()


def write_note(
    database: Database, person_id: str, position: int, flag: str, text: str, *, base_version: int, tab: str
) -> Note:
    """Keep a flag and a comment as the note's next version; the unsent draft of it is done with.

    Raises
    ------
    Conflict : if another window wrote a newer note
    """
    if flag not in ("", *FLAGS) or len(text) > _LONGEST_TEXT:
        raise Refused(f"a flag is one of {', '.join(FLAGS)}, and a comment has at most {_LONGEST_TEXT} characters")
    with database.writing() as connection:
        before = note_at(connection, person_id, position)
        if before.version != base_version and before.tab != tab:
            raise Conflict("the comment was changed in another window")
        note = Note(flag, text, before.version + 1, tab)
        connection.execute(
            sa.insert(schema.note),
            {**vars(note), "person_id": person_id, "position": position, "at": database.now()},
        )
        _drop_draft(connection, person_id, f"note {position}")
        return note


def draft_at(connection: sa.Connection, person_id: str, place: str) -> str | None:
    """Text that a person typed and has not sent yet."""
    return connection.execute(_DRAFT, {"person": person_id, "place": place}).scalar_one_or_none()


def keep_draft(database: Database, person_id: str, place: str, text: str, tab: str) -> None:
    """Keep unsent text as it stands; the latest replaces the one before, for nobody has given it yet."""
    if len(text) > _LONGEST_TEXT:
        raise Refused(f"a text has at most {_LONGEST_TEXT} characters")
    with database.writing() as connection:
        if connection.execute(sa.select(schema.seal.c.what).where(schema.seal.c.what == "lock")).first():
            raise Refused("the study is locked")
        _drop_draft(connection, person_id, place)
        row = {"person_id": person_id, "place": place, "text": text, "tab": tab, "at": database.now()}
        connection.execute(sa.insert(schema.draft), row)


def stay(database: Database, person_id: str, position: int, visible_ms: int, focused_ms: int) -> None:
    """Add time for which an item was visible, and had the keyboard, since the last report."""
    if not 0 <= focused_ms <= visible_ms <= _LONGEST_STAY:
        raise Refused("no such time: focused is at most visible, and an hour at most")
    with database.writing() as connection:
        row = {"person_id": person_id, "position": position, "visible_ms": visible_ms, "focused_ms": focused_ms}
        connection.execute(sa.insert(schema.dwell), {**row, "at": database.now()})


def _drop_draft(connection: sa.Connection, person_id: str, place: str) -> None:
    d = schema.draft
    connection.execute(sa.delete(d).where(d.c.person_id == person_id, d.c.place == place))
