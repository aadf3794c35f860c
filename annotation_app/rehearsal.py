"""Scripted raters on a running server, speaking Streamlit's own protocol over real connections.

What a browser would show is read from the messages; what it would send is sent. The protocol is Streamlit's
private matter, so this module goes with the version that pyproject.toml asks for.
"""

import asyncio
import random
import re
import time
from dataclasses import dataclass, field
from http.client import HTTPException
from types import TracebackType
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from study.errors import StudyError
from study.store import consents, people, training
from study.store.database import Database

_ENDED, _RERUN = (0, 3), 2  # script_finished: successfully, or a fragment did; stopped for another run
_PATIENCE = 60.0  # seconds to wait for an answer


@dataclass
class Radio:
    widget: str
    label: str
    options: list[str]
    value: str | None


@dataclass
class Page:
    """What one run of the script sent."""

    radios: list[Radio] = field(default_factory=list)
    buttons: dict[str, str] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    areas: dict[str, tuple[str, str]] = field(default_factory=dict)
    checkboxes: dict[str, str] = field(default_factory=dict)
    selects: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def state(self, name: str) -> str | None:
        """An entry of the page's own state, such as `item` or `page`."""
        found = re.search(rf'data-{name}="([^"]*)"', self.text)
        return found.group(1) if found else None


class Visitor:
    """One browser window: its connection, what its widgets hold, and what it sees."""

    def __init__(self, url: str, cookie: str, window: str = "") -> None:
        self.url, self.cookie, self.window = url.rstrip("/"), cookie, window
        self.values: dict[str, tuple[str, object]] = {}
        self.page = Page()
        self.frames: list[bytes] = []
        self._known: dict[str, ForwardMsg] = {}
        self._query = f"w={window}" if window else ""

    async def __aenter__(self) -> "Visitor":
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.socket.close()

    async def connect(self, look: bool = True) -> None:
        """Open the connection, as after a reload or, with `look` false, as after a loss of it."""
        address = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        self.socket = await websockets.connect(
            address, subprotocols=["streamlit"], max_size=None, compression=None,
            additional_headers={"Cookie": f"crossed_visit={self.cookie}"},
        )  # fmt: skip
        self._known.clear()
        if look:
            await self.look()

    async def look(self) -> Page:
        """Load the page afresh: nothing of what widgets held is sent."""
        self.values.clear()
        return await self.send()

    async def choose(self, radio: Radio, option: str) -> Page:
        self.values[radio.widget] = ("string_value", option)
        return await self.send()

    async def press(self, label: str) -> Page:
        widget = self.page.buttons[label]
        return await self.send({widget: ("trigger_value", True)})

    async def write(self, label: str, text: str) -> Page:
        self.values[self.page.areas[label][0]] = ("string_value", text)
        return await self.send()

    async def tick(self, label: str) -> Page:
        self.values[self.page.checkboxes[label]] = ("bool_value", True)
        return await self.send()

    async def send(self, once: dict[str, tuple[str, object]] | None = None) -> Page:
        """Ask for a run with what the widgets hold, and read its answer."""
        message = BackMsg()
        message.rerun_script.query_string = self._query
        for widget, (kind, value) in {**self.values, **(once or {})}.items():
            state = message.rerun_script.widget_states.widgets.add()
            state.id = widget
            setattr(state, kind, value)
        self.frames.append(message.SerializeToString())
        await self.socket.send(self.frames[-1])
        return await asyncio.wait_for(self._read(), _PATIENCE)

    async def _read(self) -> Page:
        page = Page()
        while True:
            message = ForwardMsg()
            message.ParseFromString(await self.socket.recv())
            kind = message.WhichOneof("type")
            if kind == "ref_hash":
                message = self._known.get(message.ref_hash, message)
                kind = message.WhichOneof("type")
            elif message.hash:
                self._known[message.hash] = message
            if kind == "new_session":
                page = Page()
            elif kind == "page_info_changed":
                self._query = message.page_info_changed.query_string
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                _noted(page, message.delta.new_element)
            elif kind == "script_finished" and message.script_finished in _ENDED:
                self.page = page
                return page


def _noted(page: Page, element: object) -> None:
    kind = element.WhichOneof("type")
    if kind == "radio":
        r = element.radio
        # `value` is only meaningful where the widget has one; an option's place otherwise
        held = r.options[r.default] if r.HasField("default") else None
        page.radios.append(Radio(r.id, r.label, list(r.options), held))
    elif kind == "button":
        page.buttons[element.button.label] = element.button.id
        if element.button.disabled:
            page.disabled.add(element.button.label)
    elif kind == "text_area":
        page.areas[element.text_area.label] = (element.text_area.id, element.text_area.default)
    elif kind == "checkbox":
        page.checkboxes[element.checkbox.label] = element.checkbox.id
    elif kind == "selectbox":
        page.selects[element.selectbox.label] = (element.selectbox.id, list(element.selectbox.options))
    elif kind == "html":
        page.texts.append(element.html.body)
    elif kind == "markdown":
        page.texts.append(element.markdown.body)
    elif kind == "alert":
        page.texts.append(element.alert.body)
    elif kind == "code":
        page.texts.append(element.code.code_text)
    elif kind == "exception":
        page.exceptions.append(element.exception.message)


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def check_served(url: str) -> None:
    """Raise a StudyError unless rating pages answer at `url`."""
    try:
        build_opener().open(f"{url.rstrip('/')}/readyz", timeout=10).close()
    except (OSError, ValueError, HTTPException) as error:
        why = getattr(error, "reason", error)
        raise StudyError(
            f"{url}: no rating pages answer there ({why}); "
            "start them with `annotation_app serve`, or say with --url where they are"
        ) from None


def enter(url: str, token: str) -> str:
    """Follow an invitation and return the cookie that it gives."""
    from urllib.error import HTTPError

    try:
        build_opener(_Stay).open(Request(f"{url.rstrip('/')}/enter/{token}"), timeout=10)
    except HTTPError as answer:
        with answer:
            if answer.code == 303:
                return re.search(r"crossed_visit=([^;]+)", answer.headers["Set-Cookie"]).group(1)
        raise StudyError(f"{url}: lets no rater in ({answer.code}); does it serve this study?") from None
    raise ConnectionError(f"{urlsplit(url).netloc} let somebody in without a cookie")


def ready_rater(database: Database, person_id: str | None = None) -> str:
    """A token for somebody who may rate at once: consent, instructions and training are behind them."""
    person_id = person_id or people.preview(database, "rehearsal").person_id
    consents.agree(
        database, person_id, version="1", text="rehearsal", locale="ko", choices={"participation": True}
    )
    people.take_step(database, person_id, "instructions")
    training.admit(database, person_id, "rehearsal")
    return people.invite(database, person_id, who="rehearsal")


@dataclass
class Timings:
    first: list[float] = field(default_factory=list)
    save: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


async def rate(visitor: Visitor, until: float, think: float, rng: random.Random, timings: Timings) -> None:
    """Rate like somebody who thinks for `think` seconds on average before each click."""
    while time.monotonic() < until:
        for number in range(len(visitor.page.radios)):
            await asyncio.sleep(rng.expovariate(1 / think) if think else 0)
            if time.monotonic() >= until:
                return
            radio = visitor.page.radios[number]
            option = rng.choice([o for o in radio.options if o.startswith("**")])
            timings.save.append(await _timed(visitor.choose(radio, option)))
            if "cr-saved" not in visitor.page.text and number + 1 == len(visitor.page.radios):
                timings.errors.append("a rating was not acknowledged")
        await asyncio.sleep(rng.expovariate(1 / think) if think else 0)
        forward = next((b for b in visitor.page.buttons if b in ("다음", "Next")), None)
        if forward is None or forward in visitor.page.disabled:
            return
        timings.step.append(await _timed(visitor.press(forward)))


async def rehearse(url: str, tokens: list[str], *, seconds: float, think: float) -> dict[str, object]:
    """Let one rater per token rate for some seconds; milliseconds from click to the end of the answer."""
    timings = Timings()
    begun = time.monotonic()

    async def one(number: int, token: str) -> None:
        rng = random.Random(number)
        cookie = await asyncio.to_thread(enter, url, token)
        await asyncio.sleep(rng.random() * min(5.0, seconds / 4))
        visitor = Visitor(url, cookie)
        await visitor.connect(look=False)
        timings.first.append(await _timed(visitor.look()))
        try:
            await rate(visitor, begun + seconds, think, rng, timings)
        except Exception as error:  # noqa: BLE001 - a rehearsal counts what goes wrong, whatever it is
            timings.errors.append(f"{type(error).__name__}: {error}")
        timings.errors += visitor.page.exceptions
        await visitor.socket.close()

    await asyncio.gather(*(one(i, token) for i, token in enumerate(tokens)))
    found: dict[str, object] = {"raters": len(tokens), "seconds": seconds, "think": think}
    found["saves"] = len(timings.save)
    for name in ("save", "step", "first"):
        for percent in (50, 95, 99):
            found[f"{name}_p{percent}_ms"] = _percentile(getattr(timings, name), percent)
    return found | {"errors": len(timings.errors), "error": timings.errors[0] if timings.errors else None}


async def _timed(doing: object) -> float:
    begun = time.perf_counter()
    await doing
    return 1000 * (time.perf_counter() - begun)


def _percentile(values: list[float], percent: int) -> float | None:
    if not values:
        return None
    return round(sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))], 1)
