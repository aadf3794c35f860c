"""A real HTTP server on this machine that speaks the chat protocol, well or badly, as a test asks it to."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Hit:
    """One request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict

    @property
    def attempt(self) -> str:
        return self.headers.get("x-client-request-id", "")

    @property
    def question(self) -> str:
        said = self.body.get("messages") or self.body.get("input")
        return said[-1]["content"]


@dataclass(frozen=True)
class Wire:
    """What goes back. `act`: reset drops the connection, hang never answers, cut stops within the body."""

    body: bytes | str | dict = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    act: str = "answer"
    delay: float = 0.0

    def raw(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)).encode()


def chat(text: object = "네, 없어요.", finish: str | None = "stop", model: str = "fake-1", **more: object) -> dict:
    """The body of a chat completion."""
    usage = more.pop("usage", {"prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912})
    message = {"role": "assistant", "content": text} | more.pop("message", {})
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1764000000, "model": model,
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": usage,
        "system_fingerprint": "fp_1",
    } | more  # fmt: skip


def response(text: str = "네, 없어요.", **more: object) -> dict:
    """The body of the Responses API."""
    return {
        "id": "resp_1", "object": "response", "status": "completed", "model": "fake-1",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
        ],
        "usage": {
            "input_tokens": 900, "input_tokens_details": {"cached_tokens": 100},
            "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 8},
        },
    } | more  # fmt: skip


def failure(
    status: int, message: str = "no", code: object = None, headers: Mapping[str, str] | None = None
) -> Wire:
    """An error in OpenAI's form."""
    return Wire({"error": {"message": message, "type": "x", "code": code}}, status, headers or {})


class Loopback:
    """Answers every request by `script(hit, n)`, where n counts the hits from 0; remembers every hit."""

    def __init__(self, script: Callable[[Hit, int], Wire | dict] | None = None, delay: float = 0.0) -> None:
        self.script = script or (lambda hit, n: chat())
        self.delay = delay
        self.hits: list[Hit] = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "Loopback":
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, hit: Hit) -> Wire:
        with self._lock:
            n = len(self.hits)
            self.hits.append(hit)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            wire = self.script(hit, n)
            wire = Wire(wire) if isinstance(wire, dict) else wire
            self._over.wait(30) if wire.act == "hang" else time.sleep(wire.delay or self.delay)
            return wire
        finally:
            with self._lock:
                self._now -= 1


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that was killed hangs up; that is what some tests are about."""


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            wire = loopback.answer(Hit(self.path, headers, json.loads(raw)))
            if wire.act in ("reset", "hang"):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            body = wire.raw()
            lines = [f"HTTP/1.1 {wire.status} X", f"content-length: {len(body)}", "x-request-id: req_1"]
            given = {"content-type": "application/json"} | dict(wire.headers)
            lines += [f"{name}: {value}" for name, value in given.items()]
            self.wfile.write("\r\n".join([*lines, "", ""]).encode() + (body[:-9] if wire.act == "cut" else body))
            if wire.act == "cut":
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler
