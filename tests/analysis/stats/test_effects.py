import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats import effects
from analysis.stats.contrasts import contrasts
from analysis.stats.mixed.fit import fit

FOLDER = Path(__file__).parents[2] / "golden" / "lmm"
GOLD = json.loads((FOLDER / "lmm.json").read_text())["lmm"]


@pytest.fixture(scope="module")
def cake():
    return fit(pd.read_csv(FOLDER / "data" / "cake_unbal.csv"), GOLD["cake_unbal"]["formula"])


def test_the_total_sd_is_that_of_all_components(cake):
    assert effects.total_sd(cake) ** 2 == pytest.approx(cake.components()["variance"].sum())
    assert cake.components()["share"].sum() == pytest.approx(1)


def test_standardized_estimates_are_in_total_sds(cake):
    table = effects.standardized(cake, contrasts(cake, "recipe"))
    np.testing.assert_allclose(table["d"] * effects.total_sd(cake), table["estimate"])
    assert (table["d_low"] < table["d"]).all()


def test_random_effects_add_to_the_explained_share(cake):
    share = effects.r_squared(cake)
    assert 0 < share["marginal"] < share["conditional"] < 1


def test_predicting_the_fitted_rows_gives_the_fitted_values(cake):
    frame = pd.read_csv(FOLDER / "data" / "cake_unbal.csv")
    np.testing.assert_allclose(effects.predict(cake, frame)["estimate"], cake.fitted())
    np.testing.assert_allclose(effects.predict(cake, frame, random=False)["estimate"], cake.fitted(random=False))


def test_a_new_level_of_a_group_counts_as_average(cake):
    frame = pd.read_csv(FOLDER / "data" / "cake_unbal.csv").head(3).assign(replicate=99)
    np.testing.assert_allclose(
        effects.predict(cake, frame)["estimate"], effects.predict(cake, frame, random=False)["estimate"]
    )


def test_slopes_are_predicted_through_functions_of_a_column():
    frame = pd.read_csv(FOLDER / "data" / "sleepstudy.csv")
    model = fit(frame, "Reaction ~ Days + I(Days**2) + (1|Subject)")
    np.testing.assert_allclose(effects.predict(model, frame)["estimate"], model.fitted())
