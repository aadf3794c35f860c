"""A table keeps its contract when it is read and when it is written."""

import os

import pandas as pd
import pytest

from study import tables
from study.errors import TableError
from study.records import Metric

FLUENCY = Metric("fluency", "utterance", 1, 5)


def ratings(**changes):
    frame = pd.DataFrame(
        {
            "rater_id": ["r1", "r1", "r2"],
            "rater_kind": "human",
            "label": ["A17", "B02", "A17"],
            "metric_id": "fluency",
            "occasion": 1,
            "value": [4.0, None, 2.0],
            "status": ["ok", "cannot_judge", "ok"],
            "reason": [None, "garbled", None],
            "simulated": False,
        }
    )
    return frame.assign(**changes)


def problem(frame, table=tables.RATINGS):
    with pytest.raises(TableError) as error:
        tables.check(frame, table, "ratings")
    return str(error.value)


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "ratings.parquet"
    tables.write(ratings(), path, tables.RATINGS, {"crossed.simulated": "true"})
    pd.testing.assert_frame_equal(ratings(), tables.read(path, tables.RATINGS), check_dtype=False)
    assert "true" == tables.metadata(path)["crossed.simulated"]


def test_writing_twice_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        tables.write(ratings(), tmp_path / name, tables.RATINGS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_missing_and_an_unknown_column_are_named_together():
    said = problem(ratings().rename(columns={"label": "item"}))
    assert "column label is missing" in said
    assert "column item is unknown" in said


def test_a_wrong_word_is_named_with_the_right_ones():
    assert "rater_kind holds 'robot'; it takes human, judge, rule" in problem(ratings(rater_kind="robot"))


def test_a_wrong_type_is_named_with_its_row():
    assert "column value holds 'four' in row 3; it takes real" in problem(ratings(value=[4.0, 3.0, "four"]))


def test_an_empty_cell_is_named_with_its_row():
    assert "column rater_id is empty in row 2" in problem(ratings(rater_id=["r1", None, "r2"]))


def test_a_duplicate_rating_is_named():
    said = problem(ratings(label="A17"))
    assert "rater_id r1, label A17, metric_id fluency, occasion 1 stands more than once (row 2)" in said


def test_a_rating_off_its_scale_is_named():
    with pytest.raises(TableError, match=r"9 by r1 on A17 is outside fluency's 1 to 5"):
        tables.check_ratings(ratings(value=[9.0, None, 2.0]), [FLUENCY])


def test_a_rating_between_two_points_is_named():
    with pytest.raises(TableError, match="2.5 by r2 on A17 lies between the points"):
        tables.check_ratings(ratings(value=[4.0, None, 2.5]), [FLUENCY])


def test_only_ok_has_a_value():
    with pytest.raises(TableError, match="has status cannot_judge and a value"):
        tables.check_ratings(ratings(value=[4.0, 3.0, 2.0]), [FLUENCY])
    with pytest.raises(TableError, match="has status ok and no value"):
        tables.check_ratings(ratings(status="ok"), [FLUENCY])


def test_a_metric_that_the_study_lacks_is_named():
    with pytest.raises(TableError, match="metric charm is not in study.toml; its metrics are fluency"):
        tables.check_ratings(ratings(metric_id="charm"), [FLUENCY])


def test_a_refused_table_leaves_the_old_file(tmp_path):
    path = tmp_path / "ratings.parquet"
    tables.write(ratings(), path, tables.RATINGS)
    before = path.read_bytes()
    with pytest.raises(TableError):
        tables.write(ratings(label="A17"), path, tables.RATINGS)
    assert before == path.read_bytes()
    assert ["ratings.parquet"] == os.listdir(tmp_path)


def test_a_file_that_is_no_parquet_is_one_sentence(tmp_path):
    path = tmp_path / "ratings.parquet"
    path.write_text("rater,score\n")
    with pytest.raises(TableError, match="is not a Parquet file"):
        tables.read(path, tables.RATINGS)


@pytest.mark.parametrize(
    ("name", "maker"),
    [("key", "study assign"), ("responses", "generation run"), ("ratings", "annotation_app export")],
)
def test_a_file_that_is_not_there_names_the_command_that_makes_it(tmp_path, name, maker):
    with pytest.raises(TableError, match=rf"{name}\.parquet: no such file; {maker}"):
        tables.read(tmp_path / f"{name}.parquet", tables.TABLES[name])
