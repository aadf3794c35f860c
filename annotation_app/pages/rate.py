"""Rating: one answer at a time in its dialogue, then the dialogue as a whole.

The cursor and the values live in the database. A click is noticed by comparing what a widget holds with what this
window showed before and with what holds now; it is saved, in one transaction, before anything says so.
"""

import html
from datetime import UTC, datetime

import streamlit as st

from annotation_app import session
from annotation_app.catalogue import Catalogue
from annotation_app.pages import parts, scales
from annotation_app.pages.instructions import guide
from annotation_app.session import Desk, Visit
from study.records import Metric
from study.store import ratings, traces
from study.store.database import Database, Refused, StoreError
from study.store.ratings import Mark

_STEPS = {"next": ratings.advance, "back": ratings.retreat, "unrated": ratings.jump}
_PACE_EVERY = 5  # items between two looks at the rater's pace


def show(database: Database, visit: Visit, say: Catalogue, window: str) -> None:
    person = visit.person.person_id
    with database.reading() as connection:
        desk = session.desk(database, connection, person)
        metrics = session.main_metrics(database, connection)
    if desk is None:
        _done(database, visit, say)
        return
    _remember(database, person, desk, window)
    _put(desk)
    _head(database, visit, say, desk, window)
    for notice in st.session_state.pop("notices", []):
        st.warning(notice)
    again = any([_asked(database, visit, say, desk, metric, window) for metric in desk.metrics])
    again |= _note(database, visit, say, desk, window)
    if again:
        st.rerun()
    _status(say, desk)
    _steps(database, visit, say, desk, window)
    with st.expander(say("rate.guide")):
        guide(say, metrics, visit)


def _remember(database: Database, person: str, desk: Desk, window: str) -> None:
    """What this window shows of this position, from the session or, after a restart, from the database."""
    if st.session_state.get("shown") == desk.name:
        return
    versions = session.shown(database, person, desk, window)
    with database.reading() as connection:
        base = ratings.marks_of(connection, person, desk.item.position, versions)
    st.session_state.update(
        shown=desk.name, base=base, note=versions.get("note", 0), first=dict(desk.marks),
        text=desk.note.text if desk.draft is None else desk.draft, flag=desk.note.flag,
    )  # fmt: skip


def _head(database: Database, visit: Visit, say: Catalogue, desk: Desk, window: str) -> None:
    whole = desk.item.kind == "encounter"
    scene = desk.scene
    where = say("rate.whole") if whole else say("rate.item", place=scene.place, places=scene.places - 1)
    parts_of = [
        say("rate.encounter", block=scene.item.block, blocks=scene.blocks),
        where,
        say("rate.percent", percent=100 * desk.rated // scene.cells),
    ]
    median, minutes = _pace(database, visit.person.person_id, desk)
    if median is not None:
        left = median * (scene.positions - scene.item.position + 1)
        parts_of.append(say("rate.left", time=_duration(say, left)))
    line = " · ".join(html.escape(x) for x in parts_of)
    name = html.escape(say("coordinate.title"))
    bar = f"<progress max='{scene.cells}' value='{desk.rated}' aria-label='{name}'></progress>"
    rest = ""
    if minutes > float(visit.settings["pause_minutes"]):
        rest = say("rate.long", minutes=visit.settings["pause_minutes"])
    elif scene.place == 1 and scene.item.block > 1:
        rest = say("rate.rest", done=scene.item.block - 1)
    below = f"<p class='cr-where'>{line}</p>{bar}"
    if rest:
        below += f"<p class='cr-rest'>{html.escape(rest)}</p>"
    parts.header(
        say, say("rate.title"), below=below,
        page="rate", item=desk.name, position=desk.item.position, window=window,
    )  # fmt: skip
    language = visit.content_language
    heading = say("rate.whole_here") if whole else say("rate.answer_here")
    st.html(
        parts.case(say, scene.case, language)
        + f"<h2 class='cr-what'>{html.escape(heading)}</h2>"
        + parts.dialogue(
            say, scene.turns, language, whole=whole, asker=str(visit.settings.get("asker", "student"))
        )
    )


def _asked(database: Database, visit: Visit, say: Catalogue, desk: Desk, metric: Metric, window: str) -> bool:
    """Ask for one metric and settle what is chosen; true if the page must be drawn anew."""
    key = _key(desk, metric)
    choice = scales.ask(
        say, metric, key, visit.content_language, st.session_state.first.get(metric.metric_id),
        cannot=not metric.metric_id.startswith("author_"),
    )  # fmt: skip
    return _settled(database, visit, say, desk, metric, choice, window)


def _settled(
    database: Database,
    visit: Visit,
    say: Catalogue,
    desk: Desk,
    metric: Metric,
    choice: session.Choice,
    window: str,
) -> bool:
    base = st.session_state.base.get(metric.metric_id, Mark())
    theirs = desk.marks.get(metric.metric_id, Mark())
    unsaved = st.session_state.setdefault("unsaved", set())
    try:
        settled = session.settle(
            database, visit.person.person_id, desk.item.position, metric.metric_id, choice,
            base=base, theirs=theirs, tab=window,
        )  # fmt: skip
    except Refused as refusal:
        unsaved.add(metric.metric_id)
        st.error(say("common.refused", why=refusal))
        return False
    unsaved.discard(metric.metric_id)
    if settled.outcome in ("pending", "unsaved"):
        unsaved.add(metric.metric_id)
    if settled.outcome == "unsaved":
        st.error(say("common.store_error"))
    if settled.outcome in ("same", "saved") and settled.mark.given:
        st.session_state.base[metric.metric_id] = desk.marks[metric.metric_id] = settled.mark
    if settled.outcome in ("changed", "conflict"):
        _yield_to(database, visit, say, desk, metric, settled, window)
        return True
    return False


def _yield_to(
    database: Database,
    visit: Visit,
    say: Catalogue,
    desk: Desk,
    metric: Metric,
    settled: session.Settled,
    window: str,
) -> None:
    """Let the window show what another one wrote, and say so."""
    desk.marks[metric.metric_id] = st.session_state.base[metric.metric_id] = settled.mark
    session.show_now(database, visit.person.person_id, desk, window)
    question, _ = say.scale(metric, visit.content_language)
    theirs = say("rate.cannot") if settled.mark.reason else f"{settled.mark.value:g}"
    notice = say(f"rate.{settled.outcome}", metric=question, theirs=theirs)
    st.session_state.setdefault("notices", []).append(notice)
    st.session_state.setdefault("put", {})[metric.metric_id] = settled.mark


def _put(desk: Desk) -> None:
    """Let widgets show what another window wrote; from then on they keep their state by themselves."""
    waiting = st.session_state.pop("put", {})
    for metric in desk.metrics:
        if metric.metric_id in waiting:
            st.session_state.first.pop(metric.metric_id, None)
            scales.put(_key(desk, metric), waiting[metric.metric_id])
    if "note" in waiting:
        st.session_state.text = ""
        st.session_state[f"t-{desk.name}"] = waiting["note"]


def _note(database: Database, visit: Visit, say: Catalogue, desk: Desk, window: str) -> bool:
    kept = desk.note
    with st.expander(say("rate.note"), expanded=bool(kept.flag or kept.text or desk.draft)):
        flags = ["", *traces.FLAGS]
        flag = st.selectbox(
            say("rate.flag"), flags, index=flags.index(st.session_state.flag), key=f"f-{desk.name}",
            format_func=lambda f: say(f"flags.{f}") if f else say("rate.no_flag"),
        )  # fmt: skip
        text = st.text_area(
            say("rate.comment"), st.session_state.text, key=f"t-{desk.name}", max_chars=5000, height=90
        )
    return _note_settled(database, visit, say, desk, kept, flag, text, window)


def _note_settled(
    database: Database,
    visit: Visit,
    say: Catalogue,
    desk: Desk,
    kept: traces.Note,
    flag: str,
    text: str,
    window: str,
) -> bool:
    """Keep what the note's widgets hold; true if the page must be drawn anew."""
    if (flag, text) == (kept.flag, kept.text):
        return False
    try:
        note = session.settle_note(
            database, visit.person.person_id, desk.item.position, flag, text,
            base=st.session_state.note, tab=window,
        )  # fmt: skip
    except (Refused, StoreError):
        st.session_state.setdefault("unsaved", set()).add("note")
        st.error(say("common.store_error"))
        return False
    st.session_state.setdefault("unsaved", set()).discard("note")
    st.session_state.note = note.version
    if note.text != text:
        st.session_state.setdefault("notices", []).append(say("rate.note_conflict"))
        st.session_state.setdefault("put", {})["note"] = note.text
        return True
    return False


def _status(say: Catalogue, desk: Desk) -> None:
    """When the latest rating here was saved; read out by screen readers as it changes."""
    if st.session_state.get("unsaved"):
        text, kind = say("common.not_saved"), "cr-unsaved"
    elif desk.marks:
        latest = parts.local(max(m.at for m in desk.marks.values()))
        text, kind = say("common.saved", time=latest.strftime("%H:%M:%S")), "cr-saved"
    else:
        text, kind = say("rate.complete_first"), "cr-open"
    st.html(f"<p class='cr-status {kind}' role='status'>{html.escape(text)}</p>")


def _steps(database: Database, visit: Visit, say: Catalogue, desk: Desk, window: str) -> None:
    complete = all(m.metric_id in desk.marks for m in desk.metrics) and not st.session_state.get("unsaved")
    ways = {"back": desk.item.position == 1, "unrated": False, "next": not complete}
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for way, closed in ways.items():
            pressed = st.button(
                say(f"rate.{way}"), key=f"{way}-{desk.name}", disabled=closed, on_click=_go,
                type="primary" if way == "next" else "secondary", args=(database, visit, say, desk, way, window),
            )  # fmt: skip
            # After a restart the new session does not know the callback, but sees that the button was pressed.
            if pressed and _go(database, visit, say, desk, way, window):
                st.rerun()


def _go(database: Database, visit: Visit, say: Catalogue, desk: Desk, way: str, window: str) -> bool:
    """Settle whatever was chosen on the page, then step; stays where anything could not be saved."""
    person, position = visit.person.person_id, desk.item.position
    with database.reading() as connection:
        desk.marks.update(ratings.marks(connection, person, position))
        kept = traces.note_at(connection, person, position)
    again = False
    for metric in desk.metrics:
        choice = scales.chosen(_key(desk, metric))
        if choice is not None:
            again |= _settled(database, visit, say, desk, metric, choice, window)
    text, flag = st.session_state.get(f"t-{desk.name}"), st.session_state.get(f"f-{desk.name}")
    if text is not None:
        again |= _note_settled(database, visit, say, desk, kept, flag or "", text, window)
    if again or (st.session_state.get("unsaved") and way == "next"):
        return False
    try:
        moved = _STEPS[way](database, person, position)
    except Refused:
        return False
    for name in ("shown", "unsaved"):
        st.session_state.pop(name, None)
    return moved


def _pace(database: Database, person: str, desk: Desk) -> tuple[float | None, float]:
    known = st.session_state.get("pace")
    if known is None or abs(known[0] - desk.item.position) >= _PACE_EVERY:
        with database.reading() as connection:
            known = (desk.item.position, *session.pace(connection, person, datetime.now(UTC)))
        st.session_state.pace = known
    return known[1], known[2]


def _done(database: Database, visit: Visit, say: Catalogue) -> None:
    with database.reading() as connection:
        progress = ratings.progress(connection, visit.person.person_id)
    if not progress.positions:
        parts.header(say, say("rate.title"), page="nothing")
        st.markdown(say("rate.nothing"))
        return
    if not progress.complete:  # another order was laid in, or a step was lost: back to where something is open
        ratings.jump(database, visit.person.person_id, progress.position)
        st.rerun()
    parts.header(say, say("done.title"), page="done")
    st.markdown(say("done.body", rated=progress.rated))
    if st.button(say("done.review"), key="back-done"):
        ratings.retreat(database, visit.person.person_id, progress.position)
        st.rerun()


def _key(desk: Desk, metric: Metric) -> str:
    return f"m{desk.metrics.index(metric)}-{desk.name}"


def _duration(say: Catalogue, seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return say("rate.minutes", minutes=minutes)
    return say("rate.hours", hours=minutes // 60, minutes=minutes % 60)
