import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.stats import pairs
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
FIRST, SECOND = GOLD["pairwise_acc_ties"], GOLD["pairwise_acc_ties_2"]
NAMES = {"C": "concordant", "D": "discordant", "T_gold_only": "tied_gold", "T_metric_only": "tied_metric",
         "T_both": "tied_both"}  # fmt: skip


@pytest.mark.parametrize("case", [FIRST, SECOND])
def test_counts_are_mt_metrics_evals(case):
    counts = pairs.pair_counts(case["input"]["gold"], case["input"]["metric"])
    assert {k: getattr(counts, v) for k, v in NAMES.items()} == {k: case["expected"][k] for k in NAMES}
    assert pairs.accuracy(counts) == pytest.approx(case["expected"]["acc_23"], abs=1e-12)
    assert pairs.tau_eq(counts) == pytest.approx(case["expected"]["tau_23"], abs=1e-12)


def test_relatives_of_tau_are_mt_metrics_evals():
    gold, metric, expected = FIRST["input"]["gold"], FIRST["input"]["metric"], FIRST["expected"]
    counts = pairs.pair_counts(gold, metric)
    assert pairs.tau_b(counts) == pytest.approx(expected["tau_b"], abs=FIRST["tol"])
    assert pairs.tau_c(counts, len(set(gold)), len(set(metric))) == pytest.approx(expected["tau_c"], abs=1e-9)
    assert pairs.gamma(counts) == pytest.approx(expected["gamma"], abs=1e-9)
    decided = counts.concordant + counts.discordant
    assert counts.concordant / decided == pytest.approx(expected["pair_acc_no_ties"], abs=1e-9)


def test_a_threshold_makes_ties():
    gold, metric = FIRST["input"]["gold"], FIRST["input"]["metric"]
    assert pairs.accuracy(pairs.pair_counts(gold, metric, 2.0)) == FIRST["expected"]["acc_23_eps2"]
    thresholds, accuracies = pairs.tie_thresholds(gold, metric)
    assert accuracies.max() == FIRST["expected"]["acc_23_tie_calibrated"]


def test_every_threshold_is_mt_metrics_evals():
    case = GOLD["tie_calibration"]
    thresholds, accuracies = pairs.tie_thresholds(case["input"]["human"], case["input"]["metric"])
    assert thresholds.tolist() == case["expected"]["thresholds"]
    assert accuracies == pytest.approx(case["expected"]["acc"], abs=case["tol"])
    assert thresholds[accuracies.argmax()] == case["expected"]["best_threshold"]


def scores(seed=0, n=60):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 18, n) / 17
    return gold, np.round(gold * 4 + rng.normal(0, 1, n)), np.repeat(np.arange(n // 5), 5)


def test_table_and_blocks_count_alike():
    gold, metric, _ = scores()
    assert pairs.pair_counts(gold, metric) == pairs._of_blocks(gold, metric, 0.0)


def test_tau_b_and_somers_d_are_scipys():
    gold, metric, _ = scores()
    counts = pairs.pair_counts(gold, metric)
    assert pairs.tau_b(counts) == pytest.approx(stats.kendalltau(gold, metric).statistic)
    assert pairs.somers_d(counts) == pytest.approx(stats.somersd(gold, metric).statistic)


def test_counts_within_groups_are_those_of_the_groups():
    gold, metric, group = scores()
    group = np.where(np.arange(60) < 8, 99, group)
    found = pairs.counts_within(gold, metric, group)
    for i, g in enumerate(np.unique(group)):
        alone = pairs.pair_counts(gold[group == g], metric[group == g])
        assert [getattr(found, n)[i] for n in NAMES.values()] == [getattr(alone, n) for n in NAMES.values()]


def test_seventeenths_that_differ_in_the_last_bit_are_tied():
    gold = np.array([sum([1 / 17] * 7), 7 / 17, 1.0])
    assert gold[0] != gold[1]
    assert pairs.pair_counts(gold, np.array([1, 1, 2])).tied_both == 1


def test_a_shuffled_judge_scores_the_permuted_baseline():
    rng = np.random.default_rng(1)
    gold, metric, group = scores(n=400)
    expected = pairs.permuted(pairs.counts_within(gold, metric, group).summed(), pairs.tie_rate(metric))
    dealt = (pairs.counts_within(gold, rng.permutation(metric), group) for _ in range(300))
    found = [pairs.accuracy(counts.summed()) for counts in dealt]
    assert np.mean(found) == pytest.approx(expected, abs=3 * np.std(found) / np.sqrt(300))


def test_the_threshold_is_never_chosen_on_the_pairs_it_judges():
    gold, metric, group = scores(n=200)
    fitted, chosen = pairs.cross_fitted_accuracy(gold, metric, group, group % 5)
    assert len(chosen) == 5
    assert fitted <= pairs.tie_thresholds(gold, metric, group)[1].max()


def test_one_item_has_no_pair():
    with pytest.raises(StudyError, match="no pair"):
        pairs.pair_counts([1.0], [2.0])
