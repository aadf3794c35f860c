"""Intraclass correlations beyond the closed form: missing cells, and the bootstrap."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.agreement import icc, rating_matrix
from analysis.stats.icc_bootstrap import icc_bootstrap
from analysis.stats.icc_incomplete import icc_incomplete
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "agreement.json").read_text(encoding="utf-8"))
COMPLETE = pd.DataFrame(GOLD["shrout_fleiss"], dtype=float)
GAPS = pd.DataFrame(GOLD["shrout_fleiss_missing"], dtype=float)


def crossed(n: int, k: int, rng: np.random.Generator, item=0.7, rater=0.4, error=0.8) -> np.ndarray:
    return 3 + rng.normal(0, item, (n, 1)) + rng.normal(0, rater, k) + rng.normal(0, error, (n, k))


def test_missing_cells_give_psychs_reml_estimates():
    expected = {row["term"]: row["estimate"] for row in GOLD["icc"]["shrout_fleiss_missing"]}
    found = icc_incomplete(GAPS).set_index("term").estimate
    for term in ("ICC(2,1)", "ICC(3,1)"):
        assert expected[term] == pytest.approx(found[term], abs=GOLD["tolerance"]["icc_incomplete"])


def test_no_item_is_dropped_and_k_is_the_harmonic_mean():
    found = icc_incomplete(GAPS).iloc[0]
    assert (found.n, found.n_ratings, found.cells) == (6, 22, 24)
    assert found.k == pytest.approx(6 / (4 / 4 + 2 / 3))


def test_a_complete_table_gives_the_closed_form():
    closed, components = icc(COMPLETE), icc_incomplete(COMPLETE)
    shared = ["estimate", "statistic", "df1", "df2", "p_value"]
    np.testing.assert_allclose(closed[shared], components[shared], rtol=1e-6)
    f_based = ~closed.term.str.startswith("ICC(2")
    np.testing.assert_allclose(closed[f_based][["low", "high"]], components[f_based][["low", "high"]], rtol=1e-6)


def test_raters_names_and_the_order_of_items_do_not_matter():
    other = GAPS.sample(frac=1, random_state=3)[[2, 0, 3, 1]].set_axis(list("pqrs"), axis=1)
    ours, theirs = icc_incomplete(GAPS), icc_incomplete(other)
    np.testing.assert_allclose(ours[["estimate", "low"]], theirs[["estimate", "low"]], rtol=1e-6)


def test_ratings_that_form_a_chain_leave_no_error_to_estimate():
    chain = np.array([[1, 2, np.nan], [np.nan, 3, 4], [5, np.nan, np.nan]])
    with pytest.raises(StudyError, match="nothing to tell error from raters"):
        icc_incomplete(chain)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_bootstrap_is_that_of_repeated_rows(seed):
    y = np.random.default_rng(seed).normal(size=(20, 4)) + np.arange(20)[:, None] / 5
    table = icc_bootstrap(y, n_boot=400, seed=seed).set_index("term")
    rng = np.random.default_rng(9)
    by_hand = np.array([icc(y[rng.integers(0, 20, 20)]).estimate for _ in range(150)])
    np.testing.assert_allclose(by_hand.std(0), table.std_error, rtol=0.25)
    np.testing.assert_allclose(table.estimate, icc(y).estimate, atol=1e-12)


def test_clusters_of_dependent_items_widen_the_interval():
    rng = np.random.default_rng(4)
    y = np.repeat(rng.normal(0, 1, (20, 1)), 5, axis=0) + rng.normal(0, 0.8, (100, 4))
    clusters = np.repeat(np.arange(20), 5)
    alone, together = icc_bootstrap(y), icc_bootstrap(y, clusters=clusters)
    assert together.std_error[1] > 1.4 * alone.std_error[1]


def test_the_bootstrap_refuses_missing_cells():
    with pytest.raises(StudyError, match="icc_incomplete"):
        icc_bootstrap(GAPS)


def test_three_cases_are_too_few_clusters():
    y = np.random.default_rng(1).normal(size=(30, 4))
    with pytest.raises(StudyError, match="3 clusters are too few to resample"):
        icc_bootstrap(y, clusters=np.repeat(["a", "b", "c"], 10))


def test_missing_cells_of_the_published_shape_give_psychs_reml_estimates():
    frame = pd.read_csv(Path(__file__).parents[2] / "golden" / "lmm" / "data" / "sim5950_unbal.csv")
    found = icc_incomplete(rating_matrix(frame, item=["prompt", "source"], score="m1")).set_index("term").estimate
    expected = {row["term"]: row["estimate"] for row in GOLD["icc"]["sim5950_unbal"]}
    for term in ("ICC(2,1)", "ICC(3,1)"):
        assert expected[term] == pytest.approx(found[term], abs=GOLD["tolerance"]["icc_incomplete"])


def coverage(n_studies: int, shape: tuple[int, int], missing: float) -> np.ndarray:
    """Share of simulated studies whose interval of ICC(2,1) and ICC(3,1) holds the truth."""
    truth = np.array([0.49 / (0.49 + 0.16 + 0.64), 0.49 / (0.49 + 0.64)])
    rng = np.random.default_rng(11)
    inside = []
    for _ in range(n_studies):
        y = crossed(*shape, rng)
        if missing:
            y[rng.random(shape) < missing] = np.nan
        table = (icc_incomplete(y, n_draws=2000) if missing else icc(y)).set_index("term")
        rows = table.loc[["ICC(2,1)", "ICC(3,1)"]]
        inside.append((rows.low < truth) & (truth < rows.high))
    return np.mean(inside, axis=0)


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_intervals_cover_in_a_short_simulation(missing):
    assert (coverage(50, (40, 6), missing) > 0.85).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 4), (60, 17), (150, 6)])
@pytest.mark.parametrize("missing", [0.0, 0.25, 0.5])
def test_intervals_cover_nineteen_in_twenty(shape, missing):
    rates = coverage(1000, shape, missing)
    assert (rates > 0.935).all() and (rates < 0.985).all(), rates
