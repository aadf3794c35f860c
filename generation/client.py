"""One question to a model behind an OpenAI-compatible address, one attempt. The only module that knows openai.

The client's own retries are off: it would repeat a call that the server may have answered and billed, without a
record. Replies are taken as bytes and read by `generation.reply`, since the client passes HTML, null choices and
wrong types on as they come.
"""

import hashlib
import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING

from generation import reply as replies
from generation.reply import Reply, Unreadable
from generation.retry import CallError
from generation.settings import ModelSettings
from study.errors import StudyError

if TYPE_CHECKING:
    import openai

Messages = Sequence[Mapping[str, str]]
PATHS = {"chat": "/chat/completions", "responses": "/responses"}
_BROKE = ("insufficient_quota", "billing_hard_limit_reached", "account_deactivated")
_FILTERED = ("content_filter", "content_policy_violation")
_NEVER = ("unsupported_parameter", "unsupported_value", "model_not_found", "unknown_parameter")


@dataclass(frozen=True)
class Call:
    """One attempt's answer: the reply, the server's name for the request, and the time it took (seconds)."""

    reply: Reply
    request_id: str | None
    seconds: float | None


def body(settings: ModelSettings, messages: Messages) -> dict[str, object]:
    """What is sent for one question."""
    if settings.api == "chat":
        said: dict[str, object] = {"messages": [dict(m) for m in messages]}
    else:
        system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
        turns = [_item(m) for m in messages if m["role"] != "system"]
        said = {"instructions": system, "input": turns, "store": False}
    return {"model": settings.model} | said | settings.sampling() | dict(settings.extra_body)


def _item(message: Mapping[str, str]) -> dict[str, object]:
    """A turn as the Responses API has it; llama.cpp takes a model's own words in this form only."""
    if message["role"] != "assistant":
        return dict(message)
    said = [{"type": "output_text", "text": message["content"]}]
    return {"type": "message", "role": "assistant", "content": said}


def key(name: str, settings: ModelSettings, sent: Mapping[str, object]) -> str:
    """The name of one question to one source: the same exactly where asking again would be the same draw."""
    named = {
        "who": name,
        "address": settings.base_url.rstrip("/") + PATHS[settings.api],
        "body": sent,
        "replicate": settings.replicate,
    }
    return hashlib.sha256(json.dumps(named, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class Client:
    """Connections to one model, used by several threads at once: at most so many as the settings allow.

    Every thread has its own: a pool looks at all of its connections for each question, which at 32 of them takes
    as long as all else that is done for one.

    Raises
    ------
    StudyError : if the key is empty
    """

    def __init__(self, settings: ModelSettings) -> None:
        import httpx2

        self.settings = settings
        self._key = settings.key()
        self._raw = httpx2.Response
        self._free = threading.BoundedSemaphore(settings.concurrency)
        self._own = threading.local()
        self._open: list[openai.OpenAI] = []
        self._mine()

    def close(self) -> None:
        for client in self._open:
            client.close()

    def _mine(self) -> "openai.OpenAI":
        """This thread's own connection."""
        import httpx2
        import openai

        if not hasattr(self._own, "client"):
            http = httpx2.Client(
                # A proxy of the environment cannot reach a server on this machine.
                trust_env=not self.settings.local,
                verify=_certificates(),
                timeout=httpx2.Timeout(self.settings.timeout, connect=min(10.0, self.settings.timeout)),
            )
            try:
                self._own.client = openai.OpenAI(
                    api_key=self._key, base_url=self.settings.base_url, max_retries=0, http_client=http,
                    timeout=self.settings.timeout,
                )  # fmt: skip
            except openai.OpenAIError as error:
                raise StudyError(f"{self.settings.base_url}: {error}") from None
            self._open.append(self._own.client)
        return self._own.client

    def send(self, sent: Mapping[str, object], attempt_id: str = "") -> Call:
        """Ask once.

        Parameters
        ----------
        attempt_id : goes out as X-Client-Request-Id, so that the server's log and ours can be matched

        Raises
        ------
        CallError : if there is no readable reply
        """
        with self._free:
            return self._sent(sent, attempt_id, datetime.now(UTC))

    def _sent(self, sent: Mapping[str, object], attempt_id: str, asked: datetime) -> Call:
        import openai

        try:
            response = self._mine().post(
                PATHS[self.settings.api],
                cast_to=self._raw,
                body=dict(sent),
                options={"headers": {"X-Client-Request-Id": attempt_id}} if attempt_id else {},
            )
            raw, headers = response.content, response.headers
        except openai.APITimeoutError:
            raise CallError("transport", f"no answer within {self.settings.timeout:g} s") from None
        except openai.APIStatusError as error:
            if _code(error.body) not in _FILTERED:
                raise self._refused(error) from None
            return self._filtered(error, asked)
        except openai.APIConnectionError as error:
            raise CallError("transport", self._said(f"connection failed: {_cause(error)}")) from None
        seconds = (datetime.now(UTC) - asked).total_seconds()
        try:
            reply = replies.read(raw, self.settings.api)
        except Unreadable as error:
            raise CallError("unreadable", self._said(str(error)), code=200) from None
        return Call(reply, headers.get("x-request-id"), seconds)

    def _filtered(self, error: "openai.APIStatusError", asked: datetime) -> Call:
        """A filter that took the question is as much an outcome as one that took the answer."""
        words = self._said(replies.message(error.body))
        reply = Reply("filtered", None, f"the provider's content filter took the question: {words}", ("filtered",))
        return Call(reply, error.request_id, (datetime.now(UTC) - asked).total_seconds())

    def _refused(self, error: "openai.APIStatusError") -> CallError:
        code, body = error.status_code, error.body
        name = _code(body)
        words = self._said(replies.message(body) if body else error.response.reason_phrase or "no reason given")
        detail = f"HTTP {code}: {words}"
        after = retry_after(error.response.headers, datetime.now(UTC))
        if name in _BROKE:
            return CallError("fatal", f"{detail} ({name})", code=code)
        if code in (401, 403, 404) or name in _NEVER:
            return CallError("fatal", detail + _hint(code, words, self.settings), code=code)
        if code == 429:
            return CallError("busy", detail, code=code, retry_after=after)
        if code >= 500 or code == 408:  # 408: the server itself gave up waiting, so nothing was answered
            return CallError("server", detail, code=code, retry_after=after)
        return CallError("rejected", detail + _hint(code, words, self.settings), code=code)

    def _said(self, text: str) -> str:
        """A server's words without our key, should it repeat it."""
        return replies.shown(text.replace(self._key, "[key]") if len(self._key) > 7 else text)


@cache
def _certificates() -> ssl.SSLContext:
    """The system's certificates, read once: that takes a fifth of a second."""
    import httpx2

    return httpx2.create_ssl_context()


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a server asks to wait: retry-after-ms, seconds or a date; None if it does not ask readably."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif "retry-after" not in headers:
            return None
        else:
            seconds = float(headers["retry-after"])
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(headers.get("retry-after", "")) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None


def _code(body: object) -> str:
    error = body.get("error", body) if isinstance(body, Mapping) else {}
    found = [error.get("code"), error.get("type")] if isinstance(error, Mapping) else []
    return next((str(c) for c in found if str(c) in (*_BROKE, *_NEVER, *_FILTERED)), "")


def _hint(code: int, words: str, settings: ModelSettings) -> str:
    """What to change in study.toml, where the server's words tell."""
    if code in (401, 403):
        return f"; check the key in {settings.api_key_env or 'the environment'}"
    if code == 404:
        return f"; is {settings.model} a model of {settings.base_url}, and does it serve {PATHS[settings.api]}?"
    if settings.limit_name in words:
        other = "max_completion_tokens" if settings.limit_name == "max_tokens" else "max_tokens"
        return f'; try token_limit_param = "{other}"'
    for name in ("temperature", "top_p", "seed"):
        if name in words:
            return f'; if the model has no {name}, say unsupported = ["{name}"]'
    return ""


def _cause(error: BaseException) -> str:
    """The innermost reason of a failed connection."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__
    return str(error) or type(error).__name__
