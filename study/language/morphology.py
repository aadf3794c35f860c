"""Korean morphemes, by kiwipiepy; the only module that knows it. The model lies in its wheel: no network."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

_STOP = re.compile(r"(?<=[.?!。？！])(?<!\d\.)\s+|(?<=[?!？！])(?=[^\s?!？！])|\n+")
_SILENT = ("SF", "SP", "SS", "SSO", "SSC", "SE", "SO", "SW", "UN")
# Courtesy has its own words for some verbs and nouns; a topic is the same in either.
_PLAIN = {
    "드시": "먹", "들": "먹", "잡수시": "먹", "잡수": "먹", "주무시": "자", "계시": "있", "편찮": "아프",
    "연세": "나이", "성함": "이름", "존함": "이름", "댁": "집", "말씀": "말", "약주": "술", "여쭙": "묻",
    "여쭈": "묻", "여쭤보": "묻", "물어보": "묻", "뵙": "보", "진지": "식사", "치아": "이빨",
    "누님": "누나", "형님": "형", "아드님": "아들", "따님": "딸",
}
_STEMS = ("VV", "VA", "VX", "VCP", "VCN", "XSV", "XSA")


@dataclass(frozen=True)
class Morpheme:
    """One morpheme: its dictionary form, its Sejong tag (without Kiwi's suffixes), and its place in the text."""

    form: str
    tag: str
    start: int
    end: int

    @property
    def stem(self) -> bool:
        return self.tag in _STEMS

    @property
    def noun(self) -> bool:
        return self.tag in ("NNG", "NNP", "NNB", "NP", "NR", "XR", "SL")


def sentences(text: str) -> list[str]:
    """The sentences of an utterance; a decimal point does not end one."""
    parts = [part.strip() for part in _STOP.split(unicodedata.normalize("NFC", text))]
    return [part for part in parts if part]


@lru_cache(maxsize=4096)
def morphemes(text: str) -> tuple[Morpheme, ...]:
    """The morphemes of a text in order, punctuation left out."""
    tokens = _kiwi().tokenize(unicodedata.normalize("NFC", text))
    kept = [Morpheme(t.form, t.tag.split("-")[0], t.start, t.end) for t in tokens if t.tag not in _SILENT]
    return tuple(_mended(kept))


@lru_cache(maxsize=4096)
def lemmas(text: str) -> tuple[str, ...]:
    """One lemma a morpheme: plain words for courteous ones, `운동하` for 운동 + 하; endings are empty strings."""
    found = morphemes(text)
    names = []
    for before, this in zip((None, *found), found, strict=False):
        if this.tag in ("XSV", "XSA") and before is not None:
            names.append(before.form + this.form)
        elif this.stem or this.noun or this.tag in ("MAG", "MAJ", "MM", "SN", "IC", "XSN", "JX", "JKB"):
            names.append(_PLAIN.get(this.form, this.form) if this.tag not in ("JX", "JKB") else this.form)
        else:
            names.append("")
    return tuple(names)


def inflected(stem: Sequence[Morpheme], ending: Sequence[tuple[str, str]]) -> str:
    """A stem with other endings, in Korean spelling: 빨갛 + 은 → 빨간."""
    return _kiwi().join([(m.form, m.tag) for m in stem] + list(ending))


@cache
def _kiwi() -> "Kiwi":
    from kiwipiepy import Kiwi

    return Kiwi(num_workers=1)


def _mended(found: list[Morpheme]) -> list[Morpheme]:
    """Mends what Kiwi now and then misreads: 드세요 as fierce, 계세요 as a noun, 나지만 as -지 말-."""
    mended: list[Morpheme] = []
    for this in found:
        if this.form == "드세" and this.tag in _STEMS:
            mended.append(Morpheme("드시", "VV", this.start, this.end))
        elif this.tag == "VCP" and mended and mended[-1].form in ("계", "주무", "드", "잡수"):
            noun = mended.pop()
            mended.append(Morpheme(noun.form + "시", "VV", noun.start, noun.end))
        elif this.tag == "ETM" and [m.form for m in mended[-2:]] == ["지", "말"]:
            mended[-2:] = [Morpheme("지만", "EC", mended[-2].start, this.end)]
        else:
            mended.append(this)
    return mended
