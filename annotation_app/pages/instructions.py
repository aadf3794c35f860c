"""How to rate, with every metric and the words on its points."""

import streamlit as st

from annotation_app.catalogue import Catalogue
from annotation_app.pages import parts
from annotation_app.session import Visit
from study.records import Metric
from study.store import people, ratings
from study.store.database import Database


def show(database: Database, visit: Visit, say: Catalogue, window: str) -> None:
    parts.header(say, say("instructions.title"), page="instructions")
    with database.reading() as connection:
        metrics = ratings.metrics(connection, "main")
    guide(say, metrics, visit)
    if st.button(say("instructions.understood"), type="primary", key="next-instructions"):
        people.take_step(database, visit.person.person_id, "instructions")
        st.rerun()


def guide(say: Catalogue, metrics: list[Metric], visit: Visit) -> None:
    """The instructions' text and the metrics; the rating page shows it again on demand."""
    text = parts.told(say, "instructions", visit.settings)
    lines = []
    for metric in metrics:
        question, anchors = say.scale(metric, visit.content_language)
        values = (metric.low + i * (metric.step or 1) for i in range(len(anchors)))
        words = " · ".join(f"**{v:g}** {parts.plain(a)}" for v, a in zip(values, anchors, strict=True))
        lines.append(f"- {parts.plain(question)}  \n  {words}")
    scales = "\n".join(lines)
    st.markdown(f"{text}\n\n{say('instructions.keys')}\n\n### {say('instructions.metrics')}\n\n{scales}")
