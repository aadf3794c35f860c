"""Ratings collected elsewhere become a study like any other, or one clear sentence."""

import pandas as pd
import pytest

from study import folder, state, tables
from study.config import load
from study.errors import StudyError
from study.importers import files, long, wide

COLUMNS = long.Columns(rater="who", score="points", source="system", prompt="doc", metric="dimension")


def frame(**changes):
    rows = [
        (who, system, doc, dimension, 1 + (i + j + k) % 5)
        for i, who in enumerate(("ann", "bob"))
        for j, system in enumerate(("gpt", "human"))
        for k, doc in enumerate(("d1", "d2", "d3"))
        for dimension in ("fluency", "accuracy")
    ]
    return pd.DataFrame(rows, columns=["who", "system", "doc", "dimension", "points"]).assign(**changes)


def imported(table=None, columns=COLUMNS, **options):
    return long.tables(frame() if table is None else table, columns, "scores.csv", **options)


def test_source_and_prompt_name_the_item():
    found = imported()
    assert 6 == len(found.items)
    assert {"gpt:d1", "human:d3"} <= set(found.items["label"])
    assert ("gpt", "human") == found.sources
    assert ["fluency", "accuracy"] == [m.metric_id for m in found.metrics]


def test_an_imported_study_checks_and_reads_back(tmp_path):
    study = folder.from_ratings(tmp_path / "s", imported(scale=(1, 5)), "scores.csv", inferred=False)
    assert [] == state.problems(study)
    assert 24 == len(tables.read(study.ratings, tables.RATINGS))
    assert ("ann", "bob") == study.raters
    assert (1, 5) == (study.metric("fluency").low, study.metric("fluency").high)


def test_a_judge_joins_the_panel_and_is_not_counted_twice(tmp_path):
    study = folder.from_ratings(tmp_path / "s", imported(scale=(1, 5)), "scores.csv", inferred=False)
    judge = imported(frame(who="gemini").drop_duplicates(["system", "doc", "dimension"]), rater_kind="judge")
    assert 36 == folder.add_ratings(study, judge.ratings)
    with pytest.raises(StudyError, match="stands more than once"):
        folder.add_ratings(study, judge.ratings)
    assert 36 == len(tables.read(study.ratings, tables.RATINGS))


def test_a_scale_that_one_of_two_metrics_leaves_is_said_once():
    table = frame()
    table.loc[table["dimension"] == "accuracy", "points"] *= 20
    with pytest.raises(StudyError) as caught:
        imported(table, scale=(1, 5))
    assert (
        "scores.csv: --scale 1:5 is taken for every metric, but scores go beyond it on accuracy from 20 to 100; "
        "leave --scale out, then set low and high of each metric in study.toml"
    ) == str(caught.value)


def test_a_refused_import_leaves_no_folder(tmp_path):
    found = imported(frame(dimension="fluency", doc=[f"d{i}" for i in range(24)]), scale=(1, 3))
    with pytest.raises(StudyError, match="is outside fluency's 1 to 3"):
        folder.from_ratings(tmp_path / "s", found, "scores.csv")
    assert [] == list(tmp_path.iterdir())


def test_a_judge_of_other_items_is_refused(tmp_path):
    known = imported().items
    other = imported(frame(doc="elsewhere").drop_duplicates(["who", "system", "dimension"]))
    with pytest.raises(StudyError, match="item gpt:elsewhere is not among the 6 items"):
        long.of_known_items(other, known, "judge.csv")


def test_wide_and_long_files_give_the_same_ratings():
    table = frame()
    spread = table.pivot(index=["system", "doc", "dimension"], columns="who", values="points").reset_index()
    columns = long.Columns(wide.RATER, wide.SCORE, source="system", prompt="doc", metric="dimension")
    again = imported(wide.lengthened(spread, ("ann", "bob"), "wide.csv"), columns).ratings
    key = ["rater_id", "label", "metric_id"]
    pd.testing.assert_frame_equal(
        imported().ratings.sort_values(key, ignore_index=True), again.sort_values(key, ignore_index=True)
    )


def test_words_of_a_scale_become_their_places():
    words = {1: "No", 2: "Unsure", 3: "Yes", 4: "Yes", 5: "No"}
    found = imported(frame().assign(points=lambda f: f["points"].map(words)), levels=("No", "Unsure", "Yes"))
    assert {1.0, 2.0, 3.0} == set(found.ratings["value"])
    assert ("No", "Unsure", "Yes") == found.metrics[0].anchors


def test_an_empty_score_is_kept_as_missing():
    table = frame().astype({"points": "float"})
    table.loc[0, "points"] = None
    ratings = imported(table).ratings
    assert ("missing", 24) == (ratings["status"].iloc[0], len(ratings))


def test_whole_numbers_read_as_floats_keep_their_names():
    table = frame().assign(doc=lambda f: f["doc"].str[1:].astype(float))
    assert "gpt:1" in set(imported(table).items["label"])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (frame().rename(columns={"who": "annotator"}), r"column who \(--rater\) is missing; it has annotator"),
        (frame(points="good"), r"row 1, column points: 'good' is not a number"),
        (pd.concat([frame(), frame().head(1)], ignore_index=True), r"ann rated gpt:d1 .* twice \(rows 1 and 25\)"),
        (frame().assign(points=lambda f: f["points"].where(f["who"] == "ann")), "rater bob has no rating"),
        (frame(who=None), "row 1 has no rater"),
    ],
)
def test_bad_ratings_are_one_sentence(table, said):
    with pytest.raises(StudyError, match=said) as error:
        imported(table)
    assert 1 == len(str(error.value).splitlines())


def test_an_item_of_two_sources_is_refused():
    with pytest.raises(StudyError, match=r"item d1 has two values of source \(gpt and human\)"):
        imported(
            frame().drop_duplicates(["who", "doc", "dimension", "system"]).assign(step=range(24)),
            long.Columns("who", "points", item="doc", source="system", metric="dimension", occasion="step"),
        )


def test_an_item_must_be_named_somehow():
    with pytest.raises(StudyError, match="name the item's column"):
        imported(columns=long.Columns("who", "points", source="system"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"a,b\n", "a header and no rows"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\xff\xfe", "is not UTF-8 text"),
        ("notes.docx", b"PK", "of a kind not known here"),
        ("fake.parquet", b"rater,score\n", "is not a Parquet file"),
    ],
)
def test_a_file_of_the_wrong_kind_is_one_sentence(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(StudyError, match=said) as error:
        files.frame(path)
    assert str(path) in str(error.value)


def test_csv_tsv_and_parquet_hold_the_same(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    frame().to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame().to_parquet(tmp_path / "t.parquet")
    first, *others = [imported(files.frame(tmp_path / f"t.{s}")).ratings for s in ("csv", "tsv", "parquet")]
    for other in others:
        pd.testing.assert_frame_equal(first, other)


def test_a_second_import_into_a_study_is_refused(tmp_path):
    folder.from_ratings(tmp_path / "s", imported(), "scores.csv", inferred=True)
    before = load(tmp_path / "s").digest
    with pytest.raises(StudyError, match="holds a study already"):
        folder.from_ratings(tmp_path / "s", imported(), "scores.csv", inferred=True)
    assert before == load(tmp_path / "s").digest
