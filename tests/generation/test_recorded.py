"""Answers that were given elsewhere."""

import pytest

from generation.sources.kinds import open_source
from generation.sources.speaker import Request
from study.content import load, shipped
from study.errors import StudyError
from study.records import Source

CONTENT = load(shipped("cases.json"), shipped("prompts.json"))
FIRST = CONTENT.prompts[0]


def recorded(folder, text, name="answers.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return open_source(Source("old", "recorded", "old", {"file": name}), CONTENT, folder)


def asked(source, prompt):
    return source.answer(Request(CONTENT.cases[prompt.case_id], prompt.text, prompt))


def test_a_recorded_answer_is_given_as_it_stands(tmp_path):
    source = recorded(tmp_path, f'prompt_id,text\n{FIRST.prompt_id},"네, 정대식이에요."\n')
    assert ("ok", "네, 정대식이에요.") == (asked(source, FIRST).status, asked(source, FIRST).text)


def test_a_prompt_without_recorded_answer_is_missing_not_empty(tmp_path):
    source = recorded(tmp_path, f"prompt_id,text\n{FIRST.prompt_id},\n")
    answer = asked(source, FIRST)
    assert ("missing", None) == (answer.status, answer.text)


def test_a_blank_recorded_answer_has_status_empty(tmp_path):
    source = recorded(tmp_path, f'prompt_id,text\n{FIRST.prompt_id},"  "\n')
    assert ("empty", None) == (asked(source, FIRST).status, asked(source, FIRST).text)


@pytest.mark.parametrize(("text", "sentence"), [
    ("prompt,text\nHEM-Q01,x\n", "lacks the column prompt_id; it has prompt, text"),
    ("prompt_id,text\nHEM-Q01,x\nHEM-Q01,y\n", "HEM-Q01 is answered twice"),
    ("prompt_id,text\nHEM-Q99,x\n", "HEM-Q99 is not a prompt of this study"),
    ("", "is not a CSV table"),
])  # fmt: skip
def test_a_wrong_file_is_refused_before_anything_is_asked(tmp_path, text, sentence):
    with pytest.raises(StudyError, match=sentence):
        recorded(tmp_path, text)


def test_a_picture_is_no_answers_file(tmp_path):
    (tmp_path / "answers.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe")
    with pytest.raises(StudyError, match="is not a CSV table"):
        open_source(Source("old", "recorded", "old", {"file": "answers.csv"}), CONTENT, tmp_path)


@pytest.mark.parametrize("settings", [{}, {"file": ""}, {"file": 3}])
def test_a_recorded_source_needs_its_file(tmp_path, settings):
    with pytest.raises(StudyError, match="needs file"):
        open_source(Source("old", "recorded", "old", settings), CONTENT, tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"gone\.csv: no such file"):
        open_source(Source("old", "recorded", "old", {"file": "gone.csv"}), CONTENT, tmp_path)
