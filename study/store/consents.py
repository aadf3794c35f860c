"""Who agreed to what: each consent with the text's version and hash, its language and its time."""

import hashlib
import json
from collections.abc import Mapping

import sqlalchemy as sa

from study.store import chain, schema
from study.store.database import Database, Refused


def agree(
    database: Database, person_id: str, *, version: str, text: str, locale: str, choices: Mapping[str, bool]
) -> None:
    """Keep a consent. Agreeing twice to the same version keeps the first.

    Raises
    ------
    Refused : if participation itself is not agreed to
    """
    if not choices.get("participation"):
        raise Refused("without consent to take part there is nothing to keep")
    with database.writing() as connection:
        if agreed(connection, person_id, version):
            return
        row = {
            "person_id": person_id, "version": version, "text_hash": hashlib.sha256(text.encode()).hexdigest(),
            "locale": locale, "choices": json.dumps(dict(choices), sort_keys=True), "at": database.now(),
        }  # fmt: skip
        chain.append(connection, "consent", row)


def agreed(connection: sa.Connection, person_id: str, version: str) -> bool:
    c = schema.consent
    query = sa.select(c.c.seq).where(c.c.person_id == person_id, c.c.version == version)
    return connection.execute(query).first() is not None
