"""What must hold for any table of ratings, and two packages as second routes."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analysis.stats.agreement import icc, krippendorff_alpha
from analysis.stats.icc_bootstrap import icc_bootstrap
from analysis.stats.icc_incomplete import icc_incomplete
from analysis.stats.kappa import gwet_ac, percent_agreement
from study.errors import StudyError

shapes = st.tuples(st.integers(3, 12), st.integers(2, 6))
tables = shapes.flatmap(lambda shape: arrays.arrays(float, shape, elements=st.integers(1, 5).map(float)))
few = st.tuples(st.integers(2, 4), st.integers(2, 5))
small_tables = few.flatmap(lambda shape: arrays.arrays(float, shape, elements=st.integers(1, 3).map(float)))
gaps = st.integers(0, 2**31)
levels = st.sampled_from(["nominal", "ordinal", "interval", "ratio"])


def with_gaps(table: np.ndarray, seed: int) -> np.ndarray:
    """The table with a fifth of its cells empty, if two raters still share items that differ."""
    table = table.copy()
    table[np.random.default_rng(seed).random(table.shape) < 0.2] = np.nan
    shared = table[np.isfinite(table).sum(1) >= 2]
    assume(len(shared) >= 2 and np.isfinite(table).any(0).sum() >= 2)
    assume(len(np.unique(shared[np.isfinite(shared)])) >= 2)
    return table


@settings(max_examples=60, deadline=None)
@given(tables, gaps, levels)
def test_alpha_is_the_krippendorff_packages(table, seed, level):
    table = with_gaps(table, seed)
    expected = krippendorff.alpha(table.T, level_of_measurement=level)
    assert krippendorff_alpha(table, level) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(tables, gaps, levels)
def test_alpha_does_not_see_names_or_order(table, seed, level):
    table = with_gaps(table, seed)
    rng = np.random.default_rng(seed)
    shuffled = pd.DataFrame(table[rng.permutation(len(table))][:, rng.permutation(table.shape[1])])
    renamed = shuffled.add_prefix("rater-")
    assert krippendorff_alpha(table, level) == pytest.approx(krippendorff_alpha(renamed, level), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(tables, gaps)
def test_agreement_never_exceeds_one(table, seed):
    table = with_gaps(table, seed)
    assert krippendorff_alpha(table, "ordinal") <= 1 + 1e-12
    assert 0 <= percent_agreement(table) <= 1
    assert gwet_ac(table, "ordinal") <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(tables, st.floats(0.1, 10), st.floats(-5, 5))
def test_iccs_do_not_see_the_unit_of_the_scale(table, factor, shift):
    assume(np.ptp(table.mean(1)) > 0 and np.ptp(table - table.mean(1, keepdims=True)) > 0)
    ours, other = icc(table), icc(table * factor + shift)
    known = ours.estimate.abs() < 1e6
    np.testing.assert_allclose(ours.estimate[known], other.estimate[known], rtol=1e-6, atol=1e-8)


@settings(max_examples=80, deadline=None)
@given(small_tables)
@example(np.array([[3.0, 1.0], [3.0, 1.0], [1.0, 3.0]]))
@example(np.array([[1.0, 2.0], [2.0, 1.0]]))
def test_an_interval_holds_its_estimate_or_says_why_there_is_none(table):
    assume(np.ptp(table) > 0)
    found = icc(table)
    known = found[found.estimate.notna()]
    bounded = known.dropna(subset=["low", "high"])
    assert ((bounded.low <= bounded.estimate + 1e-9) & (bounded.estimate <= bounded.high + 1e-9)).all()
    assert (bounded.high <= 1 + 1e-9).all()
    assert (found.reason.notna() == found.estimate.isna()).all()
    assert found[found.estimate.isna()][["low", "high"]].isna().all(axis=None)


@settings(max_examples=30, deadline=None)
@given(small_tables, gaps)
def test_an_interval_over_missing_cells_holds_its_estimate(table, seed):
    table = with_gaps(table, seed)
    try:
        found = icc_incomplete(table, n_draws=1000)
    except StudyError:
        assume(False)
    bounded = found.dropna(subset=["estimate", "low", "high"])
    assert ((bounded.low <= bounded.estimate + 1e-9) & (bounded.estimate <= bounded.high + 1e-9)).all()


@settings(max_examples=30, deadline=None)
@given(tables)
def test_a_bootstrap_interval_of_a_mean_is_that_of_one_rater_stepped_up(table):
    assume(np.ptp(table) > 0)
    try:
        found = icc_bootstrap(table, n_boot=100).set_index("term")
    except StudyError:
        assume(False)
    k = table.shape[1]
    for form in "123":
        one, mean = found.loc[f"ICC({form},1)"], found.loc[f"ICC({form},k)"]
        if np.isfinite(mean.low):
            assert k * one.low / (1 + (k - 1) * one.low) == pytest.approx(mean.low)
        assert np.isnan(mean.estimate) or mean.low <= mean.high


# pingouin calls pandas in a way that pandas 3.1 warns of.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_iccs_and_their_intervals_are_pingouins(seed):
    pingouin = pytest.importorskip("pingouin", minversion="0.6")
    rng = np.random.default_rng(seed)
    table = rng.normal(3, 1, (15, 1)) + rng.normal(0, 0.5, 4) + rng.normal(0, 0.7, (15, 4))
    item, rater = (part.ravel() for part in np.indices(table.shape))
    long = pd.DataFrame({"item": item, "rater": rater, "score": table.ravel()})
    theirs = pingouin.intraclass_corr(long, targets="item", raters="rater", ratings="score")
    ours = icc(table)
    np.testing.assert_allclose(theirs["ICC"], ours.estimate, atol=1e-8)
    # They are printed to two decimals there.
    np.testing.assert_allclose(np.stack(theirs["CI95"]), ours[["low", "high"]], atol=0.0051)
