"""The small real model of this machine, end to end. `make validate` installs the extra that brings it."""

import json
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

from analysis import cli as analysis
from generation import cli as generation
from generation.sources.local import NAME
from study import cli, config, folder, releasable, tables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs the extra `local`"),
]
SOURCE = '[[source]]\nid = "small"\nkind = "local"\nmax_tokens = 24\n\n'
JUDGE = '\n[[judge]]\nid = "small-judge"\nkind = "local"\nrubric = "en"\nmetrics = ["fluency"]\n'


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A study of two questions, answered by the small model."""
    study = folder.new(tmp_path_factory.mktemp("local") / "study", title="Small model", seed=1)
    text = (study.folder / "study.toml").read_text(encoding="utf-8")
    head, tail = text.split("[[source]]", 1)[0], text[text.index("[panel]") :]
    (study.folder / "study.toml").write_text(head + SOURCE + tail + JUDGE, encoding="utf-8")
    prompts = json.loads((study.folder / "prompts.json").read_text(encoding="utf-8"))
    prompts["prompts"] = prompts["prompts"][:2]
    (study.folder / "prompts.json").write_text(json.dumps(prompts, ensure_ascii=False), encoding="utf-8")
    ran = CliRunner().invoke(generation.app, ["run", str(study.folder)])
    assert 0 == ran.exit_code, ran.output
    return config.load(study.folder)


def test_a_real_model_answers_and_is_marked_a_demonstration(answered):
    rows = tables.read(answered.responses, tables.RESPONSES)
    assert ["ok", "ok"] == list(rows["status"])
    assert {NAME} == set(rows["model"])
    assert rows["demo"].all()
    assert [
        "source small is for demonstration only; take it out of study.toml and run again"
    ] == releasable.problems(rows, 7.0)


def test_a_real_models_noise_is_a_judge_error_and_no_value(answered):
    assert 0 == CliRunner().invoke(cli.app, ["assign", str(answered.folder)]).exit_code
    ran = CliRunner().invoke(analysis.app, ["judge", str(answered.folder)])
    assert 0 == ran.exit_code, ran.output
    rows = tables.read(answered.ratings, tables.RATINGS)
    assert 2 == len(rows)
    assert (rows["value"].isna() == (rows["status"] != "ok")).all()
    assert set(rows["status"]) <= {"ok", "judge_error", "cannot_judge"}
    assert {NAME} == set(rows["model"])
