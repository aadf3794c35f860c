"""`analysis report`, `checklist` and `grim`: what a paper needs, and what holds a paper's table to arithmetic."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from analysis.options import Bootstrap, Csv, Jobs, Json, Raters, Seed, Without, bounds
from study.errors import StudyError
from study.terminal import dump, say, warn

Folder = Annotated[Path, typer.Argument(metavar="study", help="The study folder.")]


def report(
    folder: Folder = Path("."),
    bootstrap: Bootstrap = 1000,
    seed: Seed = 0,
    jobs: Jobs = 1,
    raters: Raters = "auto",
    without: Without = None,
    as_json: Json = False,
) -> None:
    """Write report.html, tables (LaTeX, CSV) and figures (SVG, PDF) into the study folder.

    Example: analysis report demo-study
    """
    from analysis import load, progress, report
    from analysis.reliability import Bootstrap

    loaded = load.load(_study(folder), without=without or ())
    with progress.shown("analysing", "analysed") as told:
        made = report.report(loaded, Bootstrap(bootstrap, seed, jobs), raters, told)
    written = report.write(made, folder)
    if as_json:
        paths = [str(path) for path in written.paths]
        dump({"page": paths[-1], "written": paths, "without_pdf": written.unprinted})
    else:
        say(f"{written.paths[-1]}: with {len(made.tables())} tables and {len(made.figures())} figures beside it")
    if written.unprinted:
        warn(
            f"no PDF of {', '.join(written.unprinted)}: no font here has their letters; install a Korean one, as "
            "Noto Sans CJK KR (the SVG files show them wherever such a font is)"
        )


def checklist(
    folder: Folder = Path("."),
    of: Annotated[
        Literal["grras", "heds", "chart"], typer.Option(help="Of agreement, of human evaluation, or of chatbots.")
    ] = "grras",
    bootstrap: Bootstrap = 1000,
    raters: Raters = "auto",
    as_json: Json = False,
) -> None:
    """Fill a reporting checklist from the study, and mark what a person must write; Markdown and HTML.

    Writes checklists/NAME.md and .html; heds has a sheet for each metric. Prints the Markdown.

    Example: analysis checklist demo-study --of grras
    """
    from dataclasses import asdict

    from analysis import load, progress
    from analysis.reliability import Bootstrap
    from analysis.reporting import checklists
    from analysis.reporting.analysed import analysed
    from study import tables

    loaded = load.load(_study(folder))
    with progress.shown("analysing", "analysed") as told:
        made = analysed(loaded, loaded.study, Bootstrap(bootstrap), raters, told)
    found = checklists.sheets(made, of)
    for sheet in found:
        for ending, text in (("md", checklists.as_markdown(sheet)), ("html", checklists.as_page(sheet))):
            path = folder / "checklists" / f"{sheet.name}.{ending}"
            tables.replaced(path, lambda half, text=text: half.write_text(text, encoding="utf-8"))
    if as_json:
        dump([asdict(s) | {"counts": s.counts()} for s in found])
    else:
        say("\n\n".join(checklists.as_markdown(s) for s in found))
        warn(f"{folder / 'checklists'}: holds these as Markdown and HTML")


def _study(folder: Path) -> Path:
    if not folder.is_dir():
        raise StudyError(f"{folder}: is not a study folder; a report is made of one (`study import` makes one)")
    return folder


def grim(
    file: Annotated[Path, typer.Argument(help="A table of means as CSV; - reads it from standard input.")],
    n: Annotated[int | None, typer.Option(min=1, help="Ratings behind each mean, if no column says so.")] = None,
    items: Annotated[int | None, typer.Option(min=1, help="Items that each rater's own score averages.")] = None,
    scale: Annotated[str | None, typer.Option(help="Lowest and highest rating, as 1:5.")] = None,
    step: Annotated[float | None, typer.Option(help="Distance of two neighbouring ratings.")] = None,
    decimals: Annotated[
        int | None, typer.Option(min=0, max=9, help="Decimals of every mean, where 4.80 has become 4.8.")
    ] = None,
    as_json: Json = False,
    csv: Csv = None,
) -> None:
    """Say which means (and SDs) of a table cannot come from so many whole ratings (GRIM); exit code 1 if any.

    Columns: mean, n; and, where known, items, sd, low, high, step, decimals. Other columns name the row.

    Example: analysis grim table.csv --n 51 --scale 1:5

    Example: pbpaste | analysis grim - --n 51
    """
    import sys

    from analysis import grim, results

    if str(file) == "-":
        text, where = sys.stdin.read(), "standard input"
    elif file.is_file():
        text, where = _text(file), str(file)
    else:
        raise StudyError(f"{file}: no such file; give a CSV file with columns mean and n, or - for standard input")
    low, high = bounds(scale) or (None, None)
    given = {"n": n, "items": items, "low": low, "high": high, "step": step, "decimals": decimals}
    answer = grim.checked(text, where, {k: None if v is None else str(v) for k, v in given.items()})
    results.keep([answer.result], None, csv, table="estimates")
    if as_json:
        dump(answer.result.plain())
    else:
        say(answer.text)
    if answer.result.values["impossible"]:
        raise typer.Exit(1)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StudyError(f"{file}: is not UTF-8 text; save the table as CSV (UTF-8)") from None
