import json
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest

from analysis.stats.agreement import LEVELS, krippendorff_alpha
from analysis.stats.agreement_intervals import agreement_intervals, coefficients
from analysis.stats.kappa import gwet_ac, percent_agreement
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "agreement.json").read_text(encoding="utf-8"))
CANONICAL = pd.DataFrame(GOLD["krippendorff_raters_by_units"], dtype=float).T


def crossed(n_items: int, n_raters: int, seed: int, missing: float = 0.0) -> np.ndarray:
    """Simulated ratings 1–5 with an item sd of 1, a rater sd of 0.3 and a residual sd of 0.8."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(3, 1, (n_items, 1)) + rng.normal(0, 0.3, n_raters)
    scores = np.clip(np.rint(latent + rng.normal(0, 0.8, (n_items, n_raters))), 1, 5)
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores


@pytest.mark.parametrize("level", LEVELS)
def test_a_resample_of_items_has_the_alpha_of_the_repeated_table(level):
    scores = crossed(30, 4, seed=1)
    drawn = np.random.default_rng(2).integers(0, 30, (3, 30))
    items = np.stack([np.bincount(row, minlength=30) for row in drawn]).astype(float)
    counts = (scores[:, :, None] == np.arange(1, 6)).sum(1).astype(float)
    found = coefficients(counts, counts.sum(1), items, np.arange(1.0, 6), level)[:, 0]
    expected = [krippendorff.alpha(scores[row].T, level_of_measurement=level) for row in drawn]
    np.testing.assert_allclose(expected, found, atol=1e-12)


def test_a_rater_drawn_twice_is_not_paired_with_itself():
    scores = crossed(40, 3, seed=3)
    indicator = (scores[:, :, None] == np.arange(1, 6)).astype(float)
    weights = np.array([2.0, 1.0, 0.0])
    counts = np.einsum("urv,r->uv", indicator, weights)[None]
    squared = np.full((1, 40), (weights**2).sum())
    found = coefficients(counts, squared, np.ones((1, 40)), np.arange(1.0, 6), "nominal")[0, 1]
    assert found == pytest.approx(percent_agreement(scores[:, :2]))


def test_estimates_are_those_without_resampling():
    scale = [1, 2, 3, 4, 5]
    table = agreement_intervals(CANONICAL, "interval", n_boot=200, categories=scale).set_index("term")
    shared = CANONICAL[CANONICAL.notna().sum(axis=1) >= 2]
    assert table.estimate["alpha"] == pytest.approx(krippendorff_alpha(CANONICAL, "interval"))
    assert table.estimate["percent_agreement"] == pytest.approx(percent_agreement(CANONICAL))
    assert table.estimate["ac2"] == pytest.approx(gwet_ac(shared, "ordinal", scale))


@pytest.mark.parametrize("over", ["items", "raters", "both"])
def test_intervals_hold_the_estimate_and_do_not_depend_on_jobs(over):
    scores = crossed(60, 6, seed=4, missing=0.1)
    one = agreement_intervals(scores, over=over, n_boot=300, seed=9)
    assert ((one.low < one.estimate) & (one.estimate < one.high)).all()
    if over == "both":
        pd.testing.assert_frame_equal(one, agreement_intervals(scores, over=over, n_boot=300, seed=9, jobs=2))


def test_intervals_narrow_with_more_items():
    few, many = (
        agreement_intervals(crossed(n, 5, seed=5), over="items", n_boot=300).iloc[0] for n in (40, 640)
    )
    assert (few.high - few.low) > 2.5 * (many.high - many.low)


def test_new_raters_make_the_interval_wider():
    scores = crossed(300, 4, seed=6)
    width = {
        over: agreement_intervals(scores, over=over, n_boot=300).std_error[0] for over in ("items", "both")
    }
    assert width["both"] > 1.3 * width["items"]


def test_an_interval_from_samples_without_variation_is_refused():
    scores = np.full((6, 3), 5.0)
    scores[0, 0] = 4
    with pytest.raises(StudyError, match="bootstrap samples had no variation"):
        agreement_intervals(scores, n_boot=100)


@pytest.mark.parametrize("n_raters", [2, 3])
def test_few_raters_still_have_an_interval(n_raters):
    found = agreement_intervals(crossed(60, n_raters, seed=8), over="both", n_boot=200)
    assert (found.n_failed == 0).all()
    assert ((found.low < found.estimate) & (found.estimate < found.high)).all()


def alpha_coverage(n_studies: int, n_items: int, n_raters: int) -> float:
    """Share of simulated studies whose two-way interval holds the alpha of a panel without end."""
    wide = np.random.default_rng(0)
    truth = np.mean([krippendorff_alpha(panel(2000, 60, wide)) for _ in range(8)])
    rng = np.random.default_rng(1)
    inside = []
    for seed in range(n_studies):
        row = agreement_intervals(panel(n_items, n_raters, rng), over="both", n_boot=300, seed=seed).iloc[0]
        inside.append(row.low <= truth <= row.high)
    return float(np.mean(inside))


def panel(n_items: int, n_raters: int, rng: np.random.Generator) -> np.ndarray:
    latent = 3.4 + rng.normal(0, 0.8, (n_items, 1)) + rng.normal(0, 0.4, n_raters)
    return np.clip(np.rint(latent + rng.normal(0, 0.8, (n_items, n_raters))), 1, 5)


def test_two_way_intervals_cover_in_a_short_simulation():
    assert alpha_coverage(40, 60, 8) > 0.87


@pytest.mark.slow
@pytest.mark.parametrize(("n_items", "n_raters"), [(60, 4), (60, 8), (200, 17)])
def test_two_way_intervals_cover_at_least_nineteen_in_twenty(n_items, n_raters):
    assert 0.93 < alpha_coverage(500, n_items, n_raters) <= 1
