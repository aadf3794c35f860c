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


def crossed(seed: int) -> pd.DataFrame:
    """3 sources × 6 prompts × 4 raters, so few that one variance or another is estimated as zero."""
    rng = np.random.default_rng(seed)
    s, p, r = (x.ravel() for x in np.indices((3, 6, 4)))
    score = rng.normal(0, 0.3, 4)[r] + rng.normal(0, 0.2, 6)[p] + rng.normal(0, 0.2, (3, 6))[s, p]
    score += rng.normal(0, 0.6, len(s))
    table = pd.DataFrame({"source": s, "prompt": p, "rater": r, "score": score})
    return table.astype({"source": "category", "prompt": "category", "rater": "category"})


THREE = "score ~ 1 + (1|rater) + (1|prompt) + (1|source:prompt)"
# confint(lmer(score ~ ..., REML = TRUE), method = "profile") of lme4 1.1-31 under R 4.2.2: sd rater, sd prompt,
# sd source:prompt, sigma; for the first also (Intercept).
LME4 = {
    1: [(0.1646656, 0.8817184), (0, 0.5347573), (0, 0.2832522), (0.4301106, 0.6141786), (-0.4952888, 0.4753567)],
    7: [(0, 0.4569797), (0, 0.3931872), (0, 0.4808136), (0.4279126, 0.6335594)],
}


@pytest.mark.parametrize("seed", LME4)
def test_a_variance_that_the_walk_meets_at_zero_is_let_go_again(seed):
    found = profile_intervals(fit(crossed(seed), THREE), fixed=len(LME4[seed]) == 5)
    np.testing.assert_allclose(LME4[seed], found[["low", "high"]], atol=1.2e-3)


def test_an_interval_reaches_zero_where_the_likelihood_ratio_does_not_refuse_it():
    # lme4 1.1-31 says 0.072 here, though leaving the term out costs 3.27 of a deviance, less than 3.84.
    table = crossed(43)
    whole, without = (fit(table, f, method="ML") for f in (THREE, THREE.replace(" + (1|prompt)", "")))
    assert 0 < without.criterion - whole.criterion < 3.84
    assert profile_intervals(whole, fixed=False).set_index("term").loc["sd prompt", "low"] == 0


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
