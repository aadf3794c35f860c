"""Taking a person's data out again: rows are erased, the chain's links stay, and a receipt says what went."""

import json
import sqlite3
from dataclasses import dataclass

import sqlalchemy as sa

from study.errors import StudyError
from study.store import chain, people, schema
from study.store.database import Database


@dataclass(frozen=True)
class Receipt:
    """What was erased, and the copies made earlier that still hold it."""

    person_id: str
    at: str
    erased: dict[str, int]
    backups: tuple[str, ...]


def withdraw(database: Database, person_id: str, who: str) -> Receipt:
    """Erase everything that a person gave, and close their way in.

    The room that the rows took is overwritten, so that no trace stays in the file. Copies made by `backup`
    cannot be reached from here: the receipt lists them. After the lock nothing can be taken out any more,
    for results may stand on it already.

    Raises
    ------
    StudyError : if there is no such person, or the study is locked
    """
    with database.writing() as connection:
        person = people.find(connection, person_id)
        if person is None or person.role == "coordinator":
            raise StudyError(f"{person_id}: no such rater or expert")
        if connection.execute(sa.select(schema.seal).where(schema.seal.c.what == "lock")).first():
            raise StudyError(f"{person_id}: the study is locked; what was given can no longer be taken out")
        if person.status == "withdrawn":
            raise StudyError(f"{person_id}: has withdrawn already")
        now = database.now()
        people.leave(connection, person_id, "withdrawn", now)
        mine = [
            seq
            for kind, table in chain.CHAINED.items()
            if kind != "audit"
            for seq in connection.execute(sa.select(table.c.seq).where(table.c.person_id == person_id)).scalars()
        ]
        row = {"person_id": person_id, "seqs": json.dumps(sorted(mine)), "at": now}
        connection.execute(sa.insert(schema.withdrawal), row)
        erased = {
            table.name: connection.execute(sa.delete(table).where(table.c.person_id == person_id)).rowcount
            for table in schema.ROWS_OF_A_PERSON
        }
        copies = tuple(connection.execute(sa.select(schema.backup.c.path)).scalars())
        chain.audit(connection, who, "withdrawn", now, person=person_id, erased=erased)
    _overwrite(database)
    return Receipt(person_id, now, {k: n for k, n in erased.items() if n}, copies)


def _overwrite(database: Database) -> None:
    """Leave no page of the file, and no page of its journal, that still holds erased rows."""
    if database.engine.dialect.name == "sqlite":
        database.engine.dispose()
        raw = sqlite3.connect(database.engine.url.database, isolation_level=None, timeout=10)
        raw.execute("vacuum")
        raw.execute("pragma wal_checkpoint(truncate)")
        raw.close()
        return
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in schema.ROWS_OF_A_PERSON:
            connection.exec_driver_sql(f"vacuum full {table.name}")
