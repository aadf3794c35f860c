"""A random part of a package's free texts, for a person to read: what patterns overlook, only a reader finds."""

import math
from collections.abc import Mapping

import pandas as pd

from study.pseudonyms import mark
from study.released import ALL

SHARE = 0.05
FEWEST = 100
COLUMNS = ("table", "row", "column", "text", "overlooked")


def sample(frames: Mapping[str, pd.DataFrame], key: bytes) -> pd.DataFrame:
    """A twentieth of the different free texts, a hundred at least, in an order drawn from the secret.

    The reader counts in `overlooked` what still tells who somebody is; study.toml's [release] audit publishes it.
    """
    rows = {}
    for table in ALL:
        frame = frames.get(table.name)
        for column in (c.name for c in table.columns if c.free and frame is not None):
            told = frame[frame[column].notna()]
            names = told[list(table.key)].astype(str).agg(" ".join, axis=1) if len(told) else []
            for name, text in zip(names, told[column], strict=True):
                rows.setdefault(text, (table.name, name, column, text, None))
    drawn = sorted(rows.values(), key=lambda row: mark(row[3], key))[: max(FEWEST, math.ceil(SHARE * len(rows)))]
    return pd.DataFrame(drawn, columns=list(COLUMNS))
