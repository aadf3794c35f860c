"""The lexicon of question topics (topics_ko.toml), indexed by its words."""

import tomllib
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files

from study.language.words import words


@dataclass(frozen=True)
class Match:
    """How a text meets a topic: by so many terms, at these morphemes, by an else-rule or not."""

    terms: int
    places: frozenset[int]
    weak: bool = False


@lru_cache(maxsize=8192)
def matches(text: str) -> dict[str, Match]:
    """The topics whose rules a text meets, each by its most specific rule; an else-rule only if no other."""
    index = _index()
    met = index.met(text)
    best: dict[str, Match] = {}
    for term in met:
        for rule in index.by_first.get(term, ()):
            if any(t not in met for t in rule.terms) or any(t in met for t in rule.forbidden):
                continue
            match = Match(len(rule.terms), frozenset().union(*(met[t] for t in rule.terms)), rule.weak)
            if rule.topic not in best or _rank(match) > _rank(best[rule.topic]):
                best[rule.topic] = match
    return best


def has(topic: str) -> bool:
    """Whether the lexicon knows a topic."""
    return topic in _raw()["topic"]


@cache
def well_words(topic: str) -> tuple[str, ...]:
    """Words that name the well side of a topic's problem: 체중은 그대로세요?"""
    entry = _raw()["topic"].get(topic, {})
    return _names(entry["well"]) if "well" in entry else ()


@cache
def group(name: str) -> tuple[str, ...]:
    """A named group of words."""
    return tuple(_raw()["groups"][name].split("|"))


@dataclass(frozen=True)
class _Rule:
    topic: str
    weak: bool
    terms: tuple[int, ...]
    forbidden: tuple[int, ...]


@dataclass
class _Index:
    """Terms by number; which terms a word can meet; which rules begin with a term."""

    numbers: dict[tuple[str, ...], int] = field(default_factory=dict)
    by_word: dict[str, list[int]] = field(default_factory=dict)
    others: list[tuple[str, int]] = field(default_factory=list)
    by_first: dict[int, list[_Rule]] = field(default_factory=dict)

    def number(self, term: str) -> int:
        names = _names(term)
        if names not in self.numbers:
            self.numbers[names] = number = len(self.numbers)
            for name in names:
                if "+" in name or name.endswith("*"):
                    self.others.append((name, number))
                else:
                    self.by_word.setdefault(name, []).append(number)
        return self.numbers[names]

    def met(self, text: str) -> dict[int, frozenset[int]]:
        """The terms that a text meets, and where."""
        found, met = words(text), {}
        for word, places in found.places.items():
            for term in self.by_word.get(word, ()):
                met[term] = met.get(term, frozenset()) | places
        for name, term in self.others:
            if places := found.at(name):
                met[term] = met.get(term, frozenset()) | places
        return met


def _rank(match: Match) -> tuple[bool, int, int]:
    return (not match.weak, match.terms, len(match.places))


@cache
def _index() -> _Index:
    index = _Index()
    for topic, entry in _raw()["topic"].items():
        for key, weak in (("asked", False), ("else_asked", True)):
            for line in entry.get(key, ()):
                wanted = tuple(index.number(t) for t in line.split() if not t.startswith("!"))
                forbidden = tuple(index.number(t[1:]) for t in line.split() if t.startswith("!"))
                index.by_first.setdefault(wanted[0], []).append(_Rule(topic, weak, wanted, forbidden))
    return index


@cache
def _raw() -> dict:
    return tomllib.loads(files("study.language").joinpath("topics_ko.toml").read_text(encoding="utf-8"))


def _names(term: str) -> tuple[str, ...]:
    names: list[str] = []
    for name in term.split("|"):
        names += group(name[1:]) if name.startswith("@") else [name]
    return tuple(names)
