"""Chromium, what a page did to the wire, and what must never be on it."""

import base64
import hashlib
import json
import shutil
import urllib.parse
from collections.abc import Iterable
from pathlib import Path

import pytest

from annotation_app.founding import open_study
from study import tables

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs the system's Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def live(small_study, server_for):
    database = open_study(small_study)
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}")
    yield small_study, database, server
    database.close()


class Wire:
    """Everything that a browser received, sent or printed."""

    def __init__(self, page) -> None:
        self.pieces: list[bytes] = []
        self.downloads: list = []
        page.on("websocket", self._socket)
        page.on("request", lambda r: self.pieces.append(f"{r.url} {r.post_data}".encode()))
        page.on("response", self._response)
        page.on("download", lambda d: self.downloads.append(d))
        page.on("console", lambda m: self.pieces.append(m.text.encode()))
        page.on("pageerror", lambda e: self.pieces.append(str(e).encode()))
        page.on("framenavigated", lambda f: self.pieces.append(f.url.encode()))

    def _socket(self, socket) -> None:
        self.pieces.append(socket.url.encode())
        for event in ("framereceived", "framesent"):
            socket.on(event, lambda data: self.pieces.append(data.encode() if isinstance(data, str) else data))

    def _response(self, response) -> None:
        self.pieces.append(response.url.encode())
        self.pieces.append(json.dumps(response.headers).encode())
        if "/static/" not in response.url:  # Streamlit's own program, the same for every study
            try:
                self.pieces.append(response.body())
            except Exception as error:  # noqa: BLE001 - a redirect or a download has no body here
                self.pieces.append(str(error).encode())

    def leaks(self, secrets: dict[str, list[bytes]], downloads: bool = True) -> list[str]:
        """Which secrets are anywhere in it; `downloads` false leaves out what was downloaded as a file."""
        everything = b"\n".join(self.pieces)
        for download in self.downloads if downloads else ():
            everything += download.suggested_filename.encode() + Path(download.path()).read_bytes()
        return [name for name, forms in secrets.items() if any(f in everything for f in forms)]


class Tab:
    """A page of a visitor's own, at its heading, with its wire."""

    def __init__(self, browser, url: str, width: int = 1280) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        self.page.set_default_timeout(60_000)
        self.wire = Wire(self.page)
        self.page.goto(url)
        self.page.wait_for_selector(".cr-head h1")

    def close(self) -> None:
        self.page.context.close()


@pytest.fixture(scope="module")
def opened(browser):
    """Open a URL as a new visitor: `page, wire = opened(url, width)`."""
    tabs = []

    def open_tab(url: str, width: int = 1280):
        tabs.append(Tab(browser, url, width))
        return tabs[-1].page, tabs[-1].wire

    yield open_tab
    for tab in tabs:
        tab.close()


@pytest.fixture(scope="session")
def watched():
    """The wire of a page, from now on."""
    return Wire


@pytest.fixture(scope="session")
def until():
    """Wait until something of a page holds; by polling from outside, for the pages allow no eval."""

    def wait(page, holds, seconds: float = 60.0, what: str = "what the test waits for") -> None:
        for _ in range(int(seconds * 20)):
            if holds():
                return
            page.wait_for_timeout(50)
        raise AssertionError(f"{what}: never came")

    return wait


@pytest.fixture(scope="session")
def axe():
    """What axe-core finds on a page by WCAG 2.2 A and AA."""
    from axe_playwright_python.sync_playwright import Axe

    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}

    def run(page) -> list[str]:
        found = Axe().run(page, options=rules).response["violations"]
        return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]

    return run


@pytest.fixture(scope="session")
def secrets_of():
    """Sources, seed, raw ids and file names of a study, each as itself and in its likely disguises."""
    return _secrets


def _secrets(study) -> dict[str, list[bytes]]:
    items = tables.read(study.items, tables.ITEMS)
    found = {word: disguises(word) for word in [*(s.source_id for s in study.sources), str(study.seed)]}
    raw: Iterable[str] = (*items["label"], *items["prompt_id"].dropna().unique())
    files = ("key.parquet", "responses.parquet", "study.toml", "ratings.db", str(study.folder))
    return found | {word: [word.encode()] for word in (*raw, *files)}


def disguises(word: str) -> list[bytes]:
    """A word as it is, in base64 at each offset, quoted, in hex, and as the beginnings of its usual hashes."""
    raw = word.encode()
    found = [raw, raw.hex().encode(), raw[::-1], urllib.parse.quote(word, safe="").encode()]
    for offset in range(3):
        kept = base64.b64encode(b"\0" * offset + raw)[(0, 2, 3)[offset] :]
        found.append(kept.rstrip(b"=")[:-1])
    for name in ("md5", "sha1", "sha256", "sha512", "blake2b"):
        digest = hashlib.new(name, raw).digest()
        written = (digest.hex().encode(), base64.b64encode(digest), base64.b32encode(digest))
        found += [digest[:8], *(w[:12] for w in written)]
    return found
