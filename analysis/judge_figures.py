"""Figures of a judge card, written as SVG: what a score means, and whom the judge favours.

A card may hold a hundred of them, so they are written directly rather than laid out by a plotting library.
"""

import html
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis import display

_INK, _GREY, _GRID, _WARN = "#1a1a1a", "#6b6b6b", "#dddddd", "#B00020"
_SURE, _LINE = "#D55E00", "#0072B2"  # Okabe & Ito's, as in every figure of the house
_ROW, _LETTER = 22.0, 6.6  # points: height of a row, width of a letter
_FONT = "'Helvetica Neue', Arial, 'DejaVu Sans', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', sans-serif"


def reading(
    table: pd.DataFrame,
    curve: tuple[Sequence[float], Sequence[float]],
    scale: tuple[float, float],
    *,
    title: str,
    simulated: bool = False,
) -> str:
    """Panel mean for each judge score, with its interval, beside the line of a judge that needs no calibration.

    Parameters
    ----------
    table : score, panel, low, high, n
    curve : judge scores and what the best map reads them as
    """
    width, height, left, top, bottom = 340.0, 360.0, 46.0, 46.0, 64.0
    x = _Axis(*scale, left, width - 14)
    y = _Axis(*scale, height - bottom, top)
    parts = [_grid(x, y), _path([(x(v), y(v)) for v in scale], _GREY, dash=True)]
    parts.append(_path([(x(a), y(b)) for a, b in zip(*curve, strict=True)], _LINE, 2))
    biggest = table["n"].max()
    for row in table.itertuples():
        low, high = max(row.low, scale[0]), min(row.high, scale[1])
        if np.isfinite(low) and np.isfinite(high):
            parts.append(_path([(x(row.score), y(low)), (x(row.score), y(high))], _INK, 1.5))
        radius = 2.5 + 4.5 * (row.n / biggest) ** 0.5
        told = f"judge {row.score:g}: panel {display.number(row.panel)}, {row.n} items"
        parts.append(f'<circle cx="{x(row.score):.1f}" cy="{y(row.panel):.1f}" r="{radius:.1f}" fill="{_INK}">'
                     f"<title>{told}</title></circle>")  # fmt: skip
    parts.append(_text((left + width - 14) / 2, height - 32, "judge's score", anchor="middle"))
    parts.append(_text(14, (top + height - bottom) / 2, "panel's mean", anchor="middle", turned=True))
    legend = ((left, "best map", _LINE, False), (left + 100, "judge = panel", _GREY, True))
    for at, name, colour, dash in legend:
        parts.append(_path([(at, height - 14), (at + 22, height - 14)], colour, 2 if not dash else 1, dash))
        parts.append(_text(at + 27, height - 10, name))
    return _svg(parts, width, height, title, simulated)


def bias(table: pd.DataFrame, *, title: str, axis: str, simulated: bool = False) -> str:
    """The judge's excess by level, with intervals; filled and coloured where unlike zero after Holm.

    Parameters
    ----------
    table : level, estimate, low, high, p_holm, from top to bottom
    """
    names = [str(v) for v in table["level"]]
    left = 16 + _LETTER * min(30, max(sum(2 if ord(c) > 0x2E7F else 1 for c in name) for name in names))
    width, top = max(340.0, left + 240), 46.0
    height = top + _ROW * len(names) + 46
    reach = max(0.1, float(np.nanmax(np.abs(table[["low", "high"]].to_numpy()))))
    x = _Axis(-reach, reach, left, width - 14)
    end = top + _ROW * len(names)
    parts = []
    for tick in _ticks(reach):
        parts.append(_path([(x(tick), top), (x(tick), end)], _GREY if tick == 0 else _GRID))
        parts.append(_text(x(tick), end + 15, display.number(tick, 1 if reach > 0.25 else 2), anchor="middle"))
    for place, (name, row) in enumerate(zip(names, table.itertuples(), strict=True)):
        y, sure = top + _ROW * (place + 0.5), row.p_holm < 0.05
        colour = _SURE if sure else _INK
        parts.append(_text(left - 8, y + 4, name, anchor="end"))
        parts.append(_path([(x(row.low), y), (x(row.high), y)], colour, 2))
        parts.append(f'<circle cx="{x(row.estimate):.1f}" cy="{y:.1f}" r="4.2" stroke="{colour}" '
                     f'stroke-width="1.6" fill="{colour if sure else "#ffffff"}"/>')  # fmt: skip
    parts.append(_text((left + width - 14) / 2, end + 36, axis, anchor="middle"))
    return _svg(parts, width, height, title, simulated)


class _Axis:
    """Values of a scale to points of the picture."""

    def __init__(self, low: float, high: float, start: float, end: float):
        margin = 0.04 * (high - low)
        self.low, self.high = low, high
        self.zero, self.size = low - margin, high - low + 2 * margin
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        return self.start + (value - self.zero) / self.size * (self.end - self.start)


def _grid(x: _Axis, y: _Axis) -> str:
    parts = []
    whole = float(x.low).is_integer() and float(x.high).is_integer() and x.high - x.low <= 10
    ticks = np.arange(x.low, x.high + 0.5) if whole else np.linspace(x.low, x.high, 5)
    for tick in ticks:
        parts.append(_path([(x(tick), y.start), (x(tick), y.end)], _GRID))
        parts.append(_path([(x.start, y(tick)), (x.end, y(tick))], _GRID))
        parts.append(_text(x(tick), y.start + 15, f"{tick:g}", anchor="middle"))
        parts.append(_text(x.start - 6, y(tick) + 4, f"{tick:g}", anchor="end"))
    return "".join(parts)


def _ticks(reach: float) -> list[float]:
    """Three or five round numbers around zero."""
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if reach / s < 2.5)
    most = int(reach / step)
    return [step * i for i in range(-most, most + 1)] or [0.0]


def _path(points: Sequence[tuple[float, float]], colour: str, thick: float = 1.0, dash: bool = False) -> str:
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dashed = ' stroke-dasharray="3 3"' if dash else ""
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{thick:g}"{dashed}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{html.escape(text)}</text>'


def _svg(parts: Sequence[str], width: float, height: float, title: str, simulated: bool) -> str:
    name = html.escape(title)
    head = f'<text x="4" y="16" font-weight="bold" font-size="13">{name}</text>'
    if simulated:
        head += f'<text x="4" y="32" fill="{_WARN}">simulated ratings</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{name}" '
        f'viewBox="0 0 {width:g} {height:g}" '
        f'font-family="{_FONT}" font-size="12" fill="{_INK}">{head}{"".join(parts)}</svg>'
    )
