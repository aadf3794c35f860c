"""Training against anchors: first answers, results of each attempt, and a coordinator's word on the rest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from study.errors import StudyError
from study.store import chain, people, schema
from study.store.database import Database, Refused


@dataclass(frozen=True)
class Anchor:
    """A rated example: what is shown, the experts' consensus per metric, and why."""

    form: str
    number: int
    kind: str
    case: str
    turns: tuple[tuple[str, str], ...]
    consensus: Mapping[str, float]
    rationale: Mapping[str, str]


@dataclass(frozen=True)
class Attempt:
    """Attempt 1 is practice with feedback (stage `pre`); later ones are tests without (`post`)."""

    attempt: int
    form: str
    stage: str
    result: Mapping[str, object]
    passed: bool


def anchors(connection: sa.Connection) -> list[Anchor]:
    a = schema.anchor
    rows = connection.execute(sa.select(a).order_by(a.c.form, a.c.number))
    return [_anchor(r) for r in rows]


def offered(connection: sa.Connection) -> bool:
    """Whether the study has anchors to train with."""
    return connection.execute(sa.select(schema.anchor.c.form).limit(1)).first() is not None


def answers(connection: sa.Connection, person_id: str, attempt: int) -> dict[tuple[int, str], float]:
    """First answers of one attempt: (anchor number, metric) → value."""
    t = schema.training_answer
    rows = connection.execute(
        sa.select(t.c.number, t.c.metric_id, t.c.value).where(t.c.person_id == person_id, t.c.attempt == attempt)
    )
    return {(r.number, r.metric_id): r.value for r in rows}


def attempts(connection: sa.Connection, person_id: str) -> list[Attempt]:
    t = schema.training_result
    rows = connection.execute(sa.select(t).where(t.c.person_id == person_id).order_by(t.c.attempt))
    return [Attempt(r.attempt, r.form, r.stage, json.loads(r.result), r.passed) for r in rows]


def answer(
    database: Database, person_id: str, attempt: int, form: str, number: int, values: Mapping[str, float]
) -> None:
    """Keep the answers to one anchor, all its metrics together; the first ones stay, later ones are not kept.

    Raises
    ------
    Refused : for a metric that the anchor does not have, or a value off its scale
    """
    with database.writing() as connection:
        found = {(a.form, a.number): a for a in anchors(connection)}.get((form, number))
        if found is None or set(values) != set(found.consensus):
            raise Refused("an anchor is answered on all of its metrics, and only on those")
        scales = {r.metric_id: r for r in connection.execute(sa.select(schema.metric))}
        for metric_id, value in values.items():
            if not scales[metric_id].low <= value <= scales[metric_id].high:
                raise Refused(f"{value!r} is off the scale of {metric_id}")
        if (number, next(iter(values))) in answers(connection, person_id, attempt):
            return
        now = database.now()
        rows = [
            {"person_id": person_id, "attempt": attempt, "form": form, "number": number, "metric_id": m,
             "value": float(v), "at": now}
            for m, v in values.items()
        ]  # fmt: skip
        connection.execute(sa.insert(schema.training_answer), rows)


def conclude(database: Database, person_id: str, attempt: Attempt) -> None:
    """Keep how an attempt went; once is enough."""
    with database.writing() as connection:
        if any(a.attempt == attempt.attempt for a in attempts(connection, person_id)):
            return
        row = {**vars(attempt), "result": json.dumps(dict(attempt.result)), "person_id": person_id}
        connection.execute(sa.insert(schema.training_result), {**row, "at": database.now()})


def admit(database: Database, person_id: str, who: str) -> None:
    """Let somebody rate who did not pass, on the coordinator's word.

    Raises
    ------
    StudyError : if there is no such rater
    """
    with database.writing() as connection:
        person = people.find(connection, person_id)
        if person is None or person.role != "rater":
            raise StudyError(f"{person_id}: no such rater")
        if "admitted" in people.steps(connection, person_id):
            return
        now = database.now()
        connection.execute(sa.insert(schema.step), {"person_id": person_id, "name": "admitted", "at": now})
        chain.audit(connection, who, "admitted", now, person=person_id)


def _anchor(row: sa.Row) -> Anchor:
    content = json.loads(row.content)
    return Anchor(
        row.form, row.number, row.kind, content.get("case", ""), tuple(tuple(t) for t in content["turns"]),
        content["consensus"], content["rationale"],
    )  # fmt: skip
