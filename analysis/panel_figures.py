"""Figures of the panel: how far raters agree, how severe each is, how long answers took, what limits precision."""

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter, NullFormatter

from analysis.drawing import (
    GREY,
    LEGEND,
    NEUTRAL,
    Drawing,
    Look,
    finished,
    look,
    named_rows,
    one,
    several,
    styled,
    wrapped,
)
from analysis.figures import dodged, legend

_TICKS = ((2, 5, 10, 20, 50, 100), (2, 5, 20, 100))  # on one panel, on several


@styled
def reliability(estimates: pd.DataFrame, *, name: str, title: str, simulated: bool = False) -> Drawing:
    """Coefficients of agreement with their intervals, one row per metric, one marker per coefficient.

    Parameters
    ----------
    estimates : metric, term, estimate, low, high
    """
    metrics, terms = list(pd.unique(estimates["metric"])), list(pd.unique(estimates["term"]))
    colours = dict(zip(terms, itertools.cycle(NEUTRAL[::-1]), strict=False))
    markers = look(terms).marker
    figure, ax = one(1.3 + 0.42 * len(metrics))
    for number, term in enumerate(terms):
        own = estimates[estimates["term"] == term].set_index("metric").reindex(metrics)
        y = np.arange(len(metrics)) + dodged(number, len(terms))
        ax.hlines(y, own["low"], own["high"], color=colours[term], linewidth=1.5)
        ax.plot(own["estimate"], y, markers[term], color=colours[term], markersize=5, label=term)
    named_rows(ax, metrics)
    low = max(-1.0, min(0.0, np.nanmin(estimates[["estimate", "low"]].to_numpy())))
    ax.set_xlim(low - 0.02, 1.02)
    ax.axvline(0, color=GREY, linewidth=0.6)
    ax.set_xlabel("coefficient (1 = perfect agreement)")
    legend(figure, terms)
    return finished(figure, name, title, simulated)


@styled
def severity(
    estimates: pd.DataFrame, *, name: str, title: str, axis: str, one_scale: bool = True, simulated: bool = False
) -> Drawing:
    """How far each rater stands from the panel's mean, with intervals, a panel for each metric.

    Parameters
    ----------
    estimates : metric, rater, estimate, low, high; raters from top to bottom in order of first appearance
    one_scale : all metrics have one scale, and their panels one axis
    """
    metrics, raters = list(pd.unique(estimates["metric"])), list(pd.unique(estimates["rater"]))
    figure, axes = several(len(metrics), 0.5 + 0.17 * len(raters), same_x=one_scale)
    for ax, metric in zip(axes, metrics, strict=True):
        seen = estimates if one_scale else estimates[estimates["metric"] == metric]
        reach = 1.05 * float(np.nanmax(np.abs(seen[["low", "high"]].to_numpy())))
        own = estimates[estimates["metric"] == metric].set_index("rater").reindex(raters)
        y = np.arange(len(raters))
        ax.axvline(0, color=GREY, linewidth=0.6)
        ax.hlines(y, own["low"], own["high"], color=NEUTRAL[2], linewidth=1.4)
        ax.plot(own["estimate"], y, "o", color=NEUTRAL[2], markersize=3.5)
        named_rows(ax, raters, size=8, shown=ax.get_subplotspec().is_first_col())
        ax.set_xlim(-reach, reach)
        ax.set_title(wrapped(metric, 18), fontsize=8.5)
        ax.tick_params(axis="x", labelsize=8)
    figure.supxlabel(axis, fontsize=9)
    return finished(figure, name, title, simulated)


@styled
def precision(
    curves: pd.DataFrame,
    own: pd.DataFrame,
    *,
    item: str,
    name: str,
    title: str,
    axis: str,
    one_scale: bool = True,
    simulated: bool = False,
) -> Drawing:
    """How precise a difference of two sources would be with more raters, and with more prompts or cases.

    Parameters
    ----------
    curves : metric, items (how many prompts or cases), raters, se_difference; a line for each number of items
    own : metric, raters, se_difference: the study itself, marked
    item : what a line counts
    one_scale : all metrics have one scale, and their panels one axis
    """
    metrics, sizes = list(pd.unique(curves["metric"])), sorted(pd.unique(curves["items"]))
    one_row = len(metrics) <= 3
    figure, axes = several(len(metrics), 2.1 if one_row else 1.7, same_y=one_scale)
    shades = NEUTRAL[-len(sizes) :]
    dashes = [(0, (1, 1.2)), (0, (3, 1.2)), (0, (6, 1.5)), "solid"]
    for ax, metric in zip(axes, metrics, strict=True):
        for place, n in enumerate(sizes):
            line = curves[(curves["metric"] == metric) & (curves["items"] == n)]
            ax.plot(line["raters"], line["se_difference"], color=shades[place % len(shades)], linewidth=1.5,
                    linestyle=dashes[place % len(dashes)],
                    label=f"{n:,.0f} {item}{'s' if n != 1 else ''}" if ax is axes[0] else None)  # fmt: skip
        here = own[own["metric"] == metric]
        ax.plot(here["raters"], here["se_difference"], "o", color="#D55E00", markersize=5,
                label="this study" if ax is axes[0] else None)  # fmt: skip
        if len(metrics) > 1:
            ax.set_title(wrapped(metric, 18), fontsize=8.5)
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_xscale("log")
        ax.set_xticks(_TICKS[len(metrics) > 1], [str(t) for t in _TICKS[len(metrics) > 1]])
        ax.xaxis.set_minor_formatter(NullFormatter())
        seen = curves if one_scale else curves[curves["metric"] == metric]
        ax.set_ylim(0, 1.08 * float(seen["se_difference"].max()))
        ax.set_xlabel("raters" if ax in axes[-3:] else "", fontsize=8.5)
        ax.tick_params(labelsize=8)
    figure.supylabel(axis, fontsize=9)
    figure.legend(loc="outside lower left", ncols=3, **LEGEND)
    return finished(figure, name, title, simulated)


@styled
def spreads(
    times: Mapping[str, np.ndarray],
    style: Look,
    *,
    name: str,
    title: str,
    axis: str,
    simulated: bool = False,
) -> Drawing:
    """Times by who took them, on a logarithmic axis: every one as a dot, the middle half as a bar, the median.

    Parameters
    ----------
    times : name → seconds, above zero
    """
    figure, ax = one(1.1 + 0.3 * len(times))
    rng = np.random.default_rng(0)
    for place, (who, own) in enumerate(times.items()):
        ax.plot(own, place + rng.uniform(-0.22, 0.22, len(own)), ".", color=GREY, alpha=0.25, markersize=3,
                markeredgewidth=0, rasterized=len(own) > 2000)  # fmt: skip
        first, middle, third = np.quantile(own, [0.25, 0.5, 0.75])
        colour, marker = style.colour.get(who, NEUTRAL[2]), style.marker.get(who, "o")
        ax.plot([first, third], [place, place], color=colour, linewidth=3, solid_capstyle="butt")
        ax.plot(middle, place, marker, color=colour, markeredgecolor="white", markersize=6)
    named_rows(ax, list(times))
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    ax.set_xlabel(axis)
    return finished(figure, name, title, simulated)
