"""The parts of a report: two models, precision, penalties, low scores, times."""

import doctest

import numpy as np
import pandas as pd
import pytest

from analysis import drawing, fitting, planning
from analysis.load import load
from analysis.reliability import Bootstrap
from analysis.reporting import comparison, lows, pages, pair, panel, precision, section, times
from analysis.reporting.analysed import analysed, source_names
from analysis.stats.mixed.fit import fit
from study import config
from study.store import ratings, traces


@pytest.fixture(scope="module")
def made(small):
    loaded = load(small)
    return analysed(loaded, loaded.study, Bootstrap(n=100), "auto")


@pytest.fixture(scope="module")
def fluency(made):
    return made.fits[0]


def cells(table) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(table.columns[1:], row[1:], strict=True)) for row in table.rows}


# Two models


def test_the_pair_is_the_published_model_and_the_designs(fluency):
    both = pair.pair(fluency)
    formula = str(both.published.fit.formula)
    assert "score ~ source*category + source*form + (1 | rater) + (1 | case:prompt)" == formula
    again = fit(fluency.selected.frame, formula)
    assert again.criterion == pytest.approx(both.published.fit.criterion)
    assert both.fuller is fluency


def test_the_pairs_numbers_are_those_of_each_model_alone(fluency):
    both = pair.pair(fluency)
    published = fitting.fitted(fluency.loaded, "fluency", kind="published")
    from analysis import means

    alone = means.versus_reference(published)
    assert alone["std_error"].tolist() == pytest.approx(both.differences["std_error_published"].tolist())
    shares = fluency.fit.components().set_index("group")["share"]
    assert both.own_share() == pytest.approx(shares["case:prompt:source"] + shares["rater:source"])


@pytest.fixture
def uneven(written, rating_maker):
    """A fit of ratings in which every answer has a deviation that all raters see."""
    rated, rng = rating_maker(fault=0), np.random.default_rng(3)
    labels = rated["label"].unique()
    own = dict(zip(labels, rng.normal(0, 0.8, len(labels)), strict=True))
    moved = (rated["value"] + rated["label"].map(own)).round().clip(1, 5)
    return fitting.fitted(load(written(rated.assign(value=moved))), "fluency")


def test_what_answers_have_of_their_own_makes_the_fuller_models_errors_larger(uneven):
    both = pair.pair(uneven)
    assert both.ratio > 1.3
    assert np.allclose(both.differences["estimate_fuller"], both.differences["estimate_published"], atol=0.05)


def test_a_study_with_the_published_model_of_its_own_has_no_pair(written, study_toml):
    formula = "score ~ source*category + source*form + (1 | rater) + (1 | case:prompt)"
    folder = written(toml=study_toml + f'\n[analysis]\nutterance = "{formula}"\n')
    assert pair.pair(fitting.fitted(load(folder), "fluency")) is None


def test_the_section_tells_both_models_in_words_and_numbers(made):
    section = pair.honest_pair(made)
    assert "(1 | case:prompt:source) + (1 | rater:source)" in section.lead[1]
    table = cells(section.tables[0])
    assert {"fluency", "engagement"} == set(table)
    assert "1/8" == table["fluency"]["interactions, fuller"]
    raw = next(t for f in section.folds for t in f.tables if t.name == "raw-means-encounter")
    assert "dependence is ignored" in raw.note
    assert (raw.numbers["low"] <= raw.numbers["mean"]).all() and (raw.numbers["mean"] <= raw.numbers["high"]).all()


# Precision


def test_the_curve_goes_through_the_models_own_standard_error(written, rating_maker):
    """Balanced ratings, sources only: the closed form and the fitted model's contrast are the same number."""
    loaded = load(written(rating_maker()))
    found = fitting.fitted(loaded, "engagement")
    both = pair.pair(found)
    expected = both.differences["std_error_fuller"].iloc[0]
    assert precision.of_fit(found).own == pytest.approx(expected, rel=1e-4)


def test_the_curve_of_a_gstudy_is_the_dstudys(made):
    sizes = planning.Sizes(raters=(2, 6, 30), prompts=(9, 18, 72))
    answer = planning.gstudy(made.loaded, "fluency", sizes, planning.Cost())
    curve = precision.of_gstudy(answer)
    for row in answer.result.values["estimates"].itertuples():
        assert curve.std_error(row.prompt, row.rater) == pytest.approx(row.se_difference, rel=1e-9)
    assert (18, 6) == (curve.n_items, curve.n_raters)


def test_more_of_anything_is_never_less_precise(fluency):
    lines = precision.of_fit(fluency).lines()
    for _, own in lines.groupby("items"):
        assert own.sort_values("raters")["se_difference"].is_monotonic_decreasing
    for _, own in lines.groupby("raters"):
        assert own.sort_values("items")["se_difference"].is_monotonic_decreasing


def test_more_raters_do_not_take_away_what_answers_have_of_their_own(uneven):
    curve = precision.of_fit(uneven)
    variances = uneven.fit.components().set_index("group")["variance"]
    limit = (2 * variances["case:prompt:source"] / curve.n_items) ** 0.5
    assert curve.std_error(curve.n_items, 1e9) == pytest.approx(limit, rel=1e-3)


def test_gstudy_writes_its_picture(made, tmp_path):
    answer = planning.gstudy(made.loaded, "fluency", planning.Sizes(), planning.Cost())
    paths = precision.kept([answer], tmp_path)
    assert ["precision-fluency.svg", "precision-fluency.pdf"] == [p.name for p in paths]
    assert "simulated ratings" in paths[0].read_text("utf-8") and "this study" in paths[0].read_text("utf-8")


# Sources compared


def test_table_1_holds_every_source_on_every_encounter_metric(made):
    section = comparison.compared(made, "encounter")
    table = section.tables[0]
    assert "encounters" == table.name and "Table 1" in table.caption
    assert ["Expert", "model_b", "model_a"] == [row[0] for row in table.rows]
    assert table.numbers["estimate"].tolist() == pytest.approx(
        [float(row[1].split()[0]) for row in table.rows], abs=0.005
    )


def test_table_2_has_a_row_for_each_category_and_form(made):
    section = comparison.by_category_and_form(made)
    category, form = section.tables
    assert ["greeting", "history", "reasoning"] == [row[0] for row in category.rows]
    assert ["affirmative", "negative", "open ended"] == [row[0] for row in form.rows]
    assert {"Expert", "model_b", "model_a"} == set(category.columns[1:]) == set(form.columns[1:])


def test_a_penalty_beyond_the_references_is_a_contrast_of_contrasts(made):
    own, beyond = (cells(t) for t in comparison.penalties(made).tables)
    numbers = comparison.penalties(made).tables[0].numbers.set_index(["kind", "source"])["estimate"]
    expected = numbers["penalty", "model_a"] - numbers["penalty", "Expert"]
    assert numbers["beyond", "model_a"] == pytest.approx(expected)
    assert own["model_a"]["fluency"].startswith("1.") and "p < 0.001" in beyond["model_a"]["fluency"]


def test_few_differences_are_named_and_many_are_counted():
    few = pd.DataFrame({"source": list("ab"), "estimate": [-2.0, -1], "low": [-3.0, -2], "high": [-1.0, 0]})
    assert "below it a −2.00 [−3.00, −1.00] and b −1.00 [−2.00, 0.00]" == comparison._which("below it", few)
    many = pd.concat([few, few, few]).sort_values("estimate")
    assert "below it 6 sources, from b −1.00" in comparison._which("below it", many)


# Low scores, severity, what is missing, times


def test_low_scores_count_the_fault_where_it_was_planted(made):
    section = lows.lows(made)
    assert "most often model_a" in section.points[0]
    assert "low-fluency" == section.figures[0].name
    listed = next(t for f in section.folds for t in f.tables if t.name == "low-answers-fluency")
    assert {"model_a"} == {row[1] for row in listed.rows}


def test_severity_names_the_most_severe_first(made):
    section = panel.severity(made)
    table = next(t for f in section.folds for t in f.tables if t.name == "severity-fluency")
    assert table.numbers["estimate"].is_monotonic_increasing
    assert table.rows[0][0] in section.points[0]


def test_severity_is_drawn_under_a_name_of_several_words(made):
    table = next(t for f in panel.severity(made).folds for t in f.tables if t.name == "severity-fluency")
    drawn = panel._severity_figure(made, "utterance", {"contextual relevance": table.numbers})
    assert ["severity-utterance"] == [f.name for f in drawn]


def test_what_is_missing_is_counted_by_rater_source_and_metric(made):
    section = panel.missing(made)
    assert section.lead[0].startswith("2/360 (0.6%) ratings have no value (2 missing)")
    for table in section.folds[0].tables:
        assert 2 == table.numbers["k"].sum() and 360 == table.numbers["n"].sum()


def test_nothing_is_said_of_times_that_nobody_took(made):
    assert times.times(made) is None


def test_times_of_ratings_come_from_the_database(small_study):
    from annotation_app.founding import open_study

    at = iter(pd.date_range("2026-01-05", periods=400, freq="5s", tz="UTC"))
    database = open_study(small_study)
    database = type(database)(database.engine, lambda: next(at).to_pydatetime())
    try:
        traces.show(database, "rater-01", position=1, label=None, tab="t", versions={})
        ratings.save(database, "rater-01", 1, "fluency", value=4, reason=None, base_version=0, nonce="n", tab="t")
        found = times.rating_seconds(database, ["rater-01", "rater-02"])
    finally:
        database.close()
    assert ["rater-01"] == list(found)
    assert found["rater-01"].min() >= 5


def test_answers_times_are_told_by_source(written, table_maker, made):
    folder = written()
    items, key = table_maker()
    from study import tables

    spoken = items[items["kind"] == "utterance"].merge(key, on="label")
    rows = spoken[["prompt_id", "case_id", "source_id"]].assign(
        status="ok", text="네.", detail=None, seconds=[0.5 + i / 100 for i in range(len(spoken))]
    )
    tables.write(rows, folder / "responses.parquet", tables.RESPONSES)
    loaded = load(folder)
    section = times.times(analysed(loaded, loaded.study, Bootstrap(n=100), "auto"))
    assert ["Expert", "model_b", "model_a"] == [row[0] for row in section.tables[0].rows]
    assert "18" == section.tables[0].rows[0][1]


# Names and words


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        (("Expert", "GPT-4o"), ["Expert", "GPT-4o"]),
        (("Same", "Same"), ["a", "b"]),
        (("Rule patient, stiff", "Other"), ["a", "b"]),
        (("x" * 40, "Other"), ["a", "b"]),
    ],
)
def test_sources_have_their_titles_where_these_can_tell_them_apart(tmp_path, titles, expected):
    rows = "".join(
        f'[[source]]\nid = "{i}"\nkind = "recorded"\ntitle = "{t}"\n' for i, t in zip("ab", titles, strict=True)
    )
    (tmp_path / "study.toml").write_text(
        '[study]\nid = "s"\ntitle = "s"\nseed = 1\n' + rows
        + '[[metric]]\nid = "fluency"\nitem = "utterance"\nlow = 1\nhigh = 5\n', encoding="utf-8"
    )  # fmt: skip
    assert expected == list(source_names(config.load(tmp_path)).values())


def test_prose_is_escaped_and_commands_look_like_such():
    assert "a &lt; b &amp; <code>study check</code>" == str(pages.prose("a < b & `study check`"))


@pytest.mark.parametrize("module", [drawing, pages, section], ids=lambda m: m.__name__)
def test_the_examples_hold(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed
