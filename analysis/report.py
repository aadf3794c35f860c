"""One self-contained report.html of a study; its tables as LaTeX and CSV, its figures as SVG and PDF beside it."""

from dataclasses import dataclass, replace
from pathlib import Path

from analysis import drawing, results
from analysis.load import Loaded
from analysis.progress import Told
from analysis.reliability import Bootstrap
from analysis.reporting import (
    checklists,
    comparison,
    details,
    lows,
    methods,
    opening,
    pages,
    pair,
    panel,
    precision,
    times,
)
from analysis.reporting.analysed import Analysed, analysed
from analysis.reporting.facts import facts
from analysis.reporting.section import Figure, Section
from analysis.tables import Table, as_csv, as_latex, behind
from study import tables as files
from study.errors import StudyError

FILE = "report.html"
_UNRATED = ("sources", "formulas", "times-answers")  # tables that hold nothing of the ratings


@dataclass(frozen=True)
class Report:
    """Everything that the report says; `facts` and `provenance` are names with their values.

    asked, found : the first page: what the study is, and what came out
    """

    title: str
    simulated: bool
    asked: tuple[str, ...]
    found: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    provenance: tuple[tuple[str, str], ...]

    def tables(self) -> list[Table]:
        return [t for s in self.sections for t in s.all_tables()]

    def figures(self) -> list[Figure]:
        return [f for s in self.sections for f in s.all_figures()]


@dataclass(frozen=True)
class Written:
    """The files of a report, the page last; `unprinted` are figures without PDF, for no font has their letters."""

    paths: tuple[Path, ...]
    unprinted: tuple[str, ...]


def report(
    loaded: Loaded, bootstrap: Bootstrap | None = None, raters: str = "auto", told: Told | None = None
) -> Report:
    """Fit, compare and describe every metric of a study.

    Parameters
    ----------
    told : is called with each metric that is fitted

    Raises
    ------
    StudyError : if the target is a bare file, or no metric can be fitted
    """
    study = loaded.study
    if study is None:
        raise StudyError(
            f"{loaded.name}: a report is made of a study folder; bring ratings in with `study import`"
        )
    made = analysed(loaded, study, bootstrap or Bootstrap(), raters, told)
    known = facts(made)
    both, limits = pair.honest_pair(made), precision.precision(made)
    parts: list[Section | None] = [
        comparison.sources(made),
        comparison.compared(made, "encounter"),
        comparison.compared(made, "utterance"),
        comparison.by_category_and_form(made),
        comparison.penalties(made),
        lows.lows(made),
        panel.agreements(made),
        panel.severity(made),
        limits,
        both,
        panel.missing(made),
        times.times(made),
        methods.methods(made, known),
        checklists.checklists(made, known),
        details.details(made),
        details.models(made),
    ]
    sections = tuple(_marked(part, loaded.simulated) for part in parts if part is not None)
    return Report(
        study.title,
        loaded.simulated,
        opening.asked(known),
        opening.found(made, known, both, limits),
        opening.facts(loaded),
        sections,
        _origin(made, bootstrap),
    )


def write(made: Report, folder: Path) -> Written:
    """figures/*.svg and *.pdf, tables/*.tex and *.csv and, last, report.html."""
    contents: dict[Path, str] = {}
    for table in made.tables():
        contents[folder / "tables" / f"{table.name}.tex"] = as_latex(table)
        contents[folder / "tables" / f"{table.name}.csv"] = as_csv(table)
    whole, paths, unprinted = page(made), [], []
    for figure in made.figures():
        own = drawing.write(figure.drawing, folder / "figures" / figure.name)
        paths += own
        unprinted += [figure.name] if len(own) == 1 else []
    contents[folder / FILE] = whole
    for path, content in contents.items():
        files.replaced(path, lambda half, content=content: half.write_text(content, encoding="utf-8"))
    return Written((*paths, *contents), tuple(unprinted))


def page(made: Report) -> str:
    """The report as one HTML page that needs nothing else: styles and figures are inside."""
    return pages.rendered("report", report=made)


def _marked(section: Section, simulated: bool) -> Section:
    """Below every table and figure of simulated ratings stands that they are, and in every row of their CSV."""
    return section.mapped(_marked_table, _marked_figure) if simulated else section


def _marked_table(table: Table) -> Table:
    if table.name in _UNRATED:
        return table
    said = _says(f"{table.caption} {table.note} {table.model}")
    note = table.note if said else f"{table.note} Simulated ratings.".strip()
    return replace(table, note=note, numbers=behind(table).assign(simulated=True))


def _marked_figure(figure: Figure) -> Figure:
    said = _says(figure.caption)
    return figure if said else replace(figure, caption=f"{figure.caption} Simulated ratings.")


def _says(text: str) -> bool:
    return "imulated" in text


def _origin(made: Analysed, bootstrap: Bootstrap | None) -> tuple[tuple[str, str], ...]:
    source = results.provenance(made.loaded)
    rows = [("study", str(source["study"])), ("seed of the bootstrap", str((bootstrap or Bootstrap()).seed))]
    rows += [(f"SHA-256 of {name}", value) for name, value in made.loaded.inputs.items()]
    return tuple(rows + [("versions", ", ".join(f"{name} {v}" for name, v in source["versions"].items()))])


