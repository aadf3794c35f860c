"""Consent: what is agreed to, with its own tick each; nothing is ticked beforehand."""

import streamlit as st

from annotation_app import session
from annotation_app.catalogue import Catalogue
from annotation_app.pages import parts
from annotation_app.session import Visit
from study.store import consents
from study.store.database import Database


def show(database: Database, visit: Visit, say: Catalogue, window: str) -> None:
    parts.header(say, say("consent.title"), page="consent")
    text = parts.told(say, "consent", visit.settings)
    st.markdown(text)
    taking_part = st.checkbox(say("consent.participation"), key="participation")
    sharing = st.checkbox(say("consent.sharing"), key="sharing")
    if st.button(say("consent.agree"), type="primary", key="next-consent"):
        if not taking_part:
            st.error(say("consent.needed"))
            return
        consents.agree(
            database,
            visit.person.person_id,
            version=session.consent_version(visit.settings),
            text=text,
            locale=say.language,
            choices={"participation": taking_part, "sharing": sharing},
        )
        st.rerun()
