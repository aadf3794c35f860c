"""Rater by rater: severity on every source, the panel without each, ceilings, and what is refused and why."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import panel, raters
from analysis.cli import app
from analysis.load import load
from analysis.reliability import POOLED, Bootstrap, beyond_chance, clusters, pools, reliability
from analysis.stats.agreement import rating_matrix

QUICK = Bootstrap(n=100, seed=5)


def by_rater(folder, metric: str = "fluency") -> raters.Raters:
    return raters.raters(reliability(load(folder), metric, bootstrap=QUICK))


def test_a_severe_rater_is_severest_on_every_source(written, rating_maker):
    ratings = rating_maker()
    own = ratings["rater_id"] == "rater-04"
    ratings.loc[own, "value"] = (ratings["value"] - 2).clip(1, 5)
    severity = by_rater(written(ratings)).severity
    assert list(pd.unique(severity["source"])) == [POOLED, "expert", "model_b", "model_a"]
    first = severity.groupby("source", sort=False).first()
    assert (first["term"] == "rater-04").all()
    assert (first["high"] < 0).all()


def test_severity_of_a_complete_source_is_the_distance_from_the_panels_mean(written, rating_maker):
    ratings = rating_maker()
    found = by_rater(written(ratings)).severity.set_index(["source", "term"])["estimate"]
    own = ratings[(ratings["metric_id"] == "fluency") & ratings["label"].str.startswith("U1")]
    expected = own.groupby("rater_id")["value"].mean() - own["value"].mean()
    np.testing.assert_allclose(found["model_b"][expected.index], expected, atol=1e-9)


def test_a_rater_at_random_is_the_one_without_whom_the_others_agree_more(written, rating_maker):
    ratings = rating_maker(fault=-3.0)
    own = ratings["rater_id"] == "rater-02"
    ratings.loc[own, "value"] = np.random.default_rng(3).integers(1, 6, own.sum()).astype(float)
    found = by_rater(written(ratings))
    pooled = found.left_out[found.left_out["source"] == POOLED]
    assert pooled["left_out"].tolist()[:2] == ["nobody", "rater-02"]
    assert pooled["change_alpha"].iloc[1] > 0
    assert "alpha without rater-02" in raters.printed(found, full=False)


def test_two_raters_are_too_few_to_leave_one_out_and_both_tables_say_so(written, rating_maker, study_toml):
    ratings = rating_maker()
    two = ratings[ratings["rater_id"].isin(["rater-01", "rater-02"])]
    folder = written(two, toml=study_toml.replace("raters = 6", "raters = 2"))
    found = by_rater(folder)
    assert found.left_out.empty
    reason = "two raters leave one when one is left out: agreement needs three raters or more here"
    assert f"note: {POOLED}: nobody can be left out: {reason}" in raters.printed(found, full=True)
    full = panel.panel(load(folder), "fluency", QUICK)
    assert f"Without each rater in turn\n  not shown: {reason}" in full.text
    assert full.result.values["leave_one_rater_out_reason"] == reason


def test_a_source_at_the_ceiling_says_why_its_alpha_is_low(written, rating_maker):
    ratings = rating_maker()
    expert = ratings["label"].str.startswith("U0")
    ratings.loc[expert, "value"] = 5.0
    ratings.loc[ratings["label"].eq("U0003") & ratings["rater_id"].eq("rater-01"), "value"] = 4.0
    found = by_rater(written(ratings))
    assert set(found.ceilings) == {"expert"}
    assert "note: expert: 107 of 108 ratings are 5" in raters.printed(found, full=False)


def test_answers_to_one_prompt_are_drawn_together(small):
    frame = reliability(load(small), "fluency", bootstrap=QUICK).selected.frame
    matrix = rating_matrix(frame)
    unit, owners = clusters(frame, matrix)
    assert (unit, owners.nunique(), len(matrix)) == ("prompt", 18, 54)
    together = beyond_chance(matrix, (unit, owners), "interval", QUICK)
    alone = beyond_chance(matrix, ("item", pd.Series(range(54))), "interval", QUICK)
    assert together["estimate"].tolist() == alone["estimate"].tolist()
    assert together["std_error"][0] != alone["std_error"][0]


def test_two_cases_are_too_few_for_an_interval_of_encounters(small):
    found = reliability(load(small), "engagement", bootstrap=QUICK)
    alphas = found.estimates[found.estimates["term"].str.startswith("alpha")]
    assert alphas["estimate"].notna().all()
    assert alphas[["low", "high"]].isna().all(axis=None)
    assert (alphas["cluster"] == "case").all()
    assert "no interval for alpha: 2 cases, too few to draw from (at least 10)" in set(alphas["reason"])


def test_every_pool_of_both_levels_is_in_the_json(written):
    folder = written()
    done = CliRunner().invoke(app, ["reliability", str(folder), "--bootstrap", "100", "--json"])
    documents = json.loads(done.stdout)
    assert ["fluency", "engagement"] == [d["metric"] for d in documents]
    for document in documents:
        for table in ("severity", "leave_one_rater_out"):
            assert {POOLED, "expert", "model_b", "model_a"} == {row["source"] for row in document[table]}


def test_one_metric_is_shown_rater_by_rater_and_several_in_a_line_each(written):
    folder = written()
    one, all_of_them = (
        CliRunner().invoke(app, ["reliability", str(folder), "--bootstrap", "100", *more]).stdout
        for more in (["-m", "fluency"], [])
    )
    assert "severest on" in one and raters.ONE_METRIC not in one
    assert all_of_them.count("Severest: ") == 2 and all_of_them.rstrip().endswith(raters.ONE_METRIC)


@pytest.mark.parametrize("metric", ["fluency", "engagement"])
def test_pools_are_all_ratings_then_each_sources(small, metric):
    frame = reliability(load(small), metric, bootstrap=QUICK).selected.frame
    sizes = {name: len(rows) for name, rows in pools(frame)}
    assert sizes.pop(POOLED) == sum(sizes.values()) == len(frame)


def test_ceilings_of_several_sources_are_said_in_full_for_one_metric_and_in_a_line_for_all(written, rating_maker):
    ratings = rating_maker()
    for prefix in ("U0", "U1"):
        ratings.loc[ratings["label"].str.startswith(prefix), "value"] = 5.0
        ratings.loc[ratings["label"].eq(f"{prefix}003") & ratings["rater_id"].eq("rater-01"), "value"] = 4.0
    found = by_rater(written(ratings))
    assert 2 == sum("107 of 108 ratings are 5" in note for note in raters.notes(found))
    assert any("expert, model_b: nearly all ratings are equal" in note for note in raters.notes(found, full=False))


def test_a_large_panel_shows_its_ends_and_counts_the_rest(tmp_path):
    rng = np.random.default_rng(1)
    r, i = (x.ravel() for x in np.indices((60, 12)))
    score = (3 + rng.normal(0, 0.5, 60)[r] + rng.normal(0, 0.5, 12)[i] + rng.normal(0, 0.5, len(r))).round(1)
    pd.DataFrame({"rater": r, "item": i, "score": score}).to_csv(tmp_path / "sixty.csv", index=False)
    said = raters.printed(by_rater(tmp_path / "sixty.csv", "score"), full=True)
    assert "40 raters between them are not shown; --full and --json have all" in said
