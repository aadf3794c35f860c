"""Printed numbers beside reproduced ones: what was printed, what comes out, and whether the two are equal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jinja2
import pandas as pd
from markupsafe import Markup

from analysis import display, results
from analysis.load import Loaded
from analysis.results import Result
from analysis.tables import Table, as_html, as_latex, as_text
from study import tables as files

NAME = "side-by-side"
Rule = Literal["as printed", "in full", "less", "more", "same"]
_PAGE = Path(__file__).parent / "page"
_COLUMNS = ["part", "quantity", "published", "reproduced", "tolerance", "rule", "equal_within"]


@dataclass(frozen=True)
class Pair:
    """A printed number and the one that comes out; None where none comes out.

    `rule` says how they are compared: "as printed" rounds to the print's digits first, "in full" does not, "less"
    and "more" hold the reproduced number against a printed bound, "same" wants the same words.
    """

    part: str
    quantity: str
    published: float | str
    reproduced: float | str | None
    tolerance: float = 0.0
    digits: int = 2
    rule: Rule = "as printed"
    end: Literal["", "lower end", "upper end"] = ""  # of the interval of the pair before

    @property
    def within(self) -> bool:
        """Whether the two are equal within the tolerance."""
        if self.reproduced is None or self.reproduced != self.reproduced:
            return False
        match self.rule:
            case "same":
                return self.published == self.reproduced
            case "less":
                return self.reproduced < self.published
            case "more":
                return self.reproduced > self.published
        shown = display.printed(self.reproduced, self.digits) if self.rule == "as printed" else self.reproduced
        return abs(shown - self.published) <= self.tolerance + 1e-9  # for what binary numbers cannot hold

    @property
    def name(self) -> str:
        return f"{self.quantity}, {self.end}" if self.end else self.quantity

    def written(self, value: float | str | None) -> str:
        """A number to the print's digits, to one more where the reproduced one is compared in full."""
        if isinstance(value, str):
            return value
        if not self.digits:
            return display.count(value)
        return display.number(value, self.digits + (self.rule == "in full" and value is self.reproduced))

    def bound(self) -> str:
        if self.rule in ("less", "more", "same"):
            return {"less": "less than", "more": "more than", "same": "same"}[self.rule]
        if not self.tolerance:
            return "as printed" if self.digits else "exact"
        return f"±{self.tolerance:g}"


@dataclass(frozen=True)
class SideBySide:
    """All pairs of one comparison, what it is of, and what a reader must know of it."""

    title: str
    loaded: Loaded
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()

    @property
    def outside(self) -> list[Pair]:
        return [pair for pair in self.pairs if not pair.within]

    def frame(self) -> pd.DataFrame:
        """One row for each pair, in full precision; `equal_within` is yes or no."""
        rows = [
            (p.part, p.name, p.published, p.reproduced, p.tolerance, p.rule, "yes" if p.within else "no")
            for p in self.pairs
        ]
        return pd.DataFrame(rows, columns=_COLUMNS).astype({"published": object, "reproduced": object})

    def tables(self) -> list[Table]:
        """One table for each part."""
        return [self._table(part) for part in dict.fromkeys(p.part for p in self.pairs)]

    def words(self) -> str:
        """Every part as a table in fixed width, the notes, and how many pairs are equal."""
        parts = [f"{t.caption}\n{as_text(t, '  ')}" for t in self.tables()]
        return "\n\n".join([*parts, *(f"note: {n}" for n in self.notes), self.verdict()])

    def verdict(self) -> str:
        equal = len(self.pairs) - len(self.outside)
        return f"{display.share(equal, len(self.pairs))} published numbers are equal within their tolerance"

    def result(self) -> Result:
        values = {"estimates": self.frame(), "outside": [p.name for p in self.outside], "notes": self.notes}
        return Result(NAME, results.provenance(self.loaded), values)

    def _table(self, part: str) -> Table:
        own = [p for p in self.pairs if p.part == part]
        rows = tuple(
            _row([p for p in own if p.quantity == quantity]) for quantity in dict.fromkeys(p.quantity for p in own)
        )
        simulated = " (simulated ratings)" if self.loaded.simulated else ""
        name = f"{NAME}-{part.replace(' ', '-')}"
        columns = ("quantity", "published", "reproduced", "tolerance", "equal within")
        return Table(name, f"{part.capitalize()}{simulated}", columns, rows, text_columns=(0, 3, 4))


def _row(pairs: list[Pair]) -> tuple[str, ...]:
    """A number and, where they are compared too, the ends of its interval."""
    first, *ends = pairs
    published, reproduced = ([p.written(getattr(p, side)) for p in pairs] for side in ("published", "reproduced"))
    bounds = list(
        dict.fromkeys([first.bound(), *(f"ends {p.bound()}" for p in ends if p.bound() != first.bound())])
    )
    return (
        first.quantity, _joined(published), _joined(reproduced), "; ".join(bounds),
        "yes" if all(p.within for p in pairs) else "NO",
    )  # fmt: skip


def _joined(written: list[str]) -> str:
    return f"{written[0]} [{', '.join(written[1:])}]" if len(written) > 1 else written[0]


def write(made: SideBySide, folder: Path, figure: str) -> dict[str, Path]:
    """side-by-side.csv, .json, .tex, .svg (the figure) and, last, .html in a folder; returns the path of each."""
    paths = {kind: folder / f"{NAME}.{kind}" for kind in ("csv", "json", "tex", "svg", "html")}
    texts = {"tex": "\n".join(as_latex(t) for t in made.tables()), "svg": figure, "html": page(made, figure)}
    results.keep([made.result()], folder, paths["csv"], table="estimates")
    for kind, text in texts.items():
        files.replaced(paths[kind], lambda half, text=text: half.write_text(text, encoding="utf-8"))
    return paths


def page(made: SideBySide, figure: str) -> str:
    """The comparison and its figure, an SVG element, as one page that needs nothing else."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGE), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["table"] = lambda table: Markup(as_html(table))
    style = Markup((_PAGE / "report.css").read_text(encoding="utf-8"))
    return environment.get_template("side-by-side.html.jinja").render(
        made=made, figure=Markup(figure), style=style
    )
