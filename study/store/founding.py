"""A study laid into its database: metrics, cases, prompts, and, once they exist, items and who rates them.

Nothing here knows sources, the key or the seed, so whatever reads the database cannot tell them.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from study.errors import StudyError
from study.records import Case, Content, Metric
from study.store import chain, schema
from study.store.database import Database

GUESS = (  # asked after an encounter where the study wants to know whether its raters stayed blind
    Metric("author_guess", "encounter", 1, 2, "nominal"),
    Metric("author_confidence", "encounter", 1, 4, "ordinal"),
)


@dataclass(frozen=True)
class Founded:
    """What the database of a study holds."""

    items: int
    places: int
    people: int


def found(
    database: Database,
    *,
    study_id: str,
    title: str,
    language: str,
    digest: str,
    metrics: Iterable[Metric],
    content: Content,
    raters: Iterable[str],
    settings: Mapping[str, object],
    items: Iterable[Mapping[str, object]] = (),
    assignment: Iterable[Mapping[str, object]] = (),
    anchors: Iterable[Mapping[str, object]] = (),
) -> Founded:
    """Lay a study into its database, or add what has come since; doing it again changes nothing.

    Parameters
    ----------
    items, assignment : rows of the tables of that name; empty as long as there are no responses
    anchors : rated examples for the training, each with form, number, kind and its content

    Raises
    ------
    StudyError : if the database belongs to another study, or metrics, items or orders are no longer those
        under which people have rated
    """
    rows = [_metric_row(m, i, "main") for i, m in enumerate(metrics)]
    if settings.get("guess"):
        rows += [_metric_row(m, len(rows) + i, "blinding") for i, m in enumerate(GUESS)]
    raters, items, assignment = list(raters), list(items), list(assignment)
    with database.reading() as connection:
        if _nothing_new(connection, study_id, rows, raters, items, assignment):
            return _counts(connection)
    with database.writing() as connection:
        now = database.now()
        owner = connection.execute(sa.select(schema.study.c.study_id)).scalar_one_or_none()
        if owner is None:
            _begin(connection, study_id, title, language, digest, settings, rows, content, now)
            connection.execute(sa.insert(schema.anchor), [_anchor_row(a) for a in anchors]) if anchors else None
            chain.audit(connection, "founding", "founded", now, digest=digest)
        elif owner != study_id:
            raise StudyError(f"the database belongs to the study {owner}, not to {study_id}; give each its own")
        _same(connection, schema.metric, rows, "metrics")
        _add_people(connection, raters, language, now)
        _add_once(connection, schema.item, [_item_row(i) for i in items], "items")
        _add_once(connection, schema.assignment, [_place_row(a) for a in assignment], "assignment")
        return _counts(connection)


def _nothing_new(
    connection: sa.Connection,
    study_id: str,
    metrics: list[dict[str, object]],
    raters: list[str],
    items: list[Mapping[str, object]],
    assignment: list[Mapping[str, object]],
) -> bool:
    """Whether the folder holds what the database holds, so that no writer has to wait for a look.

    Raises
    ------
    StudyError : where the two differ in what may not change
    """
    if connection.execute(sa.select(schema.study.c.study_id)).scalar_one_or_none() != study_id:
        return False
    _same(connection, schema.metric, metrics, "metrics")
    known = set(connection.execute(sa.select(schema.person.c.person_id)).scalars())
    return (
        known >= set(raters)
        and _held(connection, schema.item, [_item_row(i) for i in items], "items")
        and _held(connection, schema.assignment, [_place_row(a) for a in assignment], "assignment")
    )


def _counts(connection: sa.Connection) -> Founded:
    return Founded(*(
        connection.execute(sa.select(sa.func.count()).select_from(t)).scalar_one()
        for t in (schema.item, schema.assignment, schema.person)
    ))  # fmt: skip


def _begin(
    connection: sa.Connection,
    study_id: str,
    title: str,
    language: str,
    digest: str,
    settings: Mapping[str, object],
    metrics: list[dict[str, object]],
    content: Content,
    now: str,
) -> None:
    connection.execute(
        sa.insert(schema.study),
        {
            "study_id": study_id, "title": title, "language": language, "digest": digest, "founded_at": now,
            "settings": json.dumps(dict(settings), ensure_ascii=False), "secret": secrets.token_hex(32),
        },
    )  # fmt: skip
    connection.execute(sa.insert(schema.metric), metrics)
    sheets = [{"case_id": c.case_id, "title": c.title, "sheet": _sheet(c)} for c in content.cases.values()]
    connection.execute(sa.insert(schema.case_sheet), sheets)
    places = {case_id: i for i, case_id in enumerate(content.cases)}
    prompts = sorted(content.prompts, key=lambda p: (places[p.case_id], p.turn))
    connection.execute(
        sa.insert(schema.prompt),
        [{"prompt_id": p.prompt_id, "case_id": p.case_id, "place": i, "turn": p.turn, "text": p.text}
         for i, p in enumerate(prompts)],
    )  # fmt: skip


def _add_people(connection: sa.Connection, raters: Iterable[str], language: str, now: str) -> None:
    known = set(connection.execute(sa.select(schema.person.c.person_id)).scalars())
    new = [
        {"person_id": r, "role": "rater", "panel": True, "locale": language, "status": "active", "since": now}
        for r in raters
        if r not in known
    ]
    if new:
        connection.execute(sa.insert(schema.person), new)
        connection.execute(
            sa.insert(schema.cursor), [{"person_id": r["person_id"], "position": 1} for r in new]
        )


def _add_once(connection: sa.Connection, table: sa.Table, rows: list[dict[str, object]], what: str) -> None:
    """Rows into a table that is still empty; the same rows again are no change, others are an error."""
    if not _held(connection, table, rows, what):
        connection.execute(sa.insert(table), rows)


def _held(connection: sa.Connection, table: sa.Table, rows: list[dict[str, object]], what: str) -> bool:
    """Whether a table holds just these rows; false if it is empty yet, an error if it holds others."""
    if not rows:
        return True
    key = [c.name for c in table.primary_key]
    there = connection.execute(sa.select(table)).mappings().all()
    if not there:
        return False
    mine = {tuple(r[k] for k in key): r for r in rows}
    if table is schema.assignment:  # previews and replacements have rows of their own
        there = [r for r in there if r["person_id"] in {m["person_id"] for m in rows}]
    if {tuple(r[k] for k in key): dict(r) for r in there} != mine:
        raise StudyError(
            f"the database holds other {what} than the study folder; people may have rated them already. "
            "Work in a new folder, or put back the files under which it was founded"
        )
    return True


def _same(connection: sa.Connection, table: sa.Table, rows: list[dict[str, object]], what: str) -> None:
    there = [dict(r) for r in connection.execute(sa.select(table).order_by(table.c.place)).mappings()]
    if there != rows:
        raise StudyError(f"study.toml's {what} are not those of the database any more; put them back, "
                         "or give the changed study a new folder")


def _metric_row(metric: Metric, place: int, purpose: str) -> dict[str, object]:
    row = asdict(metric) | {"place": place, "purpose": purpose}
    row["anchors"] = json.dumps(list(metric.anchors), ensure_ascii=False)
    return {c.name: float(row[c.name]) if c.name in ("low", "high") else row[c.name] for c in schema.metric.c}


def _sheet(case: Case) -> str:
    """What raters and authors may read of a case: the patient, not how a model is told to play them."""
    persona = case.persona
    return json.dumps(
        {
            "chief_complaint": case.chief_complaint,
            "door_note": case.door_note,
            "demographic_context": persona.demographic_context,
            "clinical_state": persona.clinical_state,
            "history": persona.history,
            "conversational_style": persona.conversational_style,
        },
        ensure_ascii=False,
    )


def _item_row(item: Mapping[str, object]) -> dict[str, object]:
    return {c.name: _plain(item.get(c.name)) for c in schema.item.c}


def _place_row(place: Mapping[str, object]) -> dict[str, object]:
    return {
        "person_id": str(place["rater_id"]), "position": int(place["position"]), "label": str(place["label"]),
        "block": int(place["block"]), "role": str(place["role"]),
    }  # fmt: skip


def _anchor_row(anchor: Mapping[str, object]) -> dict[str, object]:
    content = {k: v for k, v in anchor.items() if k not in ("form", "number", "kind")}
    return {
        "form": anchor["form"], "number": anchor["number"], "kind": anchor["kind"],
        "content": json.dumps(content, ensure_ascii=False),
    }  # fmt: skip


def _plain(value: object) -> object:
    """A cell of a frame as a plain value; anything missing is None."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value.item() if hasattr(value, "item") else value


def manifest_of(rows: Iterable[Iterable[object]]) -> str:
    """One hash for a list of rows, in their order."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(list(row), ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()
