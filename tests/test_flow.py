"""From prompts to paper, once through, with the command that a newcomer types first."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from study import tables
from study.config import load


def command(*words: object) -> subprocess.CompletedProcess:
    """A command of the house, as typed."""
    return subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("flow") / "demo-study"
    done = command("study", "demo", folder)
    assert 0 == done.returncode, done.stderr
    assert str(folder / "report.html") in done.stdout
    return folder


def test_the_grid_of_responses_is_exact(demo):
    responses = tables.read(load(demo).responses, tables.RESPONSES)
    assert 350 == len(responses)
    assert {5} == set(responses.groupby("prompt_id")["source_id"].nunique())
    assert {"ok"} == set(responses["status"])


def test_running_again_adds_nothing(demo):
    study = load(demo)
    before = study.responses.read_bytes()
    assert 0 == command("generation", "run", demo).returncode
    assert before == study.responses.read_bytes()


def test_what_raters_see_names_no_source(demo):
    study = load(demo)
    for path in (study.items, study.assignment):
        raw = path.read_bytes()
        assert not [s.source_id for s in study.sources if s.source_id.encode() in raw], path


def test_the_rating_table_is_fully_crossed_and_says_simulated(demo):
    study = load(demo)
    ratings = tables.read(study.ratings, tables.RATINGS)
    # 17 raters × (350 responses × 3 metrics + 15 encounters × 6 metrics)
    assert 19_380 == len(ratings)
    assert ratings["simulated"].all()
    assert "true" == tables.metadata(study.ratings)["crossed.simulated"]
    assert {"ok", "missing"} == set(ratings["status"])


def test_planted_faults_are_found_where_they_were_planted_and_nowhere_else(demo):
    done = command("analysis", "fit", demo, "--metric", "fluency", "--json")
    assert 0 == done.returncode, done.stderr
    found = pd.DataFrame(json.loads(done.stdout)["coefficients"]).set_index("term")
    planted = {
        "sourceledger_stiff": -0.8,
        "sourceledger_polarity:formnegative": -0.9,
        "sourceledger_clinician:categoryclinical_reasoning": -1.2,
        "sourceledger_clinician:categorypatient_education": -1.2,
    }
    by_source = found[found.index.str.startswith("source")]
    significant = by_source[by_source["p_value"] < 0.05 / len(by_source)]
    assert set(planted) == set(significant.index)
    for term, shift in planted.items():
        # Rounding to a scale with a ceiling shrinks effects a little; no more than a fifth here.
        assert 1.05 * shift < significant.loc[term, "estimate"] < 0.8 * shift, term


def test_the_report_shows_all_nine_metrics_and_says_simulated(demo):
    report = (demo / "report.html").read_text("utf-8")
    for metric in load(demo).metrics:
        assert metric.metric_id.replace("_", " ") in report.lower()
    assert "simulated" in report
    assert not re.search(r'<script|(src|href)="(?!#|data:)', report), "the report must work without a network"


def test_check_and_status_find_the_study_in_order(demo):
    assert "no problem found" in command("study", "check", demo).stdout
    stands = json.loads(command("study", "status", demo, "--json").stdout)
    assert all(step["stands"] for step in stands)


def test_the_demo_becomes_a_data_package_that_says_simulated(demo, tmp_path):
    done = command("study", "release", demo, "--into", tmp_path / "package", "--json")
    assert 0 == done.returncode, done.stderr
    told = json.loads(done.stdout)
    assert (19_380, 350, 17) == tuple(told["rows"][f"{t}.parquet"] for t in ("ratings", "responses", "raters"))
    assert (19_380, {}) == (told["simulated"], told["replaced"])
    assert "The panel's ratings are SIMULATED" in (tmp_path / "package" / "README.md").read_text("utf-8")


def test_a_second_assignment_would_orphan_ratings_and_is_refused(demo):
    done = command("study", "assign", demo)
    assert 1 == done.returncode
    assert "would make them meaningless" in done.stderr


def test_demo_into_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    done = command("study", "demo", tmp_path)
    assert 1 == done.returncode
    assert "not empty" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("study", "check", "nowhere"),
        ("study", "status", "nowhere"),
        ("study", "assign", "nowhere"),
        ("study", "release", "nowhere"),
        ("study", "verify-release", "nowhere"),
        ("study", "import", "nowhere.csv", "--into", "x"),
        ("generation", "run", "nowhere"),
        ("analysis", "fit", "nowhere"),
        ("analysis", "reliability", "nowhere"),
        ("analysis", "report", "nowhere"),
    ],
)
def test_a_place_that_is_not_there_is_one_sentence(tmp_path, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command(*words)
    assert 1 == done.returncode
    assert 1 == len(done.stderr.splitlines())
    assert "nowhere" in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_wrong_usage_exits_with_two():
    assert 2 == command("study", "nonsense").returncode
    assert 2 == command("study", "import", "x.csv").returncode
