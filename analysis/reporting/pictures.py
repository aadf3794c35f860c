"""Pictures of sources compared: what every figure of a metric shares, and which figures there are."""

from collections.abc import Sequence

import pandas as pd

from analysis import figures, means
from analysis.fitting import Fitted
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.section import Figure, opening_capital


def of_means(made: Analysed, item: str, fits: list[Fitted]) -> Figure:
    parts = [means.marginal(f, "source").assign(metric=metric_name(f)) for f in fits]
    table = pd.concat([p.astype({"source": str}) for p in parts], ignore_index=True)
    rated = fits[0].selected.metric
    scale = (rated.low, rated.high)
    several_scales = len(by_scale(made.of(item, compared=True))) > 1
    name = f"means-{item}" + (f"-{rated.metric_id}" if several_scales else "")
    drawn = figures.means(
        table, made.look, scale, name=name, title=f"{made.title(item)}: means of sources",
        axis=f"estimated mean, {rated.low:g} to {rated.high:g}",
        simulated=any(f.selected.simulated for f in fits),
    )  # fmt: skip
    return Figure(name, ends_told("Estimated means of sources with 95% intervals.", table, scale), drawn)


def by_form(made: Analysed, found: Fitted) -> Figure:
    estimated = means.marginal(found, "source", "form").astype({"source": str, "form": str})
    drawn = figures.interaction(estimated, made.look, **drawing_of(found, "form", "sources by form of question"))
    averaged = ", averaged over categories" if "category" in means.factors(found) else ""
    rated = found.selected.metric
    text = ends_told(f"Estimated means with 95% intervals{averaged}.", estimated, (rated.low, rated.high))
    return Figure(f"form-{found.metric_id}", text, drawn)


def by_category(made: Analysed, found: Fitted) -> Figure:
    estimated = means.marginal(found, "source", "category").astype({"source": str, "category": str})
    drawn = figures.heat_map(estimated, **drawing_of(found, "category", "sources by category"))
    averaged = ", averaged over forms" if "form" in means.factors(found) else ""
    text = f"Estimated means by category of question{averaged}; their intervals stand in Table 2."
    return Figure(f"category-{found.metric_id}", text, drawn)


def by_scale(fits: Sequence[Fitted]) -> list[list[Fitted]]:
    groups: dict[tuple[float, float], list[Fitted]] = {}
    for found in fits:
        groups.setdefault((found.selected.metric.low, found.selected.metric.high), []).append(found)
    return list(groups.values())


def drawing_of(found: Fitted, kind: str, title: str) -> dict[str, object]:
    """What every figure of a metric shares: its scale, its names, and whether it is simulated."""
    rated, name = found.selected.metric, metric_name(found)
    return {
        "scale": (rated.low, rated.high),
        "name": f"{kind}-{rated.metric_id}",
        "title": f"{opening_capital(name)}: {title}",
        "axis": f"{name}, {rated.low:g} to {rated.high:g}",
        "simulated": found.selected.simulated,
    }


def ends_told(text: str, estimated: pd.DataFrame, scale: tuple[float, float]) -> str:
    """The caption, with a word on intervals that a linear model draws past the end of the scale."""
    beyond = (estimated["low"] < scale[0]) | (estimated["high"] > scale[1])
    cut = " Intervals that pass the end of the scale are cut there; the table has them whole."
    return text + (cut if beyond.any() else "")
