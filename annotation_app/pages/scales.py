"""The scales: one group of radio buttons per metric, words on every point, nothing chosen beforehand."""

import streamlit as st

from annotation_app.catalogue import Catalogue, points
from annotation_app.pages import parts
from annotation_app.session import Choice
from study.records import Metric
from study.store.ratings import REASONS, Mark

CANNOT = "cannot"
_MOST_POINTS = 11  # more than these do not fit in a row, nor on the keys


def ask(
    say: Catalogue, metric: Metric, key: str, language: str, held: Mark | None, *, cannot: bool = True
) -> Choice:
    """Ask for one metric; `held` is what the widget shows if it is new to the browser."""
    question, anchors = say.scale(metric, language)
    if not 0 < points(metric) <= _MOST_POINTS:
        return _number(say, metric, question, key, held)
    options = [*scale_values(metric), *([CANNOT] if cannot else [])]
    words = {v: f"**{v:g}** {parts.plain(w)}".strip() for v, w in zip(options, anchors, strict=False)}
    words[CANNOT] = parts.plain(say("rate.cannot"))
    chosen = st.radio(
        parts.plain(question), options, index=_index(options, held), key=key, horizontal=True,
        format_func=words.get,
    )  # fmt: skip
    if chosen != CANNOT:
        return Choice(value=chosen)
    return _reason(say, key, held)


def put(key: str, mark: Mark) -> None:
    """Let a widget show what holds, the next time it is drawn."""
    st.session_state[key] = CANNOT if mark.reason else mark.value
    st.session_state[f"{key}-why"] = mark.reason


def chosen(key: str) -> Choice | None:
    """What a widget holds before it is drawn; None if this session has not drawn it yet."""
    if key not in st.session_state:
        return None
    value = st.session_state[key]
    if value != CANNOT:
        return Choice(value=value)
    reason = st.session_state.get(f"{key}-why")
    return Choice(reason=reason, pending=reason is None)


def scale_values(metric: Metric) -> list[float]:
    return [metric.low + i * metric.step for i in range(points(metric))]


def _reason(say: Catalogue, key: str, held: Mark | None) -> Choice:
    reason = st.radio(
        say("rate.reason"), REASONS, key=f"{key}-why", horizontal=True,
        format_func=lambda r: parts.plain(say(f"reasons.{r}")),
        index=REASONS.index(held.reason) if held and held.reason else None,
    )  # fmt: skip
    return Choice(reason=reason, pending=reason is None)


def _number(say: Catalogue, metric: Metric, question: str, key: str, held: Mark | None) -> Choice:
    value = st.number_input(
        parts.plain(f"{question} ({metric.low:g}–{metric.high:g})"), metric.low, metric.high, key=key,
        value=held.value if held else None, step=metric.step or (metric.high - metric.low) / 100,
    )  # fmt: skip
    return Choice(value=value)


def _index(options: list[object], held: Mark | None) -> int | None:
    if held is None or not held.given:
        return None
    return options.index(CANNOT if held.reason else held.value)
