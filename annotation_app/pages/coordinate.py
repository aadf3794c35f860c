"""The coordinator's page: who is how far, how people rate, invitations, lock, export. It knows no source."""

import html
import json

import streamlit as st

from annotation_app import marking, quality
from annotation_app.catalogue import Catalogue
from annotation_app.pages import parts
from annotation_app.session import Visit
from study.errors import StudyError
from study.store import overview, people, ratings, seals, training
from study.store.database import Database


def show(database: Database, visit: Visit, say: Catalogue, window: str) -> None:
    parts.header(say, say("coordinate.title"), page="coordinate")
    st.markdown(say("coordinate.blind"))
    with database.reading() as connection:
        given = overview.given(connection)
        seen = {cell: focused for cell, (_, focused) in overview.dwell(connection).items()}
        everybody = people.everybody(connection)
        raters = [p for p in everybody if p.role == "rater"]
        progress = {p.person_id: ratings.progress(connection, p.person_id) for p in raters}
        trained = {p: training.attempts(connection, p) for p in progress}
        metrics = ratings.metrics(connection, "main")
        snapshot = overview.latest_snapshot(connection)
        trail = overview.trail(connection)
    manners = {m.person_id: m for m in quality.manners(given, seen)}
    rows = [
        _row(say, p, progress[p.person_id], manners.get(p.person_id), trained[p.person_id]) for p in raters
    ]
    names = (
        "person", "state", "rated", "median", "fast", "run", "spread", "severity", "drift", "training", "last"
    )  # fmt: skip
    st.html(parts.table([say(f"coordinate.{n}") for n in names], rows, say("coordinate.people"), "cr-tight"))
    st.caption(say("coordinate.legend"))
    _agreement(say, visit, metrics, quality.agreements(given, [m.metric_id for m in metrics]))
    _by_code(say, snapshot)
    _invite(database, visit, say, everybody)
    _lock(database, visit, say)
    st.markdown(f"## {say('coordinate.export')}")
    words = html.escape(say("coordinate.export_csv"))
    st.html(f"<p><a class='cr-download' href='./export/ratings.csv' download>{words}</a></p>")
    told = [(parts.day(at), who, say(f"audit.{what}")) for at, who, what in trail]
    head = [say(f"audit.{n}") for n in ("at", "who", "what")]
    st.html(parts.table(head, told, say("coordinate.audit"), "cr-tight"))


def _row(
    say: Catalogue,
    person: people.Person,
    progress: ratings.Progress,
    manner: quality.Manner | None,
    attempts: list[training.Attempt],
) -> tuple[str, ...]:
    state = say(f"coordinate.{person.status}")
    rated = f"{progress.rated} / {progress.cells}"
    tested = " → ".join(f"{a.result['error']:.2f}" + (" ✓" if a.passed else "") for a in attempts) or "—"
    if manner is None:
        return (person.person_id, state, rated, *("—",) * 6, tested, "—")
    return (
        person.person_id,
        state,
        rated,
        say("coordinate.seconds", n=f"{manner.median_seconds:.0f}") if manner.median_seconds is not None else "—",
        str(manner.fast),
        str(manner.run),
        _number(manner.spread),
        _number(manner.severity, "+.2f"),
        _number(manner.drift, "+.2f"),
        tested,
        parts.day(manner.last_at),
    )


def _agreement(say: Catalogue, visit: Visit, metrics: list, found: list[quality.Agreement]) -> None:
    questions = {m.metric_id: say.scale(m, visit.content_language)[0] for m in metrics}
    rows = [
        (questions[a.metric_id], a.items, _number(a.icc_single), _number(a.icc_mean), _number(a.alpha))
        for a in found
    ]
    head = [say(f"coordinate.{n}") for n in ("metric", "items", "icc_single", "icc_mean", "alpha")]
    st.html(parts.table(head, rows, say("coordinate.agreement")))


def _by_code(say: Catalogue, snapshot: tuple[str, str] | None) -> None:
    if snapshot is None:
        st.caption(say("coordinate.by_code_none"))
        return
    at, content = snapshot
    names = ("code", "metric", "count", "mean", "icc_single", "alpha")
    rows = [
        (r["code"], r["metric"], r["count"], _number(r["mean"]), _number(r["icc_single"]), _number(r["alpha"]))
        for r in json.loads(content)
    ]
    head = [say(f"coordinate.{n}") for n in names]
    st.html(parts.table(head, rows, say("coordinate.by_code", at=parts.day(at))))


def _invite(database: Database, visit: Visit, say: Catalogue, everybody: list[people.Person]) -> None:
    st.markdown(f"## {say('coordinate.invite')}")
    active = [p.person_id for p in everybody if p.status == "active" and p.person_id != visit.person.person_id]
    whom = st.selectbox(say("coordinate.invite_whom"), active, key="whom")
    if whom and st.button(say("coordinate.invite_make"), key="make-link"):
        token = people.invite(database, whom, who=visit.person.person_id)
        base = st.context.url.split("?")[0].rstrip("/") if st.context.url else ""
        st.code(f"{base}/enter/{token}", language=None, wrap_lines=True)
        st.caption(say("coordinate.invite_link"))
    with database.reading() as connection:
        held = [p for p in active if _held(training.attempts(connection, p), people.steps(connection, p))]
    if held:
        waiting = st.selectbox(say("coordinate.admit"), held, key="admit")
        if st.button(say("coordinate.admit"), key="admit-now"):
            training.admit(database, waiting, visit.person.person_id)
            st.rerun()


def _held(attempts: list[training.Attempt], steps: set[str]) -> bool:
    tests = [a for a in attempts if a.stage == "post"]
    return len(tests) >= marking.TESTS and not any(a.passed for a in tests) and "admitted" not in steps


def _lock(database: Database, visit: Visit, say: Catalogue) -> None:
    st.markdown(f"## {say('coordinate.lock')}")
    with database.reading() as connection:
        manifest = seals.sealed(connection, "lock")
        missing = [] if manifest else seals.gaps(connection)
    if manifest:
        st.markdown(say("coordinate.locked_since", at=parts.day(str(manifest["locked_at"]))))
        return
    if missing:
        lines = [
            say("coordinate.gap", person=g.person_id, cells=g.cells, position=g.first_position) for g in missing
        ]
        st.markdown(say("coordinate.gaps"))
        st.html("<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>")
        return
    st.markdown(say("coordinate.lock_explain"))
    sure = st.checkbox(say("coordinate.lock_confirm"), key="sure")
    if st.button(say("coordinate.lock_now"), key="lock-now", disabled=not sure):
        try:
            seals.lock(database, visit.person.person_id)
        except StudyError as error:
            st.error(str(error))
            return
        st.rerun()


def _number(value: float | None, form: str = ".2f") -> str:
    if value is None:
        return "—"
    text = f"{value:{form}}"
    return text.replace("-0.00", "0.00").replace("+0.00", "0.00")
