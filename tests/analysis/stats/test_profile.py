"""Profile intervals of lme4's confint; origin in tests/golden/lmm/README.md."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.mixed.fit import fit
from analysis.stats.profile import profile_intervals, wald_intervals
from study.errors import StudyError

FOLDER = Path(__file__).parents[2] / "golden" / "lmm"
GOLD = json.loads((FOLDER / "lmm.json").read_text())["lmm"]


def own_name(name: str) -> str:
    """sd_Days|Subject → sd Subject Days, as ours are called."""
    if match := re.match(r"cor_(.*)\.(\(Intercept\))\|(.*)", name):
        return f"cor {match[3]} {match[2]} {match[1]}"
    if match := re.match(r"sd_(.*)\|(.*)", name):
        return f"sd {match[2]}" + ("" if match[1] == "(Intercept)" else f" {match[1]}")
    return name


@pytest.mark.parametrize("name", [n for n in GOLD if "profile_CI" in GOLD[n]])
def test_profile_intervals(name):
    entry = GOLD[name]
    model = fit(pd.read_csv(FOLDER / "data" / entry["data"]), entry["formula"])
    found = profile_intervals(model).set_index("term")
    for row in entry["profile_CI"]:
        low, high = found.loc[own_name(row["term"]), ["low", "high"]]
        tolerance = 1e-3 * max(abs(row["97.5 %"]), row["97.5 %"] - row["2.5 %"])
        assert low == pytest.approx(row["2.5 %"], abs=tolerance)
        assert high == pytest.approx(row["97.5 %"], abs=tolerance)


def test_a_variance_at_zero_has_an_interval_from_zero():
    model = fit(pd.read_csv(FOLDER / "data" / "Dyestuff2.csv"), "Yield ~ 1 + (1|Batch)")
    found = profile_intervals(model).set_index("term")
    assert found.loc["sd Batch", "low"] == 0
    assert found.loc["sd Batch", "high"] > 0


def test_terms_stand_in_the_formulas_order():
    model = fit(pd.read_csv(FOLDER / "data" / "Penicillin.csv"), "diameter ~ 1 + (1|sample) + (1|plate)")
    assert list(profile_intervals(model, fixed=False)["term"]) == ["sd sample", "sd plate", "sigma"]


def test_wald_intervals_use_the_named_df():
    model = fit(pd.read_csv(FOLDER / "data" / "Penicillin.csv"), "diameter ~ 1 + (1|sample) + (1|plate)")
    width = np.ptp(wald_intervals(model)[["low", "high"]], axis=1)
    assert width[0] > np.ptp(wald_intervals(model, ddf="z")[["low", "high"]], axis=1)[0]


def test_three_columns_are_refused():
    frame = pd.read_csv(FOLDER / "data" / "sleepstudy.csv")
    with pytest.raises(StudyError, match="one or two columns"):
        profile_intervals(fit(frame, "Reaction ~ Days + (Days + I(Days**2)|Subject)"))
