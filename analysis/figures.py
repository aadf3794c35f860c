"""Figures as SVG: intervals always, raw points where they fit, the scale's own units and full range.

A source has the same colour, marker and place in every figure. The colours are Okabe and Ito's, told apart by
colour-blind readers; markers tell them apart in grey. Where ratings are simulated the figure itself says so.
"""

import html
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import display

# Okabe & Ito (2008), Color Universal Design, jfly.uni-koeln.de/color; black is the reference source.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("D", "o", "s", "^", "v", "P", "X", "*")  # one more than colours: 56 sources differ
_KOREAN = [
    name for name in ("Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "Apple SD Gothic Neo", "Malgun Gothic")
    if name in font_manager.get_font_names()
][:1]  # fmt: skip
_STYLE = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans", *_KOREAN],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.unicode_minus": True,
    "legend.frameon": False,
}
_LEGEND = {"fontsize": 8, "handletextpad": 0.3, "columnspacing": 1.0}
_GREY = "#6b6b6b"
_SIMULATED = "#B00020"
_SVG_FONTS = "'Helvetica Neue', Arial, 'DejaVu Sans', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', sans-serif"


_FAMILY = re.compile(r"'DejaVu Sans'(, [^;\"]*)?")
# Names of parts, which repeat from figure to figure; nothing refers to them.
_OWN_IDS = re.compile(r'(?<=<g) id="[^"]*"')


@dataclass(frozen=True)
class Look:
    """The colour and marker of each source, in the study's order."""

    colour: dict[str, str]
    marker: dict[str, str]


def look(sources: Sequence[str]) -> Look:
    """The same sources in the same order always look the same."""
    n = len(sources)
    return Look(
        dict(zip(sources, islice(cycle(COLOURS), n), strict=True)),
        dict(zip(sources, islice(cycle(MARKERS), n), strict=True)),
    )


@mpl.rc_context(_STYLE)
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
) -> str:
    """Means of sources with their intervals, over the means of the single raters.

    Parameters
    ----------
    estimates : term (source), estimate, low, high; drawn from top to bottom
    points : columns source, score: raw means, one small dot each
    """
    figure, ax = _figure(4.6, 1.0 + 0.4 * len(estimates))
    rng = np.random.default_rng(0)  # only spreads dots that would hide one another
    for place, row in enumerate(estimates.itertuples()):
        colour, marker = style.colour.get(row.term, _GREY), style.marker.get(row.term, "o")
        if points is not None:
            own = points.loc[points["source"] == row.term, "score"].to_numpy()
            height = place + 0.22 + rng.uniform(-0.06, 0.06, len(own))
            ax.plot(own, height, ".", color=colour, alpha=0.35, markersize=4, markeredgewidth=0)
        ax.plot([row.low, row.high], [place, place], color=colour, linewidth=1.8, solid_capstyle="butt")
        ax.plot(row.estimate, place, marker, color=colour, markersize=6)
    _named_rows(ax, list(estimates["term"]))
    _scale_axis(ax.xaxis, scale)
    ax.set_xlim(*_padded_range(scale))
    ax.set_xlabel(axis)
    return _svg(figure, name, title, simulated)


@mpl.rc_context(_STYLE)
def interaction(
    means: pd.DataFrame,
    style: Look,
    scale: tuple[float, float],
    *,
    name: str,
    title: str,
    axis: str,
    simulated: bool = False,
) -> str:
    """Means of sources in each form of question, with intervals.

    Parameters
    ----------
    means : source, form, estimate, low, high
    """
    forms = list(pd.unique(means["form"]))
    sources = list(pd.unique(means["source"]))
    figure, ax = _figure(4.6, 3.8)
    for number, source in enumerate(sources):
        own = means[means["source"] == source].set_index("form").reindex(forms)
        x = np.arange(len(forms)) + 0.11 * (number - (len(sources) - 1) / 2)
        colour = style.colour.get(source, _GREY)
        ax.vlines(x, own["low"], own["high"], color=colour, linewidth=1.6)
        ax.plot(x, own["estimate"], color=colour, linewidth=0.8, alpha=0.55)
        ax.plot(x, own["estimate"], style.marker.get(source, "o"), color=colour, markersize=4.5, label=source)
    ax.set_xticks(range(len(forms)), [f.replace("_", "-") for f in forms])
    ax.set_xlim(-0.5, len(forms) - 0.5)
    _scale_axis(ax.yaxis, scale)
    ax.set_ylim(*_padded_range(scale))
    ax.set_ylabel(axis)
    figure.legend(loc="outside lower left", ncols=min(2, len(sources)), **_LEGEND)
    return _svg(figure, name, title, simulated)


@mpl.rc_context(_STYLE)
def heat_map(
    means: pd.DataFrame,
    scale: tuple[float, float],
    *,
    name: str,
    title: str,
    axis: str,
    simulated: bool = False,
) -> str:
    """Means by category and source, each cell with its number.

    Parameters
    ----------
    means : source, category, estimate
    """
    categories, sources = list(pd.unique(means["category"])), list(pd.unique(means["source"]))
    grid = means.pivot(index="category", columns="source", values="estimate").loc[categories, sources]
    figure, ax = _figure(4.6, 1.3 + 0.27 * len(categories))
    shades = mpl.colormaps["cividis"].resampled(32)  # few enough for the colour bar to stay vectors
    edges = (np.arange(n + 1) - 0.5 for n in grid.shape[::-1])
    mesh = ax.pcolormesh(*edges, grid.to_numpy(), cmap=shades, vmin=scale[0], vmax=scale[1], shading="flat")
    ax.invert_yaxis()
    for row, column in np.ndindex(grid.shape):
        value = grid.iat[row, column]
        light = (value - scale[0]) / (scale[1] - scale[0]) < 0.55
        colour = "white" if light else "black"
        ax.text(column, row, display.number(value), ha="center", va="center", color=colour, fontsize=7.5)
    ax.set_xticks(range(len(sources)), sources, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(categories)), [str(c).replace("_", " ") for c in categories])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(mesh, ax=ax, fraction=0.04, pad=0.02)
    bar.set_label(axis)
    bar.outline.set_visible(False)
    return _svg(figure, name, title, simulated)


@mpl.rc_context(_STYLE)
def reliability(estimates: pd.DataFrame, *, name: str, title: str, simulated: bool = False) -> str:
    """Coefficients of agreement with their intervals, one row per metric, one marker per coefficient.

    Parameters
    ----------
    estimates : metric, term, estimate, low, high
    """
    metrics, terms = list(pd.unique(estimates["metric"])), list(pd.unique(estimates["term"]))
    style = look(terms)
    figure, ax = _figure(4.6, 1.2 + 0.42 * len(metrics))
    for number, term in enumerate(terms):
        own = estimates[estimates["term"] == term].set_index("metric").reindex(metrics)
        y = np.arange(len(metrics)) + 0.2 * (number - (len(terms) - 1) / 2)
        ax.hlines(y, own["low"], own["high"], color=style.colour[term], linewidth=1.5)
        ax.plot(own["estimate"], y, style.marker[term], color=style.colour[term], markersize=5, label=term)
    _named_rows(ax, metrics)
    low = min(0.0, np.nanmin(estimates[["estimate", "low"]].to_numpy()))
    ax.set_xlim(low - 0.02, 1.02)
    ax.axvline(0, color=_GREY, linewidth=0.6)
    ax.set_xlabel("coefficient (1 = perfect agreement)")
    figure.legend(loc="outside lower left", ncols=len(terms), **_LEGEND)
    return _svg(figure, name, title, simulated)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _named_rows(ax: Axes, names: list[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def _scale_axis(axis: object, scale: tuple[float, float]) -> None:
    """Ticks on the points of a short scale of whole numbers."""
    low, high = scale
    if float(low).is_integer() and float(high).is_integer() and high - low <= 10:
        axis.set_ticks(np.arange(low, high + 1))


def _padded_range(scale: tuple[float, float]) -> tuple[float, float]:
    margin = 0.03 * (scale[1] - scale[0])
    return scale[0] - margin, scale[1] + margin


def _svg(figure: Figure, name: str, title: str, simulated: bool) -> str:
    """The figure as an SVG element that scales with its box; no date and no random names in it."""
    ax = figure.axes[0]
    ax.set_title(title, loc="left", pad=18 if simulated else 6)
    if simulated:
        above = {"xy": (0, 1), "xycoords": "axes fraction", "xytext": (0, 5), "textcoords": "offset points"}
        ax.annotate("simulated ratings", **above, fontsize=8, color=_SIMULATED)
    content = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}), warnings.catch_warnings():
        # Letters stay letters in the file, so that a font missing here may yet be there where the figure is read.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    svg = _OWN_IDS.sub("", content.getvalue())
    svg = _FAMILY.sub(_SVG_FONTS, svg[svg.index("<svg") :])
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)
