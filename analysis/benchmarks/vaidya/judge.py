"""VAIDYA's judge: a model that rates encounters, over the Responses API, or chat completions where that is not."""

import hashlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from analysis.benchmarks.scoring import Scored
from analysis.benchmarks.vaidya import questions
from analysis.benchmarks.vaidya.cases import Benchmark
from analysis.benchmarks.vaidya.metrics import METRICS, NO_DIAGNOSIS, covered, questions_of, unscored
from analysis.benchmarks.vaidya.questions import Asking, Verdict
from analysis.benchmarks.vaidya.rule import last_word
from analysis.insisting import Outcome, insist, total
from analysis.rubric import digest
from generation.asking import Asker, Note
from generation.settings import ModelSettings
from generation.sources.local import reached
from study.records import Encounter, Metric, Vignette

DEFAULTS = {"temperature": 0.0, "top_p": None, "max_tokens": 600}
EVALUATOR, EXTRACTOR = "gpt-4.1", "gpt-4.1-mini"
VARIABLES = ("VAIDYA_EVALUATOR_MODEL", "DIAGBENCH_EVALUATOR_MODEL")
_NO_SUCH_PATH = re.compile(r"HTTP (?:404|405)\b")
_NO_FORM = re.compile(r"HTTP (?:400|422|500|501)\b.*(?:response_format|schema|text\.format|grammar)", re.I | re.S)


def evaluator(flag: str | None, environment: Mapping[str, str]) -> str:
    """The evaluator's model: the flag's, else the first variable's that is set, else the document's own.

    >>> evaluator(None, {"DIAGBENCH_EVALUATOR_MODEL": "a", "VAIDYA_EVALUATOR_MODEL": "b"})
    'b'
    """
    found = [flag, *(environment.get(name, "").strip() for name in VARIABLES)]
    return next((name for name in found if name), EVALUATOR)


@dataclass(frozen=True)
class Way:
    """How a server is asked: by which API, and whether it is told the reply's form."""

    asker: Asker
    schema: bool = True


@dataclass
class Voice:
    """One model's connection, asked in the first way that its server takes.

    The Responses API comes first, then chat completions, then chat completions without the reply's form; whether a
    reply keeps the form is checked in any case.
    """

    settings: ModelSettings
    note: Note
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.way = Way(Asker(self.settings.model_copy(update={"api": "responses"}), self.note))
        self._opened = [self.way.asker]

    def stop(self) -> None:
        for asker in self._opened:
            asker.gate.stop()

    def close(self) -> None:
        for asker in self._opened:
            asker.close()

    def ask(self, asking: Asking, key: str, about: Mapping[str, object]) -> Outcome[Verdict]:
        """The verdict on one question, or why there is none."""
        while True:
            way = self.way
            form = _form(way.asker.settings, asking) if way.schema else way.asker.settings
            found = insist(way.asker, form, asking.messages, asking.read, questions.again, key, about)
            if found.status in ("ok", "judge_error") or not self._turned(way, str(found.detail)):
                return found

    def _turned(self, way: Way, detail: str) -> bool:
        """Whether another way is left after this one brought nothing, and if so, turn to it."""
        with self._lock:
            if self.way is not way:
                return True
            if way.asker.settings.api == "responses" and _NO_SUCH_PATH.search(detail):
                asker = Asker(way.asker.settings.model_copy(update={"api": "chat"}), self.note)
                self._opened.append(asker)
                self.way = Way(asker, way.schema)
            elif way.schema and _NO_FORM.search(detail):
                self.way = Way(way.asker, schema=False)
            return self.way is not way


class Judge:
    """A model that rates encounters of one benchmark.

    Parameters
    ----------
    extractor : names the diagnosis that is judged, from the last doctor turn; without one, that turn is judged
    """

    kind: Literal["judge"] = "judge"

    def __init__(
        self, benchmark: Benchmark, settings: ModelSettings, extractor: ModelSettings | None = None
    ) -> None:
        self.benchmark = benchmark
        self.settings = settings
        self.extractor = extractor if benchmark == "diagbench" else None
        self.rater_id = f"{benchmark}-judge-{re.sub(r'[^A-Za-z0-9._-]+', '-', settings.model)}"
        self.metrics: tuple[Metric, ...] = (METRICS[benchmark],)
        self.voices: dict[str, Voice] = {}

    @property
    def workers(self) -> int:
        return self.settings.concurrency

    @property
    def prompt(self) -> str:
        """All the words that it is told, apart from any case."""
        asked = ["coverage"] if self.benchmark == "medconvbench" else ["diagnosis"]
        return questions.words((["extraction"] if self.extractor else []) + asked)

    @property
    def prompt_hash(self) -> str:
        return hashlib.sha256(self.prompt.encode()).hexdigest()

    @property
    def identity(self) -> Mapping[str, object]:
        """All that would make its word another draw. The way of asking is no part of it: that is the server's."""
        named = {"judge": self.settings, "extractor": self.extractor}
        return {
            "benchmark": self.benchmark,
            "prompt": self.prompt_hash,
            **{name: _draw(s) for name, s in named.items() if s is not None},
        }

    def open(self, note: Note) -> None:
        named = {"judge": self.settings, "extractor": self.extractor}
        # Only the small model of this machine is a demo; its server starts here.
        self.voices = {n: Voice(reached(s) if s.demo else s, note) for n, s in named.items() if s is not None}

    def stop(self) -> None:
        for voice in self.voices.values():
            voice.stop()

    def close(self) -> None:
        for voice in self.voices.values():
            voice.close()

    def score(self, case: Vignette, encounter: Encounter, key: str) -> Scored:
        """The judge's word on one encounter."""
        if found := unscored(encounter, self.benchmark):
            return found
        work = _Work(self, key, {"label": encounter.encounter_id, "rater": self.rater_id})
        if self.benchmark == "diagbench":
            return self._diagnosed(work, last_word(encounter), case.diagnosis)
        expected = questions_of(case)
        verdict = work.ask("judge", questions.coverage(encounter, expected))
        if verdict is None:
            return work.without()
        value, counted = covered(verdict.asked, expected)
        return work.scored(value, f"{verdict.reasoning} ({counted})")

    def _diagnosed(self, work: "_Work", stated: str, expected: str) -> Scored:
        if self.extractor is not None:
            found = work.ask("extractor", questions.extraction(stated))
            if found is None:
                return work.without()
            if found.diagnosis is None:
                return work.scored(0.0, NO_DIAGNOSIS)
            stated = found.diagnosis
        verdict = work.ask("judge", questions.diagnosis(stated, expected))
        return work.without() if verdict is None else work.scored(verdict.score, verdict.reasoning)


class _Work:
    """What one encounter's score takes: one or two questions, and all that is known of the calls."""

    def __init__(self, judge: Judge, key: str, label: Mapping[str, object]) -> None:
        self._judge, self._key, self._label = judge, key, label
        self._asked: list[tuple[Outcome[Verdict], Voice, Asking]] = []

    def ask(self, who: str, asking: Asking) -> Verdict | None:
        voice = self._judge.voices[who]
        outcome = voice.ask(asking, self._key, self._label)
        self._asked.append((outcome, voice, asking))
        return outcome.verdict

    def scored(self, value: float | None, reason: str | None) -> Scored:
        return Scored("ok", {self._judge.metrics[0].metric_id: value}, reason, self._about())

    def without(self) -> Scored:
        outcome = self._asked[-1][0]
        return Scored(outcome.status, {}, outcome.detail, self._about())

    def _about(self) -> dict[str, object]:
        """The last question's prompt, with the tokens and cost of all of them; the model is the judge's own."""
        parts = [outcome.about(voice.settings.price) for outcome, voice, _ in self._asked]
        usages = [a.call.reply.usage for outcome, _, _ in self._asked for a in outcome.asked if a.call is not None]
        voices = [voice for _, voice, _ in self._asked]
        unpriced = {v.settings.model for p, v in zip(parts, voices, strict=True) if p["cost"] is None}
        judged = [p for p, (*_, asking) in zip(parts, self._asked, strict=True) if asking.name != "extraction"]
        return parts[-1] | {
            "model": judged[-1]["model"] if judged else None,
            "prompt_tokens": total([u.prompt for u in usages]),
            "completion_tokens": total([u.completion for u in usages]),
            "cached_tokens": total([u.cached or 0 for u in usages]),
            "reasoning_tokens": total([u.reasoning or 0 for u in usages]),
            "cost": total([p["cost"] for p in parts]),
            "unpriced": sorted(unpriced),
            "asks": sum(p["asks"] for p in parts),
            "attempts": sum(p["attempts"] for p in parts),
            "prompt_hash": digest(self._asked[-1][2].messages),
            "api": self._asked[-1][1].way.asker.settings.api,
            "schema": self._asked[-1][1].way.schema,
            "question": self._key,
        }


def _form(settings: ModelSettings, asking: Asking) -> ModelSettings:
    """The settings with the reply's form asked of the server; whether it keeps it is checked all the same."""
    named = {"name": asking.name, "schema": dict(asking.schema), "strict": True}
    if settings.api == "responses":
        more: dict[str, object] = {"text": {"format": {"type": "json_schema", **named}}}
    else:
        more = {"response_format": {"type": "json_schema", "json_schema": named}}
    return settings.model_copy(update={"extra_body": dict(settings.extra_body) | more})


def _draw(settings: ModelSettings) -> dict[str, object]:
    return {"model": settings.model, "address": settings.base_url, "sampling": settings.sampling()} | {
        "extra_body": dict(settings.extra_body)
    }
