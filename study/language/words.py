"""A Korean text as words to match: plain lemmas and the places where they stand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from study.language.morphology import Morpheme, lemmas, morphemes

_LONGEST_COMPOUND = 4  # morphemes


@dataclass(frozen=True)
class Words:
    """The lemmas of a text, and where each stands. Nouns written together also count as one word."""

    places: Mapping[str, frozenset[int]]
    order: tuple[frozenset[str], ...]

    def find(self, names: Iterable[str]) -> frozenset[int]:
        """Where any of the names stands; `말*` is any beginning, `님+맞` one after the other."""
        return frozenset().union(*(self.at(name) for name in names))

    def at(self, name: str) -> frozenset[int]:
        """Where one name stands."""
        if "+" in name:
            return self._run(name.split("+"))
        if name.endswith("*"):
            return frozenset().union(*(at for word, at in self.places.items() if word.startswith(name[:-1])))
        return self.places.get(name, frozenset())

    def _run(self, names: list[str]) -> frozenset[int]:
        starts = range(len(self.order) - len(names) + 1)
        runs = (s for s in starts if all(name in self.order[s + i] for i, name in enumerate(names)))
        return frozenset(place for s in runs for place in range(s, s + len(names)))


@lru_cache(maxsize=8192)
def words(text: str) -> Words:
    """The lemmas of a text with their places, for matching."""
    places: dict[str, set[int]] = {}
    order = []
    found, names = morphemes(text), lemmas(text)
    for at, (morpheme, name) in enumerate(zip(found, names, strict=True)):
        lemma = _asked_word(morpheme, name)
        order.append(frozenset({lemma, morpheme.form} if lemma else ()))
        for word in order[-1]:
            places.setdefault(word, set()).add(at)
        for first in range(max(0, at - _LONGEST_COMPOUND + 1), at):
            if _together(found[first:at + 1]):
                compound = "".join(m.form for m in found[first:at + 1])
                places.setdefault(compound, set()).update(range(first, at + 1))
    return Words({name: frozenset(at) for name, at in places.items()}, tuple(order))


def _together(run: tuple[Morpheme, ...]) -> bool:
    """Whether morphemes are nouns written without a space: 혈압 + 약."""
    unspaced = all(a.end == b.start for a, b in zip(run, run[1:], strict=False))
    return unspaced and all(m.noun or m.tag in ("XPN", "XSN", "SN", "MM") for m in run)


def _asked_word(morpheme: Morpheme, lemma: str) -> str:
    """A morpheme's name for matching: auxiliaries of motion have none, the ending that asks leave has one."""
    if morpheme.tag == "VX" and morpheme.form in ("오", "가", "주", "나"):
        return ""
    return "어도" if morpheme.tag == "EC" and morpheme.form in ("어도", "아도", "여도") else lemma
