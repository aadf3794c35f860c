"""Opening the ratings database, reading it, and writing to it one writer at a time."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, InterfaceError, InternalError, OperationalError

from study.errors import StudyError
from study.store import schema

log = logging.getLogger("crossed.store")

Connection = sa.Connection  # an open transaction, as `Database.reading` and `Database.writing` give it

_BUSY_MS = 10_000
_WRITERS = 0x43524F53  # key of PostgreSQL's advisory lock: one writer at a time


class StoreError(StudyError):
    """The database could not be read or written now. Nothing was half written; trying again is safe."""


class Refused(StudyError):
    """The database does not take this: off the scale, not assigned, locked, or not this person's."""


class Conflict(StudyError):
    """Somebody else, or another window, wrote here first. Nothing was overwritten."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(eq=False)
class Database:
    """An open ratings database. `clock` gives the time that is written into rows."""

    engine: sa.Engine
    clock: Callable[[], datetime] = utc_now
    _writer: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def now(self) -> str:
        return self.clock().isoformat(timespec="milliseconds")

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view of the database.

        Raises
        ------
        StoreError : if the database cannot be reached
        """
        with _spoken(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction: all of it is on the disk when the block ends, or none of it.

        Raises
        ------
        StoreError : if the database cannot be written (full disk, lost connection, locked too long)
        Refused : if a rule or constraint of the database forbids it
        """
        with _spoken(), self._writer, self.engine.connect() as connection:
            connection = connection.execution_options(crossed_writes=True)
            with connection.begin():
                if self.engine.dialect.name == "postgresql":
                    connection.execute(sa.text(f"select pg_advisory_xact_lock({_WRITERS})"))
                yield connection

    def close(self) -> None:
        self.engine.dispose()


def open_database(url: str, clock: Callable[[], datetime] = utc_now) -> Database:
    """The database at a URL (`sqlite:///…`, `postgresql://…`) or in a file; made and migrated where needed.

    Raises
    ------
    StudyError : if the URL is of no kind we know, or the database is of a newer layout
    StoreError : if it cannot be reached
    """
    database = Database(_engine(url), clock)
    with database.writing() as connection:
        _migrate(connection, database.now())
    return database


def ping(database: Database) -> None:
    """Raise StoreError unless the database answers."""
    with database.reading() as connection:
        connection.execute(sa.select(sa.literal(1)))


def backup(database: Database, path: Path) -> None:
    """A copy that the database knows of, so that a withdrawal can name the files that still hold the person."""
    copy(database, path)
    with database.writing() as connection:
        connection.execute(sa.insert(schema.backup), {"path": str(path), "at": database.now()})


def copy(database: Database, path: Path) -> None:
    """A whole copy of the database in one new SQLite file, whatever kind the database is.

    Raises
    ------
    StudyError : if the file exists
    """
    if path.exists():
        raise StudyError(f"{path}: exists; a backup never overwrites. Give another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    if database.engine.dialect.name == "sqlite":
        with database.writing():  # no write may fall between, and VACUUM runs outside a transaction
            target = str(path).replace("'", "''")
            raw = sqlite3.connect(database.engine.url.database, isolation_level=None)
            raw.execute(f"vacuum into '{target}'")
            raw.close()
        return
    twin = open_database(f"sqlite:///{path}")
    with database.reading() as source, twin.engine.connect() as target:
        triggers = target.exec_driver_sql("select name, sql from sqlite_master where type = 'trigger'").all()
        for name, _ in triggers:
            target.exec_driver_sql(f"drop trigger {name}")
        target.execute(sa.delete(schema.schema_version))
        for table in schema.metadata.sorted_tables:
            rows = [dict(r) for r in source.execute(sa.select(table)).mappings()]
            if rows:
                target.execute(sa.insert(table), rows)
        for _, sql in triggers:
            target.exec_driver_sql(sql)
        target.commit()
    twin.close()


def _engine(url: str) -> sa.Engine:
    if "://" not in url:
        url = f"sqlite:///{url}"
    if url.startswith(("postgres://", "postgresql://")):
        url = "postgresql+psycopg://" + url.split("://", 1)[1]
        return sa.create_engine(url, pool_pre_ping=True, pool_size=5, max_overflow=10, hide_parameters=True)
    if not url.startswith("sqlite:///"):
        raise StudyError(f"{url.split('://')[0]}: no such kind of database; give a file, sqlite:///… or postgresql://…")
    Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, pool_size=5, max_overflow=30, hide_parameters=True)
    sa.event.listen(engine, "connect", _prepared)
    sa.event.listen(engine, "begin", _begun)
    return engine


def _prepared(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
    connection.execute(f"pragma busy_timeout = {_BUSY_MS}")
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma secure_delete = on")


def _begun(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("crossed_writes")
    connection.exec_driver_sql("begin immediate" if writes else "begin")


def _migrate(connection: sa.Connection, now: str) -> None:
    dialect = connection.dialect.name
    if not sa.inspect(connection).has_table("schema_version"):
        schema.metadata.create_all(connection)
        for rule in schema.RULES:
            for statement in schema.rule_ddl(rule, dialect):
                connection.exec_driver_sql(statement)
        connection.execute(sa.insert(schema.schema_version), {"version": schema.VERSION, "at": now})
        return
    found = connection.execute(sa.select(sa.func.max(schema.schema_version.c.version))).scalar_one()
    if found > schema.VERSION:
        raise StudyError(f"the database has layout {found}, this program knows up to {schema.VERSION}; upgrade it")
    for version in range(found + 1, schema.VERSION + 1):
        for statement in schema.MIGRATIONS[version]:
            connection.exec_driver_sql(statement)
        connection.execute(sa.insert(schema.schema_version), {"version": version, "at": now})


@contextmanager
def _spoken() -> Iterator[None]:
    """Database errors as the three things that a caller can do something about."""
    try:
        yield
    except IntegrityError as error:
        text = str(error.orig).splitlines()[0]
        if "refused: " in text:
            raise Refused(text.split("refused: ", 1)[1]) from None
        if "unique" in text.lower():
            raise Conflict(f"written meanwhile by another: {text}") from None
        raise Refused(text) from None
    except (OperationalError, InterfaceError, InternalError, sa.exc.TimeoutError) as error:
        text = str(getattr(error, "orig", error)).splitlines()[0] or type(error).__name__
        log.error("database: %s", text)
        raise StoreError(f"the database cannot be used now ({text}); nothing is half written, try again") from None
