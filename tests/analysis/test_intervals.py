"""Intervals and influence from the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import intervals
from analysis.cli import app
from analysis.fitting import fitted
from analysis.load import load
from analysis.stats import diagnostics
from analysis.stats.profile import profile_intervals
from study.errors import StudyError


def called(folder, command, *words):
    done = CliRunner().invoke(app, [command, str(folder), *map(str, words)])
    assert done.exit_code == 0, done.output or done.exception
    return done.stdout


@pytest.fixture(scope="module")
def engagement(small):
    return fitted(load(small), "engagement")


def test_profile_intervals_take_the_place_of_walds_in_print_json_and_csv(written, tmp_path):
    folder = written()
    words = ("-m", "engagement", "--intervals", "profile", "--csv", tmp_path / "fit.csv")
    document = json.loads(called(folder, "fit", *words, "--json"))
    found = fitted(load(folder), "engagement")
    expected = profile_intervals(found.fit).set_index("term")
    assert document["intervals"] == "profile"
    for row in document["coefficients"]:
        assert expected.loc[row["term"], ["low", "high"]].tolist() == pytest.approx([row["low"], row["high"]])
    sds = {r["group"]: (r["low"], r["high"]) for r in document["components"]}
    assert sds["rater"] == pytest.approx(tuple(expected.loc["sd rater", ["low", "high"]]))
    assert sds["residual"] == pytest.approx(tuple(expected.loc["sigma", ["low", "high"]]))
    kept = pd.read_csv(tmp_path / "fit.csv")
    assert kept["low"].tolist() == [row["low"] for row in document["coefficients"]]
    assert any("profile likelihood" in note for note in document["notes"])


def test_bootstrap_intervals_lie_near_walds_and_do_not_depend_on_processes(engagement):
    one, two = (
        intervals.with_intervals(engagement, "bootstrap", intervals.Draws(200, 3, jobs)) for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one.coefficients(), two.coefficients())
    wald, drawn = engagement.coefficients(), one.coefficients()
    kept = ["estimate", "std_error", "p_value"]
    pd.testing.assert_frame_equal(drawn[kept], wald[kept])
    z = wald["estimate"] - 1.96 * wald["std_error"]
    np.testing.assert_allclose(z, drawn["low"], atol=0.2)
    assert "200 draws (seed 3)" in one.notes()[-1]
    assert (one.components()["low"] <= one.components()["high"]).all()


@pytest.mark.parametrize("jobs", [1, 2])
def test_long_work_says_how_far_it_is(engagement, jobs):
    told = []
    how = intervals.Draws(250, 1, jobs)
    intervals.with_intervals(engagement, "bootstrap", how, lambda *done: told.append(done))
    assert [(100, 250, "parametric"), (200, 250, "parametric"), (250, 250, "parametric")] == told


def test_wald_intervals_are_the_fits_own(engagement):
    assert intervals.with_intervals(engagement, "wald", intervals.Draws()) is engagement


def test_replicates_that_fail_too_often_are_refused(engagement, monkeypatch):
    monkeypatch.setattr(intervals.bootstrap.Bootstrap, "n_failed", 30)
    with pytest.raises(StudyError, match="30 of 100 bootstrap replicates did not settle"):
        intervals.with_intervals(engagement, "bootstrap", intervals.Draws(100))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--intervals", "profile", "--ordinal"], "is of the linear model; leave out --ordinal"),
        (["--intervals", "bootstrap", "--engine", "statsmodels"], "--intervals bootstrap needs --engine crossed"),
    ],
)
def test_what_has_no_such_interval_is_said(small, words, says):
    formula = ["--formula", "score ~ source + (1|rater)"] if "--engine" in words else []
    done = CliRunner().invoke(app, ["fit", str(small), "-m", "engagement", *words, *formula])
    assert says in str(done.exception)


def test_an_odd_rater_is_what_the_fit_hangs_on(written, rating_maker):
    ratings = rating_maker()
    odd = (ratings["rater_id"] == "rater-05") & ratings["label"].str.startswith(("U1", "E1"))
    ratings.loc[odd, "value"] = 1.0
    folder = written(ratings)
    text = called(folder, "influence", "-m", "fluency")
    assert "rater: 0/6 (0%) beyond 4/n = 0.667" in text and "case:prompt: " in text
    table = pd.DataFrame(json.loads((folder / "results" / "influence-fluency.json").read_text())["estimates"])
    assert table.iloc[0][["group", "level"]].tolist() == ["rater", "rater-05"]
    expected = diagnostics.influence(fitted(load(folder), "fluency").fit, "rater").table.set_index("level")
    own = table[table["group"] == "rater"].set_index("level")["cooks_distance"]
    np.testing.assert_allclose(expected["cooks_distance"][own.index], own)


def test_influence_of_encounters_leaves_out_cases(small):
    done = json.loads(called(small, "influence", "-m", "engagement", "--json", "--out", small.parent / "kept"))
    assert ["rater", "case"] == done["by"]


def test_a_group_that_the_model_does_not_know_is_refused(small):
    done = CliRunner().invoke(app, ["influence", str(small), "-m", "fluency", "--by", "ward"])
    assert "fluency: 'ward' is not a group of the model; it has rater" in str(done.exception)
