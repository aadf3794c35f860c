"""Tokens and what they cost, as VAIDYA's files have them: a total is prompt and completion, and nothing else.

The document's own example breaks that: its total holds tokens that neither of the other two has, and its cost is
of them too. Such a file is read, and what does not add up is said.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from generation.price import cost
from generation.reply import Usage
from generation.settings import Price
from study.records import Spent

_NAMES = ("prompt", "completion", "total")
_TOLERANCE = 5e-5  # of a cost: files give it to four decimals


@dataclass(frozen=True)
class Tokens:
    """Token counts; None where nobody said. Cached ones are part of the prompt's, reasoning of the completion's.

    >>> Tokens(412034, 31021).total
    443055
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int | None:
        return None if self.prompt is None or self.completion is None else self.prompt + self.completion

    def plain(self) -> dict[str, int | None]:
        """The counts under the document's names."""
        return {
            "prompt": self.prompt,
            "completion": self.completion,
            "total": self.total,
            "prompt_cached_tokens": self.cached,
            "completion_reasoning_tokens": self.reasoning,
        }

    def cost(self, price: Price | None) -> float | None:
        """What they cost, cached tokens paid once; None without a price or without counts."""
        return cost(Usage(self.prompt, self.cached, self.completion, self.reasoning), price)


def of(spent: Spent) -> Tokens:
    """What one role of an encounter took; no call is no token."""
    if not spent.calls and spent.prompt_tokens is None:
        return Tokens(0, 0, 0, 0)
    return Tokens(spent.prompt_tokens, spent.completion_tokens, spent.cached_tokens, spent.reasoning_tokens)


def added(parts: Iterable[Tokens]) -> Tokens:
    """Tokens together: unknown where one of them is; of nothing, none.

    >>> added([Tokens(5, 1, 0, 0), Tokens(2, 2)])
    Tokens(prompt=7, completion=3, cached=None, reasoning=None)
    """
    known = tuple(parts)
    return Tokens(
        whole([p.prompt for p in known]),
        whole([p.completion for p in known]),
        whole([p.cached for p in known]),
        whole([p.reasoning for p in known]),
    )


def whole(values: Iterable[float | None]) -> float | None:
    """A sum, unknown if a part of it is; of nothing it is 0."""
    known = tuple(values)
    return None if any(v is None for v in known) else sum(known)


def read(document: Mapping[str, object]) -> tuple[Tokens, list[str]]:
    """Token counts of a file, with what is wrong with them, a clause each.

    Counts may be named prompt or prompt_tokens, and so on. What is no count is unknown, and said.
    """
    found, notes = {}, []
    for name in _NAMES:
        value = document.get(name, document.get(f"{name}_tokens"))
        found[name] = value if _is_count(value) else None
        if value is not None and not _is_count(value):
            notes.append(f"{name} is {value!r}, no number of tokens")
    tokens = Tokens(
        found["prompt"], found["completion"], _count(document.get("prompt_cached_tokens")),
        _count(document.get("completion_reasoning_tokens")),
    )  # fmt: skip
    if None not in (found["total"], tokens.total) and found["total"] != tokens.total:
        gap = found["total"] - tokens.total
        notes.append(
            f"the total {found['total']:,} is not prompt {tokens.prompt:,} + completion {tokens.completion:,}: "
            f"{abs(gap):,} tokens {'more' if gap > 0 else 'fewer'}"
        )
    return tokens, notes


def cost_note(stated: float | None, tokens: Tokens, price: Price | None) -> str | None:
    """That a stated cost is not the tokens' own; None if it is, or if one of the two is unknown."""
    own = tokens.cost(price)
    if stated is None or own is None or abs(stated - own) <= _TOLERANCE:
        return None
    return f"the cost {stated:.4f} is not that of its tokens, which is {own:.4f}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _count(value: object) -> int | None:
    return value if _is_count(value) else None
