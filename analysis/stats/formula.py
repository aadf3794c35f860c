"""A model formula in lme4's grammar, read into terms; what it does not know is refused with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from study.errors import StudyError

Term = tuple[str, ...]
"""A product of factors, each an expression; the empty product is the intercept."""

_NAME = re.compile(r"`[^`]+`|[^\W\d][\w.]*")


@dataclass(frozen=True)
class RandomTerm:
    """One `(columns | group)`: effects that vary from level to level of the group, correlated within it."""

    terms: tuple[Term, ...]
    group: tuple[str, ...]

    @property
    def name(self) -> str:
        """The group as lme4 writes it: `case:prompt`."""
        return ":".join(self.group)

    @property
    def text(self) -> str:
        """The term as one would write it: `(1 | case:prompt)`."""
        columns = [":".join(term) for term in self.terms if term]
        if () not in self.terms:
            columns.insert(0, "0")
        return f"({' + '.join(columns) if columns else '1'} | {self.name})"


@dataclass(frozen=True)
class Formula:
    """Outcome, fixed terms (the intercept is the empty product) and random terms of one formula."""

    text: str
    outcome: str
    fixed: str
    terms: tuple[Term, ...]
    random: tuple[RandomTerm, ...]

    def __str__(self) -> str:
        return f"{self.outcome} ~ {' + '.join([self.fixed, *(term.text for term in self.random)])}"

    def with_random(self, random: tuple[RandomTerm, ...]) -> Formula:
        """The same outcome and fixed effects with other random terms."""
        changed = Formula("", self.outcome, self.fixed, self.terms, random)
        return Formula(str(changed), self.outcome, self.fixed, self.terms, random)

    def with_outcome(self, outcome: str) -> Formula:
        """The same model of another column."""
        changed = Formula("", outcome, self.fixed, self.terms, self.random)
        return Formula(str(changed), outcome, self.fixed, self.terms, self.random)


@lru_cache(maxsize=256)
def parse(text: str) -> Formula:
    """Read `outcome ~ fixed + (columns | group)`.

    Fixed effects are read by formulaic (`+ - : * / ^ C() I()` and functions of one column). Random terms
    are `(1|g)`, `(x|g)`, `(0+x|g)`, `(x||g)`; a group is a column, `a:b` or `a/b`.

    Raises
    ------
    StudyError : with the place of what is not understood
    """
    if not isinstance(text, str) or not text.strip():
        raise StudyError("The formula is empty; write one such as score ~ source + (1|rater).")
    left, right, start = _sides(text)
    spans = _bars(text, start)
    random = tuple(term for span in spans for term in _random(text, *span))
    _refuse_repeats(text, random)
    fixed = _fixed_part(text, start, spans)
    return Formula(text.strip(), _outcome(left), fixed, _fixed_terms(text, fixed), random)


def _sides(text: str) -> tuple[str, str, int]:
    tildes = [i for i, character in enumerate(text) if character == "~"]
    if not tildes:
        raise StudyError(f'The formula "{text}" has no ~; write outcome ~ effects.')
    if len(tildes) > 1:
        raise StudyError(
            f'The formula "{text}" has a tilde too many, at position {tildes[1] + 1}; '
            "write outcome ~ effects with one ~."
        )
    return text[: tildes[0]], text[tildes[0] + 1 :], tildes[0] + 1


def _outcome(left: str) -> str:
    name = left.strip()
    if not _NAME.fullmatch(name):
        raise StudyError(
            f'The left side of the formula, "{name}", is not one column name; '
            "make a column of the transformed ratings and name it there."
        )
    return name.strip("`")


def _bars(text: str, start: int) -> list[tuple[int, int]]:
    """Where the parentheses that hold a bar begin and end."""
    opened: list[int] = []
    barred: set[int] = set()
    spans = []
    for i in range(start, len(text)):
        if text[i] == "(":
            opened.append(i)
        elif text[i] == "|":
            if not opened:
                raise StudyError(_at(text, i, "a bar outside parentheses; write random terms as (1|rater)"))
            barred.add(opened[-1])
        elif text[i] == ")":
            if not opened:
                raise StudyError(_at(text, i, "a closing parenthesis that was never opened"))
            first = opened.pop()
            if first in barred:
                spans.append((first, i))
    if opened:
        raise StudyError(_at(text, opened[-1], "a parenthesis that is never closed"))
    return spans


def _random(text: str, first: int, last: int) -> list[RandomTerm]:
    before = text[:first].rstrip()
    if before[-1] not in "~+":
        raise StudyError(_at(text, first, f'a random term after "{before[-1]}"; random terms are added with +'))
    after = text[last + 1 :].lstrip()
    if after and after[0] not in "+-":
        raise StudyError(_at(text, last + 1, f'"{after[0]}" after a random term; go on with +'))
    inside = text[first + 1 : last]
    columns, bars, group = re.match(r"([^|]*)(\|+)(.*)", inside, re.S).groups()
    place = first + 1 + len(columns)
    if len(bars) > 2 or "|" in group:
        raise StudyError(_at(text, place, "more bars than (x|g) or (x||g) has"))
    terms = _columns(text, first + 1, columns)
    apart = [(term,) for term in terms] if len(bars) == 2 else [terms]
    groups = _groups(text, place + len(bars), group)
    return [RandomTerm(part, one) for one in groups for part in apart]


def _columns(text: str, place: int, columns: str) -> tuple[Term, ...]:
    written = columns.strip()
    if not written:
        raise StudyError(_at(text, place, "nothing before the bar; write (1|rater) for an intercept"))
    terms = _fixed_terms(text, written)
    if not terms:
        raise StudyError(_at(text, place, "a random term without columns"))
    return terms


def _groups(text: str, place: int, group: str) -> list[tuple[str, ...]]:
    """`a:b` is one group, `a/b` is `a` and `a:b`."""
    written = group.strip()
    names = [name.strip() for name in re.split(r"[:/]", written)]
    for name in names:
        if not _NAME.fullmatch(name):
            shown = written or "nothing"
            raise StudyError(
                _at(text, place, f'"{shown}" after the bar is not a group; write a column, a:b or a/b')
            )
    signs = re.findall(r"[:/]", written)
    names = [name.strip("`") for name in names]
    if "/" not in signs:
        return [tuple(names)]
    whole, groups = [names[0]], []
    for sign, name in zip(signs, names[1:], strict=True):
        if sign == "/":
            groups.append(tuple(whole))
        whole.append(name)
    return [*groups, tuple(whole)]


def _refuse_repeats(text: str, random: tuple[RandomTerm, ...]) -> None:
    seen = set()
    for term in random:
        for column in term.terms:
            key = (column, frozenset(term.group))
            if key in seen:
                raise StudyError(
                    f'The formula "{text}" has {term.text} twice, or two terms that hold the same effect; '
                    "their variances cannot be told apart."
                )
            seen.add(key)


def _fixed_part(text: str, start: int, spans: list[tuple[int, int]]) -> str:
    """The right side without its random terms."""
    kept = list(text)
    for first, last in spans:
        before = text[:first].rstrip()
        if before[-1] == "+":
            first = len(before) - 1
        kept[first : last + 1] = " " * (last + 1 - first)
    rest = re.sub(r"\s+", " ", "".join(kept[start:])).strip()
    rest = re.sub(r"^\+\s*", "", rest)
    return rest or "1"


def _fixed_terms(text: str, fixed: str) -> tuple[Term, ...]:
    """The terms formulaic reads, the lower orders first; the intercept is the empty product."""
    from formulaic import Formula as Formulaic
    from formulaic.errors import FormulaicError

    if re.search(r"(^|[\s+*:/(-])\.($|[\s+*:/)-])", fixed):
        raise StudyError(_at(text, text.find("."), "a dot for all columns is not known; name the columns"))
    try:
        parsed = Formulaic(fixed.replace("^", "**"))
    except (FormulaicError, SyntaxError) as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise StudyError(_at(text, max(text.find(fixed), 0), f'"{fixed}" is not understood: {why}')) from error
    terms = []
    for term in parsed:
        factors = tuple(factor.expr for factor in term.factors if factor.expr != "1")
        if any(re.fullmatch(r"[\d.]+", factor) for factor in factors):
            raise StudyError(_at(text, max(text.find(fixed), 0), f'"{":".join(factors)}" is a bare number'))
        terms.append(factors)
    return tuple(terms)


def _at(text: str, position: int, what: str) -> str:
    return f'In the formula "{text}", position {position + 1}: {what}.'
