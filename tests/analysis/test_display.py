import doctest

import pytest

from analysis import display, tables


def test_the_examples_hold():
    assert doctest.testmod(display).failed == 0
    assert doctest.testmod(tables).failed == 0


@pytest.mark.parametrize(
    ("p", "written"), [(0.0004, "< 0.001"), (0.0, "< 0.001"), (0.001, "0.001"), (1.0, "1.000")]
)
def test_p_is_never_written_as_zero(p, written):
    assert written == display.p_value(p)


@pytest.mark.parametrize("value", [-0.004, -1e-300, 0.0, -0.0])
def test_zero_has_no_sign(value):
    assert display.number(value) == "0.00"


def test_negative_numbers_have_a_true_minus():
    assert display.estimate(-0.2663, -0.3424, -0.1901) == "−0.27 [−0.34, −0.19]"


@pytest.mark.parametrize("write", [display.number, display.p_value, display.df, display.percent, display.count])
@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_missing_is_a_dash(write, nothing):
    assert write(nothing) == "—"


def test_an_estimate_without_an_interval_stands_alone():
    assert display.estimate(0.5, float("nan"), float("nan")) == "0.50"


def test_counts_stand_with_their_percentage():
    assert display.share(1186, 1190) == "1,186/1,190 (99.7%)"


def test_a_long_row_of_names_is_counted():
    assert display.several(["a", "b", "c", "d"], shown=2) == "a, b and 2 more"
