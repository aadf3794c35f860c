"""A pasted table of means held against what so many ratings can give."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pandas as pd

from analysis import display, results, tables
from analysis.results import Answer, Result
from analysis.stats import grim
from study.errors import StudyError, joined

COLUMNS = ("mean", "n", "items", "sd", "low", "high", "step", "decimals")
_DELIMITERS = "\t;,|"


@dataclass(frozen=True)
class Row:
    """A mean to be checked, as printed; `name` is what stands beside it in the table."""

    name: str
    mean: str
    n: int
    items: int
    sd: str | None
    scale: grim.Scale
    decimals: int | None


def checked(text: str, where: str, given: dict[str, str | None]) -> Answer:
    """Every mean of a table with its verdict, and how much the check could find.

    The table is text with a header line, with commas, semicolons, tabs or bars between its cells.

    Parameters
    ----------
    given : values of columns that the table does not have, by column

    Raises
    ------
    StudyError : all problems of the table in one message, each with its line
    """
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if len(lines) < 2:
        raise StudyError(f"{where}: holds no table; give a header line (mean, n …) and a line for each mean")
    between = max(_DELIMITERS, key=lines[0].count)
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=between)
    cells = [[cell.strip() for cell in row] for row in reader]
    header = [name.lower() for name in cells[0]]
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise StudyError(f"{where}: column {twice[0]} stands twice")
    for name in ("mean", "n"):
        if name not in header and given.get(name) is None:
            raise StudyError(
                f"{where}: has no column {name}; it has {', '.join(cells[0])}"
                + (" (or give --n for all rows)" if name == "n" else "")
            )
    rows, found, problems = [], [], []
    for line, row in enumerate(cells[1:], 2):
        beside = dict(zip(header, row, strict=False))
        try:
            if len(row) != len(header):
                raise StudyError(f"{len(row)} cells, not {len(header)}")
            known = given | {k: v for k, v in beside.items() if v or k not in given}
            rows.append(_row(known, [v for k, v in beside.items() if k not in COLUMNS]))
            found.append(_held(rows[-1]))
        except StudyError as error:
            problems.append(f"{where}, line {line}: {error}")
    if problems:
        raise StudyError(joined(problems))
    table = pd.DataFrame([
        {"name": r.name, "mean": r.mean, "n": r.n, "items": r.items, "sd": r.sd, "mean_is": c.mean, "sd_is": c.sd,
         "passing": c.passing, "nearest": list(c.nearest), "reason": c.reason}
        for r, c in zip(rows, found, strict=True)
    ])  # fmt: skip
    impossible = sum(c.impossible for c in found)
    values = {"metric": None, "estimates": table, "impossible": impossible}
    return Answer(Result("grim", {"input": where, "versions": results.versions()}, values), _words(rows, found))


def _held(row: Row) -> grim.Check:
    sd = grim.printed(row.sd) if row.sd else None
    return grim.grim(grim.printed(row.mean, row.decimals), row.n, row.scale, items=row.items, sd=sd)


def _row(known: dict[str, str | None], names: list[str]) -> Row:
    if not known.get("mean"):
        raise StudyError("has no mean")
    low, high, step = (grim.printed(known[k]).value if known.get(k) else None for k in ("low", "high", "step"))
    decimals = known.get("decimals")
    return Row(
        " ".join(n for n in names if n), known["mean"], _whole(known.get("n"), "n"),
        _whole(known.get("items") or "1", "items"), known.get("sd") or None,
        grim.Scale(low, high, step or Fraction(1)), None if decimals is None else _whole(decimals, "decimals"),
    )  # fmt: skip


def _whole(text: str | None, name: str) -> int:
    if text is None or not text.isdigit():
        raise StudyError(f"{name} is {text or 'empty'}; it must be a whole number")
    return int(text)


def _words(rows: Sequence[Row], found: Sequence[grim.Check]) -> str:
    columns: dict[str, tuple[str, ...]] = {
        "of": tuple(r.name for r in rows),
        "mean": tuple(r.mean for r in rows),
        "n": tuple(display.count(r.n) for r in rows),
        "SD": tuple(r.sd or "" for r in rows),
        "the mean is": tuple(c.mean for c in found),
        "the SD is": tuple(c.sd or "" for c in found),
        "nearest possible": tuple(" or ".join(c.nearest) for c in found),
    }
    shown = {name: own for name, own in columns.items() if any(own)}
    left = tuple(i for i, name in enumerate(shown) if name not in ("mean", "n", "SD"))
    table = tables.Table("grim", "", tuple(shown), tuple(zip(*shown.values(), strict=True)), text_columns=left)
    bad, n = sum(c.impossible for c in found), len(found)
    lines = [tables.as_text(table), ""]
    lines.append(
        f"{bad} of {n} rows cannot come from so many ratings on this scale."
        if bad
        else f"No row of {n} is impossible."
    )
    told = [c for c in found if c.passing < 1]
    if told:
        by_luck = math.prod(c.passing for c in told)
        made_up = "1 mean could be tested; a made-up one would pass"
        if len(told) > 1:
            made_up = f"{len(told)} means could be tested; made-up ones would all pass"
        lines.append(f"{made_up} with probability {by_luck:.2g} (GRIM, either way of rounding).")
    if rest := n - len(told):
        untold = "1 mean tells nothing: at its n" if rest == 1 else f"{rest} means tell nothing: at their n"
        lines.append(f"{untold} every mean of so many decimals is possible.")
    lines += sorted({f"note: {c.reason}" for c in found if c.reason})
    return "\n".join(lines)
