"""The hash chain through everything given: nothing can be changed, added between or taken away unseen.

Each link holds the salted digest of one row and the hash of all links before it. A row erased by withdrawal
leaves its link behind, so the chain still holds; without the salt the digest says nothing about the row.
"""

import hashlib
import json
import secrets

import sqlalchemy as sa

from study.store import schema
from study.store.database import Database

CHAINED = {
    "rating": schema.rating_event,
    "consent": schema.consent,
    "reference": schema.reference,
    "audit": schema.audit,
}
_LAST = sa.select(schema.chain.c.seq, schema.chain.c.hash).order_by(schema.chain.c.seq.desc()).limit(1)
_LINK = sa.insert(schema.chain)
_INSERTS = {kind: sa.insert(table) for kind, table in CHAINED.items()}


def append(connection: sa.Connection, kind: str, *rows: dict[str, object]) -> None:
    """Write rows into their table as the chain's next links."""
    last = connection.execute(_LAST).one_or_none()
    seq, before = (last.seq, last.hash) if last else (0, "")
    links, sealed = [], []
    for row in rows:
        seq += 1
        sealed.append({**row, "seq": seq, "salt": secrets.token_hex(16)})
        digest = _digest(sealed[-1])
        before = _hash(before, seq, kind, digest)
        links.append({"seq": seq, "kind": kind, "digest": digest, "hash": before})
    connection.execute(_LINK, links)
    connection.execute(_INSERTS[kind], sealed)


def audit(connection: sa.Connection, who: str, what: str, at: str, **detail: object) -> None:
    """Write down that somebody did something that others must be able to see later."""
    text = json.dumps(detail, ensure_ascii=False, sort_keys=True)
    append(connection, "audit", {"who": who, "what": what, "detail": text, "at": at})


def problems(database: Database) -> list[str]:
    """What is wrong with the chain; empty if every row is as it was written and none is missing."""
    found: list[str] = []
    with database.reading() as connection:
        rows = {kind: {r["seq"]: dict(r) for r in connection.execute(sa.select(table)).mappings()}
                for kind, table in CHAINED.items()}
        erased = {
            seq for (text,) in connection.execute(sa.select(schema.withdrawal.c.seqs)) for seq in json.loads(text)
        }
        before, expected = "", 1
        for link in connection.execute(sa.select(schema.chain).order_by(schema.chain.c.seq)):
            if link.seq != expected:
                found.append(f"link {expected} is missing")
            expected = link.seq + 1
            if link.hash != _hash(before, link.seq, link.kind, link.digest):
                found.append(f"link {link.seq} does not follow from the one before it")
            before = link.hash
            row = rows[link.kind].pop(link.seq, None)
            if row is None and link.seq not in erased:
                found.append(f"{link.kind} {link.seq} is missing, and nobody withdrew it")
            if row is not None and _digest(row) != link.digest:
                found.append(f"{link.kind} {link.seq} was changed after it was written")
    found += [f"{kind} {seq} stands outside the chain" for kind, left in rows.items() for seq in left]
    return found


def head(connection: sa.Connection) -> str:
    """The hash of everything given so far."""
    last = sa.select(schema.chain.c.hash).order_by(schema.chain.c.seq.desc()).limit(1)
    return connection.execute(last).scalar_one_or_none() or ""


def _digest(row: dict[str, object]) -> str:
    plain = {k: float(v) if k == "value" and v is not None else v for k, v in row.items()}
    return hashlib.sha256(json.dumps(plain, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def _hash(before: str, seq: int, kind: str, digest: str) -> str:
    return hashlib.sha256(f"{before}\n{seq}\n{kind}\n{digest}".encode()).hexdigest()
