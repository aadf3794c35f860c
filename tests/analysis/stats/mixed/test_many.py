"""Fitting many outcomes at once gives what fitting each gives."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.mixed import many
from analysis.stats.mixed.crossproducts import Outcome
from analysis.stats.mixed.fit import fit, fit_many
from analysis.stats.mixed.optimum import optimum

FOLDER = Path(__file__).parents[3] / "golden" / "lmm"
GOLD = json.loads((FOLDER / "lmm.json").read_text())["lmm"]


def model(name):
    return fit(pd.read_csv(FOLDER / "data" / GOLD[name]["data"]), GOLD[name]["formula"])


@pytest.mark.parametrize(
    "name, way",
    [
        ("sim5950_m1_4re", many.Commuting),
        ("Dyestuff2", many.Commuting),
        ("wine_lmm", many.Commuting),
        ("sim5950_unbal_m1", many.Eliminated),
        ("sim5950_unbal_m1_4re", many.Eliminated),
        ("cake_unbal", many.Eliminated),
        ("sleepstudy_slope", many.OneByOne),
    ],
)
def test_every_way_finds_the_optimum_of_every_outcome(name, way):
    whole = model(name)
    space = many.space(whole.sums)
    solver = many.solver(space, whole.best)
    assert type(solver) is way
    drawn = space.simulated(whole.best, 6, np.random.default_rng(7))
    found = solver.fit(drawn)
    assert found.converged.all()
    for i in range(6):
        outcome = Outcome(drawn.start[i], drawn.zy[i], float(drawn.yy[i]))
        best, _ = optimum(whole.sums, outcome, "REML")
        assert found.value[i] == pytest.approx(best.value, abs=1e-6)
        np.testing.assert_allclose(np.abs(found.theta[i]), np.abs(best.theta), atol=2e-4)
        np.testing.assert_allclose(
            found.beta[i], best.beta, atol=1e-4 * np.sqrt(best.sigma2) * np.abs(best.half_cov).max()
        )


def test_balanced_data_too_large_for_one_basis_are_eliminated_with_the_same_result():
    """The terms of balanced data share no trace at all, which must not upset the following of traces."""
    whole = model("Penicillin")
    space = many.space(whole.sums)
    drawn = space.simulated(whole.best, 8, np.random.default_rng(3))
    one = many.solver(space, whole.best).fit(drawn)
    other = many.Eliminated(space, whole.best).fit(drawn)
    np.testing.assert_allclose(other.value, one.value, atol=1e-7)
    np.testing.assert_allclose(other.theta, one.theta, rtol=1e-4, atol=1e-4)


def test_simulated_sums_are_those_of_simulated_rows():
    """Means and variances of the sums over draws, against outcomes drawn row by row."""
    whole = model("cake_unbal")
    space = many.space(whole.sums)
    rng = np.random.default_rng(1)
    drawn = space.simulated(whole.best, 4000, rng)
    from analysis.stats.mixed.crossproducts import outcome_sums

    rows = []
    for _ in range(1500):
        y = whole.fitted(random=False) + whole.sigma * rng.standard_normal(whole.n_rows)
        for grouping, factor in zip(whole.design.groupings, whole.factors, strict=True):
            y += (whole.sigma * factor[0, 0] * rng.standard_normal(grouping.n_levels))[grouping.codes]
        rows.append(outcome_sums(whole.design, whole.sums.order, y)[0])
    by_rows = many.sums_of(rows)
    for one, other in (
        (drawn.start, by_rows.start),
        (drawn.zy, by_rows.zy),
        (drawn.yy[:, None], by_rows.yy[:, None]),
    ):
        spread = other.std(axis=0)
        np.testing.assert_allclose(one.std(axis=0), spread, rtol=0.12)
        np.testing.assert_array_less(
            np.abs(one.mean(axis=0) - other.mean(axis=0)), 5 * spread / np.sqrt(1500) + 1e-12
        )


def test_outcomes_complete_in_the_same_rows_share_one_design():
    frame = pd.read_csv(FOLDER / "data" / "sim5950.csv")
    frame.loc[3, "m3"] = np.nan
    fits = fit_many(frame, ["m1", "m2", "m3"], "source + (1|rater) + (1|case:utterance)")
    assert fits["m1"].sums is fits["m2"].sums
    assert fits["m3"].sums is not fits["m1"].sums
    assert fits["m3"].n_missing == {"m3 missing": 1}
    alone = fit(frame, "m2 ~ source + (1|rater) + (1|case:utterance)")
    assert fits["m2"].criterion == pytest.approx(alone.criterion, abs=1e-8)
    assert str(fits["m2"].formula) == str(alone.formula)
