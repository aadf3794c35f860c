import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.calibration_error import calibration_error
from analysis.stats.calibration_map import KINDS, cross_fit, fit_map, folds_of, of_parameters
from analysis.stats.comparison import of_arrays
from analysis.stats.map_report import map_report
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
CASE = GOLD["isotonic_pava"]
X, Y = (np.array(CASE["input"][name], float) for name in "xy")
TOLERANCE = CASE["tol"]


def test_isotonic_map_is_scikit_learns():
    assert fit_map("isotonic", X, Y)(np.arange(1, 6)) == pytest.approx(
        CASE["expected"]["fit_at_1..5"], abs=TOLERANCE
    )


def test_linear_map_is_least_squares():
    found = fit_map("linear", X, Y)
    assert found.intercept == pytest.approx(CASE["expected"]["ols"]["a"], abs=TOLERANCE)
    assert found.slope == pytest.approx(CASE["expected"]["ols"]["b"], abs=TOLERANCE)


def test_ordinal_calibration_error_and_its_relatives():
    found, expected = calibration_error(X, Y, np.arange(12), n_boot=200), CASE["expected"]
    assert found.ece.estimate == pytest.approx(expected["ordinal_ECE"], abs=TOLERANCE)
    assert found.rms == pytest.approx(expected["RMS_CE"], abs=TOLERANCE)
    assert found.largest == pytest.approx(expected["MCE"], abs=TOLERANCE)


def test_a_score_beyond_the_range_takes_the_end_and_is_counted():
    found = fit_map("isotonic", X[2:], Y[2:])
    assert found(np.array([0.0, 9.0])).tolist() == [found.values[0], found.values[-1]]
    assert found.outside(np.array([0.0, 3.0, 9.0])).tolist() == [True, False, True]


def rated(seed=0, n=400, k=3):
    rng = np.random.default_rng(seed)
    judge = rng.integers(1, 6, n).astype(float)
    return judge, np.clip(np.round(0.6 * judge[:, None] + 1 + rng.normal(0, 0.8, (n, k))), 1, 5)


def test_cumulative_logit_is_statsmodels():
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    judge, panel = rated()
    found = fit_map("cumulative_logit", judge, panel)
    model = OrderedModel(panel.ravel().astype(int), np.repeat(judge, 3)[:, None], distr="logit")
    other = model.fit(method="bfgs", disp=0)
    assert found.slope == pytest.approx(other.params[0], abs=1e-4)
    assert found.thresholds == pytest.approx(model.transform_threshold_params(other.params)[1:-1], abs=1e-3)


def test_a_judge_that_separates_the_categories_still_has_a_map():
    judge = np.repeat([1.0, 2.0, 3.0], 20)
    assert fit_map("cumulative_logit", judge, judge)(np.array([1.0, 2.0, 3.0])) == pytest.approx(
        [1, 2, 3], abs=0.05
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_is_restored_from_its_parameters(kind):
    judge, panel = rated()
    found = fit_map(kind, judge, panel)
    again = of_parameters(kind, json.loads(json.dumps(found.parameters())))
    assert again(judge) == pytest.approx(found(judge))


def test_a_constant_judge_has_nothing_to_calibrate():
    with pytest.raises(StudyError, match="nothing to calibrate"):
        fit_map("linear", np.full(5, 3.0), np.arange(5.0))


def test_folds_keep_clusters_whole():
    cluster = np.repeat(np.arange(23), 4)
    fold = folds_of(cluster, 10, np.random.default_rng(0))
    assert all(len(np.unique(fold[cluster == c])) == 1 for c in range(23))
    assert set(np.bincount(fold)) == {8, 12}


def test_an_item_never_teaches_its_own_map():
    judge, panel = rated()
    changed = panel.copy()
    changed[0] = 5
    fold = np.arange(400) % 10
    one, two = (cross_fit("linear", judge, p, fold).values for p in (panel, changed))
    assert one[0] == two[0]
    assert not np.array_equal(one, two)


def test_a_calibrated_judge_shows_the_expected_error_only():
    """The judge's score is the panel's expectation; its ECE is noise, and is said to be."""
    rng = np.random.default_rng(5)
    judge = rng.integers(1, 6, 400).astype(float)
    found = calibration_error(judge, judge + rng.normal(0, 0.5, 400), np.repeat(np.arange(80), 5))
    assert found.p_value > 0.05
    assert found.ece.low < found.expected < found.ece.high


def test_a_biased_judge_shows_more_than_the_expected_error():
    judge, panel = rated()
    found = calibration_error(judge + 1, panel.mean(1), np.repeat(np.arange(80), 5))
    assert found.p_value < 0.01
    assert found.ece.low > found.expected


def sources(n_prompts=100, seed=2):
    """Three sources one point apart, and a judge of them with noise."""
    rng = np.random.default_rng(seed)
    source = np.tile(np.arange(3), n_prompts)
    truth = 2 + source + rng.normal(0, 0.4, len(source))
    panel = np.clip(np.round(truth[:, None] + rng.normal(0, 0.6, (len(source), 4))), 1, 5)
    judge = np.clip(np.round(truth + rng.normal(0, 1.2, len(source))), 1, 5)
    items = pd.DataFrame({"label": [f"i{i}" for i in range(len(source))], "source": pd.Categorical.from_codes(
        source, ["a", "b", "c"])})  # fmt: skip
    return of_arrays(judge, panel, np.repeat(np.arange(n_prompts), 3), items, scale=(1, 5))


def test_a_pooled_map_shrinks_the_gaps_between_sources():
    found = map_report(sources(), n_boot=200)
    assert found.gap_read < 0.8 * found.gap
    assert "not for comparing sources" in found.notes[0]


def test_a_new_source_is_read_worse_than_a_new_prompt():
    errors = map_report(sources(), n_boot=200).errors.set_index(["map", "left_out"])["rmse"]
    assert errors["isotonic", "one source"] > errors["isotonic", "a tenth of prompts"]
    assert errors["isotonic", "a tenth of prompts"] >= errors["isotonic", "nothing (in sample)"]


def test_ratings_without_categories_get_no_cumulative_logit():
    data = sources()
    smooth = of_arrays(data.score, data.panel + np.random.default_rng(0).normal(0, 0.01, data.panel.shape),
                       data.cluster, data.items)  # fmt: skip
    found = map_report(smooth, n_boot=200)
    assert set(found.fitted) == {"linear", "isotonic"}
    assert any("no cumulative-logit" in note for note in found.notes)
