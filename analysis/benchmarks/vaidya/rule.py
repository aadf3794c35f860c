"""VAIDYA's two scores by rule: whether a doctor names the diagnosis, and which expected questions are asked.

A rule is precise about what it looks at and blind to all else. It costs nothing and scores the same each time; a
synonym that the case does not name in brackets is lost on it.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.benchmarks.scoring import Scored
from analysis.benchmarks.vaidya.cases import Benchmark, Question
from analysis.benchmarks.vaidya.metrics import METRICS, covered, questions_of, unscored
from generation.asking import Note
from generation.conclusion import read as conclusion
from generation.leaks import names
from generation.retrieval import sentences, terms
from study.language.clauses import stems
from study.language.morphology import morphemes
from study.records import Encounter, Metric, Vignette

VERSION = "vaidya-rule/1"
_ENOUGH = 0.6  # of a question's own words that one sentence of the doctor must have
_SEVERAL = re.compile(r"\b(?:or|versus|vs)\b|;| / |또는|혹은|이거나", re.I)

_HANGUL = re.compile(r"[가-힣]")
_SAID = frozenset({"말씀", "오늘", "지금", "최근"})  # nouns that come with any question


@dataclass(frozen=True)
class Rule:
    """The rule for one benchmark; a rater of encounters."""

    benchmark: Benchmark
    kind: Literal["rule"] = "rule"
    workers: int = 1

    @property
    def rater_id(self) -> str:
        return f"{self.benchmark}-rule"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (METRICS[self.benchmark],)

    @property
    def identity(self) -> Mapping[str, object]:
        return {"rule": VERSION, "metric": self.metrics[0].metric_id, "prompt": self.prompt_hash}

    @property
    def prompt(self) -> str:
        """All that would make another rule of it, in the place of a judge's prompt."""
        return f"{VERSION} {_ENOUGH} {_SEVERAL.pattern}"

    @property
    def prompt_hash(self) -> str:
        return hashlib.sha256(self.prompt.encode()).hexdigest()

    def open(self, note: Note) -> None:
        """A rule has nothing to make ready."""

    def stop(self) -> None:
        """A rule asks nobody."""

    def close(self) -> None:
        """A rule holds nothing open."""

    def score(self, case: Vignette, encounter: Encounter, key: str) -> Scored:
        """The rule's word on one encounter."""
        about = {"model": VERSION, "prompt_hash": self.prompt_hash, "cost": 0.0}
        if found := unscored(encounter, self.benchmark):
            return Scored(found.status, found.values, found.reason, about)
        if self.benchmark == "diagbench":
            value, reason = diagnosed(encounter, case.diagnosis)
        else:
            expected = questions_of(case)
            hit = asked([t.text for t in encounter.turns if t.speaker == "doctor"], expected)
            value, reason = covered(hit, expected)
        return Scored("ok", {self.metrics[0].metric_id: value}, reason, about)


def diagnosed(encounter: Encounter, expected: str) -> tuple[float, str]:
    """1 if the doctor's last word names the expected diagnosis and no other beside it, else 0; and why.

    Where the last turn has no line that names a diagnosis, the whole turn is searched.
    """
    last = last_word(encounter)
    found = conclusion(last)
    stated = encounter.diagnosis or (found.diagnosis if found else None)
    if stated is None:
        hit = names(last, expected)
        return float(hit), f"the last turn {'names' if hit else 'does not name'} {expected}"
    if _SEVERAL.search(stated) and not _SEVERAL.search(expected):
        return 0.0, f"{stated!r} leaves more than one diagnosis open"
    hit = names(stated, expected)
    return float(hit), f"{stated!r} {'names' if hit else 'does not name'} {expected}"


def last_word(encounter: Encounter) -> str:
    """The doctor's last turn; nothing, if the doctor never spoke."""
    return next((t.text for t in reversed(encounter.turns) if t.speaker == "doctor"), "")


def asked(said: Sequence[str], expected: Sequence[Question]) -> list[bool]:
    """Which of the expected questions were asked: one sentence holds enough of a question's own words.

    >>> asked(["Hello. Do you smoke cigarettes?"], [Question("Do you smoke?", 1), Question("Any fever?", 1)])
    [True, False]
    """
    spoken = [_words(s) for text in said for s in sentences(text)]
    return [any(_holds(sentence, _words(q.question)) for sentence in spoken) for q in expected]


def _words(text: str) -> frozenset[str]:
    """What a sentence is about: English words by their stems, Korean nouns and predicates."""
    if not _HANGUL.search(text):
        return frozenset(terms(text))
    nouns = {m.form for m in morphemes(text) if m.noun and m.tag not in ("NNB", "NP", "NR")}
    return frozenset(nouns - _SAID) | stems(text)


def _holds(sentence: frozenset[str], question: frozenset[str]) -> bool:
    return bool(question) and len(sentence & question) / len(question) >= _ENOUGH
