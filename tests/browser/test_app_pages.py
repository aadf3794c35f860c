"""The rating pages in Chromium: keys alone, two languages and widths, axe, and every byte on the wire."""

import base64
import hashlib
import json
import shutil
import urllib.parse

import pytest

from annotation_app import rehearsal
from annotation_app.founding import open_study
from study import tables
from study.store import people

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs the system's Chromium")
RATER = "rater-01"


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Wire:
    """Everything that a browser received, sent or printed."""

    def __init__(self, page) -> None:
        self.pieces: list[bytes] = []
        page.on("websocket", self._socket)
        page.on("response", self._response)
        page.on("console", lambda m: self.pieces.append(m.text.encode()))
        page.on("pageerror", lambda e: self.pieces.append(str(e).encode()))

    def _socket(self, socket) -> None:
        for event in ("framereceived", "framesent"):
            socket.on(event, lambda data: self.pieces.append(data.encode() if isinstance(data, str) else data))

    def _response(self, response) -> None:
        self.pieces.append(response.url.encode())
        self.pieces.append(json.dumps(response.headers).encode())
        if "/static/" not in response.url:  # Streamlit's own program, the same for every study
            try:
                self.pieces.append(response.body())
            except Exception as error:  # noqa: BLE001 - a redirect has no body
                self.pieces.append(str(error).encode())

    def leaks(self, secrets) -> list[str]:
        everything = b"\n".join(self.pieces)
        return [name for name, forms in secrets.items() if any(f in everything for f in forms)]


def secrets_of(study) -> dict[str, list[bytes]]:
    """Sources, raw ids, labels, file names and the seed, each as itself and in its likely disguises."""
    items = tables.read(study.items, tables.ITEMS)
    words = [s.source_id for s in study.sources] + [str(study.seed)]
    found = {}
    for word in words:
        raw = word.encode()
        found[word] = [
            raw, base64.b64encode(raw).rstrip(b"=")[:-1], urllib.parse.quote(word).encode(), raw.hex().encode(),
            *(hashlib.new(h, raw).hexdigest()[:16].encode() for h in ("md5", "sha1", "sha256")),
        ]  # fmt: skip
    for word in (*items["label"], *items["prompt_id"].dropna().unique()):
        found[word] = [word.encode()]
    for word in ("key.parquet", "responses.parquet", "study.toml", "ratings.db", str(study.folder)):
        found[word] = [word.encode()]
    return found


@pytest.fixture
def live(small_study, server_for):
    database = open_study(small_study)
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}")
    yield small_study, database, server
    database.close()


def opened(browser, url, width=1280):
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    wire = Wire(page)
    page.goto(url)
    page.wait_for_selector(".cr-head h1")
    return page, wire


def groups_are(page, number: int) -> None:
    """Wait until the page asks that many questions; by polling, for the pages allow no eval."""
    for _ in range(100):
        if page.locator("[role=radiogroup]").count() == number:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"the page never asked {number} questions")


def axe(page) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found.response["violations"]]


@pytest.mark.parametrize(("language", "width"), [("ko", 1280), ("ko", 360), ("en", 1280), ("en", 360)])
def test_an_encounter_is_rated_with_keys_alone(browser, live, language, width):
    from study.store import ratings

    _, database, server = live
    token = rehearsal.ready_rater(database, RATER)
    people.speak(database, RATER, language)
    page, _ = opened(browser, f"{server.url}/enter/{token}", width)
    page.wait_for_selector("[role=radiogroup]")
    assert page.evaluate("document.documentElement.lang") == language
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rows = page.evaluate(
        "[...document.querySelectorAll('[role=radiogroup]')[0].querySelectorAll('label')].slice(0, 5)"
        ".map(l => [Math.round(l.getBoundingClientRect().top), l.getBoundingClientRect().height])"
    )
    assert len({top for top, _ in rows}) == 1
    assert min(height for _, height in rows) >= 44
    assert axe(page) == []
    for position, metrics in ((1, 3), (2, 3), (3, 3), (4, 6)):
        page.wait_for_selector(f'.cr-state[data-position="{position}"]', state="attached")
        groups_are(page, metrics)
        for number in range(metrics):
            page.keyboard.press(str(1 + (position + number) % 5))
        page.wait_for_selector('[class*="st-key-next-"] button:not([disabled])')
        page.keyboard.press("n")
    page.wait_for_selector('.cr-state[data-position="5"]', state="attached")
    with database.reading() as connection:
        assert ratings.progress(connection, RATER).rated == 15
        given = [[m.value for m in ratings.marks(connection, RATER, p).values()] for p in (1, 2, 3, 4)]
    assert given == [[float(1 + (p + n) % 5) for n in range(m)] for p, m in ((1, 3), (2, 3), (3, 3), (4, 6))]


def test_keys_rest_while_text_is_typed(browser, live):
    from study.store import ratings

    _, database, server = live
    page, _ = opened(browser, f"{server.url}/enter/{rehearsal.ready_rater(database, RATER)}")
    page.get_by_text("표시와 의견").click()
    page.locator("textarea").click()
    page.keyboard.type("1 2 3 n x")
    page.wait_for_timeout(500)
    with database.reading() as connection:
        assert ratings.progress(connection, RATER).rated == 0


def walk(browser, live):
    """One session of each role, and everything that came over the wire."""
    _, database, server = live
    wires = []
    page, wire = opened(browser, f"{server.url}/enter/{rehearsal.ready_rater(database, RATER)}")
    page.wait_for_selector("[role=radiogroup]")
    for key in "435":
        page.keyboard.press(key)
    page.wait_for_selector('[class*="st-key-next-"] button:not([disabled])')
    page.keyboard.press("n")
    page.wait_for_timeout(800)
    wires.append(wire)
    for person, role in (("expert-01", "expert"), ("coordinator-01", "coordinator")):
        token = people.invite(database, person, role=role, who="test")
        page, wire = opened(browser, f"{server.url}/enter/{token}")
        page.wait_for_timeout(800)
        if role == "expert":
            page.get_by_text("위 내용을 읽었고").click()
            page.get_by_role("button", name="동의하고 시작").click()
            page.wait_for_selector("textarea")
        wires.append(wire)
        assert axe(page) == [], role
    return wires


def test_no_byte_to_any_role_names_a_source(browser, live):
    secrets = secrets_of(live[0])
    for wire in walk(browser, live):
        assert len(wire.pieces) > 10
        assert wire.leaks(secrets) == []


PLANTS = {
    "a hidden column": (
        "import pandas as pd; "
        "st.dataframe(pd.DataFrame({'text': ['x'], 's': [SECRET]}), column_order=['text'])"
    ),
    "a widget's key": "st.checkbox('x', key=SECRET)",
    "a cached function's name": (
        "exec('@st.cache_data\\ndef ' + SECRET + '():\\n import time; time.sleep(1.5)\\n' + SECRET + '()')"
    ),
    "an exception": "st.exception(ValueError(SECRET))",
    "a hash": "import hashlib; st.html('<i>' + hashlib.sha256(SECRET.encode()).hexdigest() + '</i>')",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_leak_is_found(browser, small_study, server_for, tmp_path, plant):
    database = open_study(small_study)
    secret = "expert_quillfeather"
    script = tmp_path / "planted" / "page.py"
    script.parent.mkdir()
    lines = ("import streamlit as st", "from annotation_app import app", f"SECRET = {secret!r}", "app.show()")
    script.write_text("\n".join([*lines, PLANTS[plant], ""]))
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}", script)
    page, wire = opened(browser, f"{server.url}/enter/{rehearsal.ready_rater(database, RATER)}")
    page.wait_for_timeout(2500)
    assert secret in wire.leaks(secrets_of(small_study))
    database.close()
