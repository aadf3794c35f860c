"""What a visitor is to see next, and what happens to what they chose. Knows the database, not Streamlit."""

import logging
import os
import secrets
import statistics
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from annotation_app import marking
from study.records import Metric
from study.store import consents, overview, people, ratings, references, seals, traces, training
from study.store.database import Conflict, Connection, Database, StoreError, open_database
from study.store.identity import identity
from study.store.people import Person
from study.store.ratings import Item, Mark, Turn

log = logging.getLogger("crossed.app")

COOKIE = "crossed_visit"
_PAUSE_SECONDS = 600  # longer gaps between two ratings are pauses, not work
_opened: dict[str, Database] = {}
_opening = threading.Lock()
# Facts that the database's own rules keep from changing; losing them costs a query, never a rating.
_facts_known: dict[Database, "Facts"] = {}
_scenes_known: dict[tuple[Database, str, int], "Scene"] = {}
_ready_to_rate: set[tuple[Database, str]] = set()
_MOST_SCENES = 5_000


@dataclass(frozen=True)
class Visit:
    """Who is here, in which study, and which page is theirs now."""

    person: Person
    phase: str
    title: str
    content_language: str
    settings: Mapping[str, object]


@dataclass(frozen=True)
class Facts:
    """What never changes once a study is founded."""

    title: str
    settings: Mapping[str, object]
    metrics: list[Metric]
    main_metrics: list[Metric]


@dataclass(frozen=True)
class Scene:
    """What never changes at one position of one rater's order.

    name : the position's meaningless name on the wire · place, places : within its block
    cells, positions, blocks : of the whole order
    """

    item: Item
    name: str
    case: tuple[str, Mapping[str, str]]
    turns: list[Turn]
    metrics: list[Metric]
    place: int
    places: int
    cells: int
    positions: int
    blocks: int


@dataclass(frozen=True)
class Desk:
    """Everything that the rating page shows of one position."""

    scene: Scene
    marks: dict[str, Mark]
    note: traces.Note
    draft: str | None
    rated: int

    @property
    def item(self) -> Item:
        return self.scene.item

    @property
    def name(self) -> str:
        return self.scene.name

    @property
    def metrics(self) -> list[Metric]:
        return self.scene.metrics


@dataclass(frozen=True)
class Choice:
    """What a widget holds: a value, a reason, nothing, or (pending) “cannot judge” without its reason yet."""

    value: float | None = None
    reason: str | None = None
    pending: bool = False

    @property
    def content(self) -> tuple[float | None, str | None]:
        return (self.value, self.reason)


@dataclass(frozen=True)
class Settled:
    """What became of a choice.

    same : it is what holds · saved · pending : not complete yet · unsaved : the database is away
    changed : another window wrote, this one had not · conflict : both wrote, nothing was overwritten
    """

    outcome: str
    mark: Mark


def database() -> Database:
    """The database of this process, opened once."""
    url = os.environ["CROSSED_DATABASE"]
    with _opening:
        if url not in _opened:
            _opened[url] = open_database(url)
        return _opened[url]


def arrive(database: Database, connection: Connection, cookie: str | None) -> Visit | None:
    """The visit that a cookie stands for; None for strangers and for people who have left."""
    person = people.visitor(connection, cookie, database.now())
    if person is None:
        return None
    facts = _facts(database, connection)
    phase = _phase(connection, person, facts.settings, (database, person.person_id))
    return Visit(person, phase, facts.title, facts.settings["content_language"], facts.settings)


def consent_version(settings: Mapping[str, object]) -> str:
    return str(settings.get("consent_version", "1"))


def desk(database: Database, connection: Connection, person_id: str) -> Desk | None:
    """The rating page at the rater's cursor; None where nothing is assigned, or behind the last item."""
    position, rated = ratings.standing(connection, person_id)
    scene = _scene(database, connection, person_id, position)
    if scene is None:
        return None
    return Desk(
        scene=scene,
        marks=ratings.marks(connection, person_id, position),
        note=traces.note_at(connection, person_id, position),
        draft=traces.draft_at(connection, person_id, f"note {position}"),
        rated=rated,
    )


def shown(database: Database, person_id: str, desk: Desk, tab: str) -> dict[str, int]:
    """The versions that a window shows of a position, kept in the database so that a restart forgets nothing."""
    position = desk.item.position
    with database.reading() as connection:
        versions = traces.seen(connection, person_id, position, tab)
    if versions is not None:
        return versions
    return show_now(database, person_id, desk, tab)


def show_now(database: Database, person_id: str, desk: Desk, tab: str) -> dict[str, int]:
    """From here on the window shows what holds now."""
    versions = {m: mark.version for m, mark in desk.marks.items()} | {"note": desk.note.version}
    traces.show(
        database, person_id, position=desk.item.position, label=desk.item.label, tab=tab, versions=versions
    )
    return versions


def settle(
    database: Database,
    person_id: str,
    position: int,
    metric_id: str,
    choice: Choice,
    *,
    base: Mark,
    theirs: Mark,
    tab: str,
) -> Settled:
    """Compare three ways what a widget holds, what it showed before, and what the database holds; save a click.

    Parameters
    ----------
    base : what this window showed · theirs : what holds in the database now

    Raises
    ------
    Refused : if the study is locked, or the choice is off the scale
    """
    if choice.pending:
        return Settled("pending", base)
    if choice.content == theirs.content:
        return Settled("same", theirs)
    if choice.content == base.content:
        return Settled("changed", theirs)
    if theirs.version != base.version:
        return Settled("conflict", theirs)
    nonce = secrets.token_hex(12)
    for last in (False, True):  # a connection lost between commit and answer: the nonce makes trying again safe
        try:
            mark = ratings.save(
                database, person_id, position, metric_id, value=choice.value, reason=choice.reason,
                base_version=base.version, nonce=nonce, tab=tab,
            )  # fmt: skip
            return Settled("saved", mark)
        except Conflict:
            with database.reading() as connection:
                return Settled("conflict", ratings.mark(connection, person_id, position, metric_id))
        except StoreError:
            if last:
                log.error("a rating of %s at position %s could not be saved", person_id, position)
    return Settled("unsaved", base)


def settle_note(
    database: Database, person_id: str, position: int, flag: str, text: str, *, base: int, tab: str
) -> traces.Note:
    """Keep flag and comment; where another window wrote meanwhile, keep both texts."""
    try:
        return traces.write_note(database, person_id, position, flag, text, base_version=base, tab=tab)
    except Conflict:
        with database.reading() as connection:
            theirs = traces.note_at(connection, person_id, position)
        both = "\n".join(t for t in (theirs.text, text) if t)
        return traces.write_note(
            database, person_id, position, flag or theirs.flag, both, base_version=theirs.version, tab=tab
        )


def pace(connection: Connection, person_id: str, now: datetime) -> tuple[float | None, float]:
    """The rater's median seconds per item, None as long as there is none, and minutes at it without a pause."""
    spans = overview.seconds_per_item(connection, person_id)
    median = statistics.median(spans) if spans else None
    return median, _minutes_at_it(sorted(at for _, at in overview.rated_at(connection, person_id)), now)


def training_state(connection: Connection, person_id: str) -> "Training":
    """Where a rater stands in the training."""
    anchors = training.anchors(connection)
    done = training.attempts(connection, person_id)
    forms = sorted({a.form for a in anchors})
    number = len(done) + 1
    form = marking.form_of(number, forms) if forms else ""
    answers = training.answers(connection, person_id, number)
    return Training(done, number, form, [a for a in anchors if a.form == form], answers)


@dataclass(frozen=True)
class Training:
    done: list[training.Attempt]
    number: int
    form: str
    anchors: list[training.Anchor]
    answers: dict[tuple[int, str], float]

    @property
    def next_anchor(self) -> training.Anchor | None:
        answered = {number for number, _ in self.answers}
        return next((a for a in self.anchors if a.number not in answered), None)

    @property
    def passed(self) -> bool:
        return any(a.passed for a in self.done)

    @property
    def held(self) -> bool:
        return not self.passed and sum(a.stage == "post" for a in self.done) >= marking.TESTS


def main_metrics(database: Database, connection: Connection) -> list[Metric]:
    """The study's own metrics, without what it asks beside them."""
    return _facts(database, connection).main_metrics


def _facts(database: Database, connection: Connection) -> Facts:
    if database not in _facts_known:
        study = identity(connection)
        _facts_known[database] = Facts(
            study.title,
            study.settings,
            ratings.metrics(connection),
            ratings.metrics(connection, "main"),
        )
    return _facts_known[database]


def _scene(database: Database, connection: Connection, person_id: str, position: int) -> Scene | None:
    key = (database, person_id, position)
    if key not in _scenes_known:
        item = ratings.item_at(connection, person_id, position)
        if item is None:
            return None
        if len(_scenes_known) >= _MOST_SCENES:
            _scenes_known.clear()
        first, places = ratings.block_at(connection, person_id, item.block)
        whole = ratings.progress(connection, person_id)
        _scenes_known[key] = Scene(
            item=item,
            name=ratings.opaque(connection, person_id, position),
            case=ratings.case_sheet(connection, item.case_id),
            turns=ratings.dialogue(connection, item),
            metrics=[m for m in _facts(database, connection).metrics if m.item == item.kind],
            place=position - first + 1,
            places=places,
            cells=whole.cells,
            positions=whole.positions,
            blocks=whole.blocks,
        )
    return _scenes_known[key]


def _phase(
    connection: Connection, person: Person, settings: Mapping[str, object], who: tuple[Database, str]
) -> str:
    if person.role == "coordinator":
        return "coordinate"
    if seals.locked(connection):
        return "closed"
    if who in _ready_to_rate:
        return "rate"
    if not consents.agreed(connection, person.person_id, consent_version(settings)):
        return "consent"
    if person.role == "expert":
        return "author" if references.next_question(connection, person.person_id) else "authored"
    taken = people.steps(connection, person.person_id)
    if "instructions" not in taken:
        return "instructions"
    trained = taken & {"trained", "admitted"}
    if not trained and training.offered(connection):
        return "training"
    _ready_to_rate.add(who)
    return "rate"


def _seconds(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def _minutes_at_it(times: list[str], now: datetime) -> float:
    if not times or (now - datetime.fromisoformat(times[-1])).total_seconds() > _PAUSE_SECONDS:
        return 0.0
    start = times[-1]
    for earlier in reversed(times[:-1]):
        if _seconds(earlier, start) > _PAUSE_SECONDS:
            break
        start = earlier
    return (now - datetime.fromisoformat(start)).total_seconds() / 60
