"""The expert's reference answers, written blind: a sent answer is locked before anything else can be seen."""

from dataclasses import dataclass

import sqlalchemy as sa

from study.store import chain, schema
from study.store.database import Database, Refused


@dataclass(frozen=True)
class Question:
    """One prompt to answer, and how many stand before it."""

    prompt_id: str
    case_id: str
    turn: int
    text: str


@dataclass(frozen=True)
class Answered:
    question: str
    answer: str
    turn: int


def next_question(connection: sa.Connection, author: str) -> Question | None:
    """The first prompt, in the order of cases and turns, that this author has not answered."""
    p, r = schema.prompt, schema.reference
    mine = sa.and_(r.c.prompt_id == p.c.prompt_id, r.c.person_id == author)
    row = connection.execute(
        sa.select(p.c.prompt_id, p.c.case_id, p.c.turn, p.c.text)
        .outerjoin(r, mine)
        .where(r.c.seq.is_(None))
        .order_by(p.c.place)
        .limit(1)
    ).one_or_none()
    return Question(*row) if row else None


def dialogue(connection: sa.Connection, author: str, case_id: str) -> list[Answered]:
    """What this author has answered in a case so far; nobody else's words."""
    p, r = schema.prompt, schema.reference
    query = (
        sa.select(p.c.text, r.c.text, p.c.turn)
        .join_from(p, r)
        .where(r.c.person_id == author, p.c.case_id == case_id)
        .order_by(p.c.place)
    )
    return [Answered(*row) for row in connection.execute(query)]


def counts(connection: sa.Connection, author: str) -> tuple[int, int]:
    """Answers given, and prompts in all."""
    given = sa.select(sa.func.count()).where(schema.reference.c.person_id == author).scalar_subquery()
    asked = sa.select(sa.func.count()).select_from(schema.prompt).scalar_subquery()
    return tuple(connection.execute(sa.select(given, asked)).one())


def send(database: Database, author: str, prompt_id: str, text: str, *, blind: bool) -> bool:
    """Lock an answer; false if this author's answer to the prompt is locked already.

    Raises
    ------
    Refused : if the text is empty, blindness is not attested, the prompt is not the next one, or the sender is
        no expert
    """
    text = text.strip()
    if not text:
        raise Refused("an answer has at least one character")
    if not blind:
        raise Refused("an answer needs its author's word that it was written without seeing another")
    with database.writing() as connection:
        role = schema.person.c.role
        if connection.execute(sa.select(role).where(schema.person.c.person_id == author)).scalar_one() != "expert":
            raise Refused("only an expert writes reference answers")
        r = schema.reference
        done = sa.select(r.c.seq).where(r.c.person_id == author, r.c.prompt_id == prompt_id)
        if connection.execute(done).first():
            return False
        following = next_question(connection, author)
        if following is None or following.prompt_id != prompt_id:
            raise Refused("questions are answered in their order")
        row = {"person_id": author, "prompt_id": prompt_id, "text": text, "blind": blind, "at": database.now()}
        chain.append(connection, "reference", row)
        d = schema.draft
        connection.execute(sa.delete(d).where(d.c.person_id == author, d.c.place == f"reference {prompt_id}"))
        return True
