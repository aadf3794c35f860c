"""The database's tables, and the rules that the database itself enforces whoever writes to it."""

from dataclasses import dataclass

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

VERSION = 1  # of the layout; migrations below lead from older ones to it

metadata = MetaData()


def _table(name: str, *columns: object) -> Table:
    return Table(name, metadata, *columns)


schema_version = _table("schema_version", Column("version", Integer, primary_key=True), Column("at", Text))
study = _table(
    "study",
    Column("study_id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("founded_at", Text, nullable=False),
)
metric = _table(
    "metric",
    Column("metric_id", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("item", Text, nullable=False),
    Column("low", Float, nullable=False),
    Column("high", Float, nullable=False),
    Column("step", Float),
    Column("level", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("anchors", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    CheckConstraint("purpose in ('main', 'blinding')"),
)
case_sheet = _table(
    "case_sheet",
    Column("case_id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("sheet", Text, nullable=False),
)
prompt = _table(
    "prompt",
    Column("prompt_id", Text, primary_key=True),
    Column("case_id", Text, ForeignKey("case_sheet.case_id"), nullable=False),
    Column("place", Integer, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("text", Text, nullable=False),
)
item = _table(
    "item",
    Column("label", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("case_id", Text),
    Column("prompt_id", Text),
    Column("encounter", Text),
    Column("turn", Integer),
    Column("text", Text),
    Index("item_of_encounter", "encounter", "turn"),
)
person = _table(
    "person",
    Column("person_id", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("panel", Boolean, nullable=False),
    Column("locale", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("since", Text, nullable=False),
    CheckConstraint("role in ('rater', 'expert', 'coordinator')"),
    CheckConstraint("status in ('active', 'replaced', 'withdrawn')"),
)
invitation = _table(
    "invitation",
    Column("token_hash", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("person.person_id"), nullable=False),
    Column("issued_at", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
    Column("revoked_at", Text),
)
visit = _table(
    "visit",
    Column("cookie_hash", Text, primary_key=True),
    Column("person_id", Text, ForeignKey("person.person_id"), nullable=False),
    Column("begun_at", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
)
assignment = _table(
    "assignment",
    Column("person_id", Text, ForeignKey("person.person_id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("label", Text, ForeignKey("item.label"), nullable=False),
    Column("block", Integer, nullable=False),
    Column("role", Text, nullable=False),
)
cursor = _table(
    "cursor",
    Column("person_id", Text, ForeignKey("person.person_id"), primary_key=True),
    Column("position", Integer, nullable=False),
)
chain = _table(
    "chain",
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
rating_event = _table(
    "rating_event",
    Column("seq", Integer, ForeignKey("chain.seq"), primary_key=True, autoincrement=False),
    Column("nonce", Text, nullable=False, unique=True),
    Column("person_id", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("metric_id", Text, ForeignKey("metric.metric_id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("value", Float),
    Column("reason", Text),
    Column("tab", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("salt", Text, nullable=False),
    UniqueConstraint("person_id", "position", "metric_id", "version"),
    ForeignKeyConstraint(["person_id", "position"], ["assignment.person_id", "assignment.position"]),
    CheckConstraint("status in ('ok', 'cannot_judge')"),
    CheckConstraint("(status = 'ok') = (value is not null)"),
    CheckConstraint("(status = 'cannot_judge') = (reason is not null)"),
    CheckConstraint("version >= 1"),
    Index("rating_event_firsts", "person_id", "version", "position"),
)
consent = _table(
    "consent",
    Column("seq", Integer, ForeignKey("chain.seq"), primary_key=True, autoincrement=False),
    Column("person_id", Text, ForeignKey("person.person_id"), nullable=False),
    Column("version", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("locale", Text, nullable=False),
    Column("choices", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("salt", Text, nullable=False),
)
reference = _table(
    "reference",
    Column("seq", Integer, ForeignKey("chain.seq"), primary_key=True, autoincrement=False),
    Column("person_id", Text, ForeignKey("person.person_id"), nullable=False),
    Column("prompt_id", Text, ForeignKey("prompt.prompt_id"), nullable=False),
    Column("text", Text, nullable=False),
    Column("blind", Boolean, nullable=False),
    Column("at", Text, nullable=False),
    Column("salt", Text, nullable=False),
    UniqueConstraint("person_id", "prompt_id"),
    CheckConstraint("length(trim(text)) > 0"),
)
audit = _table(
    "audit",
    Column("seq", Integer, ForeignKey("chain.seq"), primary_key=True, autoincrement=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("salt", Text, nullable=False),
)
step = _table(
    "step",
    Column("person_id", Text, ForeignKey("person.person_id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("at", Text, nullable=False),
)
note = _table(
    "note",
    Column("person_id", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("flag", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("tab", Text, nullable=False),
    Column("at", Text, nullable=False),
    ForeignKeyConstraint(["person_id", "position"], ["assignment.person_id", "assignment.position"]),
)
draft = _table(
    "draft",
    Column("person_id", Text, ForeignKey("person.person_id"), primary_key=True),
    Column("place", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("tab", Text, nullable=False),
    Column("at", Text, nullable=False),
)
dwell = _table(
    "dwell",
    Column("id", Integer, primary_key=True),
    Column("person_id", Text, ForeignKey("person.person_id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("visible_ms", Integer, nullable=False),
    Column("focused_ms", Integer, nullable=False),
    Column("at", Text, nullable=False),
    CheckConstraint("visible_ms >= 0 and focused_ms >= 0"),
)
exposure = _table(
    "exposure",
    Column("id", Integer, primary_key=True),
    Column("person_id", Text, ForeignKey("person.person_id"), nullable=False),
    Column("what", Text, nullable=False),
    Column("label", Text, ForeignKey("item.label")),
    Column("prompt_id", Text, ForeignKey("prompt.prompt_id")),
    Column("position", Integer),
    Column("tab", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("at", Text, nullable=False),
    Index("exposure_of_item", "person_id", "position"),
)
anchor = _table(
    "anchor",
    Column("form", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
)
training_answer = _table(
    "training_answer",
    Column("person_id", Text, ForeignKey("person.person_id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("metric_id", Text, primary_key=True),
    Column("form", Text, nullable=False),
    Column("value", Float, nullable=False),
    Column("at", Text, nullable=False),
)
training_result = _table(
    "training_result",
    Column("person_id", Text, ForeignKey("person.person_id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("form", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("passed", Boolean, nullable=False),
    Column("at", Text, nullable=False),
)
excuse = _table(
    "excuse",
    Column("person_id", Text, ForeignKey("person.person_id"), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("at", Text, nullable=False),
)
seal = _table(
    "seal",
    Column("what", Text, primary_key=True),
    Column("who", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("at", Text, nullable=False),
    CheckConstraint("what in ('lock', 'unblind')"),
)
withdrawal = _table(
    "withdrawal",
    Column("person_id", Text, primary_key=True),
    Column("seqs", Text, nullable=False),
    Column("at", Text, nullable=False),
)
snapshot = _table(
    "snapshot",
    Column("id", Integer, primary_key=True),
    Column("content", Text, nullable=False),
    Column("at", Text, nullable=False),
)
backup = _table("backup", Column("path", Text, primary_key=True), Column("at", Text, nullable=False))

ROWS_OF_A_PERSON = (  # erased when the person withdraws, in this order
    rating_event, consent, reference, note, draft, dwell, exposure, training_answer, training_result,
    step, visit, invitation, cursor,
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A refusal inside the database: before `event` on `table`, if `condition` holds, fail with `says`."""

    name: str
    table: str
    event: str
    condition: str
    says: str


_KEPT = (  # append-only, but for withdrawal
    "rating_event", "consent", "reference", "note", "dwell", "exposure",
    "training_answer", "training_result", "step",
)  # fmt: skip
_FIXED = ("audit", "chain", "seal", "metric", "item", "assignment", "withdrawal")  # append-only for good
_GIVEN = ("rating_event", "reference", "note", "training_answer")  # closed by the lock

RULES: tuple[Rule, ...] = (
    *(Rule(f"{t}_unchanged", t, "update", "1 = 1", f"{t} is append-only") for t in _KEPT + _FIXED),
    *(Rule(f"{t}_undeleted", t, "delete", "1 = 1", f"{t} is append-only") for t in _FIXED),
    *(
        Rule(
            f"{t}_kept", t, "delete",
            "not exists (select 1 from withdrawal w where w.person_id = old.person_id)",
            f"{t} is append-only",
        )
        for t in _KEPT
    ),
    *(
        Rule(f"{t}_closed", t, "insert", "exists (select 1 from seal where what = 'lock')", "the study is locked")
        for t in _GIVEN
    ),
    Rule(
        "rating_event_on_scale", "rating_event", "insert",
        "not exists (select 1 from metric m join item i on i.kind = m.item"
        " join assignment a on a.label = i.label"
        " where m.metric_id = new.metric_id and a.person_id = new.person_id and a.position = new.position"
        " and (new.value is null or (new.value between m.low and m.high and (m.step is null or"
        " abs((new.value - m.low) / m.step - round((new.value - m.low) / m.step)) < 1e-9))))",
        "the value is off the metric's scale, or the metric is not asked about this item",
    ),
    Rule(
        "rating_event_in_turn", "rating_event", "insert",
        "new.version > 1 and not exists (select 1 from rating_event e where e.person_id = new.person_id"
        " and e.position = new.position and e.metric_id = new.metric_id and e.version = new.version - 1)",
        "a version is missing",
    ),
    Rule(
        "exposure_blind_author", "exposure", "insert",
        "new.label is not null and exists"
        " (select 1 from person p where p.person_id = new.person_id and p.role = 'expert')"
        " and not exists (select 1 from item i join reference r on r.prompt_id = i.prompt_id"
        " where i.label = new.label and r.person_id = new.person_id)",
        "an author may see no answer before their own is locked",
    ),
    Rule(
        "rating_event_not_own", "rating_event", "insert",
        "exists (select 1 from person p where p.person_id = new.person_id and p.role <> 'rater')",
        "only raters rate",
    ),
)  # fmt: skip


def rule_ddl(rule: Rule, dialect: str) -> list[str]:
    """The statements that put a rule into an SQLite or a PostgreSQL database."""
    says = rule.says.replace("'", "''")
    if dialect == "sqlite":
        return [
            f"create trigger {rule.name} before {rule.event} on {rule.table} when {rule.condition} "
            f"begin select raise(abort, 'refused: {says}'); end"
        ]
    row = "old" if rule.event == "delete" else "new"
    return [
        f"create function {rule.name}() returns trigger language plpgsql as $$ begin "
        f"if {rule.condition} then raise exception 'refused: {says}' using errcode = 'check_violation'; "
        f"end if; return {row}; end $$",
        f"create trigger {rule.name} before {rule.event} on {rule.table} "
        f"for each row execute function {rule.name}()",
    ]


MIGRATIONS: dict[int, tuple[str, ...]] = {}  # version → statements that lead to it from the one before
