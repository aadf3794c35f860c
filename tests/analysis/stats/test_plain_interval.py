import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.stats.plain_interval import mean_interval
from study.errors import StudyError


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_exact_interval_is_that_of_very_many_draws(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([1.0, 2, 3, 4, 5], 51, p=[0.05, 0.1, 0.2, 0.3, 0.35])
    drawn = rng.choice(values, (100_000, 51)).mean(axis=1)
    expected = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    # One step of the grid of means, which Monte Carlo may fall on either side of.
    assert np.abs(expected - mean_interval(values)).max() <= 1 / 51 + 1e-9


# 4.84 [4.74, 4.94]: a published mean of 51 ratings with its printed interval; 43 fives and 8 fours are the one set
# of ratings with that mean and so narrow an interval.
def test_a_published_interval_comes_out_again():
    values = np.array([5.0] * 43 + [4.0] * 8)
    assert values.mean() == pytest.approx(4.84, abs=0.005)
    assert mean_interval(values) == pytest.approx((4.74, 4.94), abs=0.01)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_the_interval_holds_the_median_draw_and_stays_between_the_ends(values):
    own = np.array(values, float)
    low, high = mean_interval(own)
    assert own.min() - 1e-9 <= low <= high <= own.max() + 1e-9
    narrow = mean_interval(own, level=0.5)
    assert low - 1e-9 <= narrow[0] and narrow[1] <= high + 1e-9


@given(st.lists(st.integers(1, 5), min_size=2, max_size=40), st.floats(0.1, 10), st.integers(-5, 5))
@settings(max_examples=40, deadline=None)
def test_another_unit_of_the_scale_changes_the_interval_alike(values, step, shift):
    own = np.array(values, float)
    moved = mean_interval(own * step + shift, step)
    assert moved == pytest.approx([v * step + shift for v in mean_interval(own)], rel=1e-9, abs=1e-9)


def test_ratings_off_a_grid_are_drawn_from_their_seed():
    values = np.random.default_rng(5).normal(3, 1, 80)
    low, high = mean_interval(values, None)
    error = values.std() / np.sqrt(80)
    assert (low, high) == pytest.approx((values.mean() - 1.96 * error, values.mean() + 1.96 * error), abs=0.03)
    assert mean_interval(values, None) == (low, high)


def test_no_rating_has_no_interval():
    with pytest.raises(StudyError, match="no rating"):
        mean_interval(np.array([]))
