"""Sources under masked codes A, B, C …: what may be looked at before the study is unblinded.

Needs the key, so it runs in commands beside it. Only the aggregates go into the database, for the coordinator's
page; which label has which code does not.
"""

import hmac
import json
from hashlib import sha256
from string import ascii_uppercase

from annotation_app import quality
from study.store import overview, ratings
from study.store.database import Database
from study.store.identity import secret


def codes(database: Database, sources: list[str]) -> dict[str, str]:
    """Source → code, in an order that only this database's secret tells; the same each time."""
    with database.reading() as connection:
        key = secret(connection)
    order = sorted(sources, key=lambda s: hmac.new(key, s.encode(), sha256).digest())
    return {source: ascii_uppercase[i] if i < 26 else f"Z{i}" for i, source in enumerate(order)}


def by_code(database: Database, source_of: dict[str, str]) -> list[dict[str, object]]:
    """Mean and agreement per masked code and metric; kept for the coordinator's page.

    Parameters
    ----------
    source_of : label → source, the key
    """
    code = codes(database, sorted(set(source_of.values())))
    with database.reading() as connection:
        given = [g for g in overview.given(connection) if g.value is not None and g.role == "main"]
        labels = overview.labelled(connection)
        metrics = [m.metric_id for m in ratings.metrics(connection, "main")]
    rows = []
    for letter in sorted(code.values()):
        mine = [g for g in given if code[source_of[labels[g.item]]] == letter]
        for metric_id in metrics:
            values = [g.value for g in mine if g.metric_id == metric_id]
            if values:
                found = quality.agreements([g for g in mine if g.metric_id == metric_id], [metric_id])[0]
                rows.append(
                    {"code": letter, "metric": metric_id, "count": len(values), "mean": sum(values) / len(values),
                     "icc_single": found.icc_single, "alpha": found.alpha}
                )  # fmt: skip
    overview.keep_snapshot(database, json.dumps(rows))
    return rows
