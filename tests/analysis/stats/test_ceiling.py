import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.agreement import icc, krippendorff_alpha
from analysis.stats.ceiling import in_panel, leave_one_rater_out
from analysis.stats.comparison import of_arrays
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
CASE = GOLD["loo_ceiling"]


def crossed(n_prompts=40, n_sources=4, k=5, seed=1):
    rng = np.random.default_rng(seed)
    n = n_prompts * n_sources
    truth = rng.normal(3, 0.9, n)
    panel = np.clip(np.round(truth[:, None] + rng.normal(0, 0.8, (n, k))), 1, 5)
    judge = np.clip(np.round(truth + rng.normal(0, 0.8, n)), 1, 5)
    return of_arrays(judge, panel, np.repeat(np.arange(n_prompts), n_sources))


def test_judge_and_raters_meet_the_same_targets():
    found = leave_one_rater_out(of_arrays(CASE["input"]["judge"], CASE["input"]["raters"]), n_boot=200).by_rater
    expected, tolerance = CASE["expected"], CASE["tol"]
    assert found["rater_r"].tolist() == pytest.approx(expected["rater_vs_rest_r"], abs=tolerance)
    assert found["judge_r"].tolist() == pytest.approx(expected["judge_vs_rest_r"], abs=tolerance)
    assert found["rater_mae"].tolist() == pytest.approx(expected["rater_MAE"], abs=tolerance)
    assert found["judge_mae"].tolist() == pytest.approx(expected["judge_MAE"], abs=tolerance)
    assert found["judge_r"].mean() == pytest.approx(expected["judge_mean"], abs=tolerance)


def test_a_judge_like_the_raters_lies_at_the_ceiling():
    found = leave_one_rater_out(crossed(n_prompts=150), n_boot=300)
    for measure in ("r", "mae", "kappa", "pairwise_accuracy"):
        difference = found.difference(measure)
        assert difference.low < 0 < difference.high


def test_one_rater_has_no_rest():
    with pytest.raises(StudyError, match="needs two raters"):
        leave_one_rater_out(of_arrays([1, 2, 3], [[1], [2], [3]]))


def test_agreement_without_and_with_the_judge_is_that_of_agreement():
    data = crossed()
    found = {e.term: e.estimate for e in in_panel(data, n_boot=200).estimates}
    whole = pd.DataFrame(np.column_stack([data.panel, data.score]))
    assert found["alpha: panel"] == pytest.approx(krippendorff_alpha(data.panel))
    assert found["alpha: with judge"] == pytest.approx(krippendorff_alpha(whole))
    assert found["ICC(A,1): with judge"] == pytest.approx(icc(whole).set_index("term").loc["ICC(2,1)", "estimate"])


def test_a_copy_of_the_data_bootstraps_to_the_estimate():
    """Resampling one item with any multiplicity leaves the sums' statistics at the estimate's own formula."""
    data = crossed()
    found = {e.term: e for e in in_panel(data, n_boot=400).estimates}
    for term in ("alpha: panel", "ICC(A,1): panel"):
        assert found[term].low < found[term].estimate < found[term].high
        assert found[term].std_error < 0.1


def test_a_judge_of_noise_lowers_alpha():
    data = crossed()
    noise = np.random.default_rng(0).integers(1, 6, len(data.score)).astype(float)
    found = {e.term: e for e in in_panel(of_arrays(noise, data.panel, data.cluster), n_boot=200).estimates}
    assert found["alpha: change"].high < 0


def test_a_missing_cell_leaves_icc_out_and_says_so():
    data = crossed()
    panel = data.panel.copy()
    panel[0, 0] = np.nan
    found = in_panel(of_arrays(data.score, panel, data.cluster), n_boot=100)
    assert [e.term for e in found.estimates] == ["alpha: panel", "alpha: with judge", "alpha: change"]
    assert "unrated" in found.notes[0]
