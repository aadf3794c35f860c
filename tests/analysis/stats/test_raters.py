import numpy as np
import pandas as pd
import pytest

from analysis.stats.agreement import krippendorff_alpha
from analysis.stats.raters import ceiling_note, leave_one_rater_out, repeats, severity
from study.errors import StudyError


def panel(missing: float = 0.0) -> pd.DataFrame:
    """Simulated panel of five: c is severe by one point, e rates at random."""
    rng = np.random.default_rng(7)
    latent = rng.normal(0, 1, (80, 1)) + np.array([0, 0, -1.0, 0.2, 0]) + rng.normal(0, 0.5, (80, 5))
    scores = np.clip(np.rint(4 + latent), 1, 7)
    scores[:, 4] = rng.integers(2, 7, 80)
    scores[rng.random(scores.shape) < missing] = np.nan
    return pd.DataFrame(scores, columns=list("abcde"))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_severe_rater_is_found_and_effects_sum_to_zero(missing):
    found = severity(panel(missing))
    assert found.term[0] == "c"
    assert found.estimate[0] == pytest.approx(-0.85, abs=0.35)
    assert found.high[0] < 0
    assert found.estimate.sum() == pytest.approx(0, abs=1e-9)


def test_severity_of_complete_ratings_is_the_distance_of_means():
    table = panel()
    found = severity(table).set_index("term").estimate
    expected = table.mean() - table.mean().mean()
    np.testing.assert_allclose(expected, found[expected.index], atol=1e-9)


def test_a_rater_who_was_given_better_items_is_not_called_lenient():
    rng = np.random.default_rng(3)
    quality = np.sort(rng.normal(0, 1.5, 90))
    table = pd.DataFrame(quality[:, None] + rng.normal(0, 0.3, (90, 3)), columns=list("abc"))
    table.loc[:59, "a"] = np.nan
    found = severity(table).set_index("term")
    assert found.low["a"] < 0 < found.high["a"]
    assert found["mean"]["a"] > 1


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_leaving_out_the_random_rater_raises_agreement_most(missing):
    found = leave_one_rater_out(panel(missing))
    assert list(found.left_out[:2]) == ["nobody", "e"]
    assert found.change_icc_1[1] > 0.1
    assert found.alpha[1] == pytest.approx(krippendorff_alpha(panel(missing).drop(columns="e")))


def test_a_panel_that_is_constant_without_one_rater_keeps_its_row_and_reason():
    table = pd.DataFrame({"a": [3, 3, 3, 3], "b": [3, 3, 3, 3], "c": [1, 2, 3, 4]})
    found = leave_one_rater_out(table).set_index("left_out")
    assert np.isnan(found.alpha["c"])
    assert "every shared rating is 3" in found.reason["c"]


def test_a_panel_without_error_left_keeps_its_alpha_and_says_why_it_has_no_icc():
    table = pd.DataFrame({"a": [1, 2, 3, 4], "b": [1, 2, 3, np.nan], "c": [2, 1, 4, 4]})
    found = leave_one_rater_out(table).set_index("left_out")
    assert found.alpha["c"] == 1
    assert np.isnan(found.icc_1["c"]) and found.reason["c"].startswith("ICC: ")


def test_two_raters_have_nobody_to_leave_out():
    with pytest.raises(StudyError, match="three raters or more"):
        leave_one_rater_out(panel()[["a", "b"]])


def repeated() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    rows = []
    for rater, noise in (("steady", 0.2), ("wavering", 1.5)):
        quality = rng.normal(4, 1.2, 30)
        for occasion in (1, 2):
            scores = np.clip(np.rint(quality + rng.normal(0, noise, 30)), 1, 7)
            rows += [(rater, f"A{i}", occasion, score) for i, score in enumerate(scores)]
    rows += [("constant", f"A{i}", occasion, 5.0) for i in range(4) for occasion in (1, 2)]
    rows.append(("steady", "B1", 1, 3.0))
    return pd.DataFrame(rows, columns=["rater", "label", "occasion", "score"])


def test_repeats_tell_the_steady_from_the_wavering():
    found = repeats(repeated()).set_index("rater")
    assert found.n["all raters"] == 64
    assert found.icc["steady"] > 0.85 > 0.7 > found.icc["wavering"]
    assert found.kappa["steady"] > found.kappa["wavering"]
    assert found.equal["constant"] == 1
    assert "every rating is 5" in found.reason["constant"]


def test_no_repeats_are_refused():
    with pytest.raises(StudyError, match="no hidden repeats"):
        repeats(repeated().query("occasion == 1"))


def test_alpha_without_a_ceiling_needs_no_note():
    assert ceiling_note(panel()) is None


def test_a_ceiling_is_explained():
    table = pd.DataFrame(np.full((20, 4), 5.0))
    table.iloc[0, 0] = 4
    assert ceiling_note(table).startswith("79 of 80 ratings are 5")
