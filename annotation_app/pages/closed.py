"""For raters and experts once the study is locked."""

import streamlit as st

from annotation_app.catalogue import Catalogue
from annotation_app.pages import parts
from annotation_app.session import Visit
from study.store.database import Database


def show(database: Database, visit: Visit, say: Catalogue, window: str) -> None:
    parts.header(say, say("done.closed"), page="closed")
    st.markdown(say("done.locked"))
