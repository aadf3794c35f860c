import json
from pathlib import Path

import numpy as np
import pytest

from analysis.stats.misclassification import allocation, clopper_pearson, from_counts, rogan_gladen
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
CASE = GOLD["rogan_gladen"]


def of(case):
    return rogan_gladen(case["p"], case["n"], case["q0"], case["q1"], case["m0"], case["m1"])


def test_corrected_rate_is_lee_et_als():
    found, expected = of(CASE["input"]), CASE["expected"]
    assert found.estimate == pytest.approx(expected["theta"], abs=CASE["tol"])
    assert found.std_error == pytest.approx(expected["delta_se"], abs=CASE["tol"])
    assert [found.low, found.high] == pytest.approx(expected["adjusted_ci"], abs=CASE["tol"])


@pytest.mark.parametrize("case", GOLD["rogan_gladen_clip"]["expected"][:2])
def test_rates_beyond_the_ends_are_clipped_and_the_unclipped_is_kept(case):
    found = of(case)
    assert found.estimate == case["theta"]
    assert [found.low, found.high] == pytest.approx(case["ci"], abs=GOLD["rogan_gladen_clip"]["tol"])
    assert found.clipped and not 0 <= found.unclipped <= 1
    assert found.low <= found.estimate <= found.high


def test_a_judge_no_better_than_chance_is_refused():
    with pytest.raises(StudyError, match="not above 1"):
        rogan_gladen(0.4, 100, 0.5, 0.5, 50, 50)


def test_allocation_is_lee_et_als():
    i = CASE["input"]
    assert list(allocation(i["p"], i["q0"], i["q1"], 200)) == CASE["expected"]["allocation_m200_pilot10"]


def test_labels_cannot_be_used_twice():
    with pytest.raises(StudyError, match="labels used twice"):
        from_counts(np.array([], bool), np.array([True, False]), np.array([True, False]))


def test_counts_give_the_rates():
    panel = np.repeat([True, False], [20, 80])
    judge = np.concatenate([np.repeat([True, False], [18, 2]), np.repeat([True, False], [8, 72])])
    found = from_counts(np.repeat([True, False], [30, 170]), judge, panel)
    assert (found.specificity, found.sensitivity) == (0.9, 0.9)
    assert found.unclipped == pytest.approx((0.15 + 0.9 - 1) / 0.8)


def test_a_panel_of_one_answer_is_refused():
    with pytest.raises(StudyError, match="said no to all 10 items"):
        from_counts(np.ones(5, bool), np.ones(10, bool), np.zeros(10, bool))


def test_none_of_ten_has_an_interval_of_some_width():
    assert clopper_pearson(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert clopper_pearson(10, 10) == pytest.approx((0.6915, 1.0), abs=1e-4)
