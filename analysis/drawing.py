"""How every figure of the house looks, and how it becomes SVG and PDF.

A source has the same colour, marker and place in every figure. The colours are Okabe and Ito's, told apart by
colour-blind readers; markers tell them apart in grey. Where ratings are simulated the figure itself says so.
"""

import html
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from study import tables

# Okabe & Ito (2008), Color Universal Design, jfly.uni-koeln.de/color; black is the reference source.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("D", "o", "s", "^", "v", "P", "X", "*")  # one more than colours: 56 sources differ
# What is no source has colours of its own, from light to dark, so that nobody reads a source into it.
NEUTRAL = ("#8a97a3", "#6b7a87", "#45535f", "#000000")
GREY = "#6b6b6b"
PALE = "#b9c4cc"
WIDTH = 4.7  # inches: a column of a page, and letters that stay readable at the width of a phone
KOREAN = [
    name for name in ("Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "Apple SD Gothic Neo", "Malgun Gothic")
    if name in font_manager.get_font_names()
][:1]  # fmt: skip
STYLE = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # letters as letters, as publishers ask
    "font.family": ["DejaVu Sans", *KOREAN],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.unicode_minus": True,
    "legend.frameon": False,
}
LEGEND = {"fontsize": 8, "handletextpad": 0.3, "columnspacing": 1.0}
_SIMULATED = "#B00020"
_SVG_FONTS = "'Helvetica Neue', Arial, 'DejaVu Sans', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', sans-serif"
_FAMILY = re.compile(r"'DejaVu Sans'(, [^;\"]*)?")
# Names of parts, which repeat from figure to figure; nothing refers to them.
_OWN_IDS = re.compile(r'(?<=<g) id="[^"]*"')
_MISSING = r"Glyph .* missing from font"

styled = mpl.rc_context(STYLE)


@dataclass(frozen=True)
class Drawing:
    """A figure as an SVG element, and on request as a PDF file."""

    svg: str
    figure: Figure = field(repr=False, compare=False)

    def pdf(self) -> bytes | None:
        """The same figure as PDF, without a date; None where no font here has its letters."""
        pages = io.BytesIO()
        with mpl.rc_context(STYLE), warnings.catch_warnings():
            warnings.filterwarnings("error", message=_MISSING)
            try:
                self.figure.savefig(pages, format="pdf", metadata={"CreationDate": None})
            except UserWarning:  # letters would be boxes
                return None
        return pages.getvalue()


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


def one(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def several(
    n: int, height: float, *, across: int = 3, same_x: bool = True, same_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """Panels of one figure, so many in a row, each so high; the last row may be shorter."""
    across = min(across, n)
    down = -(-n // across)
    figure = Figure(figsize=(WIDTH, 0.75 + height * down), layout="constrained")
    axes = figure.subplots(down, across, sharey=same_y, sharex=same_x, squeeze=False)
    for ax in axes.flat[n:]:
        ax.set_axis_off()
    for ax in axes[-2][n - (down - 1) * across :] if down > 1 else ():
        ax.xaxis.set_tick_params(labelbottom=True)
    return figure, list(axes.flat[:n])


def wrapped(name: str, width: int = 20) -> str:
    """A name over several lines where it is long; it breaks between words and after its own signs.

    >>> wrapped("clinical_reasoning", 12)
    'clinical_\\nreasoning'
    """
    lines = [""]
    for part in re.split(r"(?<=[_/·\s-])(?=\S)", str(name)):
        if lines[-1] and len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def named_rows(ax: Axes, names: Sequence[str], width: int = 20, *, size: float = 9, shown: bool = True) -> None:
    """Names from top to bottom, and light lines to read values by.

    Every line of a name is a text of its own, for where the figure is read letters may be wider or narrower.
    """
    ax.set_yticks(range(len(names)), [""] * len(names))
    for place, name in enumerate(names if shown else ()):
        lines = wrapped(name, width).split("\n")
        for number, line in enumerate(lines):
            down = 1.15 * size * (number - (len(lines) - 1) / 2)
            ax.annotate(line, (0, place), (-4, -down), xycoords=("axes fraction", "data"),
                        textcoords="offset points", ha="right", va="center_baseline", fontsize=size,
                        annotation_clip=False)  # fmt: skip
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def scale_axis(axis: Axis, scale: tuple[float, float]) -> None:
    """Ticks on the points of a short scale of whole numbers."""
    low, high = scale
    if float(low).is_integer() and float(high).is_integer() and high - low <= 10:
        axis.set_ticks(np.arange(low, high + 1))


def padded_range(scale: tuple[float, float]) -> tuple[float, float]:
    margin = 0.03 * (scale[1] - scale[0])
    return scale[0] - margin, scale[1] + margin


def write(drawing: Drawing, path: Path) -> list[Path]:
    """The drawing as path.svg and, where a font has its letters, path.pdf; each whole or not at all."""
    contents = {".svg": drawing.svg.encode("utf-8"), ".pdf": drawing.pdf()}
    written = []
    for ending, content in contents.items():
        if content is not None:
            written.append(path.with_name(path.name + ending))
            tables.replaced(written[-1], lambda half, content=content: half.write_bytes(content))
    return written


def finished(figure: Figure, name: str, title: str, simulated: bool) -> Drawing:
    """The figure with its title, as an SVG element that scales with its box.

    No date and no random names are in it. Letters stay letters, so that a font missing here may yet be there where
    the figure is read.
    """
    width, _ = figure.get_size_inches()
    # The title's line, and below it what a reader must not overlook; the empty line keeps its place.
    head = figure.suptitle(title + ("\n" if simulated else ""), x=0.04 / width, ha="left", fontsize=10)
    content = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_MISSING)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        if simulated:
            foot = head.get_window_extent().transformed(figure.transFigure.inverted()).y0
            figure.text(0.04 / width, foot, "simulated ratings", fontsize=8, color=_SIMULATED, va="bottom")
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    svg = _OWN_IDS.sub("", content.getvalue())
    svg = _FAMILY.sub(_SVG_FONTS, svg[svg.index("<svg") :])
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)
    return Drawing(svg, figure)
