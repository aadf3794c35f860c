"""What an answer costs. What is not known is None, never 0."""

import json
from collections.abc import Mapping

from generation.reply import Usage
from generation.settings import ModelSettings, Price

_MILLION = 1_000_000
_A_MESSAGE = 16  # tokens, and more, that a chat template puts around one message


def cost(usage: Usage, price: Price | None) -> float | None:
    """The price of one reply, in the price's currency; None without a price or without token counts.

    Cached tokens are part of the prompt's tokens and are not paid twice.

    >>> import datetime
    >>> price = Price(input=2.0, output=8.0, cached_input=0.5, as_of=datetime.date(2026, 11, 1))
    >>> cost(Usage(prompt=1_000_000, cached=400_000, completion=0), price)
    1.4
    """
    if price is None or usage.prompt is None or usage.completion is None:
        return None
    cached = min(usage.cached or 0, usage.prompt)
    cached_price = price.input if price.cached_input is None else price.cached_input
    paid = (usage.prompt - cached) * price.input + cached * cached_price + usage.completion * price.output
    return paid / _MILLION


def bound(settings: ModelSettings, sent: Mapping[str, object]) -> float | None:
    """What one call can cost at most, in the price's currency; None without a price or a token limit.

    No tokenizer makes more tokens of a text than it has bytes in UTF-8.
    """
    price = settings.price
    if price is None or settings.max_tokens is None or "max_tokens" in settings.unsupported:
        return None
    said = sent.get("messages") or sent.get("input")
    messages = len(said) if isinstance(said, list) else 0
    size = len(json.dumps(sent, ensure_ascii=False).encode()) + _A_MESSAGE * (messages + 1)
    return (size * max(price.input, price.cached_input or 0.0) + settings.max_tokens * price.output) / _MILLION
