import pandas as pd
import pytest

from analysis.bare import Columns, read
from study.errors import StudyError

PLAIN = "rater,item,score\nann,a,3\nann,b,4\nbob,a,2\nbob,b,\n"


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes, name: str = "ratings.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refused(path, columns: Columns | None = None) -> str:
    with pytest.raises(StudyError) as caught:
        read(path, columns or Columns())
    assert str(caught.value).count("\n") == 0
    return str(caught.value)


def test_an_empty_score_is_a_missing_rating(file):
    frame = read(file(PLAIN), Columns()).frame
    assert list(frame["status"]) == ["ok", "ok", "ok", "missing"]


def test_columns_are_named_by_the_caller_and_keep_their_own_names(file):
    path = file("who;text;stars;age\nann;a;3;20\nann;b;4;20\nbob;a;5;30\n")
    frame = read(path, Columns(rater="who", item="text", score="stars")).frame
    assert list(frame["rater"]) == ["ann", "ann", "bob"]
    assert list(frame["age"]) == [20, 20, 30]
    assert {"who", "text", "stars"} <= set(frame.columns)


def test_numbers_as_names_read_the_same_with_and_without_gaps(file):
    frame = read(file("rater,item,score\n1,7,3\n2,7,4\n"), Columns()).frame
    assert list(frame["rater"]) == ["1", "2"]


def test_an_item_that_several_sources_answered_is_a_prompt(file):
    found = read(file("rater,item,source,score\nann,s1,x,3\nann,s1,y,4\nbob,s1,x,2\n"), Columns())
    assert list(found.frame["label"]) == ["s1:x", "s1:y", "s1:x"]
    assert "items are taken as prompts" in found.notes[0]


def test_the_reference_comes_first(file):
    path = file("rater,item,source,score\nann,s1,x,3\nann,s1,y,4\n")
    assert list(read(path, Columns(reference="y")).frame["source"].cat.categories) == ["y", "x"]


def test_a_reference_that_is_no_source_is_refused(file):
    path = file("rater,item,source,score\nann,s1,x,3\nann,s1,y,4\n")
    assert "--reference z is not among the sources" in refused(path, Columns(reference="z"))


def test_parquet_reads_as_csv_does(file, tmp_path):
    csv = file(PLAIN)
    pd.read_csv(csv).to_parquet(tmp_path / "ratings.parquet")
    pd.testing.assert_frame_equal(
        read(csv, Columns()).frame, read(tmp_path / "ratings.parquet", Columns()).frame, check_dtype=False
    )


def test_a_byte_order_mark_is_no_part_of_a_name(file):
    assert len(read(file("\ufeff" + PLAIN), Columns()).frame) == 4


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("rater,item,score\n", "has no row"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is not a table of text"),
        (b"PK\x03\x04rest", "is not a table of text"),
        ('{"ratings": []}', "is JSON"),
        ("rater,item,score\n\xff,b,3\n".encode("latin-1"), "is not UTF-8 text"),
        ("rater,item,score\na,b,3\na,c,4,5\n", "is not a CSV table (Expected 3 fields in line 3, saw 4)"),
        ("rater,item,score,score\na,b,3,4\n", "column score stands twice in the header"),
        ("rater,item,points\na,b,3\n", "column score is missing; name the column of ratings with --score"),
        ("rater,item,score\na,b,good\n", "'good' in row 1 of column score is not a number"),
        ("rater,item,score\na,b,inf\n", "row 1 of column score is infinite"),
        ("rater,item,score\na,b,3\na,b,4\n", "a rated b on score more than once (row 2)"),
        ("rater,item,score\na,b,3\n,b,4\n", "no rater in row 2"),
    ],
)
def test_a_wrong_file_is_one_sentence(file, content, says):
    assert says in refused(file(content))


def test_a_rating_off_the_given_scale_is_refused(file):
    message = refused(file("rater,item,score\na,b,3\na,c,9\n"), Columns(scale=(1, 5)))
    assert "9 in row 2 is outside the scale's 1 to 5" in message


def test_a_column_that_is_not_there_is_named_with_those_that_are(file):
    assert "has no column who (--rater); its columns are rater, item, score" in refused(
        file(PLAIN), Columns(rater="who")
    )


def test_a_name_taken_for_something_else_is_refused(file):
    path = file("rater,item,score,source,model\na,b,3,web,x\n")
    assert "column source would be hidden, as --source takes model" in refused(path, Columns(source="model"))


def test_no_file_is_said_so(tmp_path):
    assert "no such file or study folder" in refused(tmp_path / "nothing.csv")
