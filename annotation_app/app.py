"""Which page for whom. Runs from top to bottom at every click, as Streamlit has it."""

import importlib
import secrets

import streamlit as st

from annotation_app import session
from annotation_app.catalogue import catalogue
from annotation_app.pages import parts
from study.store.database import StoreError

_PAGES = {
    "consent": "consent",
    "instructions": "instructions",
    "training": "training",
    "rate": "rate",
    "closed": "closed",
    "author": "author",
    "authored": "author",
    "coordinate": "coordinate",
}


def show() -> None:
    """Find out who is here, and show the page that is theirs now; only that page's module is ever reached."""
    st.set_page_config(page_title="…", layout="centered", initial_sidebar_state="collapsed")
    try:
        database = session.database()
        with database.reading() as connection:
            visit = session.arrive(database, connection, st.context.cookies.get(session.COOKIE))
        if visit is None:
            parts.stranger()
            return
        page = importlib.import_module(f"annotation_app.pages.{_PAGES[visit.phase]}")
        page.show(database, visit, catalogue(visit.person.locale), _window())
    except StoreError:
        parts.store_error()


def _window() -> str:
    """A meaningless name for this window of the browser, which outlives restarts of the server."""
    if "w" not in st.query_params:
        st.query_params["w"] = secrets.token_hex(4)
    return st.query_params["w"][:32]
