"""One self-contained report.html of a study, with its tables as LaTeX and its figures as SVG beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from analysis import display, fitting, reliability, results, sections
from analysis.load import Loaded, rated_metrics
from analysis.reliability import Bootstrap
from analysis.sections import Figure, Section
from analysis.tables import Table, as_html, as_latex
from study import tables as files
from study.errors import StudyError

FILE = "report.html"
_PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True)
class Report:
    """Everything that the report says; `facts` and `provenance` are names with their values."""

    title: str
    simulated: bool
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    provenance: tuple[tuple[str, str], ...]

    def tables(self) -> list[Table]:
        return [t for s in self.sections for t in (*s.tables, *s.folded)]

    def figures(self) -> list[Figure]:
        return [f for s in self.sections for f in s.figures]


def report(loaded: Loaded, bootstrap: Bootstrap | None = None, raters: str = "auto") -> Report:
    """Fit, compare and describe every metric of a study.

    Raises
    ------
    StudyError : if the target is a bare file, or a metric cannot be fitted
    """
    study = loaded.study
    if study is None:
        raise StudyError(
            f"{loaded.name}: a report is made of a study folder; bring ratings in with `study import`"
        )
    fits = [fitting.fitted(loaded, name, raters=raters) for name in rated_metrics(loaded)]
    agreements = [reliability.reliability(loaded, f.metric_id, raters, bootstrap) for f in fits]
    parts = [
        sections.sources(study, fits),
        *[sections.metric(study, f, a) for f, a in zip(fits, agreements, strict=True)],
        sections.agreements(agreements),
        sections.models(fits),
    ]
    return Report(study.title, loaded.simulated, _facts(loaded), tuple(parts), _origin(loaded, bootstrap))


def write(made: Report, folder: Path) -> list[Path]:
    """tables/*.tex, figures/*.svg and, last, report.html; every text is made before the first file is written."""
    contents = {folder / "tables" / f"{t.name}.tex": as_latex(t) for t in made.tables()}
    contents |= {folder / "figures" / f"{f.name}.svg": f.svg for f in made.figures()}
    contents[folder / FILE] = page(made)
    for path, text in contents.items():
        files.replaced(path, _writer(text))
    return list(contents)


def page(made: Report) -> str:
    """The report as one HTML page that needs nothing else: styles and figures are inside."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["table"] = lambda table: Markup(as_html(table))
    environment.filters["figure"] = lambda figure: Markup(figure.svg)
    style = Markup((_PAGE / "report.css").read_text(encoding="utf-8"))
    return environment.get_template("report.html.jinja").render(report=made, style=style)


def _writer(text: str) -> Callable[[Path], object]:
    return lambda half: half.write_text(text, encoding="utf-8")


def _facts(loaded: Loaded) -> tuple[tuple[str, str], ...]:
    """What the study is made of, and how many responses and ratings are missing."""
    frame, n = loaded.frame, results.sizes(loaded.frame)
    kind = "simulated ratings" if loaded.simulated else "ratings"
    facts = [(what, display.count(n[what])) for what in ("sources", "cases", "prompts", "raters") if what in n]
    facts.append(("metrics", display.count(len(loaded.metrics))))
    if loaded.responses:
        failed = {status: count for status, count in loaded.responses.items() if status != "ok"}
        facts.append(("responses", display.count(sum(loaded.responses.values()))))
        facts.append(("without an answer", _reasons(failed)))
    facts.append((kind, display.count(n["ratings"])))
    facts.append(
        ("without a value", _reasons(frame.loc[frame["status"] != "ok", "status"].value_counts().to_dict()))
    )
    return (*facts, *((f"left out: {part.reason}", display.count(part.rows)) for part in loaded.left_out))


def _reasons(counts: dict[str, int]) -> str:
    """A total with its reasons: `3 (2 failed, 1 refused)`."""
    total = sum(counts.values())
    return f"{total:,} ({', '.join(f'{n:,} {status}' for status, n in counts.items())})" if total else "0"


def _origin(loaded: Loaded, bootstrap: Bootstrap | None) -> tuple[tuple[str, str], ...]:
    source = results.provenance(loaded)
    rows = [("study", str(source["study"])), ("seed of the bootstrap", str((bootstrap or Bootstrap()).seed))]
    rows += [(f"SHA-256 of {name}", value) for name, value in loaded.inputs.items()]
    return tuple(rows + [("versions", ", ".join(f"{name} {v}" for name, v in source["versions"].items()))])
