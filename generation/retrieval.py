"""Which passage of a text answers a question, by the words they share: tf-idf, in English and Korean, no model.

Korean words count by their pairs of syllables, so that 기침은 and 기침이 share something; English ones by stem.
"""

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[a-z0-9]+|[가-힣]+")
_SENTENCE = re.compile(r"(?<=[.?!。？！])(?<!\d\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)\s+(?=\S)|\n+")
_ENDINGS = ("ations", "ation", "ing", "ers", "ies", "ed", "er", "es", "al", "s", "e", "y")
_STOP = re.compile(
    r"(a|an|the|of|to|in|on|at|by|for|with|from|and|or|but|if|is|are|was|were|be|been|am|has|have|had|do|does|did|"
    r"you|yours?|i|my|me|its?|this|that|these|those|there|any|some|no|not|what|which|who|when|where|how|why|can|"
    r"could|would|will|may|s?he|his|hers?|they|them|their|we|our|us|as|so|than|then|about|into|over|more|most|very|"
    r"also|tell|please|anything|something|other|patients?|reports?)"
)


@dataclass(frozen=True)
class Passage:
    """One sentence of a text, and the heading it stands under."""

    text: str
    heading: str = ""


def passages(text: str) -> list[Passage]:
    """The sentences of a text; a text that is a JSON object gives its entries, each under its key."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        document = None
    if isinstance(document, dict | list):
        return _entries(document, "")
    return [Passage(s) for s in sentences(text)]


def sentences(text: str) -> list[str]:
    """
    >>> sentences("Temp. was 38.5 °C. No cough.\\nSmokes.")
    ['Temp.', 'was 38.5 °C.', 'No cough.', 'Smokes.']
    """
    return [part.strip() for part in _SENTENCE.split(unicodedata.normalize("NFC", text)) if part.strip()]


def terms(text: str) -> list[str]:
    """What a text is compared by.

    >>> terms("Do you smoke? Smoker"), terms("기침은")
    (['smok', 'smok'], ['기침', '침은'])
    """
    found = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if "가" <= word[0] <= "힣":
            found += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        elif not _STOP.fullmatch(word):
            found.append(_stem(word))
    return found


class Index:
    """Texts to be found by what they say."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(terms(t)) for t in texts]
        held = Counter(term for counts in self._counts for term in counts)
        self._weight = {t: math.log(1 + len(texts) / n) for t, n in held.items()}
        self._norms = [self._norm(c) for c in self._counts]

    def scores(self, query: str) -> list[float]:
        """How alike each text is to the query: the cosine of their tf-idf vectors, 0 to 1."""
        asked = Counter(t for t in terms(query) if t in self._weight)
        norm = self._norm(asked)
        if not norm:
            return [0.0] * len(self._counts)
        return [
            sum(n * counts[t] * self._weight[t] ** 2 for t, n in asked.items()) / (norm * own) if own else 0.0
            for counts, own in zip(self._counts, self._norms, strict=True)
        ]

    def _norm(self, counts: Counter) -> float:
        return math.sqrt(sum((n * self._weight[t]) ** 2 for t, n in counts.items()))


def _entries(value: object, heading: str) -> list[Passage]:
    if isinstance(value, dict):
        return [p for key, part in value.items() for p in _entries(part, str(key).replace("_", " "))]
    if isinstance(value, list):
        return [p for part in value for p in _entries(part, heading)]
    return [Passage(s, heading) for s in sentences(str(value))] if value is not None else []


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
