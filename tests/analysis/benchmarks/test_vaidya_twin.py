"""A score's calibrated twin: the panel's mean where a calibration holds, and the word uncalibrated where none."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from analysis import cli
from analysis.benchmarks.vaidya.metrics import METRICS
from analysis.benchmarks.vaidya.twin import _mean
from analysis.judge_identity import named
from analysis.stats.prediction_powered import moments, ppi_mean
from study import config, tables
from study.errors import StudyError

N = 40


def ran(*words, code=0):
    found = CliRunner().invoke(cli.app, [str(w) for w in words], catch_exceptions=False)
    assert code == found.exit_code, found.output
    return found.stdout


def vaidya(command, folder, *more):
    return ran("benchmark", "vaidya", command, "--input", "cases.json", "--output-dir", folder, *more)


def evaluated(*more, folder="oracle"):
    said = vaidya("evaluate", folder, "--by", "rule", *more)
    held = json.loads(Path(folder, "evaluation-diagbench-rule.json").read_text("utf-8"))
    return said, held["summary"]["calibration"]


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """Two doctors on forty cases; three people rated half of them, and one in five of them never agrees."""
    here = tmp_path_factory.mktemp("twin")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        cases = [
            {"patient_id": i, "case_study": f"It began {i + 2} days ago.", "expected_diagnosis": f"Illness {i}a"}
            for i in range(N)
        ]
        Path("cases.json").write_text(json.dumps(cases))
        for doctor in ("oracle", "mute"):
            vaidya("run", doctor, "--doctor-model", doctor, "--patient-model", "embedded", "--max-rounds", "2")
            evaluated(folder=doctor)
        ran("benchmark", "to-study", "oracle", "mute", "--into", "panel", "--n", N, "--raters", 3, "--seed", 1)
        people("panel")
        about = "oracle/about-diagbench-rule.toml"
        ran("calibrate", "panel", "--judge", "diagbench-rule", "--about", about, "--bootstrap", "100", "--out",
            "oracle/results")  # fmt: skip
    return here


def people(folder):
    """Ratings by three simulated people: the rule's own, but for every fifth case where they find nobody right."""
    study = config.load(Path(folder))
    items, key = tables.read(study.items, tables.ITEMS), tables.read(study.key, tables.KEY)
    whole = items[items["kind"] == "encounter"].merge(key, on="label")
    rows = [
        {"rater_id": name, "rater_kind": "human", "label": r.label, "metric_id": "diagnosis", "occasion": 1,
         "value": float(r.source_id == "oracle" and int(r.case_id) % 5 != 0), "status": "ok", "reason": None,
         "simulated": True}
        for r in whole.itertuples() for name in study.raters
    ]  # fmt: skip
    before = tables.read(study.ratings, tables.RATINGS)
    tables.write(tables.stacked(before, tables.typed(rows, tables.RATINGS)), study.ratings, tables.RATINGS)


@pytest.fixture
def here(calibrated, monkeypatch):
    monkeypatch.chdir(calibrated)
    return calibrated


def test_a_calibration_in_the_folder_gives_the_twin(here):
    said, twin = evaluated()
    study = config.load(Path("panel"))
    whole = tables.read(study.items, tables.ITEMS).query("kind == 'encounter'")
    taught = sorted(set(whole["case_id"].astype(int)))
    # The rule says 1 everywhere, so that nothing but the panel's own share is left of the correction.
    share = np.mean([i % 5 != 0 for i in taught])
    assert ("calibrated", N // 2, N - len(taught)) == (twin["word"], twin["n_labelled"], twin["n_new"])
    assert share == pytest.approx(twin["estimate"], abs=1e-12)
    assert twin["low"] < share < 1.0
    assert "n = 40/40 (100%), calibrated" in said and "as the panel would have it: " in said
    assert twin["simulated"] and "20 by this rater alone; the panel is simulated" in said


def test_a_card_that_is_named_counts_as_well(here):
    card = "oracle/results/calibration/diagbench-rule/judge-card.json"
    assert "calibrated" == evaluated("--calibration", card, folder="mute")[1]["word"]
    with pytest.raises(StudyError, match="cannot be read"):
        evaluated("--calibration", "none.json")
    with pytest.raises(StudyError, match="is no judge card"):
        evaluated("--calibration", "cases.json")


def spoiled(tmp_path, change):
    card = json.loads(Path("oracle/results/calibration/diagbench-rule/judge-card.json").read_text("utf-8"))
    change(card)
    path = tmp_path / "judge-card.json"
    path.write_text(json.dumps(card))
    return evaluated("--calibration", path)[1]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: c["metrics"]["diagnosis"]["holds_for"].update(models=["rule/0"]), "void: the judge's model"),
        (lambda c: c["metrics"]["diagnosis"]["holds_for"].update(prompt_sha256="0" * 64), "the judge's prompt"),
        (lambda c: c["metrics"]["diagnosis"]["holds_for"]["metric"].update(sha256="0"), "the metric"),
        (lambda c: c["metrics"]["diagnosis"]["holds_for"].update(prompt_sha256=None), "does not say which prompt"),
        (lambda c: c["metrics"]["diagnosis"]["apply"]["moments"].pop("oracle"), "not among the doctors"),
        (lambda c: c["metrics"]["diagnosis"]["apply"].pop("cases"), "which cases"),
        (lambda c: c["metrics"].pop("diagnosis"), "does not cover diagnosis"),
        (lambda c: c["judge"].update(name="another"), "is of another"),
    ],
)
def test_a_calibration_that_does_not_hold_is_none(here, tmp_path, change, why):
    twin = spoiled(tmp_path, change)
    assert "uncalibrated" == twin["word"] and why in twin["why"]
    assert "estimate" not in twin


def test_without_a_calibration_the_word_stands_by_the_score(here):
    said, twin = evaluated(folder="mute")
    assert "uncalibrated" == twin["word"] and ", uncalibrated" in said


def test_a_metric_is_the_same_in_the_study_made_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = [{"question": "When did this start?", "score": 3}]
    cases = [{"patient_id": i, "case_study": "Two days.", "expected_questions": asked} for i in range(3)]
    Path("cases.json").write_text(json.dumps(cases))
    vaidya("run", "mute", "--doctor-model", "mute", "--patient-model", "embedded", "--max-rounds", "2")
    vaidya("evaluate", "mute", "--by", "rule")
    ran("benchmark", "to-study", "mute", "--into", "panel", "--n", 3, "--raters", 2, "--seed", 1)
    found = config.load(Path("panel")).metric("question_coverage")
    assert named(METRICS["medconvbench"]) == named(found)


def test_the_twin_is_the_prediction_powered_mean():
    # Against the library's own function on the raw scores, which has its reference elsewhere.
    rng = np.random.default_rng(3)
    judge, new = rng.integers(0, 2, 30).astype(float), rng.integers(0, 2, 70).astype(float)
    panel = np.where(rng.random(30) < 0.8, judge, 1 - judge)
    stored = vars(moments(panel, judge, judge))
    wanted = ppi_mean(panel, judge, new).estimate
    found = _mean(stored, new)
    assert (wanted.estimate, wanted.low, wanted.high) == pytest.approx(
        (found["estimate"], found["low"], found["high"]), abs=1e-12
    )
    alone = _mean(stored, new[:1])
    assert panel.mean() == pytest.approx(alone["estimate"]) and 0 == alone["n_new"]
