"""The published encounter means and their reproduction in one figure."""

import pandas as pd

from analysis.drawing import (
    GREY,
    LEGEND,
    Drawing,
    finished,
    look,
    named_rows,
    padded_range,
    scale_axis,
    several,
    styled,
)

_SCALE = (1.0, 5.0)
_APART = 0.18  # of a row: the published interval stands above its reproduction


@styled
def encounters(means: pd.DataFrame, simulated: bool) -> Drawing:
    """Published means with their intervals (grey, open) above the reproduced ones, a panel for each metric.

    Parameters
    ----------
    means : metric, source, published, published_low, published_high, estimate, low, high
    """
    metrics, sources = list(pd.unique(means["metric"])), list(pd.unique(means["source"]))
    style = look(sources)
    figure, panels = several(len(metrics), 1.75, across=2)
    for ax, metric in zip(panels, metrics, strict=True):
        own = means[means["metric"] == metric].set_index("source").loc[sources]
        for place, (source, row) in enumerate(own.iterrows()):
            above, below, colour = place - _APART, place + _APART, style.colour[source]
            ax.hlines(above, row["published_low"], row["published_high"], color=GREY, linewidth=1.4)
            ax.plot(row["published"], above, "o", color=GREY, markersize=4, markerfacecolor="white")
            ax.hlines(below, row["low"], row["high"], color=colour, linewidth=1.6)
            ax.plot(row["estimate"], below, style.marker[source], color=colour, markersize=4.5)
        named_rows(ax, sources, 12, shown=ax.get_subplotspec().is_first_col())
        scale_axis(ax.xaxis, _SCALE)
        ax.set_xlim(*padded_range(_SCALE))
        ax.set_title(metric.replace("_", " "))
    key = [
        panels[0].plot([], [], "o-", color=GREY, markersize=4, markerfacecolor="white", label="published")[0],
        panels[0].plot([], [], "D-", color="black", markersize=4.5, label="reproduced")[0],
    ]
    figure.legend(handles=key, loc="outside lower left", ncols=2, **LEGEND)
    return finished(figure, "side-by-side", "Encounter means, published and reproduced", simulated)
