"""What a report is made of: sections with their figures and tables, and what folds below them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd

from analysis import display, fitting
from analysis.drawing import Drawing
from analysis.fitting import Fitted
from analysis.tables import Table

_DF_NAMES = {"satterthwaite": "Satterthwaite df", "kenward-roger": "Kenward–Roger df", "z": "normal theory"}


@dataclass(frozen=True)
class Figure:
    """A drawn figure; `name` becomes its files'."""

    name: str
    caption: str
    drawing: Drawing


@dataclass(frozen=True)
class Entry:
    """An item of a reporting checklist: what it asks, what the data tell, and what a person must write."""

    number: str
    part: str
    asks: str
    told: tuple[str, ...] = ()
    write: str = ""

    @property
    def state(self) -> str:
        if not self.write:
            return "filled"
        return "in part" if self.told else "to write"


@dataclass(frozen=True)
class Fold:
    """What stays closed until a reader opens it; `anchor` opens it from elsewhere on the page."""

    title: str
    lead: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    entries: tuple[Entry, ...] = ()
    anchor: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the report: its text, figures and tables in sight, and what is folded below them.

    `points` stand below `lead`, as a list: one for each metric, mostly.
    """

    anchor: str
    title: str
    lead: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    folds: tuple[Fold, ...] = ()

    def all_tables(self) -> tuple[Table, ...]:
        return (*self.tables, *(t for fold in self.folds for t in fold.tables))

    def all_figures(self) -> tuple[Figure, ...]:
        return (*self.figures, *(f for fold in self.folds for f in fold.figures))

    def mapped(self, table: Callable[[Table], Table], figure: Callable[[Figure], Figure]) -> "Section":
        """The section with every table and figure changed by a function."""
        folds = tuple(
            replace(f, tables=tuple(map(table, f.tables)), figures=tuple(map(figure, f.figures)))
            for f in self.folds
        )
        return replace(
            self, tables=tuple(map(table, self.tables)), figures=tuple(map(figure, self.figures)), folds=folds
        )


def spaced(name: object) -> str:
    """A name as a reader writes it.

    >>> spaced("overall_satisfaction")
    'overall satisfaction'
    """
    return str(name).replace("_", " ")


def opening_capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def listed(names: list[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def counted(n: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "prompt"), counted(1200, "prompt"), counted(11, "category")
    ('1 prompt', '1,200 prompts', '11 categories')
    """
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{n:,} {what if n == 1 else several}"


def model_of(found: Fitted) -> str:
    """The model, its n, and whether it converged, for below a table."""
    return (
        f"{found.fit.formula}; {fitting.sizes(found)}; {fitting.convergence(found.fit)}; {_DF_NAMES[found.ddf]}."
    )


def noted(table: Table, found: Fitted) -> Table:
    """The table with its model, n and convergence, for where it stands alone."""
    return replace(table, model=model_of(found))


def grid(
    name: str,
    caption: str,
    rows: list[tuple[str, dict[str, str]]],
    columns: list[str],
    *,
    corner: str,
    note: str = "",
    numbers: pd.DataFrame | None = None,
) -> Table:
    """A table of cells by row and column; a dash where there is none."""
    cells = tuple((row, *(own.get(c, display.MISSING) for c in columns)) for row, own in rows)
    return Table(name, caption, (corner, *columns), cells, note, numbers=numbers)


def estimates(table: pd.DataFrame, by: str) -> dict[str, str]:
    """Estimates with their intervals, by the values of a column."""
    return {
        str(row[by]): display.estimate(row["estimate"], row["low"], row["high"]) for _, row in table.iterrows()
    }
