import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from analysis.stats.prediction_powered import effective_size, needed, ppi_mean, stratified
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
CASE = GOLD["ppi_mean"]
PANEL, JUDGE, MORE = (np.array(CASE["input"][name]) for name in ("Y", "Yhat", "Yhat_unlabeled"))
CLUSTERED = GOLD["ppi_clustered"]["input"]


@pytest.mark.parametrize(("tuning", "name"), [(0, "lam0"), (1, "lam1"), (0.5, "lam0.5")])
def test_fixed_weights_are_ppi_pythons(tuning, name):
    found = ppi_mean(PANEL, JUDGE, MORE, tuning=tuning, ddof=0, quantile="normal").estimate
    expected = CASE["expected"][name]
    assert found.estimate == pytest.approx(expected["est"], abs=CASE["tol"])
    assert [found.low, found.high] == pytest.approx(expected["ci"], abs=CASE["tol"])


def test_tuned_mean_is_ppi_pythons():
    found, expected = (
        ppi_mean(PANEL, JUDGE, MORE, ddof=0, quantile="normal"),
        CASE["expected"]["tuned_ppi_py_ddof0"],
    )
    assert found.tuning == pytest.approx(expected["lam"], abs=CASE["tol"])
    assert found.estimate.estimate == pytest.approx(expected["est"], abs=CASE["tol"])
    assert found.estimate.std_error == pytest.approx(expected["se"], abs=CASE["tol"])
    assert [found.estimate.low, found.estimate.high] == pytest.approx(expected["ci"], abs=CASE["tol"])


def test_tuned_mean_is_glides():
    found, expected = ppi_mean(PANEL, JUDGE, MORE, quantile="normal"), CASE["expected"]["tuned_glide_ddof1"]
    assert found.tuning == pytest.approx(expected["lam"], abs=CASE["tol"])
    assert found.estimate.std_error == pytest.approx(expected["se"], abs=CASE["tol"])
    assert [found.estimate.low, found.estimate.high] == pytest.approx(expected["ci_z"], abs=CASE["tol"])


def clustered(quantile):
    """Eight labelled clusters are too few for the clustered door: their means go in as units."""
    units = [np.reshape(CLUSTERED[name], shape).mean(1)
             for name, shape in (("y", (8, 3)), ("judge", (8, 3)), ("judge_unlabeled", (10, 4)))]  # fmt: skip
    return ppi_mean(*units, quantile=quantile)


@pytest.mark.parametrize(("quantile", "name"), [("normal", "ci_z"), ("t", "ci_t7")])
def test_cluster_means_as_units_are_glides(quantile, name):
    expected, tolerance = GOLD["ppi_clustered"]["expected"], GOLD["ppi_clustered"]["tol"]
    found = clustered(quantile)
    assert found.tuning == pytest.approx(expected["lam"], abs=tolerance)
    assert found.estimate.std_error == pytest.approx(expected["se"], abs=tolerance)
    assert [found.estimate.low, found.estimate.high] == pytest.approx(expected[name], abs=tolerance)


def test_clusters_become_their_means():
    rng = np.random.default_rng(0)
    panel, judge, more = rng.normal(size=(12, 3)), rng.normal(size=(12, 3)), rng.normal(size=(17, 4))
    found = ppi_mean(panel.ravel(), judge.ravel(), more.ravel(), cluster=np.repeat(np.arange(12), 3),
                     cluster_unlabelled=np.repeat(np.arange(17), 4)).estimate  # fmt: skip
    expected = ppi_mean(panel.mean(1), judge.mean(1), more.mean(1)).estimate
    assert (found.estimate, found.std_error) == pytest.approx((expected.estimate, expected.std_error))


def test_strata_are_glides():
    parts = [ppi_mean(PANEL[a], JUDGE[a], MORE[b], clip=False)
             for a, b in ((slice(10), slice(36)), (slice(10, 20), slice(36, 60)))]  # fmt: skip
    expected, tolerance = GOLD["ppi_stratified"]["expected"], GOLD["ppi_stratified"]["tol"]
    found = stratified(parts, [46 / 80, 34 / 80])
    assert [p.tuning for p in parts] == pytest.approx(expected["lam"], abs=tolerance)
    assert found.estimate == pytest.approx(expected["est"], abs=tolerance)
    assert found.std_error == pytest.approx(expected["se"], abs=tolerance)


@pytest.mark.parametrize(
    ("tuning", "clip", "ddof"), list(product(["tuned", 0.0, 0.5, 1.0], [True, False], [0, 1]))
)
def test_one_sided_intervals_survive_every_combination(tuning, clip, ddof):
    """ppi-python 0.2.3 forgets the alternative where the weight is tuned."""
    options = {"tuning": tuning, "clip": clip, "ddof": ddof}
    both = ppi_mean(PANEL, JUDGE, MORE, **options, level=0.90).estimate
    larger = ppi_mean(PANEL, JUDGE, MORE, **options, alternative="larger").estimate
    smaller = ppi_mean(PANEL, JUDGE, MORE, **options, alternative="smaller").estimate
    assert (larger.low, larger.high) == pytest.approx((both.low, np.inf))
    assert (smaller.low, smaller.high) == pytest.approx((-np.inf, both.high))


def test_unequal_numbers_of_clusters_keep_a_useful_weight():
    """GLIDE 256: two labelled and twenty unlabelled clusters turned the ratio over and the weight to 0."""
    rng = np.random.default_rng(1)
    few, many = np.repeat(np.arange(12), 2), np.repeat(np.arange(40), 5)
    truth, more = rng.normal(size=12)[few], rng.normal(size=40)[many]
    found = ppi_mean(truth + rng.normal(0, 0.1, 24), truth, more, cluster=few, cluster_unlabelled=many)
    means = [a.reshape(-1, size).mean(1) for a, size in ((truth, 2), (more, 5))]
    share = means[0].var(ddof=1) / np.concatenate(means).var(ddof=1)
    assert found.tuning == pytest.approx(share / (1 + 12 / 40), rel=0.15)


def test_nine_clusters_are_refused_and_twenty_are_noted():
    few = np.repeat(np.arange(9), 2)
    with pytest.raises(StudyError, match="needs 10 or more"):
        ppi_mean(np.arange(18.0), np.arange(18.0), np.arange(9.0), cluster=few)
    assert "fewer than 30" in ppi_mean(PANEL, JUDGE, MORE).notes[0]


def test_a_judge_that_knows_nothing_is_left_out():
    assert ppi_mean(PANEL, np.full(20, 3.0), np.full(60, 3.0)).tuning == 0


def test_effective_size_runs_from_none_to_all():
    assert effective_size(70, 700, 0.0) == 70
    assert effective_size(70, 700, 1.0) == pytest.approx(770)


def test_needed_units_reach_the_width_and_one_fewer_does_not():
    n = needed(sd=0.6, correlation=0.8, width=0.3, n_judged=1000)
    from scipy import stats

    def width(m):
        return 2 * stats.t.ppf(0.975, m - 1) * 0.6 / np.sqrt(m) * np.sqrt(1 - 0.64 * (1000 - m) / 1000)

    assert width(n) <= 0.3 < width(n - 1)
    assert needed(0.6, 0.8, 0.3, np.inf) < n < needed(0.6, 0.0, 0.3, np.inf)
    assert needed(5.0, 0.0, 0.01, 50) is None
