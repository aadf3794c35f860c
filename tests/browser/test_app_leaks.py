"""The look-out for leaks is itself tested: what is planted on a page must be found on the wire."""

import urllib.parse

import pytest

from annotation_app import rehearsal
from annotation_app.founding import open_study
from study import tables

SECRET = "expert_quillfeather"
PLANTS = {
    "a column left out of the order": "st.dataframe(FRAME, column_order=['text'])",
    "a column configured away": "st.dataframe(FRAME, column_config={'s': None})",
    "a widget's key": "st.checkbox('x', key=SECRET)",
    "a container's key": "st.container(key=SECRET).write('x')",
    "a cached function's name": (
        "exec('@st.cache_data\\ndef ' + SECRET + '():\\n import time; time.sleep(1.5)\\n' + SECRET + '()')"
    ),
    "a shown exception": "st.exception(ValueError(SECRET))",
    "a caught exception's lines": "try:\n fails()\nexcept ValueError as error: st.exception(error)",
    "the address": "st.query_params['s'] = SECRET",
    "a download": "st.download_button('get it', SECRET.encode(), file_name='x.txt', on_click='ignore')",
    "a download's name": "st.download_button('x', b'x', file_name=SECRET, on_click='ignore')",
    "a hash": "st.html('<i>' + hashlib.sha256(SECRET.encode()).hexdigest()[:16] + '</i>')",
    "base64": "st.html('<i>' + base64.b64encode(b'x:' + SECRET.encode() + b':y').decode() + '</i>')",
    "the seed": "st.html(f'<i data-x={SEED}></i>')",
    "a label": "st.html(f'<i data-x={LABEL}></i>')",
    "a console line": "st.html(f'<script>console.log({SECRET!r})</script>', unsafe_allow_javascript=True)",
}
SCRIPT = """
import base64, hashlib
import pandas as pd
import streamlit as st
from annotation_app import app

SECRET, SEED, LABEL = {secret!r}, {seed!r}, {label!r}
FRAME = pd.DataFrame({{"text": ["x"], "s": [SECRET]}})
plant = st.query_params.get("plant")
def fails():
    raise ValueError("x")  # {secret}


app.show()
exec({plants!r}.get(plant, ""), globals())
"""


@pytest.fixture(scope="module")
def planted(opened, study_maker, module_server_for, secrets_of, tmp_path_factory):
    """A server whose page shows the plant that its address names, and a link to it."""
    study = study_maker(tmp_path_factory.mktemp("leaks") / "study", raters=3)
    database = open_study(study)
    label = str(tables.read(study.items, tables.ITEMS)["label"].iloc[0])
    script = tmp_path_factory.mktemp("planted") / "page.py"
    script.write_text(SCRIPT.format(secret=SECRET, seed=study.seed, label=label, plants=PLANTS))
    server = module_server_for(f"sqlite:///{study.folder / 'ratings.db'}", script)
    page, wire = opened(f"{server.url}/enter/{rehearsal.ready_rater(database, 'rater-01')}")
    page.wait_for_selector("[role=radiogroup]")
    yield page, wire, server.url, secrets_of(study)
    database.close()


def test_a_page_without_a_plant_raises_no_alarm(planted):
    _, wire, _, secrets = planted
    assert wire.leaks(secrets) == []


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_leak_is_found(watched, until, planted, plant):
    page, _, url, secrets = planted
    fresh = page.context.new_page()
    wire = watched(fresh)
    fresh.goto(f"{url}/?{urllib.parse.urlencode({'plant': plant})}")
    if plant == "a download":
        with fresh.expect_download():
            fresh.get_by_role("button", name="get it").click()
    until(fresh, lambda: wire.leaks(secrets), seconds=30, what=f"the alarm about {plant}")
    fresh.close()


def test_a_failing_page_tells_nothing(opened, small_study, server_for, secrets_of, tmp_path):
    """An exception that names a source, from a line that names it, with the options that the server sets."""
    database = open_study(small_study)
    script = tmp_path / "failing" / "page.py"
    script.parent.mkdir()
    lines = ("from annotation_app import app", "app.show()", f"raise ValueError({SECRET!r})")
    script.write_text("\n".join(lines))
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}", script)
    page, wire = opened(f"{server.url}/enter/{rehearsal.ready_rater(database, 'rater-01')}")
    page.wait_for_selector(".cr-error")
    page.wait_for_timeout(500)
    assert wire.leaks(secrets_of(small_study)) == []
    assert SECRET in server.log.read_text()
    database.close()
