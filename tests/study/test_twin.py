"""The twin prints as the published study does, says that it is simulated, and is built again to the letter."""

import json
import shutil
import tomllib
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from analysis.stats.agreement import icc
from study import cli, tables
from study.config import FILE, load
from study.errors import StudyError
from study.twin import agreement, counts, totals
from study.twin.build import DIGESTS, FILES, MARK, build, digests
from study.twin.published import Printed, low_answers, published

SHIPPED = Path(__file__).parents[2] / "data" / "published-twin"
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "published.json").read_text("utf-8"))
FIGURES = published()


@pytest.fixture(scope="module")
def study():
    return load(SHIPPED)


@pytest.fixture(scope="module")
def ratings(study):
    known = tables.read(study.items, tables.ITEMS).merge(tables.read(study.key, tables.KEY))
    return tables.read(study.ratings, tables.RATINGS).merge(known, on="label")


@pytest.fixture(scope="module")
def means(ratings):
    """The mean rating of each answer."""
    spoken = ratings[ratings["kind"] == "utterance"]
    return (
        spoken.groupby(["metric_id", "source_id", "prompt_id", "category", "form"])["value"].mean().reset_index()
    )


def cell(ratings, metric, source):
    return ratings.loc[(ratings["metric_id"] == metric) & (ratings["source_id"] == source), "value"].to_numpy()


def matrix(rows):
    return rows.pivot(index=["metric_id", "label"], columns="rater_id", values="value")


def test_it_is_built_again_to_the_letter_also_after_a_kill(study, tmp_path):
    folder = tmp_path / "twin"
    folder.mkdir()
    shutil.copy(SHIPPED / FILE, folder)  # all that stood when an earlier build was killed
    done = CliRunner().invoke(cli.app, ["simulate", "--published", "--into", str(folder), "--json"])
    assert {"folder": str(folder), "rows": 19380, "simulated": True} == json.loads(done.stdout)
    again = load(folder)
    written = dict(reversed(line.split("  ")) for line in (SHIPPED / DIGESTS).read_text("utf-8").splitlines())
    assert written == digests(study) == digests(again)
    said = [tomllib.loads((f / FILE).read_text("utf-8")) for f in (SHIPPED, again.folder)]
    beside = said[0].pop("content")
    assert {name: f"../{file}" for name, file in said[1].pop("content").items()} == beside
    assert said[0] == said[1]


def test_it_is_small():
    assert sum(f.stat().st_size for f in SHIPPED.iterdir()) < 200_000


def test_every_file_row_and_answer_says_simulated(study):
    for name in FILES:
        assert "true" == tables.metadata(getattr(study, name))["crossed.simulated"]
    assert tables.read(study.ratings, tables.RATINGS)["simulated"].all()
    responses = tables.read(study.responses, tables.RESPONSES)
    assert responses["text"].str.endswith(MARK).all() and responses["demo"].all()
    assert "simulated" in study.title


def test_the_design_is_the_published_one(ratings):
    design = FIGURES.design
    assert design["rating_rows"] == len(ratings)
    for column, name in (("rater_id", "raters"), ("case_id", "cases"), ("prompt_id", "prompts"),
                         ("source_id", "sources"), ("category", "categories"), ("form", "forms")):  # fmt: skip
        assert design[name] == ratings[column].nunique()


@pytest.mark.parametrize(("metric", "source"), FIGURES.encounter, ids="-".join)
def test_a_cell_has_the_total_that_prints_as_its_mean(ratings, metric, source):
    values = cell(ratings, metric, source)
    assert 51 == len(values)
    assert GOLDEN["totals_of_51"][source][metric] == values.sum()
    assert f"{FIGURES.encounter[metric, source].value:.2f}" == f"{values.mean():.2f}"


def test_random_bootstraps_give_the_published_intervals(ratings):
    # 100,000 draws: the standard error of a tail's probability is 0.0005; the narrowest margin is 0.0011.
    rng = np.random.default_rng(1)
    for (metric, source), printed in FIGURES.encounter.items():
        given_ = np.bincount(cell(ratings, metric, source).astype(int), minlength=6)[1:]
        drawn = rng.multinomial(51, given_ / 51, 100_000) @ np.arange(1, 6) / 51
        low, high = np.round(np.quantile(drawn, [0.025, 0.975]), 2)
        assert abs(low - printed.low) < 0.0201 and abs(high - printed.high) < 0.0201, (metric, source)


def test_agreement_on_encounters_is_the_published_one(ratings):
    table = matrix(ratings[ratings["kind"] == "encounter"])
    assert (90, 17) == table.shape
    found = icc(table).set_index("term").loc["ICC(2,k)"]
    assert_allclose(found[["estimate", "low", "high"]].astype(float), [0.91, 0.88, 0.94], atol=0.005)


def test_agreement_on_each_sources_sentences_is_in_the_published_range(ratings):
    low, high = FIGURES.source_icc
    spoken = ratings[ratings["kind"] == "utterance"]
    every = {}
    for (metric, source), rows in spoken.groupby(["metric_id", "source_id"]):
        every[metric, source] = icc(matrix(rows)).set_index("term").at["ICC(2,k)", "estimate"]
    assert low - 0.005 < min(every.values()) and max(every.values()) < high + 0.005
    fluency = [value for (metric, _), value in every.items() if metric == "fluency"]
    assert_allclose([min(fluency), max(fluency)], [low, high], atol=0.005)


def test_fluency_and_penalties_print_as_published(means):
    fluency = means[means["metric_id"] == "fluency"]
    for source, rows in fluency.groupby("source_id"):
        by_form = rows.groupby("form")["value"].mean()
        assert f"{FIGURES.fluency[source]:.2f}" == f"{rows['value'].mean():.2f}"
        assert f"{FIGURES.penalty[source]:.3f}" == f"{by_form['affirmative'] - by_form['negative']:.3f}"


def test_the_published_model_has_the_same_penalties(means):
    # Every rater rates every answer, so least squares on the answers' means gives the mixed model's estimates.
    fluency = means[means["metric_id"] == "fluency"]
    for source, rows in fluency.groupby("source_id"):
        columns = pd.get_dummies(rows[["category", "form"]], dtype=float).drop(columns="form_negative")
        solution = np.linalg.lstsq(columns.to_numpy(), rows["value"].to_numpy(), rcond=None)[0]
        penalty = solution[list(columns).index("form_affirmative")]
        assert f"{FIGURES.penalty[source]:.3f}" == f"{penalty:.3f}"


def test_accuracy_differs_from_the_experts_by_less_than_published(means):
    accuracy = means[means["metric_id"] == "accuracy"].groupby("source_id")["value"].mean()
    assert (accuracy[FIGURES.expert] - accuracy).max() < FIGURES.accuracy_gap


def test_the_answers_meant_to_be_low_are_and_no_others(means):
    low = means[means["value"] < 3]
    assert {"fluency"} == set(low["metric_id"])
    meant = {(answer.source_id, answer.prompt_id) for answer in low_answers()}
    assert FIGURES.low.total == len(meant)
    assert meant == set(zip(low["source_id"], low["prompt_id"], strict=True))


def test_the_share_of_low_answers_is_highest_where_published(means):
    fluency = means[means["metric_id"] == "fluency"]
    share = (fluency["value"] < 3).groupby(fluency["category"]).mean().nlargest(2)
    assert set(FIGURES.low.where) == set(share.index)


@pytest.mark.parametrize("wrong", [["somewhere", "--published"], ["--into", "somewhere"]], ids=" ".join)
def test_a_folder_named_in_the_wrong_way_is_wrong_usage(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert 2 == CliRunner().invoke(cli.app, ["simulate", *wrong]).exit_code
    assert [] == list(tmp_path.iterdir())


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StudyError, match="holds no twin; name a new folder"):
        build(tmp_path)
    assert ["thesis.txt"] == [f.name for f in tmp_path.iterdir()]


@pytest.mark.parametrize("case", GOLDEN["exact_bootstrap"], ids=lambda case: str(case["counts"]))
def test_the_exact_bootstrap_is_the_golden_one(case):
    reached = counts.distribution(np.array([case["counts"]]))[0]
    for name, probability in case.items():
        if name.startswith("cdf"):
            assert_allclose(reached[int(name[3:]) - 51], probability, atol=1e-6)


def test_the_exact_bootstrap_is_all_bootstraps_of_a_small_table():
    # 5 ratings have 5**5 resamples.
    given_ = np.array([1, 2, 2, 4, 5])
    every = np.array([sum(drawn) for drawn in product(given_, repeat=5)])
    reached = counts.distribution(np.bincount(given_, minlength=6)[None, 1:])[0]
    assert_allclose(reached, [(every <= total).mean() for total in range(5, 26)], atol=1e-12)


def test_a_mean_that_no_total_prints_as_is_named():
    with pytest.raises(StudyError, match=r"mean 4.83 of 51 ratings: 0 totals print so"):
        counts.counts(Printed(4.83, 4.7, 4.9), 51)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 12), st.integers(2, 8))
def test_the_sums_give_the_icc(seed, n, k):
    table = np.random.default_rng(seed).integers(1, 6, (n, k))
    expected = icc(table).set_index("term").at["ICC(2,k)", "estimate"]
    assume(np.isfinite(expected))  # a table without any sign of agreement has none
    assert_allclose(agreement.sums(table).icc, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.floats(-0.04, 0.01))
def test_moves_change_the_agreement_and_nothing_else(seed, change):
    rng = np.random.default_rng(seed)
    latent = 3 + rng.normal(0, 0.8, (60, 1)) + rng.normal(0, 0.3, (1, 9)) + rng.normal(0, 0.9, (60, 9))
    table = np.clip(np.round(latent), 1, 5).astype(int)
    cells = list(np.arange(60).reshape(20, 3))
    wanted = agreement.sums(table).icc + change

    swapped = agreement.swapped(table, cells, wanted, rng)
    assert_allclose(agreement.sums(swapped).icc, wanted, atol=0.001)
    assert (swapped.sum(0) == table.sum(0)).all()
    assert all((np.sort(swapped[own], axis=None) == np.sort(table[own], axis=None)).all() for own in cells)

    spread = agreement.spread(swapped, wanted - 0.03, rng)
    assert_allclose(agreement.sums(spread).icc, wanted - 0.03, atol=0.001)
    assert (spread.sum(0) == swapped.sum(0)).all() and (spread.sum(1) == swapped.sum(1)).all()
    assert spread.min() >= 1 and spread.max() <= 5


def test_an_agreement_out_of_reach_is_refused():
    flat = np.tile([1, 5], (6, 2))
    with pytest.raises(StudyError, match="no spreading brings an ICC to 0.99"):
        agreement.spread(flat, 0.99, np.random.default_rng(0))


def test_the_models_weights_are_least_squares():
    prompts = pd.DataFrame({"category": list("aabbab"), "form": ["affirmative", "negative", "open_ended"] * 2})
    values = np.array([3.0, 2, 5, 4, 1, 2])
    marginal, contrast = totals.model_weights(prompts)
    design = pd.get_dummies(prompts, drop_first=True, dtype=float).assign(one=1.0)
    b, negative, open_ended, one = np.linalg.lstsq(design.to_numpy(), values, rcond=None)[0]
    assert_allclose(marginal @ values, one + b / 2 + (negative + open_ended) / 3)
    assert_allclose(contrast @ values, -negative)
