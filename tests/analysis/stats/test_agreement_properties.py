"""What must hold for any table of ratings, and two packages as second routes."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analysis.stats.agreement import icc, krippendorff_alpha
from analysis.stats.kappa import gwet_ac, percent_agreement

shapes = st.tuples(st.integers(3, 12), st.integers(2, 6))
tables = shapes.flatmap(lambda shape: arrays.arrays(float, shape, elements=st.integers(1, 5).map(float)))
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


@settings(max_examples=60, deadline=None)
@given(tables)
def test_an_interval_holds_its_estimate(table):
    assume(np.ptp(table) > 0)
    found = icc(table).dropna(subset=["low", "high", "estimate"])
    single = found[found.term.str.endswith("1)")]
    assert ((single.low <= single.estimate + 1e-9) & (single.estimate <= single.high + 1e-9)).all()


# pingouin calls pandas in a way that pandas 3.1 warns of.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_iccs_are_pingouins(seed):
    pingouin = pytest.importorskip("pingouin", minversion="0.6")
    rng = np.random.default_rng(seed)
    table = rng.normal(3, 1, (15, 1)) + rng.normal(0, 0.5, 4) + rng.normal(0, 0.7, (15, 4))
    item, rater = (part.ravel() for part in np.indices(table.shape))
    long = pd.DataFrame({"item": item, "rater": rater, "score": table.ravel()})
    theirs = pingouin.intraclass_corr(long, targets="item", raters="rater", ratings="score")["ICC"]
    np.testing.assert_allclose(theirs, icc(table).estimate, atol=1e-8)
