import json
from pathlib import Path

import numpy as np
import pytest

from analysis.stats import clusters
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
CASE = GOLD["clustered_se"]
SCORE, CLUSTER = (np.array(CASE["input"][name], float) for name in ("score", "cluster"))


@pytest.mark.parametrize(("correction", "name"), [("CR0", "CR0"), ("CR1", "CR1_G/(G-1)")])
def test_clustered_error_is_statsmodels(correction, name):
    found = clusters.clustered_se(SCORE, CLUSTER, correction)
    assert found == pytest.approx(CASE["expected"][name], abs=CASE["tol"])


def test_one_cluster_has_no_error_not_none():
    assert np.isnan(clusters.clustered_se(SCORE, np.zeros(12)))
    assert np.isnan(clusters.cluster_mean(SCORE, np.zeros(12)).low)


def test_equal_clusters_give_the_t_interval_of_their_means():
    from scipy import stats

    found = clusters.cluster_mean(SCORE, CLUSTER)
    means = SCORE.reshape(4, 3).mean(1)
    expected = stats.t.interval(0.95, 3, means.mean(), stats.sem(means))
    assert (found.low, found.high) == pytest.approx(expected)


def test_jackknife_of_a_mean_is_the_cluster_robust_error():
    sums = clusters.sums_by_cluster(np.column_stack([np.ones(12), SCORE]), CLUSTER)
    found = clusters.jackknife(sums, lambda s: s[..., 1:] / s[..., :1], ["mean"], 12)[0]
    assert found.std_error == pytest.approx(clusters.clustered_se(SCORE, CLUSTER))


def test_bootstrap_keeps_how_often_a_cluster_is_drawn():
    """A cluster drawn twice counts twice: the bootstrap error is CR0's."""
    rng = np.random.default_rng(0)
    values, cluster = rng.normal(size=300), np.repeat(np.arange(60), 5)
    values += rng.normal(size=60)[cluster]
    sums = clusters.sums_by_cluster(np.column_stack([np.ones(300), values]), cluster)
    draws = clusters.bootstrap(sums, lambda s: s[..., 1:] / s[..., :1], n_boot=8000)
    assert draws.std() == pytest.approx(clusters.clustered_se(values, cluster, "CR0"), rel=0.05)


def test_order_of_rows_does_not_matter():
    order = np.random.default_rng(0).permutation(12)
    one, two = (clusters.cluster_mean(SCORE[o], CLUSTER[o]).record() for o in (np.arange(12), order))
    assert list(one.values())[1:] == pytest.approx(list(two.values())[1:])


def test_nine_clusters_are_refused_and_twenty_noted():
    with pytest.raises(StudyError, match="cannot be supported by 9 prompts"):
        clusters.enough(np.arange(9), "prompt", "an interval")
    assert "only 20 prompts" in clusters.enough(np.arange(20), "prompt", "an interval")[0]
    assert clusters.enough(np.arange(30), "prompt", "an interval") == ()
