"""What may leave the database: whether the study is locked, and whose ratings may be shared."""

import json
from dataclasses import dataclass

import sqlalchemy as sa

from study.store import schema, seals
from study.store.database import Database


@dataclass(frozen=True)
class Permissions:
    """Who consented, who of them to sharing as well, and who withdrew. A person's newest consent counts.

    `study_id` is None where nobody has laid a study into the database.
    """

    study_id: str | None
    locked: bool
    consented: frozenset[str]
    sharing: frozenset[str]
    withdrawn: frozenset[str]


def permissions(database: Database) -> Permissions:
    c, p = schema.consent, schema.person
    with database.reading() as connection:
        given = {
            row.person_id: json.loads(row.choices)
            for row in connection.execute(sa.select(c.c.person_id, c.c.choices).order_by(c.c.seq))
        }
        gone = connection.execute(sa.select(p.c.person_id).where(p.c.status == "withdrawn")).scalars()
        return Permissions(
            study_id=connection.execute(sa.select(schema.study.c.study_id)).scalar_one_or_none(),
            locked=seals.locked(connection),
            consented=frozenset(n for n, choices in given.items() if choices.get("participation")),
            sharing=frozenset(n for n, choices in given.items() if choices.get("sharing")),
            withdrawn=frozenset(gone),
        )
