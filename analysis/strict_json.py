"""JSON as it should be: one document, no key twice, no NaN."""

import json


class NotJson(Exception):
    """A text that is not one JSON document; the message says why, in words that can be put to its author.

    `line` is where it stops being one, if that is known.
    """

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


def parsed(text: str) -> object:
    """The document in a text.

    >>> parsed('{"score": 1}')
    {'score': 1}

    Raises
    ------
    NotJson : if it is none, if an object has a key twice, or for NaN and infinity
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise NotJson("it is not one JSON object", error.lineno) from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if again := [n for n in names if names.count(n) > 1]:
        raise NotJson(f"it has {again[0]!r} twice")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise NotJson(f"{name} is not a number")
