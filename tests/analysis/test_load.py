import math

import pandas as pd
import pytest

from analysis.load import load, rated_metrics, select
from study.errors import StudyError


def refused(target, **options) -> str:
    with pytest.raises(StudyError) as caught:
        load(target, **options)
    message = str(caught.value)
    assert message.count("\n") == 0
    return message


def test_a_rating_row_becomes_one_row_of_the_tidy_frame(small):
    frame = load(small).frame
    assert len(frame) == 6 * (54 + 6)
    expected = (
        "rater rater_kind label kind case prompt source category form turn metric occasion score status simulated"
    )
    assert expected.split() == list(frame.columns)


def test_sources_and_forms_stand_in_the_studys_order(small):
    frame = load(small).frame
    assert list(frame["source"].cat.categories) == ["expert", "model_b", "model_a"]
    assert list(frame["form"].cat.categories) == ["affirmative", "negative", "open_ended"]
    assert list(frame["metric"].cat.categories) == ["fluency", "engagement"]


def test_a_row_that_is_not_ok_stays_and_has_no_score(small):
    frame = load(small).frame
    missing = frame[frame["status"] == "missing"]
    assert len(missing) == 2
    assert missing["score"].isna().all()


def test_selecting_a_metric_says_what_it_leaves_out(small):
    chosen = select(load(small), "fluency")
    assert len(chosen.frame) == 6 * 54 - 2
    assert [(part.reason, part.rows) for part in chosen.left_out] == [("status missing", 2)]


def test_every_file_read_has_its_hash(small):
    inputs = load(small).inputs
    assert {"study.toml", "ratings.parquet", "items.parquet", "key.parquet"} == set(inputs)
    assert all(len(digest) == 64 for digest in inputs.values())


def test_a_metric_nobody_rated_is_noted(written, rating_maker):
    ratings = rating_maker()
    loaded = load(written(ratings[ratings["metric_id"] == "fluency"]))
    assert rated_metrics(loaded) == ["fluency"]
    assert loaded.notes == ("no rating of engagement",)


def test_an_unknown_metric_is_named_with_the_known_ones(small):
    with pytest.raises(StudyError, match="no metric fluensy; its metrics are fluency, engagement"):
        select(load(small), "fluensy")


def test_a_rating_off_the_scale_is_refused(written, rating_maker):
    ratings = rating_maker()
    folder = _tampered(written(ratings), ratings.assign(value=ratings["value"].where(ratings.index != 3, 9.0)))
    assert "9 by rater-04 on U0000 is outside fluency's 1 to 5" in refused(folder)


def test_a_rating_given_twice_is_refused(written, rating_maker):
    ratings = rating_maker()
    folder = _tampered(written(ratings), pd.concat([ratings, ratings.head(1)], ignore_index=True))
    assert "rater_id rater-01, label U0000, metric_id fluency, occasion 1 stands more than once" in refused(folder)


def test_a_missing_column_is_named_with_the_known_ones(written, rating_maker):
    ratings = rating_maker()
    folder = _tampered(written(ratings), ratings.drop(columns="value"))
    assert "column value is missing; ratings has rater_id, rater_kind" in refused(folder)


def test_a_rater_without_ratings_is_refused_until_left_out(written, rating_maker, blanked):
    ratings = rating_maker()
    folder = written(blanked(ratings, ratings.index[ratings["rater_id"] == "rater-05"]))
    assert "no rating by rater-05; wait for them, or leave them out with --without rater-05" in refused(folder)
    loaded = load(folder, without=["rater-05"])
    assert "rater-05" not in set(loaded.frame["rater"])
    assert loaded.left_out[0].rows == 60


def test_a_rater_to_leave_out_must_exist(small):
    assert "no rater nobody to leave out; the raters are rater-01" in refused(small, without=["nobody"])


def test_a_prompt_without_a_case_is_refused(written, table_maker):
    items, _ = table_maker()
    items.loc[items["label"] == "U0003", "case_id"] = None
    assert "prompt case-0-03 (item U0003) has no case" in refused(written(items=items))


def test_a_source_alone_among_several_is_refused(written, rating_maker, table_maker):
    ratings, (_, key) = rating_maker(), table_maker()
    only = key.loc[key["source_id"] == "expert", "label"]
    message = refused(written(ratings[ratings["label"].isin(only)]))
    assert "source has one level (expert); rate items of the other sources too: model_b, model_a" in message


def test_a_label_without_source_is_refused(written, table_maker):
    _, key = table_maker()
    assert "has no source for U0000" in refused(written(key=key[key["label"] != "U0000"]))


def test_a_rated_label_that_is_no_item_is_refused(written, table_maker):
    items, _ = table_maker()
    message = refused(written(items=items[items["label"] != "U0000"]))
    assert "U0000 is rated and is not in items.parquet" in message


def test_no_ratings_at_all_is_refused(written, rating_maker):
    assert "holds no rating" in refused(written(rating_maker().head(0)))


@pytest.mark.parametrize("name", ["ratings", "items", "key"])
def test_an_absent_table_is_named_with_the_command_that_makes_it(written, name):
    folder = written()
    (folder / f"{name}.parquet").unlink()
    assert f"{name}.parquet: not found; `study" in refused(folder)


def test_a_table_that_is_not_parquet_is_refused(written):
    folder = written()
    (folder / "ratings.parquet").write_bytes(b"\x89PNG")
    assert "is not a Parquet file" in refused(folder)


def test_columns_are_not_for_study_folders(small):
    from analysis.bare import Columns

    assert "--rater is for a bare ratings file" in refused(small, columns=Columns(rater="who"))


def test_judges_stay_out_of_a_panel_of_people_unless_asked_for(written, rating_maker):
    ratings = rating_maker()
    judged = ratings[ratings["rater_id"] == "rater-01"].assign(rater_id="judge-1", rater_kind="judge")
    loaded = load(written(pd.concat([ratings, judged], ignore_index=True)))
    people, judges, both = (select(loaded, "fluency", kind) for kind in ("auto", "judge", "all"))
    assert len(people.frame) == 6 * 54
    assert [(p.reason, p.rows) for p in people.left_out] == [("by raters that are not human", 54)]
    assert list(judges.frame["rater"].cat.categories) == ["judge-1"]
    assert len(both.frame) == 7 * 54


def test_a_repeat_does_not_count_twice(written, rating_maker):
    ratings = rating_maker()
    again = ratings.head(4).assign(occasion=2)
    chosen = select(load(written(pd.concat([ratings, again], ignore_index=True))), "fluency")
    assert [(p.reason, p.rows) for p in chosen.left_out] == [("a repeat (occasion 2 or later)", 4)]


def test_selection_changes_nothing_in_what_was_loaded(small):
    loaded = load(small)
    before = loaded.frame.copy()
    chosen = select(loaded, "fluency").frame
    chosen["score"] = math.nan
    pd.testing.assert_frame_equal(before, loaded.frame)


def _tampered(folder, ratings: pd.DataFrame):
    """Ratings as something else than this house's writer would leave them."""
    ratings.to_parquet(folder / "ratings.parquet")
    return folder
