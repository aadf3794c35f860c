"""Training: rate examples on which experts agree, see their score and why, then be tested without feedback."""

import html

import streamlit as st

from annotation_app import marking, session
from annotation_app.catalogue import Catalogue
from annotation_app.pages import parts, scales
from annotation_app.session import Training, Visit
from study.records import Metric
from study.store import people, ratings, training
from study.store.database import Database
from study.store.training import Anchor, Attempt


def show(database: Database, visit: Visit, say: Catalogue, window: str) -> None:
    person = visit.person.person_id
    with database.reading() as connection:
        state = session.training_state(connection, person)
        metrics = ratings.metrics(connection, "main")
    parts.header(say, say("training.title"), page="training")
    seen = st.session_state.get("seen_result", 0)
    if seen < len(state.done) or state.passed or state.held:
        _result(database, visit, say, state, metrics)
    elif state.number == 1 and (shown := st.session_state.get("feedback")) is not None:
        _feedback(say, visit, state, metrics, shown)
    elif (anchor := state.next_anchor) is not None:
        _example(database, visit, say, state, metrics, anchor)
    else:
        attempt = marking.marked(state.number, state.form, state.answers, state.anchors, metrics)
        training.conclude(database, person, attempt)
        st.rerun()


def _example(
    database: Database, visit: Visit, say: Catalogue, state: Training, metrics: list[Metric], anchor: Anchor
) -> None:
    """One example to rate; all its metrics are sent together, so that none is given after a look at the answer."""
    place = [a.number for a in state.anchors].index(anchor.number) + 1
    st.markdown(say("training.intro_practice" if state.number == 1 else "training.intro_test"))
    st.markdown(f"### {say('training.example', number=place, total=len(state.anchors))}")
    _shown(say, visit, anchor)
    asked = [m for m in metrics if m.metric_id in anchor.consensus]
    chosen = {}
    for number, metric in enumerate(asked):
        key = f"m{number}-{state.number}-{place}"
        choice = scales.ask(say, metric, key, visit.content_language, None, cannot=False)
        chosen[metric.metric_id] = choice.value
    if st.button(say("training.submit"), type="primary", key=f"next-{state.number}-{place}"):
        if None in chosen.values():
            st.error(say("training.all_needed"))
            return
        training.answer(database, visit.person.person_id, state.number, state.form, anchor.number, chosen)
        st.session_state.feedback = anchor.number
        st.rerun()


def _feedback(say: Catalogue, visit: Visit, state: Training, metrics: list[Metric], number: int) -> None:
    anchor = next(a for a in state.anchors if a.number == number)
    _shown(say, visit, anchor)
    _compared(say, visit, state.answers, anchor, metrics)
    if st.button(say("training.next"), type="primary", key=f"next-feedback-{number}"):
        st.session_state.feedback = None
        st.rerun()


def _result(database: Database, visit: Visit, say: Catalogue, state: Training, metrics: list[Metric]) -> None:
    last = state.done[-1]
    st.markdown(f"### {say('training.result')}")
    if state.passed:
        st.success(say("training.passed"))
        if st.button(say("training.start"), type="primary", key="next-start"):
            people.take_step(database, visit.person.person_id, "trained")
            st.rerun()
        return
    if state.held:
        st.info(say("training.held"))
        return
    if last.stage == "pre":
        st.info(say("training.practice_done", mae=f"{last.result['error']:.1f}"))
    else:
        st.warning(say("training.failed", tendency=say(f"training.{last.result['tendency']}")))
        _review(database, visit, say, last, metrics)
    if st.button(say("common.continue"), type="primary", key=f"next-result-{last.attempt}"):
        st.session_state.seen_result = len(state.done)
        st.session_state.feedback = None
        st.rerun()


def _review(database: Database, visit: Visit, say: Catalogue, last: Attempt, metrics: list[Metric]) -> None:
    """A test's examples with consensus and reasons, once it is over."""
    with database.reading() as connection:
        answers = training.answers(connection, visit.person.person_id, last.attempt)
        anchors = [a for a in training.anchors(connection) if a.form == last.form]
    for anchor in anchors:
        _shown(say, visit, anchor)
        _compared(say, visit, answers, anchor, metrics)


def _shown(say: Catalogue, visit: Visit, anchor: Anchor) -> None:
    marked = 0 if anchor.kind == "utterance" else None
    st.html(
        parts.story(say, anchor.case, visit.content_language)
        + f"<div class='cr-dialogue'>{parts.turns(say, anchor.turns, visit.content_language, marked)}</div>"
    )


def _compared(
    say: Catalogue, visit: Visit, answers: dict[tuple[int, str], float], anchor: Anchor, metrics: list[Metric]
) -> None:
    rows = []
    for metric in metrics:
        if metric.metric_id in anchor.consensus:
            question, words = say.scale(metric, visit.content_language)
            own, agreed = answers[anchor.number, metric.metric_id], anchor.consensus[metric.metric_id]
            rows.append((question, _worded(metric, own, words), _worded(metric, agreed, words)))
    head = (say("training.metric"), say("training.yours"), say("training.consensus"))
    why = anchor.rationale.get(say.language) or next(iter(anchor.rationale.values()))
    st.html(
        parts.table(head, rows, say("training.result"))
        + f"<p class='cr-why'><strong>{html.escape(say('training.why'))}</strong> {html.escape(why)}</p>"
    )


def _worded(metric: Metric, value: float, words: tuple[str, ...]) -> str:
    place = round((value - metric.low) / metric.step) if metric.step else -1
    return f"{value:g} {words[place]}" if 0 <= place < len(words) else f"{value:g}"
