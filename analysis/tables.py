"""A table of the report: cells already written, rendered for a page, for LaTeX, for a terminal and as CSV."""

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "—": "---", "∞": r"$\infty$",
    "×": r"$\times$", "<": "$<$", ">": "$>$", "|": r"\textbar{}", "²": r"\textsuperscript{2}", "…": r"\dots{}",
}  # fmt: skip


_OWN_NUMBER = re.compile(r"^Table \d+\. ")  # a paper numbers its tables itself
_LONGEST = 48  # letters of a cell that stays on one line of a paper


@dataclass(frozen=True)
class Table:
    """Cells as text, one tuple per row.

    `name` becomes a file name and a LaTeX label. Columns in `text_columns` are set flush left, all others right.
    `note` stands below. So does `model` (formula, n, convergence) where the table stands alone, as in a paper; a
    page says it once for all tables of a section. `numbers` are what the cells were written from, unrounded.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    model: str = ""
    text_columns: tuple[int, ...] = (0,)
    numbers: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), self.name


def as_text(table: Table, indent: str = "") -> str:
    """The table in fixed width, for a terminal; East Asian letters count as two."""
    cells = [table.columns, *table.rows]
    widths = [max(_width(row[i]) for row in cells) for i in range(len(table.columns))]
    lines = []
    for row in cells:
        padded = [
            _padded(cell, width, left=i in table.text_columns)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(indent + "  ".join(padded).rstrip())
    return "\n".join(lines)


def as_html(table: Table) -> str:
    """The table as a figure of a page; it scrolls inside its own box where the page is narrow."""
    head = "".join(f"<th scope=col{_align(table, i)}>{_cell(c)}</th>" for i, c in enumerate(table.columns))
    body = "".join(
        "<tr>" + "".join(_body_cell(table, i, c) for i, c in enumerate(row)) + "</tr>" for row in table.rows
    )
    note = f"<p class=note>{html.escape(table.note)}</p>" if table.note else ""
    return (
        f'<figure class=table id="table-{html.escape(table.name)}"><figcaption>{html.escape(table.caption)}'
        f"</figcaption><div class=scroll tabindex=0><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{note}</figure>"
    )


def as_latex(table: Table) -> str:
    """The table as a LaTeX float of booktabs, its note below it."""
    spec = "".join(_column_spec(table, i) for i in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        rf"\caption{{{latex(_OWN_NUMBER.sub('', table.caption))}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        _latex_row(table.columns),
        r"\midrule",
        *[_latex_row(row) for row in table.rows],
        r"\bottomrule",
        r"\end{tabular}",
    ]
    below = f"{table.note} {table.model}".strip()
    if below:
        lines.append(rf"\par\smallskip{{\footnotesize {latex(below)}}}")
    return "\n".join([*lines, r"\end{table}", ""])


def as_csv(table: Table) -> str:
    """The numbers behind the table in full precision; the cells as they stand where there are none."""
    return behind(table).to_csv(index=False, lineterminator="\n")


def behind(table: Table) -> pd.DataFrame:
    """The numbers behind a table, or its cells where it has none."""
    return pd.DataFrame(table.rows, columns=list(table.columns)) if table.numbers is None else table.numbers


def latex(text: str) -> str:
    """Text with LaTeX's own signs escaped.

    >>> latex("source_a & 5%")
    'source\\\\_a \\\\& 5\\\\%'
    """
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _column_spec(table: Table, column: int) -> str:
    """Numbers flush right, names flush left, and text that needs several lines in a column of its own width."""
    if column not in table.text_columns:
        return "r"
    longest = max((len(row[column]) for row in table.rows), default=0)
    return r"p{0.4\linewidth}" if longest > _LONGEST else "l"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(latex(c) for c in cells) + r" \\"


def _align(table: Table, column: int) -> str:
    return ' class="text"' if column in table.text_columns else ""


def _body_cell(table: Table, column: int, cell: str) -> str:
    if column == 0:
        return f"<th scope=row{_align(table, 0)}>{_cell(cell)}</th>"
    return f"<td{_align(table, column)}>{_cell(cell)}</td>"


def _cell(text: str) -> str:
    """A cell that may break after the signs that join words in a name."""
    return re.sub(r"([_:])(?=\w)", r"\1<wbr>", html.escape(text))


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _padded(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text
