"""Intervals and tests keep their level where items come in prompts; those that take items as independent do not.

Each claim is tried with a few hundred simulations, and with thousands by `make validate`.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import special

from analysis.stats.calibration_error import calibration_error
from analysis.stats.ceiling import leave_one_rater_out
from analysis.stats.clusters import cluster_mean
from analysis.stats.comparison import of_arrays
from analysis.stats.judge_bias import conditional
from analysis.stats.prediction_powered import ppi_mean
from analysis.stats.prmse import prmse

SIZES = [400, pytest.param(4000, marks=pytest.mark.slow)]
FEW = [120, pytest.param(1500, marks=pytest.mark.slow)]
PROMPTS, SOURCES = 70, 5
PROMPT = np.repeat(np.arange(PROMPTS), SOURCES)


def error(share, n):
    """Three Monte Carlo standard errors, and half a percent for approximations."""
    return 3 * np.sqrt(share * (1 - share) / n) + 0.005


def boundary_p(rng, together):
    """p by items and by prompts of −1, 0, 1 with mean 0.2 exactly and alike within prompts."""
    latent = np.sqrt(together) * rng.normal(size=PROMPTS)[PROMPT] + np.sqrt(1 - together) * rng.normal(size=350)
    uniform = special.ndtr(latent)
    difference = np.where(uniform < 0.2, -1.0, np.where(uniform < 0.6, 0.0, 1.0))
    units = (np.arange(350), PROMPT)
    return [cluster_mean(difference, unit, null=0.2, alternative="smaller").p_value for unit in units]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("together", [0.3, 0.5])
def test_alternative_test_keeps_its_level_by_prompts_and_not_by_items(together, n):
    rng = np.random.default_rng(1)
    items, prompts = (np.array([boundary_p(rng, together) for _ in range(n)]) <= 0.05).mean(0)
    assert prompts == pytest.approx(0.05, abs=error(0.05, n) + 0.005)
    assert items > 0.05 + error(0.05, n)


def powered(rng):
    """Whether intervals by items and by prompts hold the true mean, 70 rated prompts and 140 more judged."""
    truth = 0.5 * rng.normal(size=210)[:, None] + 0.3 * rng.normal(size=(210, SOURCES))
    panel = 4 + truth + 0.2 * rng.normal(size=truth.shape)
    judge = 3.5 + 0.7 * truth + 0.2 * rng.normal(size=210)[:, None] + 0.3 * rng.normal(size=truth.shape)
    rated, more = (panel[:70].ravel(), judge[:70].ravel()), judge[70:].ravel()
    units = {"cluster": PROMPT, "cluster_unlabelled": np.repeat(np.arange(140), SOURCES)}
    found = [ppi_mean(*rated, more), ppi_mean(*rated, more, **units)]
    return [f.estimate.low <= 4 <= f.estimate.high for f in found]


@pytest.mark.parametrize("n", SIZES)
def test_prediction_powered_interval_covers_by_prompts_and_not_by_items(n):
    rng = np.random.default_rng(2)
    items, prompts = np.mean([powered(rng) for _ in range(n)], axis=0)
    assert prompts == pytest.approx(0.95, abs=error(0.95, n) + 0.005)
    assert items < 0.85


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("labelled", [10, 15, 30])
def test_few_labels_are_covered_by_t(labelled, n):
    """ppi-python's normal quantile and divisor n cover 0.884 with ten labels."""
    rng = np.random.default_rng(3)
    held = {"t": 0, "normal": 0}
    for _ in range(n):
        truth = rng.normal(size=labelled + 200)
        panel, judge = truth + 0.5 * rng.normal(size=truth.shape), truth + 0.7 * rng.normal(size=truth.shape)
        for quantile, ddof in (("t", 1), ("normal", 0)):
            found = ppi_mean(panel[:labelled], judge[:labelled], judge[labelled:], quantile=quantile, ddof=ddof)
            held[quantile] += found.estimate.low <= 0 <= found.estimate.high
    assert held["t"] / n == pytest.approx(0.95, abs=error(0.95, n) + 0.015)
    assert held["normal"] < held["t"]


BIAS = np.array([0.0, 0.0, 0.35, 0.0, 0.0])


def planted(rng, raters=3):
    """A judge that favours source 2 by 0.35 and long answers by 0.15 per doubling, beside a panel with tastes."""
    source = np.tile(np.arange(SOURCES), PROMPTS)
    truth = np.array([4.6, 4.0, 4.1, 4.4, 3.4])[source] + 0.2 * rng.normal(size=PROMPTS)[PROMPT]
    truth = truth + 0.4 * rng.normal(size=350)
    panel = truth[:, None] + 0.25 * rng.normal(size=raters) + 0.1 * rng.normal(size=(SOURCES, raters))[source]
    panel = panel + 0.65 * rng.normal(size=panel.shape)
    doublings = 0.6 * rng.normal(size=350) + 0.4 * (source == 1)
    judge = 1 + 0.8 * truth + BIAS[source] + 0.15 * doublings + 0.15 * rng.normal(size=PROMPTS)[PROMPT]
    items = pd.DataFrame({"label": [f"i{i}" for i in range(350)], "length": 30 * 2.0**doublings,
                          "source": pd.Categorical.from_codes(source, list("abcde"))})  # fmt: skip
    return of_arrays(judge + 0.6 * rng.normal(size=350), panel, PROMPT, items)


@pytest.mark.parametrize("n", FEW)
@pytest.mark.parametrize("raters", [3, 17])
def test_bias_at_the_same_true_score_is_recovered_and_covered(raters, n):
    rng = np.random.default_rng(4)
    truth = np.array([*(BIAS - BIAS.mean()), 0.15])
    tables = [conditional(planted(rng, raters), length=True).table for _ in range(n)]
    estimates = np.array([t["estimate"] for t in tables])
    held = np.mean([(t["low"] <= truth) & (truth <= t["high"]) for t in tables], axis=0)
    assert estimates.mean(0) == pytest.approx(truth, abs=4 * estimates.std(0).max() / np.sqrt(n) + 0.005)
    assert held.mean() == pytest.approx(0.95, abs=0.02)
    assert held.min() > 0.95 - error(0.95, n) - 0.02


@pytest.mark.parametrize("n", FEW)
def test_judge_minus_panel_by_source_would_find_bias_where_there_is_none(n):
    """Without regard to the true score, the best source seems wronged and the worst favoured."""
    rng = np.random.default_rng(5)
    excess = []
    for _ in range(n):
        data = planted(rng)
        gap = pd.Series(data.score - data.panel_mean).groupby(np.asarray(data.items["source"])).mean()
        excess.append(gap - gap.mean())
    found = np.mean(excess, axis=0)
    assert found[0] < -0.15
    assert found[4] > 0.05


@pytest.mark.parametrize("n", FEW)
def test_prmse_interval_covers(n):
    rng = np.random.default_rng(6)
    held = []
    for _ in range(n):
        truth = 0.4 * rng.normal(size=PROMPTS)[PROMPT] + 0.6 * rng.normal(size=350)
        judge = truth + 0.2 * rng.normal(size=PROMPTS)[PROMPT] + 0.4 * rng.normal(size=350)
        panel = truth[:, None] + 0.3 * rng.normal(size=4) + 0.7 * rng.normal(size=(350, 4))
        found = prmse(of_arrays(judge, panel - panel.mean(0) + truth.mean(), PROMPT), consistency=True)
        held.append(found.estimate.low <= 1 - 0.2 / 0.52 <= found.estimate.high)
    assert np.mean(held) == pytest.approx(0.95, abs=error(0.95, n) + 0.02)


@pytest.mark.parametrize("n", FEW)
def test_a_calibrated_judge_is_called_so_nineteen_times_in_twenty(n):
    rng = np.random.default_rng(7)
    p = []
    for _ in range(n):
        judge = rng.integers(1, 6, 350).astype(float)
        panel = judge + 0.3 * rng.normal(size=PROMPTS)[PROMPT] + 0.5 * rng.normal(size=350)
        p.append(calibration_error(judge, panel, PROMPT, n_boot=400).p_value)
    assert np.mean(np.array(p) <= 0.05) < 0.05 + error(0.05, n) + 0.02


@pytest.mark.parametrize("n", FEW)
def test_a_judge_like_the_raters_differs_from_them_one_time_in_twenty(n):
    rng = np.random.default_rng(8)
    held = []
    for _ in range(n):
        truth = 0.4 * rng.normal(size=PROMPTS)[PROMPT] + 0.6 * rng.normal(size=350)
        scores = truth[:, None] + 0.7 * rng.normal(size=(350, 6))
        found = leave_one_rater_out(of_arrays(scores[:, 0], scores[:, 1:], PROMPT), n_boot=200).difference("r")
        held.append(found.low <= 0 <= found.high)
    assert np.mean(held) == pytest.approx(0.95, abs=error(0.95, n) + 0.03)
