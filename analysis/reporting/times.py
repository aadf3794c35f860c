"""How long it took: sources to answer, and raters to rate."""

from collections.abc import Iterable

import numpy as np

from analysis import display, panel_figures
from analysis.reporting.analysed import Analysed
from analysis.reporting.section import Figure, Section, counted
from analysis.tables import Table
from study import tables
from study.store import address, overview
from study.store.database import Database, open_database

Seconds = dict[str, np.ndarray]
_MOST_SHOWN = 60  # rows of a figure


def times(made: Analysed) -> Section | None:
    """Times of answers, where responses have them, and of ratings, where the study has its ratings database."""
    parts = []
    if answered := _answers(made):
        said = "As the machine that asked measured them."
        parts.append(("answers", "source", "Time to answer", answered, said))
    if rated := _ratings(made):
        said = "From an item's first showing to its last first rating, pauses included."
        parts.append(("ratings", "rater", "Time to rate an item", rated, said))
    if not parts:
        return None
    points = tuple(f"{title}: {_span(own)} over {counted(len(own), who)}." for _, who, title, own, _ in parts)
    drawn = tuple(_figure(made, name, title, own) for name, _, title, own, _ in parts if len(own) <= _MOST_SHOWN)
    shown = tuple(_table(*part) for part in parts)
    return Section("times", "How long it took", points=points, figures=drawn, tables=shown)


def rating_seconds(database: Database, raters: Iterable[str]) -> Seconds:
    """Seconds that each rater took for each item; raters without a time are left out."""
    with database.reading() as connection:
        found = {rater: np.array(overview.seconds_per_item(connection, rater)) for rater in raters}
    return _known(found)


def _answers(made: Analysed) -> Seconds:
    if not made.study.responses.is_file():
        return {}
    rows = tables.read(made.study.responses, tables.RESPONSES)
    if "seconds" not in rows:
        return {}
    by_source = rows.dropna(subset="seconds").groupby("source_id")["seconds"]
    found = {source: own.to_numpy(float) for source, own in by_source}
    return _known({name: found[source] for source, name in made.names.items() if source in found})


def _ratings(made: Analysed) -> Seconds:
    if made.loaded.simulated or not address.stands(made.study):
        return {}
    database = open_database(address.database_url(made.study))
    try:
        return rating_seconds(database, sorted({str(r) for r in made.loaded.frame["rater"].dropna()}))
    finally:
        database.close()


def _known(found: Seconds) -> Seconds:
    """Times above zero, which a logarithmic axis can show; names without one are left out."""
    positive = {name: own[own > 0] for name, own in found.items()}
    return {name: own for name, own in positive.items() if len(own)}


def _span(found: Seconds) -> str:
    middles = [float(np.median(own)) for own in found.values()]
    low, high = display.number(min(middles), 1), display.number(max(middles), 1)
    return f"median {low} s" if low == high else f"medians from {low} to {high} s"


def _figure(made: Analysed, name: str, title: str, own: Seconds) -> Figure:
    drawn = panel_figures.spreads(
        own,
        made.look,
        name=f"times-{name}",
        title=title,
        axis="seconds (logarithmic)",
        simulated=made.loaded.simulated,
    )
    return Figure(f"times-{name}", "Every one as a dot, the middle half as a bar, the median as a point.", drawn)


def _table(name: str, who: str, title: str, own: Seconds, said: str) -> Table:
    rows = tuple(
        (
            person,
            display.count(len(seconds)),
            *(display.number(q, 1) for q in np.quantile(seconds, [0.5, 0.05, 0.95])),
        )
        for person, seconds in own.items()
    )
    return Table(f"times-{name}", f"{title}, in seconds", (who, "n", "median", "5%", "95%"), rows, said)
