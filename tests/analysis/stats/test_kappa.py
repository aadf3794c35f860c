import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.kappa import gwet_ac, percent_agreement, weighted_kappa
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "agreement.json").read_text(encoding="utf-8"))
CANONICAL = pd.DataFrame(GOLD["krippendorff_raters_by_units"], dtype=float).T


@pytest.mark.parametrize(
    ("weights", "name"),
    [("identity", "AC1_identity"), ("ordinal", "AC2_ordinal"), ("quadratic", "AC2_quadratic")],
)
def test_ac_is_irrcacs(weights, name):
    found = gwet_ac(CANONICAL, weights)
    assert found == pytest.approx(GOLD["gwet"][name], abs=GOLD["tolerance"]["gwet"])


@pytest.mark.parametrize(("weights", "name"), [("identity", "unweighted"), ("quadratic", "quadratic")])
def test_kappa_is_psychs(weights, name):
    found = weighted_kappa(GOLD["kappa"]["a"], GOLD["kappa"]["b"], weights)
    assert found == pytest.approx(GOLD["kappa"][name], abs=GOLD["tolerance"]["kappa"])


def test_percent_agreement_averages_over_items_not_pairs():
    ratings = [[1, 1, np.nan], [1, 2, 2], [3, np.nan, np.nan]]
    assert percent_agreement(ratings) == pytest.approx((1 + 1 / 3) / 2)


def test_ac_stays_high_where_alpha_is_zero():
    table = pd.DataFrame(GOLD["paradox_raters_by_units"], dtype=float).T
    assert percent_agreement(table) == pytest.approx(0.92)
    assert gwet_ac(table, categories=[1, 2, 3, 4, 5]) > 0.9


def test_constant_ratings_agree_fully_once_the_scale_is_known():
    assert gwet_ac([[5, 5], [5, 5]], categories=[1, 2, 3, 4, 5]) == 1
    assert percent_agreement([[5, 5], [5, 5]]) == 1


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: gwet_ac([[5, 5], [5, 5]]), "needs the scale's categories"),
        (lambda: gwet_ac([[5, 6], [5, 5]], categories=[1, 5]), "rating 6 is not one of the categories 1, 5"),
        (lambda: weighted_kappa([1, np.nan], [np.nan, 1]), "no item has both ratings"),
        (lambda: weighted_kappa([2, 2], [2, 2]), "not estimable"),
        (lambda: gwet_ac([[1, 2], [2, 2]], "cubic"), "unknown"),
    ],
)
def test_what_cannot_be_estimated_is_refused_with_its_reason(call, reason):
    with pytest.raises(StudyError, match=reason):
        call()
