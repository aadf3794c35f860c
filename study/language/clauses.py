"""A Korean text clause by clause: what each is about, and whether it denies."""

from dataclasses import dataclass

from study.language.korean import negated
from study.language.morphology import Morpheme, lemmas, morphemes, sentences

_ENDS = (
    "고", "며", "으며", "지만", "는데", "ᆫ데", "은데", "면서", "으면서", "어서", "아서", "여서",
    "니까", "으니까", "다가", "고요", "거든요",
)  # fmt: skip
_LIGHT = (
    "하", "되", "있", "없", "않", "아니", "이", "보", "주", "같", "못하", "오", "가", "지",
)  # fmt: skip
_WITHOUT = "없이"


@dataclass(frozen=True)
class Clause:
    """One clause, whether it denies, and the stems of its predicates that have a meaning of their own."""

    text: str
    denies: bool
    stems: frozenset[str]


def clauses(text: str) -> list[Clause]:
    """The clauses of a text in order: 통증 없이 | 소변만 붉고 | 체중이 빠졌어요."""
    found = []
    for sentence in sentences(text):
        start, marks = 0, morphemes(sentence)
        for at, mark in enumerate(marks):
            follows = marks[at + 1] if at + 1 < len(marks) else None
            echo = at > 0 and marks[at - 1].form in ("그렇", "그러")  # 혈압약도 그렇고: as what follows
            if follows is None or mark.form == _WITHOUT or not echo and _ends(mark, follows):
                if piece := sentence[start:mark.end].strip(" ,"):
                    found.append(Clause(piece, _denies(piece), stems(piece)))
                start = mark.end
    return found


def stems(text: str) -> frozenset[str]:
    """The plain stems of a text's predicates, those apart that only carry others."""
    named = zip(morphemes(text), lemmas(text), strict=True)
    return frozenset(name for m, name in named if m.stem and name and name not in _LIGHT and m.form not in _LIGHT)


def _ends(mark: Morpheme, follows: Morpheme) -> bool:
    return mark.tag == "EC" and mark.form in _ENDS and follows.tag != "VX"


def _denies(piece: str) -> bool:
    return negated(piece) or any(m.form == _WITHOUT for m in morphemes(piece))
