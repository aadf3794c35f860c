"""statsmodels finds what our engine finds."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats import second_route
from analysis.stats.mixed.fit import fit
from study.errors import StudyError

FOLDER = Path(__file__).parents[2] / "golden" / "lmm"
GOLD = json.loads((FOLDER / "lmm.json").read_text())["lmm"]


@pytest.mark.parametrize("name", ["Penicillin", "Pastes", "cake_unbal"])
def test_both_routes_agree(name):
    frame = pd.read_csv(FOLDER / "data" / GOLD[name]["data"])
    one, other = fit(frame, GOLD[name]["formula"]), second_route.fit(frame, GOLD[name]["formula"])
    assert other.criterion == pytest.approx(one.criterion, abs=1e-5)
    np.testing.assert_allclose(other.fixed, one.fixed, atol=1e-4)
    np.testing.assert_allclose(other.components()["sd"], one.components()["sd"], rtol=1e-3)
    assert type(other) is type(one)


def test_random_slopes_are_refused():
    frame = pd.read_csv(FOLDER / "data" / "sleepstudy.csv")
    with pytest.raises(StudyError, match="random intercepts only"):
        second_route.fit(frame, "Reaction ~ Days + (Days|Subject)")
