import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.generalizability import assumed, bottleneck, cheapest, d_study, g_study
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "agreement.json").read_text(encoding="utf-8"))
BRENNAN = GOLD["brennan3"]
TOLERANCE = GOLD["tolerance"]["g_theory"]
# The published sentence study's layout and the components that its coefficients imply.
SENTENCES = {"source": 0.2, "prompt": 0.04, "rater": 0.01, "source:prompt": 0.16, "source:rater": 0.01,
             "source:prompt:rater": 0.4225}  # fmt: skip
SIZES = {"source": 5, "prompt": 70, "rater": 17}


def brennan3() -> pd.DataFrame:
    scores = np.array(BRENNAN["data"], float).reshape(10, 2, 4)
    p, o, i = (part.ravel() for part in np.indices(scores.shape))
    return pd.DataFrame({"p": p, "o": o, "i": i, "score": scores.ravel()})


def test_components_are_brennans():
    table = g_study(brennan3(), ["p", "i", "o"], object="p").components.set_index("term")
    names = {"p": "p", "i": "i", "o": "o", "p:i": "pi", "p:o": "po", "i:o": "io", "p:i:o": "pio"}
    for term, name in names.items():
        assert BRENNAN["SS"][name] == pytest.approx(table.sum_sq[term], abs=0.01)
        assert BRENNAN["var"][name] == pytest.approx(table.estimate[term], abs=TOLERANCE)


def test_coefficients_are_brennans():
    study = g_study(brennan3(), ["p", "i", "o"], object="p")
    grid = d_study(study, {"i": [1, 4, 8], "o": [1, 2]}).set_index(["i", "o"])
    for (i, o), row in grid.iterrows():
        name = "1_1" if (i, o) == (1, 1) else f"{i}i_{o}o"
        if f"Phi_{name}" in BRENNAN:
            assert BRENNAN[f"Erho2_{name}"] == pytest.approx(row.e_rho2, abs=TOLERANCE)
            assert BRENNAN[f"Phi_{name}"] == pytest.approx(row.phi, abs=TOLERANCE)


def test_published_components_give_the_published_coefficients():
    one = GOLD["brennan1"]["var"]
    study = assumed({"p": one["p"], "i": one["i"], "p:i": one["pi"]}, {"p": 10, "i": 12}, object="p")
    row = d_study(study, {"i": [12]}).iloc[0]
    assert GOLD["brennan1"]["Erho2"] == pytest.approx(row.e_rho2, abs=5e-4)
    assert GOLD["brennan1"]["Phi"] == pytest.approx(row.phi, abs=5e-4)


def test_one_missing_rating_changes_the_method_and_hardly_the_components():
    frame = brennan3()
    by_squares = g_study(frame, ["p", "i", "o"], object="p").components.set_index("term").estimate
    by_reml = g_study(frame.iloc[1:], ["p", "i", "o"], object="p")
    assert by_reml.method == "REML"
    found = by_reml.components.set_index("term").estimate
    np.testing.assert_allclose(by_squares, found[by_squares.index], atol=0.1)


def test_a_negative_component_is_shown_as_estimated_and_used_as_zero():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame([(a, b) for a in range(6) for b in range(8)], columns=["source", "rater"])
    noise = rng.normal(size=(6, 8))
    frame["score"] = (noise - noise.mean(1, keepdims=True)).ravel()
    study = g_study(frame, ["source", "rater"])
    row = study.components.set_index("term").loc["source"]
    assert row.estimate < 0 and row.used == 0
    assert study.notes[0].startswith("source is estimated at -")


def test_prompts_limit_precision_in_the_published_layout():
    study = assumed(SENTENCES, SIZES)
    grid = d_study(study, {"prompt": [70, 140, 300], "rater": [3, 5, 17]}).set_index(["prompt", "rater"])
    for size, expected in {(70, 17): 0.080, (70, 5): 0.106, (140, 17): 0.062}.items():
        assert expected == pytest.approx(grid.se_difference[size], abs=0.006)
    assert bottleneck(study).startswith("Prompts, not raters, limit precision")


def test_costs_count_ratings_and_levels():
    grid = d_study(
        assumed(SENTENCES, SIZES), {"rater": [2, 4]}, cost_per_rating=0.5, cost_per_level={"rater": 10}
    )
    assert list(grid.cost) == [0.5 * 700 + 20, 0.5 * 1400 + 40]
    assert cheapest(grid, 1.0).rater[0] == 2


def test_nested_prompts_are_counted_within_their_case():
    rng = np.random.default_rng(5)
    case, prompt, source, rater = (part.ravel() for part in np.indices((6, 4, 3, 5)))
    frame = pd.DataFrame({"case": case, "prompt": prompt + 10 * case, "source": source, "rater": rater})
    frame["score"] = (
        rng.normal(0, 1.0, (6, 3))[case, source] + rng.normal(0, 0.5, (6, 4))[case, prompt]
        + rng.normal(0, 0.7, len(frame))
    )  # fmt: skip
    study = g_study(frame, ["source", "case", "prompt", "rater"], nested={"prompt": "case"})
    terms = set(study.components.term)
    assert "source:case:prompt" in terms and "source:prompt" not in terms
    assert study.method == "ANOVA" and study.sizes["prompt"] == 4
    uneven = g_study(frame.iloc[1:], ["source", "case", "prompt", "rater"], nested={"prompt": "case"})
    assert uneven.method == "REML"
    by_term = study.components.set_index("term")
    found = uneven.components.set_index("term").estimate
    np.testing.assert_allclose(by_term.used, found[by_term.index], atol=0.2)
    few, many = d_study(study, {"case": [6, 24]}).se_difference
    assert many == pytest.approx(few / 2, rel=0.25)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"facets": ["p", "i", "x"]}, "no column x"),
        ({"object": "rater"}, "not among the facets"),
        ({"nested": {"i": "case"}}, "nested facet case"),
    ],
)
def test_facets_that_do_not_fit_are_refused(change, reason):
    options = {"facets": ["p", "i", "o"], "object": "p"} | change
    with pytest.raises(StudyError, match=reason):
        g_study(brennan3(), **options)


def test_constant_scores_and_single_levels_are_refused():
    with pytest.raises(StudyError, match="no variance"):
        g_study(brennan3().assign(score=3.0), ["p", "i", "o"], object="p")
    with pytest.raises(StudyError, match="o has 1 level"):
        g_study(brennan3().query("o == 0"), ["p", "i", "o"], object="p")
    with pytest.raises(StudyError, match="no facet of the study"):
        d_study(assumed(SENTENCES, SIZES), {"case": [3]})
