"""The expert writes the reference answers: the case, the dialogue so far in their own words, and one question."""

import html

import streamlit as st

from annotation_app.catalogue import Catalogue
from annotation_app.pages import parts
from annotation_app.session import Visit
from study.store import ratings, references, traces
from study.store.database import Database, Refused


def show(database: Database, visit: Visit, say: Catalogue, window: str) -> None:
    author = visit.person.person_id
    with database.reading() as connection:
        question = references.next_question(connection, author)
        given, asked = references.counts(connection, author)
        name = ratings.opaque(connection, author, given)
        if question is not None:
            sheet = ratings.case_sheet(connection, question.case_id)
            told = references.dialogue(connection, author, question.case_id)
            draft = traces.draft_at(connection, author, f"reference {question.prompt_id}")
    if question is None:
        parts.header(say, say("done.title"), page="authored")
        st.markdown(say("author.done"))
        return
    if st.session_state.get("shown") != name:
        traces.show(
            database, author, position=None, prompt_id=question.prompt_id, tab=window, versions={}, what="prompt"
        )
        st.session_state.update(shown=name, draft=draft or "")
    below = f"<p class='cr-where'>{html.escape(say('author.progress', given=given + 1, asked=asked))}</p>"
    bar = html.escape(say("coordinate.title"))
    below += f"<progress max='{asked}' value='{given}' aria-label='{bar}'></progress>"
    parts.header(say, say("author.title"), below=below, page="author", item=name, window=window)
    st.markdown(say("author.intro"))
    language = visit.content_language
    before = "".join(parts.turns(say, [(t.question, t.answer)], language) for t in told)
    student = html.escape(say("common.student"))
    asked_now = (
        f"<div class='cr-turn cr-here'><p class='cr-q'><span class='cr-who'>{student}</span>"
        f"<span lang='{language}'>{html.escape(question.text)}</span></p></div>"
    )
    st.html(parts.case(say, sheet, language, opened=True) + f"<div class='cr-dialogue'>{before}{asked_now}</div>")
    text = st.text_area(say("author.answer"), st.session_state.draft, key=f"t-{name}", max_chars=2000, height=110)
    attested = st.checkbox(say("author.attest"), key=f"a-{name}")
    if st.button(say("author.send"), type="primary", key=f"next-{name}"):
        _sent(database, author, say, question.prompt_id, text, attested)


def _sent(database: Database, author: str, say: Catalogue, prompt_id: str, text: str, attested: bool) -> None:
    if not text.strip():
        st.error(say("author.empty"))
    elif not attested:
        st.error(say("author.attest_needed"))
    else:
        try:
            references.send(database, author, prompt_id, text, blind=attested)
        except Refused as refusal:
            st.error(say("common.refused", why=refusal))
            return
        st.rerun()
