"""What a Korean question is about: slots of the cases' lexicon, found by lemmas (topics_ko.toml).

A slot that the lexicon does not know, such as one of a study's own cases, is found by its own expressions.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from study.language.morphology import Morpheme, lemmas, morphemes
from study.records import Slot

UNLISTED = "unlisted_symptom"
_COORDINATORS = ("거나", "이나", "나", "든지", "와", "과", "랑", "이랑", "하고", "고", "며", "으며", "도", "또는", "혹은", "및", "그리고")


@dataclass(frozen=True)
class Hit:
    """One topic found: how many terms of its rule were met, and by which morphemes of the text.

    `weak` marks a rule that counts only where the question names no topic of its own.
    """

    topic: str
    terms: int
    places: frozenset[int]
    weak: bool = False


@dataclass(frozen=True)
class Words:
    """The lemmas of a text, and where each stands. Nouns written together also count as one word."""

    places: Mapping[str, frozenset[int]]
    order: tuple[frozenset[str], ...]

    def find(self, names: Iterable[str]) -> frozenset[int]:
        """Where any of the names stands; `말*` is any beginning, `님+맞` one after the other."""
        found: set[int] = set()
        for name in names:
            if "+" in name:
                found |= self._run(name.split("+"))
            elif name.endswith("*"):
                for word, at in self.places.items():
                    if word.startswith(name[:-1]):
                        found |= at
            else:
                found |= self.places.get(name, frozenset())
        return frozenset(found)

    def _run(self, names: list[str]) -> set[int]:
        found: set[int] = set()
        for at in range(len(self.order) - len(names) + 1):
            if all(name in self.order[at + step] for step, name in enumerate(names)):
                found.update(range(at, at + len(names)))
        return found


@lru_cache(maxsize=4096)
def words(text: str) -> Words:
    """The lemmas of a text with their places, for matching."""
    places: dict[str, set[int]] = {}
    order = []
    found, names = morphemes(text), lemmas(text)
    for at, (morpheme, lemma) in enumerate(zip(found, names, strict=True)):
        lemma = _asked_word(morpheme, lemma)
        order.append(frozenset({lemma, morpheme.form} if lemma else ()))
        if lemma:
            places.setdefault(lemma, set()).add(at)
            places.setdefault(morpheme.form, set()).add(at)
        for first in range(max(0, at - 3), at):
            run = found[first:at + 1]
            together = all(a.end == b.start for a, b in zip(run, run[1:], strict=False))
            if together and all(m.noun or m.tag in ("XPN", "XSN", "SN", "MM") for m in run):
                name = "".join(m.form for m in run)
                places.setdefault(name, set()).update(range(first, at + 1))
    return Words({name: frozenset(at) for name, at in places.items()}, tuple(order))


def hits(text: str, slots: Mapping[str, Slot]) -> list[Hit]:
    """Every topic that a text has the words of, in the lexicon's order."""
    found = (_hit(slot, text, slots) for slot in (*slots, UNLISTED))
    return [hit for hit in found if hit is not None]


def topics(text: str, slots: Mapping[str, Slot], known: Iterable[str] = (), given: Iterable[str] = ()) -> list[Hit]:
    """The topics a text asks about, in the order in which they stand in it.

    Parameters
    ----------
    known : topics that the case has facts on; between rivals for the same words they come first
    given : topics that are the case's own complaint, and so are rarely what is asked
    """
    known, given = set(known), set(given)
    found = [h for h in hits(text, slots)]
    strong = [h for h in found if not h.weak and h.topic not in given]
    pool = strong or [h for h in found if h.weak] or found
    if any(h.topic in known for h in pool):
        pool = [h for h in pool if h.topic != UNLISTED]
    pool.sort(key=lambda h: (h.topic in known, h.terms, len(h.places), max(h.places)), reverse=True)
    shared = frozenset().union(*(h.places for h in found if h.topic in given and h not in pool))
    kept: list[Hit] = []
    for hit in pool:
        if all(_side_by_side(text, hit, other, shared) for other in kept):
            kept.append(hit)
    return sorted(kept, key=lambda h: _own_place(h, kept))


def weak_hits(text: str, slots: Mapping[str, Slot]) -> list[Hit]:
    """The aspects that a text asks for: onset, course, severity and the like."""
    return [h for h in hits(text, slots) if h.weak]


def claims(text: str, topic: str) -> bool:
    """Whether a text has the words of a topic that the lexicon knows, by more than an aspect."""
    entry = _lexicon().get(topic)
    return entry is not None and _best(entry.rules, words(text)) is not None


def well_words(topic: str) -> tuple[str, ...]:
    """Words that name the well side of a topic's problem: 체중은 그대로세요?"""
    entry = _lexicon().get(topic)
    return entry.well if entry else ()


def group(name: str) -> tuple[str, ...]:
    """A named group of words of the lexicon."""
    return _groups()[name]


@dataclass(frozen=True)
class _Rule:
    terms: tuple[tuple[str, ...], ...]
    forbidden: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Entry:
    rules: tuple[_Rule, ...]
    else_rules: tuple[_Rule, ...]
    well: tuple[str, ...]


def _own_place(hit: Hit, among: list[Hit]) -> int:
    """Where a topic's first word stands that it shares with no other topic."""
    others = frozenset().union(*(h.places for h in among if h is not hit))
    return min(hit.places - others or hit.places)


def _side_by_side(text: str, one: Hit, other: Hit, shared: frozenset[int]) -> bool:
    """Whether two topics are named one beside the other (당뇨나 고혈압), not one within the other (옆구리를 다치다)."""
    mine, theirs = one.places - other.places - shared, other.places - one.places - shared
    if not mine or not theirs:
        return False
    first, second = sorted((mine, theirs), key=min)
    between = morphemes(text)[min(first):min(second)]
    return any(m.form in _COORDINATORS and m.tag in ("EC", "JC", "JX", "JKB", "MAJ") for m in between)


def _asked_word(morpheme: Morpheme, lemma: str) -> str:
    """A morpheme's name for matching: auxiliaries of motion are none, the ending of asking leave is one."""
    if morpheme.tag == "VX" and morpheme.form in ("오", "가", "주", "나"):
        return ""
    return "어도" if morpheme.tag == "EC" and morpheme.form in ("어도", "아도", "여도") else lemma


def _hit(slot: str, text: str, slots: Mapping[str, Slot]) -> Hit | None:
    entry = _lexicon().get(slot)
    if entry is None:
        return _hit_by_expression(slot, text, slots[slot])
    for rules, weak in ((entry.rules, False), (entry.else_rules, True)):
        if (best := _best(rules, words(text))) is not None:
            return Hit(slot, best[0], best[1], weak)
    return None


def _hit_by_expression(slot: str, text: str, lexicon: Slot) -> Hit | None:
    for expression in lexicon.asked:
        if found := re.search(expression, text):
            span = range(*found.span())
            places = frozenset(i for i, m in enumerate(morphemes(text)) if m.start in span)
            return Hit(slot, max(1, len(places)), places or frozenset({0}))
    return None


def _best(rules: tuple[_Rule, ...], found: Words) -> tuple[int, frozenset[int]] | None:
    met = [(len(rule.terms), places) for rule in rules if (places := _met(rule, found)) is not None]
    return max(met, key=lambda m: (m[0], len(m[1])), default=None)


def _met(rule: _Rule, found: Words) -> frozenset[int] | None:
    if any(found.find(names) for names in rule.forbidden):
        return None
    places = [found.find(names) for names in rule.terms]
    return frozenset().union(*places) if all(places) else None


@cache
def _raw() -> dict:
    return tomllib.loads(files("study.language").joinpath("topics_ko.toml").read_text(encoding="utf-8"))


@cache
def _groups() -> dict[str, tuple[str, ...]]:
    return {name: tuple(names.split("|")) for name, names in _raw()["groups"].items()}


@cache
def _lexicon() -> dict[str, _Entry]:
    return {
        name: _Entry(
            tuple(_rule(line) for line in entry.get("asked", ())),
            tuple(_rule(line) for line in entry.get("else_asked", ())),
            _names(entry["well"]) if "well" in entry else (),
        )
        for name, entry in _raw()["topic"].items()
    }


def _rule(line: str) -> _Rule:
    terms = line.split()
    return _Rule(
        tuple(_names(t) for t in terms if not t.startswith("!")),
        tuple(_names(t[1:]) for t in terms if t.startswith("!")),
    )


def _names(term: str) -> tuple[str, ...]:
    names: list[str] = []
    for name in term.split("|"):
        names += _groups()[name[1:]] if name.startswith("@") else [name]
    return tuple(names)
