"""What a Korean question is about: slots of the cases' lexicon, found by lemmas (topics_ko.toml).

A slot that the lexicon does not know, such as one of a study's own cases, is found by its own expressions.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from study.language import lexicon
from study.language.lexicon import Match
from study.language.morphology import morphemes
from study.language.words import words
from study.records import Slot

UNLISTED = "unlisted_symptom"
_COORDINATORS = (
    "거나", "이나", "나", "든지", "와", "과", "랑", "이랑", "하고", "고", "며", "으며", "도", "또는",
    "혹은", "및", "그리고",
)  # fmt: skip


@dataclass(frozen=True)
class Hit:
    """One topic found: how many terms of its rule were met, and by which morphemes of the text.

    `weak` marks a rule that counts only where the question names no topic of its own.
    """

    topic: str
    terms: int
    places: frozenset[int]
    weak: bool = False


def hits(text: str, slots: Mapping[str, Slot]) -> list[Hit]:
    """Every topic that a text has the words of, in the lexicon's order."""
    matches = lexicon.matches(text)
    found = (_hit(slot, text, slots, matches) for slot in (*slots, UNLISTED))
    return [hit for hit in found if hit is not None]


def topics(
    text: str, slots: Mapping[str, Slot], known: Iterable[str] = (), given: Iterable[str] = ()
) -> list[Hit]:
    """The topics a text asks about, in the order in which they stand in it.

    Parameters
    ----------
    known : topics that the case has facts on; between rivals for the same words they come first
    given : topics that are the case's own complaint, and so are rarely what is asked
    """
    known, given = set(known), set(given)
    found = hits(text, slots)
    strong = [h for h in found if not h.weak and h.topic not in given]
    pool = strong or [h for h in found if h.weak] or found
    if strong and not any(h.topic in known for h in strong):
        named = frozenset().union(*(h.places for h in strong))
        pool = strong + [h for h in found if h.weak and h.topic in known and h.places & named]
    if any(h.topic in known for h in pool):
        pool = [h for h in pool if h.topic != UNLISTED]
    pool.sort(key=lambda h: (h.topic in known, _encloses(h.topic, slots), *_rank(h)), reverse=True)
    shared = frozenset().union(*(h.places for h in found if h.topic in given and h not in pool))
    kept: list[Hit] = []
    for hit in pool:
        if all(_side_by_side(text, hit, other, shared) for other in kept):
            kept.append(hit)
    return sorted(kept, key=lambda h: _own_place(h, kept))


def aspects(text: str, slots: Mapping[str, Slot]) -> list[Hit]:
    """The aspects that a text asks for: onset, course, severity and the like."""
    return [h for h in hits(text, slots) if h.weak]


def claims(text: str, topic: str) -> bool:
    """Whether a text has the words of a topic that the lexicon knows, by more than an aspect."""
    match = lexicon.matches(text).get(topic)
    return match is not None and not match.weak


def _rank(hit: Hit) -> tuple[int, int, int]:
    """More terms, more words, later in the sentence: nearer to the predicate."""
    return hit.terms, len(hit.places), max(hit.places)


def _own_place(hit: Hit, among: list[Hit]) -> int:
    """Where a topic's first word stands that it shares with no other topic."""
    others = frozenset().union(*(h.places for h in among if h is not hit))
    return min(hit.places - others or hit.places)


def _side_by_side(text: str, one: Hit, other: Hit, shared: frozenset[int]) -> bool:
    """Whether two topics are named one beside the other: 당뇨나 고혈압, but not 옆구리를 다치다."""
    mine, theirs = one.places - other.places - shared, other.places - one.places - shared
    if not mine or not theirs:
        return False
    first, second = sorted((mine, theirs), key=min)
    both = one.places & other.places
    found = morphemes(text)
    return any(
        found[at].form in _COORDINATORS
        and found[at].tag in ("EC", "JC", "JX", "JKB", "MAJ")
        and at - 1 not in both
        for at in range(min(first), min(second))
    )


def _encloses(topic: str, slots: Mapping[str, Slot]) -> bool:
    """Whether a topic takes others into itself: 옆구리를 두드리면 asks of the knock, 어머님 혈압 of the mother."""
    return topic in slots and slots[topic].category in ("physical_exam", "family_history")


def _hit(slot: str, text: str, slots: Mapping[str, Slot], matches: Mapping[str, Match]) -> Hit | None:
    if slot in matches:
        match = matches[slot]
        return Hit(slot, match.terms, match.places, match.weak)
    if slot == UNLISTED or lexicon.has(slot):
        return None
    return _hit_by_expression(slot, text, slots[slot])


def _hit_by_expression(slot: str, text: str, own: Slot) -> Hit | None:
    for expression in own.asked:
        if found := re.search(expression, text):
            span = range(*found.span())
            places = frozenset(i for i, m in enumerate(morphemes(text)) if m.start in span)
            return Hit(slot, max(1, len(places)), places or frozenset({0}))
    return None


def has_any(text: str, names: tuple[str, ...]) -> bool:
    """Whether a text has one of the names, as the lexicon writes them."""
    return bool(words(text).find(names))
