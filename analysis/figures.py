"""Figures of sources: intervals always, raw points where they fit, the scale's own units and full range."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis import display
from analysis.drawing import (
    GREY,
    LEGEND,
    PALE,
    Drawing,
    Look,
    finished,
    named_rows,
    one,
    padded_range,
    scale_axis,
    styled,
)

_MOST_DODGED = 0.8  # height of a row that its markers share
_LEGEND_LETTERS = 66  # letters of a legend's row


@styled
def forest(
    estimates: pd.DataFrame,
    style: Look,
    scale: tuple[float, float],
    *,
    name: str,
    title: str,
    axis: str,
    points: pd.DataFrame | None = None,
    simulated: bool = False,
) -> Drawing:
    """Means of sources with their intervals, over the means of the single raters.

    Parameters
    ----------
    estimates : term (source), estimate, low, high; drawn from top to bottom
    points : columns source, score: raw means, one small dot each
    """
    figure, ax = one(1.1 + 0.4 * len(estimates))
    rng = np.random.default_rng(0)  # only spreads dots that would hide one another
    for place, row in enumerate(estimates.itertuples()):
        colour, marker = style.colour.get(row.term, GREY), style.marker.get(row.term, "o")
        if points is not None:
            own = points.loc[points["source"] == row.term, "score"].to_numpy()
            height = place + 0.22 + rng.uniform(-0.06, 0.06, len(own))
            ax.plot(own, height, ".", color=colour, alpha=0.35, markersize=4, markeredgewidth=0)
        ax.plot([row.low, row.high], [place, place], color=colour, linewidth=1.8, solid_capstyle="butt")
        ax.plot(row.estimate, place, marker, color=colour, markersize=6)
    named_rows(ax, list(estimates["term"]))
    scale_axis(ax.xaxis, scale)
    ax.set_xlim(*padded_range(scale))
    ax.set_xlabel(axis)
    return finished(figure, name, title, simulated)


@styled
def means(
    estimates: pd.DataFrame,
    style: Look,
    scale: tuple[float, float],
    *,
    name: str,
    title: str,
    axis: str,
    simulated: bool = False,
) -> Drawing:
    """Means of sources on several metrics of one scale: a row for each metric, a marker for each source.

    Parameters
    ----------
    estimates : metric, source, estimate, low, high; drawn from top to bottom
    """
    metrics, sources = list(pd.unique(estimates["metric"])), list(pd.unique(estimates["source"]))
    row = max(0.42, 0.12 * len(sources))
    figure, ax = one(1.35 + row * len(metrics) + 0.16 * (len(sources) // 2))
    for number, source in enumerate(sources):
        own = estimates[estimates["source"] == source].set_index("metric").reindex(metrics)
        y = np.arange(len(metrics)) + dodged(number, len(sources))
        colour = style.colour.get(source, GREY)
        ax.hlines(y, own["low"], own["high"], color=colour, linewidth=1.6)
        ax.plot(own["estimate"], y, style.marker.get(source, "o"), color=colour, markersize=4.5, label=source)
    named_rows(ax, metrics, 16)
    for between in range(1, len(metrics)):
        ax.axhline(between - 0.5, color="#eeeeee", linewidth=0.6, zorder=0)
    scale_axis(ax.xaxis, scale)
    ax.set_xlim(*padded_range(scale))
    ax.set_xlabel(axis)
    legend(figure, sources)
    return finished(figure, name, title, simulated)


@styled
def interaction(
    means: pd.DataFrame,
    style: Look,
    scale: tuple[float, float],
    *,
    name: str,
    title: str,
    axis: str,
    simulated: bool = False,
) -> Drawing:
    """Means of sources in each form of question, with intervals.

    Parameters
    ----------
    means : source, form, estimate, low, high
    """
    forms, sources = list(pd.unique(means["form"])), list(pd.unique(means["source"]))
    figure, ax = one(3.4 + 0.16 * (len(sources) // 2))
    for number, source in enumerate(sources):
        own = means[means["source"] == source].set_index("form").reindex(forms)
        x = np.arange(len(forms)) + dodged(number, len(sources), 0.11)
        colour = style.colour.get(source, GREY)
        ax.vlines(x, own["low"], own["high"], color=colour, linewidth=1.6)
        ax.plot(x, own["estimate"], color=colour, linewidth=0.8, alpha=0.55)
        ax.plot(x, own["estimate"], style.marker.get(source, "o"), color=colour, markersize=4.5, label=source)
    ax.set_xticks(range(len(forms)), [f.replace("_", "-") for f in forms])
    ax.set_xlim(-0.5, len(forms) - 0.5)
    scale_axis(ax.yaxis, scale)
    ax.set_ylim(*padded_range(scale))
    ax.set_ylabel(axis)
    legend(figure, sources)
    return finished(figure, name, title, simulated)


@styled
def heat_map(
    means: pd.DataFrame,
    scale: tuple[float, float],
    *,
    name: str,
    title: str,
    axis: str,
    simulated: bool = False,
) -> Drawing:
    """Means by category and source, each cell with its number.

    Parameters
    ----------
    means : source, category, estimate
    """
    categories, sources = list(pd.unique(means["category"])), list(pd.unique(means["source"]))
    grid = means.pivot(index="category", columns="source", values="estimate").loc[categories, sources]
    figure, ax = one(1.6 + 0.27 * len(categories))
    shades = mpl.colormaps["cividis"].resampled(32)  # few enough for the colour bar to stay vectors
    edges = (np.arange(n + 1) - 0.5 for n in grid.shape[::-1])
    mesh = ax.pcolormesh(*edges, grid.to_numpy(), cmap=shades, vmin=scale[0], vmax=scale[1], shading="flat")
    for row, column in np.ndindex(grid.shape):
        value = grid.iat[row, column]
        light = (value - scale[0]) / (scale[1] - scale[0]) < 0.55
        colour = "white" if light else "black"
        size = 7.5 if len(sources) < 8 else 6
        ax.text(column, row, display.number(value), ha="center", va="center", color=colour, fontsize=size)
    ax.set_xticks(range(len(sources)), sources, rotation=35, ha="right", rotation_mode="anchor", fontsize=8)
    named_rows(ax, [_spaced(c) for c in categories])
    ax.set_ylim(len(categories) - 0.5, -0.5)
    ax.grid(False)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(mesh, ax=ax, fraction=0.04, pad=0.02)
    scale_axis(bar.ax.yaxis, scale)
    bar.set_label(axis)
    bar.outline.set_visible(False)
    return finished(figure, name, title, simulated)


@styled
def shares(
    counted: Mapping[str, pd.DataFrame],
    style: Look,
    *,
    name: str,
    title: str,
    axis: str,
    simulated: bool = False,
) -> Drawing:
    """Shares as bars with exact intervals, a panel for each factor.

    Parameters
    ----------
    counted : factor → level (as it is to be read), estimate, low, high, k, n; drawn from top to bottom
    """
    sizes = [len(own) for own in counted.values()]
    figure = Figure(figsize=(4.7, 0.9 + 0.23 * sum(sizes) + 0.3 * len(sizes)), layout="constrained")
    axes = figure.subplots(len(sizes), 1, sharex=True, height_ratios=[n + 0.6 for n in sizes], squeeze=False)[:, 0]
    reach = max(0.05, *(float(own["high"].max()) for own in counted.values()))
    for ax, (factor, own) in zip(axes, counted.items(), strict=True):
        y = np.arange(len(own))
        colours = [style.colour.get(level, PALE) for level in own["level"]]
        ax.barh(y, own["estimate"], height=0.62, color=colours, alpha=0.45 if factor == "source" else 1)
        ax.hlines(y, own["low"], own["high"], color="black", linewidth=1.2)
        for place, row in enumerate(own.itertuples()):
            ax.text(min(row.high + 0.01 * reach, 1), place, f" {row.k}/{row.n}", va="center", fontsize=7.5)
        named_rows(ax, list(own["level"]), 24)
        ax.set_title(_spaced(factor))
    axes[-1].set_xlim(0, min(1.0, 1.12 * reach) if reach < 0.9 else 1.12)
    axes[-1].xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes[-1].set_xlabel(axis)
    return finished(figure, name, title, simulated)


def dodged(number: int, of: int, most: float = 0.16) -> float:
    """How far a marker is moved from the middle of its row, so that none hides another."""
    return min(most, _MOST_DODGED / of) * (number - (of - 1) / 2)


def legend(figure: Figure, names: Sequence[str]) -> None:
    longest = max(len(str(n)) for n in names) + 5
    figure.legend(loc="outside lower left", ncols=max(1, min(len(names), 4, _LEGEND_LETTERS // longest)), **LEGEND)


def _spaced(name: object) -> str:
    return str(name).replace("_", " ")
