from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.stats.calibration import Options, Refused, calibrate, verdict
from analysis.stats.comparison import of_arrays
from analysis.stats.map_report import map_report
from study.errors import StudyError

FAST = Options(n_boot=300)
PROMPTS, SOURCES = 70, 5
SOURCE = np.tile(np.arange(SOURCES), PROMPTS)
PROMPT = np.repeat(np.arange(PROMPTS), SOURCES)
ITEMS = pd.DataFrame(
    {
        "label": [f"i{i}" for i in range(len(SOURCE))],
        "prompt": [f"p{p}" for p in PROMPT],
        "source": pd.Categorical.from_codes(SOURCE, list("abcde")),
    }
)


def panel(seed=0, k=5):
    rng = np.random.default_rng(seed)
    truth = np.array([4.2, 3.6, 3.4, 4.0, 2.6])[SOURCE] + 0.7 * rng.normal(size=len(SOURCE))
    scores = np.clip(np.round(truth[:, None] + 0.6 * rng.normal(size=(len(truth), k))), 1, 5)
    return truth, scores, rng


def of(judge, scores, unit="prompt", cluster=PROMPT):
    return of_arrays(judge, scores, cluster, ITEMS, scale=(1, 5), unit=unit)


def test_a_perfect_judge_passes():
    truth, scores, _ = panel()
    found = calibrate(of(truth, scores), FAST)
    assert all(test.passed for test in found.alternative.values())
    assert found.readable_prmse.estimate.estimate > 0.9
    assert "as good as a rater (beats 5 of 5" in verdict(found)
    assert "no bias between sources found" in verdict(found)


def test_a_noisy_biased_judge_is_recovered():
    truth, scores, rng = panel()
    judge = truth + 0.35 * (SOURCE == 2) + 0.5 * rng.normal(size=len(truth))
    found = calibrate(of(judge, scores), FAST)
    row = found.bias["source"].table.set_index("level").loc["c"]
    assert row["low"] < 0.28 < row["high"]
    assert "favours c by" in verdict(found)
    assert "not testable" in found.bias["length"].reason


@pytest.mark.parametrize("who", ["judge", "panel"])
def test_a_constant_judge_or_panel_is_refused_as_a_whole(who):
    truth, scores, _ = panel()
    judge = np.full(len(truth), 3.0) if who == "judge" else truth
    rated = np.full_like(scores, 4.0) if who == "panel" else scores
    with pytest.raises(StudyError, match="without any variation"):
        calibrate(of(judge, rated), FAST)


def test_a_judge_of_noise_is_no_substitute():
    _, scores, rng = panel()
    found = calibrate(of(rng.integers(1, 6, len(SOURCE)).astype(float), scores), FAST)
    assert not found.alternative["pooled"].passed
    assert "no substitute" in verdict(found)


def test_a_judge_that_always_says_five_at_a_ceiling_passes_by_ties_and_is_called_so():
    rng = np.random.default_rng(2)
    scores = np.where(rng.random((350, 5)) < 0.03, 4.0, 5.0)
    judge = np.where(rng.random(350) < 0.02, 4.0, 5.0)
    found = calibrate(of(judge, scores), FAST)
    assert found.alternative["pooled"].passed and found.alternative["pooled"].tie > 0.7
    assert "as good as a rater" not in verdict(found) or "true score" not in verdict(found)


def test_three_cases_refuse_inference_and_leave_the_rest():
    truth, scores, rng = panel()
    found = calibrate(of(truth + rng.normal(size=350), scores, "case", PROMPT % 3), FAST)
    assert isinstance(found.alternative["pooled"], Refused)
    assert "cannot be supported by 3 cases" in found.alternative["pooled"].reason
    assert "cannot be tested" in verdict(found)
    assert np.isfinite(found.prmse["absolute"].estimate.estimate)
    for estimate in (found.prmse["absolute"].estimate, found.maps.error.ece, *found.ceiling.estimates):
        assert np.isnan(estimate.low) and np.isnan(estimate.high)
    assert isinstance(found.limits, Refused)
    assert "3 cases support no interval" in found.notes[0]


def test_items_that_only_the_judge_saw_are_what_the_panel_would_have_said():
    truth, scores, rng = panel()
    judge = np.clip(np.round(truth + 0.4 * rng.normal(size=350)), 1, 5)
    unseen = scores.copy()
    unseen[PROMPT >= 35] = np.nan
    found = calibrate(of(judge, unseen), FAST)
    assert (found.n_labelled, found.n_judged_only) == (175, 175)
    means = found.panel_said.means.set_index("term")
    whole = pd.Series(scores.mean(1)).groupby(SOURCE).mean()
    assert (means["low"].to_numpy() < whole.to_numpy()).all() and (
        whole.to_numpy() < means["high"].to_numpy()
    ).all()
    assert (means["n_effective"] > 40).all()
    assert found.panel_said.overall.low < whole.mean() < found.panel_said.overall.high
    assert (
        found.low_rate.corrected.low <= (scores.mean(1)[PROMPT >= 35] < 3).mean() <= found.low_rate.corrected.high
    )


def test_a_panel_that_rated_everything_is_told_what_a_judge_is_for():
    truth, scores, _ = panel()
    found = calibrate(of(truth, scores), FAST)
    assert "adds nothing to these means" in found.panel_said.notes[0]
    assert "labels used twice" in found.low_rate.refused


def test_the_same_seed_gives_the_same_numbers():
    truth, scores, _ = panel()
    one, two, other = (map_report(of(truth, scores), n_boot=200, seed=s).error.ece for s in (1, 1, 2))
    assert one == two
    assert one != other


def test_judgements_without_a_value_are_counted():
    truth, scores, _ = panel()
    data = replace(of(truth, scores), not_ok={"judge_error": 3})
    assert calibrate(data, FAST).not_ok == {"judge_error": 3}
