import json
from pathlib import Path

import numpy as np
import pytest

from analysis.stats.comparison import of_arrays
from analysis.stats.prmse import prmse
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
CASE = GOLD["prmse"]["expected"]
TOLERANCE = GOLD["prmse"]["tol"]


def test_a_known_error_variance_gives_rsmtools_value():
    single = CASE["single_human"]
    found = prmse(of_arrays(single["system"], np.array([single["human"]]).T), error_variance=single["v_e"])
    assert found.estimate.estimate == pytest.approx(single["prmse"], abs=TOLERANCE)


def test_severity_in_the_error_is_flagged_above_one():
    case = CASE["degenerate"]
    found = prmse(of_arrays(case["judge"], case["raters"]))
    assert found.error_variance == pytest.approx(case["v_e"], abs=TOLERANCE)
    assert found.true_variance == pytest.approx(case["var_true"], abs=TOLERANCE)
    assert found.true_mse == pytest.approx(case["mse_true"], abs=TOLERANCE)
    assert found.estimate.estimate == pytest.approx(case["prmse"], abs=TOLERANCE)
    assert "severity" in found.status and not found.readable


@pytest.mark.parametrize("name", ["johnson_full", "johnson_sparse"])
def test_prmse_is_one_less_the_ratio_of_published_parts(name):
    case = CASE[name]
    assert 1 - case["mse_true"] / case["var_true"] == pytest.approx(case["prmse"], abs=TOLERANCE)


def panel_of(n=4000, k=4, error=0.7, severity=0.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(3, 1, n)
    return truth, truth[:, None] + rng.normal(0, error, (n, k)) + severity * rng.normal(0, 1, k), rng


def test_a_judge_that_is_the_truth_scores_one():
    truth, panel, _ = panel_of()
    assert prmse(of_arrays(truth, panel)).estimate.estimate == pytest.approx(1, abs=0.01)


def test_noise_of_half_the_true_variance_explains_half():
    truth, panel, rng = panel_of()
    judge = truth + rng.normal(0, np.sqrt(0.5), len(truth))
    found = prmse(of_arrays(judge, panel)).estimate
    assert found.low < 0.5 < found.high


def test_taking_severity_out_restores_the_true_variance():
    truth, panel, _ = panel_of(severity=1.0)
    centred = prmse(of_arrays(truth, panel - panel.mean(0) + truth.mean()), consistency=True)
    assert centred.true_variance == pytest.approx(1, abs=0.08)
    assert centred.estimate.estimate == pytest.approx(1, abs=0.01)


def test_single_ratings_without_a_known_error_are_refused():
    with pytest.raises(StudyError, match="no item was rated by two raters"):
        prmse(of_arrays([1, 2, 3], [[1], [2], [3]]))


def test_means_that_do_not_vary_are_refused():
    with pytest.raises(StudyError, match="do not vary"):
        prmse(of_arrays([1, 2, 3, 4], [[2, 4]] * 4))
