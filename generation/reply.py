"""What a model server sent back, read strictly: a text, or a sentence on why there is none.

Servers that call themselves compatible send HTML with status 200, `choices: null`, numbers as strings and contents
as lists of parts. Nothing of that becomes an answer here unless it is one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Api = Literal["chat", "responses"]
_SHOWN = 160  # characters of a server's own words in a detail


class Unreadable(Exception):
    """A body that holds no answer in the protocol's form; the message says what it holds."""


@dataclass(frozen=True)
class Usage:
    """Tokens as the server counts them; None where it does not say. Cached tokens are part of the prompt's."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True)
class Reply:
    """One readable reply.

    `status` is ok where there is text; empty, refused or filtered where the model gave none. `flags` name what the
    protocol itself says about the text: truncated, filtered, refusal, empty, whitespace.
    """

    status: Literal["ok", "empty", "refused", "filtered"]
    text: str | None
    detail: str | None = None
    flags: tuple[str, ...] = ()
    finish: str | None = None
    model: str | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    usage: Usage = field(default_factory=Usage)


def read(body: bytes, api: Api = "chat") -> Reply:
    """The reply in a body that came with status 200.

    Raises
    ------
    Unreadable : if the body is not one, saying in a sentence what it is
    """
    document = _document(body)
    if error := document.get("error"):
        raise Unreadable(f"the server answered 200 with an error: {shown(message(error))}")
    return _chat(document) if api == "chat" else _responses(document)


def message(error: object) -> str:
    """The words of an error body, whatever its shape."""
    if isinstance(error, Mapping):
        for name in ("message", "error", "detail", "msg"):
            if error.get(name):
                return message(error[name])
        return json.dumps(error, ensure_ascii=False)
    if isinstance(error, list) and error:
        return message(error[0])
    return str(error)


def shown(text: str) -> str:
    """A server's words on one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def _document(body: bytes) -> Mapping:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable(f"the server answered 200 with {len(body)} bytes that are not UTF-8 text") from None
    if not text.strip():
        raise Unreadable("the server answered 200 with an empty body")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip().startswith("<"):
            raise Unreadable(f"the server answered 200 with a web page, not JSON: {shown(text)}") from None
        raise Unreadable(f"the server answered 200 with broken JSON ({error.msg}): {shown(text[-40:])}") from None
    except RecursionError:
        raise Unreadable("the server answered 200 with JSON nested too deeply") from None
    if not isinstance(document, Mapping):
        raise Unreadable(f"the server answered 200 with {_kind(document)} where an object belongs")
    return document


def _chat(document: Mapping) -> Reply:
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Unreadable(f"the reply has no choice (choices is {_kind(choices)})")
    choice = choices[0]
    said = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(said, Mapping):
        raise Unreadable(f"the reply's first choice has no message ({_kind(said)})")
    usage = _mapping(document.get("usage"))
    return _reply(
        text=_content(said.get("content")),
        refusal=_string(said.get("refusal")),
        reasoned=bool(said.get("reasoning_content") or said.get("reasoning")),
        finish=_string(choice.get("finish_reason")),
        document=document,
        usage=Usage(
            _count(usage.get("prompt_tokens")),
            _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
            _count(usage.get("completion_tokens")),
            _count(_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        ),
    )


def _responses(document: Mapping) -> Reply:
    output = document.get("output")
    if not isinstance(output, list):
        raise Unreadable(f"the reply has no output ({_kind(output)})")
    if document.get("status") == "failed":
        raise Unreadable("the server answered 200 with a response that failed and no reason")
    parts = [
        part
        for entry in output
        if isinstance(entry, Mapping) and entry.get("type") == "message"
        for part in (entry.get("content") if isinstance(entry.get("content"), list) else [])
        if isinstance(part, Mapping)
    ]
    texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise Unreadable(f"the reply's text is {_kind(wrong[0])}, not text")
    refusals = [_string(part.get("refusal")) or "" for part in parts if part.get("type") == "refusal"]
    reason = _string(_mapping(document.get("incomplete_details")).get("reason"))
    finish = {"max_output_tokens": "length", None: "stop"}.get(reason, reason)
    usage = _mapping(document.get("usage"))
    return _reply(
        text="".join(texts) if texts else None,
        refusal="".join(refusals) or None,
        reasoned=any(isinstance(e, Mapping) and e.get("type") == "reasoning" for e in output),
        finish=finish,
        document=document,
        usage=Usage(
            _count(usage.get("input_tokens")),
            _count(_mapping(usage.get("input_tokens_details")).get("cached_tokens")),
            _count(usage.get("output_tokens")),
            _count(_mapping(usage.get("output_tokens_details")).get("reasoning_tokens")),
        ),
    )


def _reply(
    text: str | None, refusal: str | None, reasoned: bool, finish: str | None, document: Mapping, usage: Usage
) -> Reply:
    origin = {
        "finish": finish,
        "model": _string(document.get("model")),
        "response_id": _string(document.get("id")),
        "fingerprint": _string(document.get("system_fingerprint")),
        "usage": usage,
    }
    flags = (["truncated"] if finish == "length" else []) + (["filtered"] if finish == "content_filter" else [])
    if text is not None and text.strip():
        if refusal:
            flags.append("refusal")
        return Reply("ok", text.strip(), flags=tuple(flags), **origin)
    if refusal:
        return Reply("refused", None, f"refused: {shown(refusal)}", (*flags, "refusal"), **origin)
    if finish == "content_filter":
        return Reply("filtered", None, "the provider's content filter took the answer", tuple(flags), **origin)
    flags.append("whitespace" if text else "empty")
    why = "the answer is empty" if not text else "the answer is nothing but white space"
    if finish == "length":
        why += ": the token limit was used up before a word" + (" of the answer, by reasoning" if reasoned else "")
    elif reasoned:
        why += ": the model reasoned and said nothing"
    return Reply("empty", None, why, tuple(flags), **origin)


def _content(content: object) -> str | None:
    """A message's content; some servers send a list of text parts."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [_mapping(part) for part in content]
        texts = [part.get("text") for part in parts if part.get("type") == "text"]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            return "".join(texts)
        raise Unreadable("the answer's content is a list with something other than text parts")
    raise Unreadable(f"the answer's content is {_kind(content)}, not text")


def _mapping(value: object) -> Mapping:
    return value if isinstance(value, Mapping) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    """A number of tokens; a string, a fraction or a negative number is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _kind(value: object) -> str:
    names = {type(None): "null", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    if value == []:
        return "an empty list"
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
