"""study.toml: every mistake is named with its place and the keys that would be right."""

import pytest

from study import config, folder
from study.errors import StudyError

GOOD = """
[study]
id = "s"
title = "t"
seed = 1
[[source]]
id = "a"
kind = "ledger"
[[metric]]
id = "fluency"
item = "utterance"
low = 1
high = 5
"""


def load(tmp_path, text):
    (tmp_path / "study.toml").write_text(text, "utf-8")
    return config.load(tmp_path)


def problem(tmp_path, text):
    with pytest.raises(StudyError) as error:
        load(tmp_path, text)
    return str(error.value)


def test_a_small_study_loads(tmp_path):
    study = load(tmp_path, GOOD + "[panel]\nraters = 3\n")
    assert ("rater-01", "rater-02", "rater-03") == study.raters
    assert "a" == study.sources[0].source_id
    assert 5 == study.metric("fluency").high


def test_further_keys_of_a_source_are_its_settings(tmp_path):
    study = load(tmp_path, GOOD.replace('kind = "ledger"', 'kind = "openai_chat"\nmodel = "m"\ntemperature = 0.7'))
    assert {"model": "m", "temperature": 0.7} == study.sources[0].settings


def test_an_unknown_key_is_named_with_the_known_ones(tmp_path):
    said = problem(tmp_path, GOOD + "lowest = 1\n")
    assert "metric 1 has an unknown key lowest; known are id, item, low, high" in said


def test_a_missing_key_is_named(tmp_path):
    assert "[study] lacks seed" in problem(tmp_path, GOOD.replace("seed = 1\n", ""))


def test_a_mistyped_value_is_named(tmp_path):
    assert "metric 1 low = 'one'" in problem(tmp_path, GOOD.replace("low = 1", 'low = "one"'))


def test_all_problems_come_in_one_message(tmp_path):
    text = GOOD.replace("seed = 1\n", "").replace("low = 1", 'low = "one"') + "[panels]\nraters = 1\n"
    assert 3 == len(problem(tmp_path, text).splitlines())


def test_a_scale_upside_down_and_too_few_anchors_are_named(tmp_path):
    assert "high 5 must be above low 7" in problem(tmp_path, GOOD.replace("low = 1", "low = 7"))
    assert "2 anchors for a scale of 5 points" in problem(tmp_path, GOOD + 'anchors = ["bad", "good"]\n')


def test_names_stand_once(tmp_path):
    assert "source a stands twice" in problem(tmp_path, GOOD + '[[source]]\nid = "a"\nkind = "ledger"\n')


def test_incomplete_blocks_need_their_number(tmp_path):
    assert "raters_per_encounter goes with" in problem(tmp_path, GOOD + '[design]\nkind = "incomplete"\n')


def test_no_folder_no_file_no_toml(tmp_path):
    with pytest.raises(StudyError, match="no such study folder"):
        config.load(tmp_path / "none")
    with pytest.raises(StudyError, match="not found"):
        config.load(tmp_path)
    assert "is not TOML" in problem(tmp_path, "[study\n")


def test_the_template_is_a_study_of_nine_metrics_and_five_sources(tmp_path):
    study = folder.new(tmp_path / "s")
    assert (9, 5, 17) == (len(study.metrics), len(study.sources), len(study.raters))
    assert 70 == len(study.content().prompts)
    assert study.simulation is None


def test_a_title_with_quotes_survives(tmp_path):
    assert 'say "ah"' == folder.new(tmp_path / "s", title='say "ah"').title


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StudyError, match="not empty"):
        folder.new(tmp_path)
    assert ["thesis.txt"] == [p.name for p in tmp_path.iterdir()]
