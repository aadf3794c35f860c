import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.agreement import LEVELS, icc, krippendorff_alpha, rating_matrix
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "agreement.json").read_text(encoding="utf-8"))
CANONICAL = pd.DataFrame(GOLD["krippendorff_raters_by_units"], dtype=float).T


def test_the_six_forms_are_psychs():
    expected = pd.DataFrame(GOLD["icc"]["shrout_fleiss"]).set_index("term")
    found = icc(GOLD["shrout_fleiss"]).set_index("term")[expected.columns]
    np.testing.assert_allclose(expected, found, atol=GOLD["tolerance"]["icc"])


def test_both_names_are_given():
    named = icc(GOLD["shrout_fleiss"]).set_index("term").also
    assert named["ICC(2,1)"] == "ICC(A,1)"
    assert named["ICC(3,k)"] == "ICC(C,k)"


def test_icc_ignores_the_order_of_rows_and_the_names_of_raters():
    table = pd.DataFrame(GOLD["shrout_fleiss"], columns=list("abcd"))
    shuffled = table.sample(frac=1, random_state=1)[["c", "a", "d", "b"]].set_axis(list("wxyz"), axis=1)
    np.testing.assert_allclose(icc(table).estimate, icc(shuffled).estimate, atol=1e-12)


def test_perfect_agreement_has_no_interval():
    perfect = icc([[1, 1, 1], [2, 2, 2], [5, 5, 5]])
    assert (perfect.estimate == 1).all()
    assert perfect.low.isna().all() and perfect.high.isna().all()


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_is_the_published_one(level):
    expected = GOLD["krippendorff"]["krippendorff2011"][level]
    tolerance = GOLD["tolerance"]["krippendorff"]
    assert expected == pytest.approx(krippendorff_alpha(CANONICAL, level), abs=tolerance)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_one_deviation_under_a_ceiling_gives_alpha_zero(level):
    table = pd.DataFrame(GOLD["paradox_raters_by_units"], dtype=float).T
    assert pytest.approx(krippendorff_alpha(table, level), abs=1e-12) == 0


def test_ordinal_alpha_ignores_any_monotone_rescaling():
    rescaled = krippendorff_alpha(CANONICAL**3, "ordinal")
    assert rescaled == pytest.approx(krippendorff_alpha(CANONICAL, "ordinal"))


REFUSED = [
    ([[1], [2]], "only 0 rated"),
    ([[1, 2]], "only 1 item"),
    ([[3, 3], [3, 3]], "every rating is 3"),
    ([[1, np.nan], [np.nan, 2]], "no item was rated by two raters"),
    ([["good", 1], [1, 2]], "'good', which is not a number"),
    ([["1", "2"], ["3", "3"]], "'1', which is not a number"),
    ([[1, np.inf], [1, 2]], "infinite"),
    ([[1, np.nan], [2, np.nan]], "only 0 rated"),
]


@pytest.mark.parametrize("statistic", [icc, krippendorff_alpha])
@pytest.mark.parametrize(("ratings", "reason"), REFUSED)
def test_what_cannot_be_estimated_is_refused_with_its_reason(statistic, ratings, reason):
    with pytest.raises(StudyError, match=reason):
        statistic(ratings)


def test_a_second_rating_of_the_same_item_is_refused():
    frame = pd.DataFrame({"label": ["A", "A"], "rater": ["r1", "r1"], "score": [1, 2]})
    with pytest.raises(StudyError, match="r1 rated A more than once"):
        rating_matrix(frame)


def test_an_absent_column_is_named():
    with pytest.raises(StudyError, match="no column label"):
        rating_matrix(pd.DataFrame({"rater": ["r1"], "score": [1]}))


def test_items_that_do_not_differ_give_no_consistency_of_a_mean():
    by_form = icc([[3, 5, 4], [4, 5, 3]]).set_index("term")
    assert np.isnan(by_form.loc["ICC(3,k)", "estimate"])
    assert by_form.loc["ICC(3,1)", "estimate"] == pytest.approx(-0.5)
