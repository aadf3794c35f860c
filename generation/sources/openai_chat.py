"""A model as a source: the case's persona as system prompt, the question as the only turn.

Every question is put alone: what a model said before does not reach it, as the study's prompts are fixed.
"""

import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path

from generation.asking import Asked, Asker, Note
from generation.client import body, key
from generation.flags import flags
from generation.price import cost
from generation.prompt import system_prompt
from generation.settings import ModelSettings, model_settings
from generation.sources.speaker import Answer, Request
from study.errors import StudyError
from study.records import Content, Source


def open_source(source: Source, content: Content, folder: Path) -> "Model":
    """A model of study.toml; nothing is sent yet.

    Raises
    ------
    StudyError : if a setting is wrong
    """
    settings = model_settings(source.settings, f"study.toml: source {source.source_id}")
    return Model(source.source_id, settings, content.language)


class Model:
    """Answers any question to any case; safe to ask from several threads.

    Parameters
    ----------
    address : stands for base_url in the names of questions, where the address is another each time
    """

    def __init__(self, name: str, settings: ModelSettings, language: str, address: str | None = None) -> None:
        self.name = name
        self.settings = settings
        self.language = language
        self.note: Note = lambda record: None
        self._named = settings if address is None else settings.model_copy(update={"base_url": address})
        self._asker: Asker | None = None
        self._broken: str | None = None
        self._opening = threading.Lock()

    @property
    def workers(self) -> int:
        return self.settings.concurrency

    def open(self) -> None:
        """Make the connection ready, once; a missing key is found here and answered with, not raised."""
        with self._opening:
            if self._asker is not None or self._broken is not None:
                return
            try:
                self._asker = Asker(self.settings, note=lambda record: self.note(record))
            except StudyError as error:
                self._broken = str(error)

    def stop(self) -> None:
        """Let no further question leave."""
        if self._asker is not None:
            self._asker.gate.stop()

    def close(self) -> None:
        if self._asker is not None:
            self._asker.close()

    def sent(self, request: Request) -> dict[str, object]:
        """The body of one question."""
        system = system_prompt(request.case.persona, self.language, self.settings.variant)
        messages = [{"role": "system", "content": system}, {"role": "user", "content": request.text}]
        return body(self.settings, messages)

    def key(self, request: Request) -> str:
        """The name of one question to this source."""
        place = request.prompt.prompt_id if request.prompt else ""
        return key(f"{self.name}/{place}", self._named, self.sent(request))

    def answer(self, request: Request) -> Answer:
        self.open()
        if self._asker is None:
            return Answer("failed", detail=self._broken, asked=False)
        sent = self.sent(request)
        about = {"source_id": self.name} | ({"prompt_id": request.prompt.prompt_id} if request.prompt else {})
        asked = self._asker.ask(self.key(request), sent, about)
        return self.read(request, sent, asked)

    def read(self, request: Request, sent: Mapping[str, object], asked: Asked) -> Answer:
        """The answer that an outcome is, with all that is known of it."""
        persona = request.case.persona
        instructions = (persona.role_declaration, persona.conversational_style, persona.behavioral_constraints)
        return outcome(self.settings, sent, asked, self.language, instructions)


def outcome(
    settings: ModelSettings,
    sent: Mapping[str, object],
    asked: Asked,
    language: str,
    instructions: tuple[str, ...] = (),
) -> Answer:
    """What a model said to one question, or why it did not, with all that is known of it.

    Parameters
    ----------
    instructions : texts of the prompt whose words should not turn up in the answer
    """
    about: dict[str, object] = {
        "attempts": asked.attempts,
        "asked_at": asked.asked_at,
        "answered_at": asked.answered_at,
        "prompt_hash": hash_of(sent),
        "replicate": settings.replicate,
        "demo": settings.demo,
    }
    if asked.call is None:
        return Answer("failed", detail=str(asked.error), about=about, asked=asked.attempts > 0)
    call, reply = asked.call, asked.call.reply
    found = flags(
        reply,
        language=language,
        instructions=instructions,
        sent="".join(map(str, texts_of(sent))),
        limit=None if "max_tokens" in settings.unsupported else settings.max_tokens,
    )
    about |= {
        "flags": ",".join(found) or None,
        "model": reply.model,
        "response_id": reply.response_id,
        "request_id": call.request_id,
        "fingerprint": reply.fingerprint,
        "finish": reply.finish,
        "prompt_tokens": reply.usage.prompt,
        "cached_tokens": reply.usage.cached,
        "completion_tokens": reply.usage.completion,
        "reasoning_tokens": reply.usage.reasoning,
        "cost": cost(reply.usage, settings.price),
        "seconds": call.seconds,
    }
    return Answer(reply.status, reply.text, reply.detail, about)


def hash_of(sent: Mapping[str, object]) -> str:
    """SHA-256 of all that is sent for one question."""
    return hashlib.sha256(json.dumps(sent, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def texts_of(sent: Mapping[str, object]) -> list[object]:
    """The texts in a body that count as prompt."""
    turns = sent.get("messages") or sent.get("input") or []
    return [sent.get("instructions", ""), *(turn["content"] for turn in turns)]
