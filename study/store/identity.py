"""What a founded study is and stays: its title, language and settings, and the secret of its names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from study.store import schema

_SECRET = sa.select(schema.study.c.secret)


@dataclass(frozen=True)
class Identity:
    """The study that a database belongs to, as it was founded."""

    title: str
    language: str
    settings: Mapping[str, object]


def identity(connection: sa.Connection) -> Identity:
    s = schema.study
    row = connection.execute(sa.select(s.c.title, s.c.language, s.c.settings)).one()
    return Identity(row.title, row.language, json.loads(row.settings))


def secret(connection: sa.Connection) -> bytes:
    """What opaque names and masked codes are made from; it never leaves the server."""
    return bytes.fromhex(connection.execute(_SECRET).scalar_one())
