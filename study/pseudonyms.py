"""New names for people in a release, which neither their order nor any public number leads back from."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from study.errors import StudyError

SECRET = "release.secret"  # in the study folder, never in a release
SMALLEST = 5  # people that share an attribute's value, at least
OTHER = "other"


def secret(path: Path) -> bytes:
    """The secret in a file, made there first if there is none; with it the same people get the same names again.

    Raises
    ------
    StudyError : if the file holds something else
    """
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
    try:
        found = bytes.fromhex(path.read_text("ascii").strip())
    except ValueError:
        found = b""
    if len(found) != 32:
        raise StudyError(
            f"{path}: does not hold the 64 hexadecimal digits that `study release` wrote; put them back"
        )
    return found


def renamed(raters: Iterable[str], key: bytes) -> dict[str, str]:
    """Rater → R01, R02 …, in an order that only the secret's holder can tell."""
    shuffled = sorted(set(raters), key=lambda r: mark(r, key))
    width = max(2, len(str(len(shuffled))))
    return {rater: f"R{i:0{width}d}" for i, rater in enumerate(shuffled, 1)}


def mark(name: str, key: bytes) -> str:
    """A keyed hash of a name: an order that is nobody's."""
    return hmac.new(key, name.encode(), hashlib.sha256).hexdigest()


def coarse(attribute: pd.Series, smallest: int = SMALLEST) -> pd.Series | None:
    """An attribute of people whose every value at least `smallest` of them share; None if that leaves one value.

    Rarer values become "other"; if that is rare itself, the next rarest joins it.
    """
    counts = attribute.value_counts().sort_index().sort_values(kind="stable")
    rare: list[str] = []
    for value, n in counts.items():
        merged = sum(counts[r] for r in rare)
        if n < smallest or 0 < merged < smallest:
            rare.append(value)
    found = attribute.where(~attribute.isin(rare), OTHER)
    sizes = found.value_counts()
    return found if len(sizes) > 1 and sizes.min() >= smallest else None
