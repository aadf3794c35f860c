"""A provider's batch files, out and in."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from generation import batch, cli
from generation.run import JOURNAL, run
from generation.status import standings
from generation.verify import verify
from study import config, folder, tables
from study.errors import StudyError

_spec = importlib.util.spec_from_file_location("loopback", Path(__file__).parents[1] / "loopback.py")
loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loopback)
Loopback, chat, failure = loopback.Loopback, loopback.chat, loopback.failure


@pytest.fixture
def server():
    with Loopback() as running:
        yield running


@pytest.fixture
def study(tmp_path, server):
    path = tmp_path / "study"
    folder.new(path)
    toml = path / "study.toml"
    text = toml.read_text(encoding="utf-8")
    row = '[[source]]\nid = "gpt"\nkind = "openai_chat"\nmodel = "gpt-1"\nattempts = 1\n'
    row += f'base_url = "{server.url}"\n\n'
    embedded = '[[source]]\nid = "draft_reference"\nkind = "draft_reference"\n\n'
    tail = text[text.index("[panel]") :]
    toml.write_text(text[: text.index("[[source]]")] + row + embedded + tail, encoding="utf-8")
    return config.load(path)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answered(questions, path, change=lambda line, n: line):
    """A provider's answers to exported questions, in another order."""
    told = [
        {"id": f"batch_req_{n}", "custom_id": q["custom_id"], "error": None,
         "response": {"status_code": 200, "request_id": f"req_{n}", "body": chat(f"대답 {n}이에요.")}}
        for n, q in enumerate(questions)
    ]  # fmt: skip
    told = [change(line, n) for n, line in enumerate(told)][::-1]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in told), encoding="utf-8")
    return path


def test_the_open_questions_go_out_as_they_would_be_sent(study, server, tmp_path):
    assert 70 == batch.export(study, "gpt", tmp_path / "b.jsonl")
    found = lines(tmp_path / "b.jsonl")
    run(study)
    assert {json.dumps(q["body"], sort_keys=True) for q in found} == {
        json.dumps(h.body, sort_keys=True) for h in server.hits
    }
    assert {("POST", "/v1/chat/completions")} == {(q["method"], q["url"]) for q in found}
    assert 70 == len({q["custom_id"] for q in found})
    assert max(len(q["custom_id"]) for q in found) <= 64


def test_answers_come_back_to_their_questions_in_any_order(study, tmp_path):
    batch.export(study, "gpt", tmp_path / "b.jsonl")
    questions = lines(tmp_path / "b.jsonl")
    done = CliRunner().invoke(
        cli.app,
        ["import-batch", "gpt", str(answered(questions, tmp_path / "o.jsonl")), "--study", str(study.folder)],
    )
    assert done.exception is None, done.exception
    assert "70 answers of gpt taken" in done.stdout
    found = tables.read(study.responses, tables.RESPONSES).query("source_id == 'gpt'")
    by_key = {q["custom_id"]: f"대답 {n}이에요." for n, q in enumerate(questions)}
    assert all(by_key[row.question] == row.text for row in found.itertuples())
    assert 0 == run(study).statuses["gpt"].get("failed", 0)
    assert [] == verify(study).problems
    assert (70, 0) == next((s.attempts.sent, s.attempts.lost) for s in standings(study) if s.source == "gpt")


def test_a_batch_that_answered_in_part_leaves_the_rest_open(study, server, tmp_path):
    batch.export(study, "gpt", tmp_path / "b.jsonl")
    part = lines(tmp_path / "b.jsonl")[:40]
    assert batch.Imported(40, 0, 0) == batch.import_(study, "gpt", [answered(part, tmp_path / "o.jsonl")])
    assert 30 == batch.export(study, "gpt", tmp_path / "rest.jsonl")
    run(study)
    assert 30 == len(server.hits)


def test_failed_lines_are_rows_and_stay_open(study, tmp_path):
    def fail(line, n):
        if n == 0:
            return line | {
                "response": {"status_code": 400, "request_id": "r", "body": {"error": {"message": "too long"}}}
            }
        if n == 1:
            return line | {"response": None, "error": {"code": "batch_expired", "message": "not done in time"}}
        if n == 2:
            return line | {"response": {"status_code": 200, "request_id": "r", "body": {"choices": None}}}
        return line

    batch.export(study, "gpt", tmp_path / "b.jsonl")
    out = answered(lines(tmp_path / "b.jsonl"), tmp_path / "o.jsonl", fail)
    assert batch.Imported(67, 0, 3) == batch.import_(study, "gpt", [out])
    found = tables.read(study.responses, tables.RESPONSES).query("status == 'failed' and source_id == 'gpt'")
    assert {
        "HTTP 400: too long", "the batch failed: not done in time", "the reply has no choice (choices is null)"
    } == set(found["detail"])  # fmt: skip
    assert 3 == batch.export(study, "gpt", tmp_path / "rest.jsonl")


def test_importing_twice_changes_nothing(study, tmp_path):
    batch.export(study, "gpt", tmp_path / "b.jsonl")
    out = answered(lines(tmp_path / "b.jsonl"), tmp_path / "o.jsonl")
    batch.import_(study, "gpt", [out])
    before = (study.folder / JOURNAL).read_bytes()
    assert batch.Imported(0, 70, 0) == batch.import_(study, "gpt", [out])
    assert before == (study.folder / JOURNAL).read_bytes()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"custom_id": "abc", "response": {}}\n', "o.jsonl:1: custom_id abc… is not a question of this source"),
        ('{"response": {}}\n', "o.jsonl:1: is not a line of a batch's answers"),
        ('{"custom_id": "ab', "o.jsonl:1: is not a line of a batch's answers"),
        ("[]\n", "o.jsonl:1: is not a line of a batch's answers"),
    ],
)
def test_a_file_with_a_problem_is_not_taken(study, tmp_path, text, says):
    (tmp_path / "o.jsonl").write_text(text)
    with pytest.raises(StudyError) as caught:
        batch.import_(study, "gpt", [tmp_path / "o.jsonl"])
    assert says in str(caught.value)
    assert not (study.folder / JOURNAL).exists()


def test_a_question_answered_twice_is_refused(study, tmp_path):
    batch.export(study, "gpt", tmp_path / "b.jsonl")
    out = answered(lines(tmp_path / "b.jsonl")[:2], tmp_path / "o.jsonl")
    with pytest.raises(StudyError, match="is answered twice"):
        batch.import_(study, "gpt", [out, out])


@pytest.mark.parametrize(("name", "says"), [("draft_reference", "is no model"), ("claude", "no source claude")])
def test_only_models_have_batches(study, tmp_path, name, says):
    with pytest.raises(StudyError, match=says):
        batch.export(study, name, tmp_path / "b.jsonl")


def test_nothing_open_is_said(study, tmp_path):
    run(study)
    with pytest.raises(StudyError, match="there is nothing to export"):
        batch.export(study, "gpt", tmp_path / "b.jsonl")
