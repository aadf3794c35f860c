import re
from xml.etree import ElementTree

import pandas as pd
import pytest

from analysis import figures

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


def drawn(kind: str, simulated: bool = False) -> str:
    style = figures.look(SOURCES)
    match kind:
        case "forest":
            return figures.forest(ESTIMATES, style, (1, 5), points=POINTS, simulated=simulated, **NAMED)
        case "interaction":
            return figures.interaction(CELLS, style, (1, 5), simulated=simulated, **NAMED)
        case "heat_map":
            return figures.heat_map(CELLS, (1, 5), simulated=simulated, **NAMED)
    return figures.reliability(AGREEMENT, name="f", title="Agreement", simulated=simulated)


KINDS = ("forest", "interaction", "heat_map", "reliability")


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_the_same_every_time(kind):
    assert drawn(kind) == drawn(kind)


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
    assert figures.look(SOURCES).colour["expert"] == figures.look(["expert"]).colour["expert"]


def test_sources_differ_in_colour_and_marker():
    style = figures.look([str(i) for i in range(7)])
    assert 7 == len(set(style.colour.values())) == len(set(style.marker.values()))


def test_identifiers_of_two_figures_do_not_meet():
    own = re.compile(r'id="([^"]+)"')
    one = figures.reliability(AGREEMENT, name="one", title="t")
    two = figures.reliability(AGREEMENT, name="two", title="t")
    assert own.findall(one)
    assert not set(own.findall(one)) & set(own.findall(two))
