from fractions import Fraction
from itertools import combinations_with_replacement
from statistics import mean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.stats.grim import Scale, grim, printed
from study.errors import StudyError

LIKERT = Scale(Fraction(1), Fraction(5))
ratings = st.lists(st.integers(1, 5), min_size=2, max_size=60)


def written(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}"


@given(ratings, st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_what_real_ratings_give_is_never_called_impossible(values, decimals):
    own = printed(written(mean(values), decimals))
    sd = printed(written(stdev(values), decimals))
    found = grim(own, len(values), LIKERT, sd=sd)
    assert not found.impossible
    assert not grim(own, len(values), sd=sd).impossible


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_verdicts_are_those_of_trying_all_ratings_there_are(n):
    every = list(combinations_with_replacement(range(1, 6), n))
    means = {value for e in every for value in both_ways(Fraction(sum(e), n), 2)}
    for at in range(100, 501):
        found = grim(printed(written(at / 100, 2)), n, LIKERT)
        assert found.impossible == (at not in means), at


def both_ways(value: Fraction, decimals: int) -> set[int]:
    """Hundredths (or so) that a value may be printed as, halves going up or down."""
    at = value * 10**decimals
    floor = at.numerator // at.denominator
    part = at - floor
    return {floor, floor + 1} if part == Fraction(1, 2) else {floor + (part > Fraction(1, 2))}


def test_sds_are_those_of_trying_all_ratings_there_are():
    n, three = 5, Scale(Fraction(1), Fraction(3))
    every = list(combinations_with_replacement((1, 2, 3), n))
    seen = {(written(mean(e), 1), written(stdev(e), 2)) for e in every}
    possible = {
        (f"{m / 10:.1f}", f"{s / 100:.2f}")
        for m in range(10, 31, 2)
        for s in range(0, 130)
        if not grim(printed(f"{m / 10:.1f}"), n, three, sd=printed(f"{s / 100:.2f}")).impossible
    }
    # An SD that lies on a half may be printed either way; there is none at five ratings from 1 to 3.
    assert seen == possible


# Brown & Heathers (2017) open with a mean of 5.19 of 28 whole numbers: 145/28 is 5.18 and 146/28 is 5.21.
def test_the_example_that_the_method_was_published_with():
    found = grim(printed("5.19"), 28)
    assert found.mean == "impossible"
    assert ("5.18", "5.21") == found.nearest


def test_a_half_may_have_been_rounded_either_way():
    assert [grim(printed(text), 8).mean for text in ("3.12", "3.13", "3.14")] == [
        "possible", "possible", "impossible"]  # fmt: skip


def test_more_items_make_a_finer_grid():
    assert grim(printed("3.33"), 10).mean == "impossible"
    assert grim(printed("3.33"), 10, items=3).mean == "possible"


def test_a_step_of_a_half_makes_a_finer_grid():
    assert grim(printed("3.25"), 2).mean == "impossible"
    assert grim(printed("3.25"), 2, Scale(Fraction(1), Fraction(5), Fraction(1, 2))).mean == "possible"


def test_where_every_mean_is_possible_nothing_is_told():
    assert grim(printed("3.33"), 100).mean == "cannot tell"
    assert grim(printed("3.3"), 51).passing == 1


def test_the_share_that_would_pass_is_counted_not_guessed():
    passing = sum(not grim(printed(f"{at / 100:.2f}"), 51).impossible for at in range(300, 400)) / 100
    assert passing == grim(printed("3.00"), 51).passing == 0.51


def test_parity_refuses_an_sd_without_a_scale():
    values = [1, 2, 3, 4, 5]
    assert grim(printed("3.0"), 5, sd=printed(f"{stdev(values):.3f}")).sd == "possible"
    # A sum of squares of 54, nine above the least, would need an even sum of ratings.
    assert grim(printed("3.0"), 5, sd=printed(f"{(9 / 4) ** 0.5:.3f}")).sd == "impossible"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: grim(printed("6.2"), 5, LIKERT), "mean 6.2: lies outside the scale, 1 to 5"),
        (lambda: grim(printed("3.2"), 0), "n 0, items 1: both are one or more"),
        (lambda: printed("about 3"), "'about 3' is not a number"),
        (lambda: printed("nan"), "'nan' is not a number"),
        (lambda: printed("3.123", decimals=2), "3.123 has 3 decimals, not 2"),
        (lambda: Scale(Fraction(5), Fraction(1)), "the lowest rating comes first"),
        (lambda: Scale(Fraction(1), Fraction(5), Fraction(3)), "is no whole number of steps of 3"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_its_reason(asked, said):
    with pytest.raises(StudyError, match=said):
        asked()
