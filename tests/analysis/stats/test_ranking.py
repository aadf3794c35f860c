import json
from pathlib import Path

import numpy as np
import pytest

from analysis.stats import ranking
from analysis.stats.limits_of_agreement import limits_of_agreement
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
SOFT, PERM = GOLD["soft_pairwise_accuracy"], GOLD["perm_both_exact"]


def test_soft_pairwise_accuracy_is_full_enumerations():
    panel, judge = SOFT["input"]["human"], SOFT["input"]["metric"]
    plain = ranking.soft_pairwise_accuracy(panel, judge, mid_p=False)
    assert plain.exact
    assert plain.p_panel[np.triu_indices(3, 1)] == pytest.approx(SOFT["expected"]["p_human"], abs=SOFT["tol"])
    assert plain.estimate == pytest.approx(SOFT["expected"]["spa"], abs=SOFT["tol"])
    middle = ranking.soft_pairwise_accuracy(panel, judge)
    assert middle.estimate == pytest.approx(SOFT["expected"]["spa_midp"], abs=SOFT["tol"])


@pytest.mark.parametrize(("mid_p", "name"), [(False, "identical_systems_p"), (True, "identical_systems_midp")])
def test_sources_that_are_the_same_give_no_order(mid_p, name):
    twice = [SOFT["input"]["human"][0]] * 2
    found = ranking.soft_pairwise_accuracy(twice, twice, mid_p=mid_p)
    assert found.p_panel[0, 1] == SOFT["expected"][name]
    assert found.estimate == 1


def test_the_normal_limit_nears_the_flips():
    rng = np.random.default_rng(0)
    panel = rng.normal(size=(4, 60)) + np.array([[0], [0.1], [0.2], [0.3]])
    judge = panel + rng.normal(size=(4, 60))
    exact = ranking.soft_pairwise_accuracy(panel, judge, n_flips=20000, rng=rng).estimate
    limit = ranking.soft_accuracy_of_sums(ranking.soft_columns(panel, judge).sum(0)[None, :], 4)[0, 0]
    assert limit == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(("by", "name"), [("item", "none_level_pearson"), ("source", "system_level_pearson")])
def test_perm_both_is_full_enumerations(by, name):
    found = ranking.perm_both(*(PERM["input"][who] for who in ("gold", "m1", "m2")), by=by)
    assert found.exact and found.n_permutations == 512
    assert found.difference == pytest.approx(PERM["expected"][name]["delta"], abs=PERM["tol"])
    assert found.p_value == pytest.approx(PERM["expected"][name]["p"], abs=PERM["tol"])


def test_swapping_whole_prompts_by_sums_is_swapping_them_in_full():
    rng = np.random.default_rng(1)
    gold, a, b = (ranking._standard(rng.normal(size=(4, 9)), "judge") for _ in range(3))
    swaps = rng.random((50, 9)) < 0.5
    one, two = (np.where(swaps[:, None, :], *pair) for pair in ((b, a), (a, b)))
    expected = ranking._over_items(gold, one) - ranking._over_items(gold, two)
    assert ranking._swapped_prompts(gold, a, b, swaps.astype(float)) == pytest.approx(expected)


def test_perm_both_never_gives_zero():
    rng = np.random.default_rng(0)
    gold = rng.normal(size=(4, 30))
    found = ranking.perm_both(
        gold, gold, rng.normal(size=(4, 30)), whole_prompts=True, n_permutations=500, rng=rng
    )
    assert found.p_value == 1 / 501


def test_a_constant_judge_has_no_correlation():
    with pytest.raises(StudyError, match="gave 3 to every item"):
        ranking.perm_both(np.eye(3), np.full((3, 3), 3.0), np.eye(3))


def test_williams_is_mt_metrics_evals():
    case = GOLD["williams_test"]
    r = np.corrcoef([case["input"][name] for name in ("gold", "m1", "m2")])
    found = ranking.williams_test(r[0, 1], r[0, 2], r[1, 2], 5)
    assert found == pytest.approx(case["expected"]["p_one_sided"], abs=case["tol"])


@pytest.mark.parametrize(
    ("grouping", "measure", "name"),
    [
        ("none", "pearson", "pearson_none"),
        ("by source", "pearson", "pearson_by_sys"),
        ("by prompt", "pearson", "pearson_by_item"),
        ("none", "differences", "pairwise_difference_pearson_none"),
        ("by prompt", "differences", "pdp_by_item"),
        ("by source", "differences", "pdp_by_sys"),
        ("none", "tau_b", "kendall_none"),
        ("by source", "tau_b", "kendall_sys"),
    ],
)
def test_averages_over_groups_are_mt_metrics_evals(grouping, measure, name):
    case = GOLD["segment_averaging"]
    gold, metric = (np.reshape(case["input"][who], (2, 3)) for who in ("gold", "metric"))
    found = ranking.grouped_correlation(gold, metric, grouping, measure)
    assert found == pytest.approx(case["expected"][name], abs=case["tol"])


def test_limits_of_agreement_are_bland_and_altmans():
    case = GOLD["bland_altman_pefr"]
    found, expected = limits_of_agreement(case["input"]["wright"], case["input"]["mini"]), case["expected"]
    assert found.difference.estimate == pytest.approx(expected["mean_diff"], abs=case["tol"])
    assert found.sd == pytest.approx(expected["sd"], abs=case["tol"])
    assert [found.low, found.high] == pytest.approx(expected["loa_196sd"], abs=case["tol"])
    assert found.difference.std_error == pytest.approx(expected["se_mean"], abs=case["tol"])
    assert found.std_error_limit == pytest.approx(expected["se_mean"] * 3**0.5, abs=3 * case["tol"])
    assert found.std_error_limit == pytest.approx(expected["se_loa"], abs=1e-7)


def test_limits_add_the_spread_between_clusters():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(200), 5)
    difference = rng.normal(0, 0.6, 200)[cluster] + rng.normal(0, 0.8, 1000)
    found = limits_of_agreement(difference, np.zeros(1000), cluster)
    assert found.sd == pytest.approx(1.0, abs=0.06)
