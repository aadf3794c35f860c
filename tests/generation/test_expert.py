"""The human expert: the questions out, the answers in, aligned one to one and attested."""

import csv
import json

import openpyxl
import pandas as pd
import pytest
from typer.testing import CliRunner

from generation import cli, expert
from generation.run import run
from study import config, folder, tables
from study.errors import StudyError

EXPERT = '[[source]]\nid = "clinician"\nkind = "expert"\n\n'


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study"
    folder.new(path)
    toml = path / "study.toml"
    text = toml.read_text(encoding="utf-8")
    toml.write_text(text[: text.index("[[source]]")] + EXPERT + text[text.index("[panel]") :], encoding="utf-8")
    return config.load(path)


def filled(path, change=lambda rows: rows):
    """The exported CSV with an answer in every row; `change` edits the rows."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    rows = change([row | {"answer": f"{row['prompt_id']}에 대한 대답이에요."} for row in rows])
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, expert.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("name", ["q.csv", "q.xlsx"])
def test_the_list_holds_the_questions_and_no_answer(study, tmp_path, name):
    content = study.content()
    cases = expert.export(content, tmp_path / name)
    rows = expert._rows(tmp_path / name)
    assert [p.text for p in expert._ordered(content)] == [row["question"] for _, row in rows]
    assert {""} == {row["answer"] for _, row in rows}
    raw = (tmp_path / name).read_bytes() + cases.read_bytes()
    for prompt in content.prompts:
        assert prompt.reference_answer.encode() not in raw
    told = cases.read_text(encoding="utf-8")
    persona = content.cases["HEM"].persona
    assert persona.history in told
    assert persona.behavioral_constraints not in told


def test_an_experts_answers_become_a_source(study, tmp_path):
    expert.export(study.content(), tmp_path / "q.csv")
    args = ["expert", "import", str(filled(tmp_path / "q.csv")), str(study.folder), "--source", "clinician"]
    done = CliRunner().invoke(cli.app, [*args, "--attested-by", "K. S."])
    assert done.exception is None, done.exception
    assert "saw no model's answer" in done.stdout
    run(study)
    found = tables.read(study.responses, tables.RESPONSES)
    assert 70 == len(found)
    assert (found["text"] == found["prompt_id"] + "에 대한 대답이에요.").all()
    kept = json.loads(expert.place(study.folder, "clinician").read_text(encoding="utf-8"))
    assert ("K. S.", expert.ATTESTATION) == (kept["attested_by"], kept["attestation"])


def test_a_spreadsheet_comes_back_too(study, tmp_path):
    path = tmp_path / "q.xlsx"
    expert.export(study.content(), path)
    book = openpyxl.load_workbook(path)
    for row in book.active.iter_rows(min_row=2):
        row[5].value = "네, 없어요."
    book.save(path)
    found = expert.import_(study, "clinician", path, "K. S.")
    assert 70 == len(found.answers)


def test_a_spreadsheet_saved_as_korean_windows_does_is_read(study, tmp_path):
    path = tmp_path / "q.csv"
    expert.export(study.content(), path)
    path.write_bytes(filled(path).read_text(encoding="utf-8").encode("cp949"))
    assert 70 == len(expert.import_(study, "clinician", path, "K. S.").answers)


def test_until_the_expert_has_answered_the_rows_are_missing_and_are_not_written_twice(study):
    assert {"clinician": {"missing": 70}} == run(study).statuses
    size = (study.folder / "responses.jsonl").stat().st_size
    run(study)
    assert size == (study.folder / "responses.jsonl").stat().st_size


def changed_list(rows):
    return [row | {"list": "0" * 16} for row in rows]


def changed_question(rows):
    return [rows[0] | {"question": "다른 질문?"}, *rows[1:]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed_list, "was made for another list of questions (0000000000000000"),
        (changed_question, ":2: the question of HEM-Q01 was changed; restore it"),
        (lambda rows: rows[1:], "lacks HEM-Q01"),
        (lambda rows: [*rows, rows[0]], ":72: HEM-Q01 is answered twice"),
        (lambda rows: [rows[0] | {"answer": "  "}, *rows[1:]], ":2: HEM-Q01 has no answer"),
        (lambda rows: [rows[0] | {"prompt_id": "XXX-Q01"}, *rows[1:]], ":2: XXX-Q01 is not a prompt"),
    ],
)
def test_answers_that_do_not_fit_the_list_are_refused(study, tmp_path, change, says):
    expert.export(study.content(), tmp_path / "q.csv")
    with pytest.raises(StudyError) as caught:
        expert.import_(study, "clinician", filled(tmp_path / "q.csv", change), "K. S.")
    assert says in str(caught.value)
    assert not expert.place(study.folder, "clinician").exists()


def test_all_problems_come_in_one_message(study, tmp_path):
    expert.export(study.content(), tmp_path / "q.csv")
    path = filled(tmp_path / "q.csv", lambda rows: [r | {"answer": ""} for r in rows[:3]] + rows[4:])
    with pytest.raises(StudyError) as caught:
        expert.import_(study, "clinician", path, "K. S.")
    assert 4 == len(str(caught.value).splitlines())


def test_without_attestation_nothing_is_taken(study, tmp_path):
    expert.export(study.content(), tmp_path / "q.csv")
    with pytest.raises(StudyError, match="nobody attests for clinician"):
        expert.import_(study, "clinician", filled(tmp_path / "q.csv"), " ")


def test_answers_are_taken_once(study, tmp_path):
    expert.export(study.content(), tmp_path / "q.csv")
    path = filled(tmp_path / "q.csv")
    expert.import_(study, "clinician", path, "K. S.")
    with pytest.raises(StudyError, match="holds the answers of clinician already"):
        expert.import_(study, "clinician", path, "K. S.")


def test_an_expert_that_study_toml_does_not_name_is_refused(study, tmp_path):
    expert.export(study.content(), tmp_path / "q.csv")
    with pytest.raises(StudyError, match='no source second of kind "expert"'):
        expert.import_(study, "second", filled(tmp_path / "q.csv"), "K. S.")


def test_prompts_changed_after_the_answers_are_noticed(study, tmp_path):
    expert.export(study.content(), tmp_path / "q.csv")
    expert.import_(study, "clinician", filled(tmp_path / "q.csv"), "K. S.")
    prompts = study.folder / "prompts.json"
    prompts.write_text(
        prompts.read_text(encoding="utf-8").replace("담배를 피우시나요?", "담배 피우세요?"), encoding="utf-8"
    )
    with pytest.raises(StudyError, match="answers the list of questions"):
        run(study)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("q.csv", b"a,b\n1,2\n", "lacks the column list, case, turn, prompt_id, question, answer"),
        ("q.csv", b"", "lacks the column"),
        ("q.csv", b"\xff\xfe\x81", "is neither UTF-8 nor CP949"),
        ("q.xlsx", b"no zip", "is not an .xlsx file"),
    ],
)
def test_a_file_that_is_no_list_is_named(study, tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudyError) as caught:
        expert.import_(study, "clinician", tmp_path / name, "K. S.")
    assert says in str(caught.value)


def test_only_tables_are_written(study, tmp_path):
    with pytest.raises(StudyError, match="name a .csv or an .xlsx file"):
        expert.export(study.content(), tmp_path / "q.docx")


def test_a_text_that_begins_like_a_formula_stays_a_text(study, tmp_path):
    prompts = study.folder / "prompts.json"
    prompts.write_text(prompts.read_text(encoding="utf-8").replace("담배를 피우시나요?", "=1+1"), encoding="utf-8")
    expert.export(config.load(study.folder).content(), tmp_path / "q.xlsx")
    assert "=1+1" in [row["question"] for _, row in expert._rows(tmp_path / "q.xlsx")]


def test_two_experts_are_two_sources(study, tmp_path):
    toml = study.folder / "study.toml"
    second = EXPERT.replace("clinician", "second")
    toml.write_text(toml.read_text(encoding="utf-8").replace("[panel]", second + "[panel]"), encoding="utf-8")
    both = config.load(study.folder)
    expert.export(both.content(), tmp_path / "q.csv")
    for name in ("clinician", "second"):
        expert.import_(both, name, filled(tmp_path / "q.csv"), name)
    run(both)
    assert {"clinician": 70, "second": 70} == pd.Series(
        tables.read(both.responses, tables.RESPONSES)["source_id"]
    ).value_counts().to_dict()
