import numpy as np
import pandas as pd
import pytest

from analysis import fitting, means
from analysis.load import load


@pytest.fixture(scope="module")
def found(small):
    return fitting.fitted(load(small), "fluency")


def test_balanced_means_are_plain_means(written):
    made = fitting.fitted(load(written()), "fluency")
    frame = made.selected.frame
    expected = frame.groupby("source", observed=True)["score"].mean()
    np.testing.assert_allclose(means.marginal(made, "source")["estimate"], expected, atol=1e-8)


def test_each_source_is_compared_with_the_first(found):
    table = means.versus_reference(found)
    assert list(table["source"]) == ["model_b", "model_a"]
    own = means.marginal(found, "source").set_index("source")["estimate"]
    assert table["estimate"].iloc[1] == pytest.approx(own["model_a"] - own["expert"])


def test_comparisons_within_a_factor_are_one_family(found):
    table = means.versus_reference(found, "form")
    assert len(table) == 6
    np.testing.assert_allclose(means.holm(table["p_value"]), table["p_holm"])


def test_the_penalty_beyond_the_reference_is_a_contrast_of_contrasts(found):
    table = means.negation_penalty(found)
    own = table[table["kind"] == "penalty"].set_index("source")["estimate"]
    beyond = table[table["kind"] == "beyond"].set_index("source")
    assert list(beyond.index) == ["model_b", "model_a"]
    assert beyond.loc["model_a", "estimate"] == pytest.approx(own["model_a"] - own["expert"])
    assert beyond.loc["model_a", "p_holm"] < 0.001 < 0.05 < beyond.loc["model_b", "p_holm"]


def test_holm_leaves_missing_p_values_out_of_the_family():
    assert pytest.approx(means.holm(pd.Series([0.01, np.nan, 0.04]))[[0, 2]]) == [0.02, 0.04]
    assert np.isnan(means.holm(pd.Series([0.01, np.nan]))[1])


def test_an_encounter_has_no_forms(small):
    assert not means.has_forms(fitting.fitted(load(small), "engagement"))
