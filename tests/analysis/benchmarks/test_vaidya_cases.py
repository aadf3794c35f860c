"""A case file is refused whole, with every problem in one message, before any model is asked."""

import json

import pytest

from analysis.benchmarks.vaidya import cases
from analysis.benchmarks.vaidya.metrics import vignette
from study.errors import StudyError

DIAG = {"patient_id": 0, "age": None, "case_study": "35-year-old with double vision.",
        "expected_diagnosis": "Myasthenia gravis"}  # fmt: skip
CONV = {"patient_id": 1, "case_study": "A cough.", "expected_questions": [{"question": "Fever?", "score": 2}]}


def written(tmp_path, content, name="cases.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def refused(tmp_path, content, name="cases.json", **how):
    with pytest.raises(StudyError) as error:
        cases.load(written(tmp_path, content, name), **how)
    return str(error.value)


def test_patient_zero_without_an_age_is_a_patient(tmp_path):
    found = cases.load(written(tmp_path, [DIAG]))
    assert ("diagbench", 0, "0") == (found.benchmark, found.patients[0].patient_id, found.patients[0].case_id)


def test_unknown_keys_are_kept(tmp_path):
    found = cases.load(written(tmp_path, [DIAG | {"ward": {"bed": 7}}]))
    assert {"bed": 7} == found.patients[0].entry["ward"] == vignette(found.patients[0]).extra["ward"]


def test_a_changed_text_is_another_case(tmp_path):
    one, two = (cases.load(written(tmp_path, [DIAG | {"case_study": text}])) for text in ("a", "b"))
    assert one.patients[0].digest != two.patients[0].digest


def test_questions_and_their_scores_are_read(tmp_path):
    found = cases.load(written(tmp_path, [CONV]))
    assert ("medconvbench", 2.0) == (found.benchmark, found.patients[0].total)


@pytest.mark.parametrize("number", [True, False, "0", 1.0, None, [1]], ids=str)
def test_a_patient_id_that_is_no_integer_is_refused(tmp_path, number):
    assert "patient_id is" in refused(tmp_path, [DIAG | {"patient_id": number}])


@pytest.mark.parametrize("key", ["patient_id", "case_study", "expected_diagnosis"])
def test_what_is_missing_is_named(tmp_path, key):
    entry = {k: v for k, v in DIAG.items() if k != key}
    message = refused(tmp_path, [entry], benchmark="diagbench")
    assert "case [0]" in message and key in message


@pytest.mark.parametrize("text", ["", "  ", None, {"a": 1}, 3], ids=str)
def test_a_case_without_words_is_refused(tmp_path, text):
    assert "case_study is" in refused(tmp_path, [DIAG | {"case_study": text}])


def test_duplicates_are_named_by_both_places(tmp_path):
    message = refused(tmp_path, [DIAG, DIAG | {"patient_id": 1}, DIAG])
    assert "cases [0] and [2] have the same patient_id 0" in message


@pytest.mark.parametrize(
    "asked",
    [
        None, [], "Fever?", [3], [{"question": "", "score": 1}], [{"score": 1}], [{"question": "Fever?"}],
        [{"question": "Fever?", "score": "2"}], [{"question": "Fever?", "score": True}],
        [{"question": "Fever?", "score": -1}],
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_list_of_questions_is_refused(tmp_path, asked):
    entry = CONV | {"expected_questions": asked}
    assert "expected_questions" in refused(tmp_path, [entry], benchmark="medconvbench")


def test_scores_that_sum_to_nothing_are_refused(tmp_path):
    entry = CONV | {"expected_questions": [{"question": "Fever?", "score": 0}]}
    assert "sum to 0" in refused(tmp_path, [entry])


def test_all_problems_stand_in_one_message(tmp_path):
    message = refused(tmp_path, [DIAG | {"patient_id": "0"}, 5, DIAG | {"case_study": ""}])
    assert 3 == len(message.splitlines())


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (DIAG, "cases.json", "an object"), ([], "cases.json", "no case"), ("5", "cases.json", "a number"),
        (f"{json.dumps(DIAG)}\n{json.dumps(CONV)}\n", "cases.json", "JSON lines"),
        (f"{json.dumps(DIAG)}\n", "cases.jsonl", "no .json file"), ("[{]", "cases.json", "cases.json:1"),
        ('[{"patient_id": 1, "patient_id": 2}]', "cases.json", "twice"), ("[NaN]", "cases.json", "NaN"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused(tmp_path, content, name, said):
    assert said in refused(tmp_path, content, name)


def test_a_folder_and_a_file_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(StudyError, match="is a folder"):
        cases.load(tmp_path)
    with pytest.raises(StudyError, match="cannot be read"):
        cases.load(tmp_path / "none.json")


def test_cases_of_two_benchmarks_have_to_be_told(tmp_path):
    both = DIAG | {"expected_questions": CONV["expected_questions"]}
    assert "--benchmark" in refused(tmp_path, [both])
    assert "medconvbench" == cases.load(written(tmp_path, [both]), "medconvbench").benchmark
    assert "--benchmark" in refused(tmp_path, [{"patient_id": 1, "case_study": "x"}])
