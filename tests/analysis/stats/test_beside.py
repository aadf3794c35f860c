import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.beside import beside
from analysis.stats.mixed.fit import fit
from analysis.stats.ordinal import fit_ordinal
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "ordinal.json").read_text(encoding="utf-8"))
SMALL = pd.DataFrame(GOLD["small"])
FORMULA = "m1 ~ source * form + (1|rater) + (1|prompt)"


@pytest.fixture(scope="module")
def fits():
    return fit(SMALL, FORMULA), fit_ordinal(SMALL, FORMULA)


def test_both_models_tell_the_same_of_well_spread_ratings(fits):
    found = beside(*fits)
    assert found.contrasts.same_direction.all()
    assert list(found.contrasts.term) == ["S1 − S0", "S2 − S0", "S3 − S0", "S4 − S0"]
    assert "The models agree in direction for all 4 contrasts of source." in found.notes


def test_the_linear_contrast_is_the_difference_of_marginal_means(fits):
    found, linear = beside(*fits), fits[0].fixed
    by_hand = linear["sourceS1"] + np.mean([0, linear["sourceS1:formmid"], linear["sourceS1:formshort"]])
    assert by_hand == pytest.approx(found.contrasts.linear_estimate[0])


def test_ranks_follow_the_means(fits):
    ranks = beside(*fits).ranks
    assert (ranks.sort_values("linear_rank").linear_mean.diff().dropna() <= 0).all()
    assert sorted(ranks.ordinal_rank) == [1, 2, 3, 4, 5]


def test_fits_of_other_formulas_are_refused(fits):
    with pytest.raises(StudyError, match="differ in fixed effects"):
        beside(fits[0], fit_ordinal(SMALL, "m1 ~ source + (1|rater) + (1|prompt)"))
    with pytest.raises(StudyError, match="'model' is not among"):
        beside(*fits, factor="model")
