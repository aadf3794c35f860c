import functools
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from analysis import drawing, figures, panel_figures

SOURCES = ["expert", "model_b", "한국어"]
ESTIMATES = pd.DataFrame(
    {"term": SOURCES, "estimate": [4.2, 3.9, 3.1], "low": [4.0, 3.7, 2.9], "high": [4.4, 4.1, 3.3]}
)
POINTS = pd.DataFrame({"source": SOURCES * 4, "score": [4.0, 3.8, 3.0] * 4})
CELLS = pd.DataFrame([
    {"source": s, "form": f, "category": f, "estimate": 3.0, "low": 2.5, "high": 3.5}
    for s in SOURCES for f in ("affirmative", "negative")
])  # fmt: skip
AGREEMENT = pd.DataFrame({
    "metric": ["fluency", "fluency"], "term": ["ICC(2,1)", "alpha, ordinal"], "estimate": [0.3, -0.1],
    "low": [0.2, -0.3], "high": [0.4, 0.1],
})  # fmt: skip
NAMED = {"name": "f", "title": "Fluency: means", "axis": "fluency, 1 to 5"}


METRICS = pd.concat([CELLS.assign(metric=m) for m in ("fluency", "overall satisfaction")]).query(
    "form == 'negative'")  # fmt: skip
COUNTS = pd.DataFrame({
    "level": SOURCES, "estimate": [0.0, 0.1, 0.2], "low": [0.0, 0.02, 0.1], "high": [0.05, 0.2, 0.3],
    "k": [0, 7, 14], "n": [70, 70, 70],
})  # fmt: skip
SEVERITY = pd.DataFrame([
    {"metric": m, "rater": r, "estimate": e, "low": e - 0.1, "high": e + 0.1}
    for m in ("fluency", "engagement", "coherence", "accuracy") for r, e in (("rater-01", -0.3), ("rater-02", 0.3))
])  # fmt: skip
CURVES = pd.DataFrame([
    {"metric": m, "items": n, "raters": r, "se_difference": (1 / n + 1 / (n * r)) ** 0.5}
    for m in ("fluency", "accuracy") for n in (35, 70) for r in (2, 5, 17, 100)
])  # fmt: skip


def drawing_of(kind: str, simulated: bool = False) -> drawing.Drawing:
    style = drawing.look(SOURCES)
    titled = {"name": "f", "title": "A title", "simulated": simulated}
    match kind:
        case "forest":
            return figures.forest(ESTIMATES, style, (1, 5), points=POINTS, simulated=simulated, **NAMED)
        case "means":
            return figures.means(METRICS, style, (1, 5), simulated=simulated, **NAMED)
        case "interaction":
            return figures.interaction(CELLS, style, (1, 5), simulated=simulated, **NAMED)
        case "heat_map":
            return figures.heat_map(CELLS, (1, 5), simulated=simulated, **NAMED)
        case "shares":
            return figures.shares({"source": COUNTS, "form": COUNTS}, style, axis="share", **titled)
        case "severity":
            return panel_figures.severity(SEVERITY, axis="points", **titled)
        case "precision":
            own = CURVES[(CURVES["items"] == 70) & (CURVES["raters"] == 17)]
            return panel_figures.precision(CURVES, own, item="prompt", axis="SE", **titled)
        case "spreads":
            times = {"a": np.array([1.0, 2, 9]), "b": np.array([0.2])}
            return panel_figures.spreads(times, style, axis="seconds", **titled)
    return panel_figures.reliability(AGREEMENT, **titled)


@functools.cache
def drawn(kind: str, simulated: bool = False) -> str:
    return drawing_of(kind, simulated).svg


KINDS = ("forest", "means", "interaction", "heat_map", "shares", "severity", "precision", "spreads", "reliability")


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_the_same_every_time(kind):
    assert drawn(kind) == drawing_of(kind).svg


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_stands_on_the_figure_where_ratings_are(kind):
    assert "simulated ratings" in drawn(kind, simulated=True)
    assert "simulated" not in drawn(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_one_svg_element_without_date_or_outside_reference(kind):
    svg = drawn(kind)
    assert svg.startswith("<svg")
    ElementTree.fromstring(svg.replace("xlink:", ""))
    assert "<dc:date>" not in svg
    assert not re.search(r'href="http', svg)


@pytest.mark.parametrize("kind", KINDS)
def test_text_stays_text(kind):
    assert "<text" in drawn(kind)


def test_the_axis_has_the_scales_full_range():
    svg = drawn("forest")
    for point in "12345":
        assert re.search(rf"<text[^>]*>{point}</text>", svg)


def test_a_source_looks_the_same_whoever_else_is_there():
    assert drawing.look(SOURCES).colour["expert"] == drawing.look(["expert"]).colour["expert"]


def test_sources_differ_in_colour_and_marker():
    style = drawing.look([str(i) for i in range(7)])
    assert 7 == len(set(style.colour.values())) == len(set(style.marker.values()))


def test_identifiers_of_two_figures_do_not_meet():
    own = re.compile(r'id="([^"]+)"')
    one, two = (panel_figures.reliability(AGREEMENT, name=name, title="t").svg for name in ("one", "two"))
    assert own.findall(one)
    assert not set(own.findall(one)) & set(own.findall(two))


def test_a_pdf_embeds_its_letters_and_has_no_date():
    pdf = drawing_of("precision").pdf()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf and b"CreationDate" not in pdf
    assert pdf == drawing_of("precision").pdf()


@pytest.mark.skipif(not drawing.KOREAN, reason="no Korean font on this machine")
def test_a_pdf_shows_korean_where_a_font_is_there():
    assert drawing_of("forest").pdf() is not None


def test_without_a_korean_font_there_is_no_pdf_of_boxes(monkeypatch):
    monkeypatch.setitem(drawing.STYLE, "font.family", ["DejaVu Sans"])
    assert drawing_of("forest").pdf() is None
    assert "한국어" in drawing_of("forest").svg
    assert panel_figures.reliability(AGREEMENT, name="f", title="t").pdf() is not None


def test_a_long_name_breaks_between_its_words():
    assert "a model with\na long name" == drawing.wrapped("a model with a long name", 12)
    assert "a_model_with_\na_long_name" == drawing.wrapped("a_model_with_a_long_name", 14)
    assert "unbreakable_" in drawing.wrapped("unbreakable_names", 8)


def test_every_mean_has_its_interval_in_its_own_colour():
    svg = drawn("means")
    for source in SOURCES:
        colour = drawing.look(SOURCES).colour[source].lower()
        # Two intervals (one for each metric) and the markers.
        assert svg.lower().count(f"stroke: {colour}") >= 2


@pytest.mark.parametrize(("one_scale", "share"), [(True, 0.05), (False, 0.95)])
def test_metrics_of_other_scales_have_axes_of_their_own(monkeypatch, one_scale, share):
    seen = []
    monkeypatch.setattr(panel_figures, "finished", lambda figure, *_: seen.append(figure))
    panel_figures.severity(
        pd.DataFrame({"metric": ["of five", "of 100"], "rater": "r", "estimate": 0.0, "low": [-1.0, -20.0],
                      "high": [1.0, 20.0]}),
        name="f", title="Severity", axis="points", one_scale=one_scale,
    )  # fmt: skip
    assert pytest.approx(share, abs=0.01) == 1 / seen[0].axes[0].get_xlim()[1]
    curves = pd.DataFrame({"metric": ["of five"] * 2 + ["of 100"] * 2, "items": 10, "raters": [2, 20] * 2,
                           "se_difference": [1.0, 0.5, 20.0, 10.0]})  # fmt: skip
    panel_figures.precision(curves, curves[curves["raters"] == 2], item="prompt", name="f", title="Precision",
                            axis="SE", one_scale=one_scale)  # fmt: skip
    assert pytest.approx(share, abs=0.03) == 1 / seen[1].axes[0].get_ylim()[1]
