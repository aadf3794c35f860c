"""A benchmark's encounters, rated by people in the app, and the benchmark's judge held against them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import cli
from analysis.benchmarks import encounters
from analysis.benchmarks.budget import Budget
from analysis.benchmarks.rate import RATINGS, rate
from analysis.benchmarks.run import Plan, run
from analysis.benchmarks.scoring import Scored
from analysis.benchmarks.to_study import exchanges, to_study
from annotation_app import session
from annotation_app.catalogue import catalogue
from annotation_app.founding import open_study
from annotation_app.pages import parts
from generation.players import player
from generation.progress import Meter
from study import state, tables
from study.errors import StudyError
from study.records import Metric, Vignette
from study.store import export, ratings

ILLS = ("Gout", "Asthma", "Migraine", "Scurvy", "Rickets", "Measles", "Mumps", "Tetanus", "Rabies", "Cholera")
METRIC = Metric("diagnosis", "encounter", 0, 1, "nominal", "Does the doctor find it?", ("no", "yes"))


class Biased:
    """A judge without a server: it says yes where it should, and to every third case whatever is there."""

    rater_id, kind, workers, metrics, identity = "keen-judge", "judge", 1, (METRIC,), {"model": "keen-1"}

    def open(self, note):
        """Nothing is asked."""

    def stop(self):
        """Nothing is under way."""

    close = stop

    def score(self, case, encounter, key):
        keen = int(case.case_id) % 3 == 0
        value = float(encounter.diagnosis == case.diagnosis or keen)
        return Scored("ok", {"diagnosis": value}, "keen" if keen else None, {"model": "keen-1", "cost": 0.001})


def benchmark(folder, doctors=("oracle", "mute"), cases=10, judged=True):
    """A rated benchmark run of embedded players."""
    names = [ILLS[i % len(ILLS)] + ("" if i < len(ILLS) else f" {i}") for i in range(cases)]
    told = tuple(
        Vignette(str(i), f"It began {i + 2} days ago. Rest makes it better. I smoke.", name,
                 extra={"chief_complaint": "pain <b>here</b>"})
        for i, name in enumerate(names)
    )  # fmt: skip
    players = tuple(player("doctor", d, diagnoses=names) for d in doctors)
    by = {c.case_id: c for c in told}
    with Meter(quiet=True) as meter:
        run(folder, Plan(told, players, player("patient", "embedded"), rounds=3), Budget(), meter)
        pairs = [(by[e.case_id], e) for e in encounters.read(folder)]
        if judged:
            rate(folder, pairs, [Biased()], Budget(), meter)
    return folder


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """Oracle and mute on ten cases, rated; nobody writes there."""
    return benchmark(tmp_path_factory.mktemp("benchmark") / "b")


def rated_by_simulated_people(study, seed=1, wrong=0.1):
    """Every rater rates every encounter through the app's own store, mostly rightly; marked simulated."""
    rng = np.random.default_rng(seed)
    items, key = tables.read(study.items, tables.ITEMS), tables.read(study.key, tables.KEY)
    source = items.merge(key, on="label").set_index("label")["source_id"]
    database = open_study(study)
    for place in tables.read(study.assignment, tables.ASSIGNMENT).itertuples():
        right = float(source[place.label] == "oracle")
        value = 1 - right if rng.random() < wrong else right
        ratings.save(database, place.rater_id, int(place.position), "diagnosis", value=value, base_version=0,
                     nonce=f"{place.rater_id}-{place.position}")  # fmt: skip
    export.write(database, study.ratings)
    database.close()
    found = tables.read(study.ratings, tables.RATINGS)
    found["simulated"] = found["rater_kind"] == "human"
    tables.write(found, study.ratings, tables.RATINGS, {"crossed.simulated": "true"})


def test_the_slice_is_whole_cases_with_every_doctor(tmp_path, rated):
    made = to_study([rated], tmp_path / "s", n=7, raters=2, seed=5)
    items, key = tables.read(made.study.items, tables.ITEMS), tables.read(made.study.key, tables.KEY)
    whole = items[items["kind"] == "encounter"].merge(key, on="label")
    assert (6, 3) == (made.encounters, made.cases)
    assert {2} == set(whole.groupby("case_id")["source_id"].nunique())
    assigned = tables.read(made.study.assignment, tables.ASSIGNMENT)
    assert set(whole["label"]) == set(assigned["label"]) and 12 == len(assigned)
    assert [] == state.problems(made.study)


def test_the_same_seed_draws_the_same_study(tmp_path, rated):
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        to_study([rated], tmp_path / name, n=6, raters=2, seed=seed)
    one, two, three = ((tmp_path / n / "items.parquet").read_bytes() for n in ("one", "two", "three"))
    assert one == two != three


def test_no_doctor_is_named_in_what_the_app_can_reach(tmp_path):
    made = to_study([benchmark(tmp_path / "b", ("embedded", "oracle", "mute"))], tmp_path / "s", seed=5)
    items = tables.read(made.study.items, tables.ITEMS)
    database = open_study(made.study)
    with database.reading() as connection:
        dump = "\n".join(connection.connection.iterdump())
    database.close()
    for name in ("embedded", "oracle", "mute"):
        assert name not in dump and name not in items.to_csv()
    assert "source_id" not in items.columns


def test_raters_see_the_dialogue_in_order_and_who_speaks(tmp_path, rated):
    made = to_study([rated], tmp_path / "s", n=2, raters=1, seed=5)
    met = {(e.case_id, e.source_id): e for e in encounters.read(rated)}
    key = tables.read(made.study.key, tables.KEY).set_index("label")["source_id"]
    database = open_study(made.study)
    with database.reading() as connection:
        item = ratings.item_at(connection, "rater-01", 1)
        told = ratings.dialogue(connection, item)
        title, sheet = ratings.case_sheet(connection, item.case_id)
        facts = session._facts(database, connection)
    database.close()
    encounter = met[item.case_id, key[item.label]]
    assert exchanges(encounter) == [(t.question, t.answer) for t in told]
    assert ("encounter", "doctor") == (item.kind, facts.settings["asker"])
    assert "how well doctors" in parts.told(catalogue("en"), "consent", facts.settings)
    assert "one dialogue" in parts.told(catalogue("en"), "instructions", facts.settings)
    assert "virtual patients" in parts.told(catalogue("en"), "consent", {"asker": "student"})
    html = parts.dialogue(catalogue("en"), told, "en", whole=True, asker="doctor")
    assert [t.speaker.title() for t in encounter.turns] == [
        part.split("</span>")[0] for part in html.split("cr-who'>")[1:]
    ]
    assert "&lt;b&gt;" in html and "<b>here" not in html
    assert "Expected diagnosis: " + ILLS[int(item.case_id)] == sheet["door_note"]


def test_the_answer_can_be_kept_from_raters(tmp_path, rated):
    to_study([rated], tmp_path / "s", seed=5, answer=False)
    assert "Expected diagnosis" not in (tmp_path / "s" / "cases.json").read_text(encoding="utf-8")


def test_the_judge_is_calibrated_against_people_who_rated_in_the_app(tmp_path):
    source = benchmark(tmp_path / "b", cases=12)
    made = to_study([source], tmp_path / "s", n=24, raters=4, seed=5)
    before = tables.read(made.study.ratings, tables.RATINGS)
    rated_by_simulated_people(made.study)
    after = tables.read(made.study.ratings, tables.RATINGS)
    assert {"human": 96, "judge": 24} == after["rater_kind"].value_counts().to_dict()
    judged = after[after["rater_kind"] == "judge"].sort_values("label")
    assert before.sort_values("label")["value"].tolist() == judged["value"].tolist()
    found = CliRunner().invoke(
        cli.app, ["calibrate", str(made.study.folder), "--judge", "keen-judge", "--bootstrap", "100"]
    )
    assert 0 == found.exit_code, found.output
    assert "simulated" in found.output
    card = json.loads(_card(made.study.folder).read_text(encoding="utf-8"))
    assert "keen-judge" == card["judge"]["name"] and "diagnosis" in card["metrics"]
    assert ["keen-1"] == card["judge"]["models"]


@pytest.mark.slow
def test_thirty_encounters_of_three_doctors(tmp_path):
    """What the benchmark's demonstration shows: 30 encounters, five simulated raters, a judge that is too kind."""
    source = benchmark(tmp_path / "b", ("embedded", "oracle", "mute"), cases=40)
    made = to_study([source], tmp_path / "s", n=30, raters=5, seed=5)
    rated_by_simulated_people(made.study)
    found = CliRunner().invoke(cli.app, ["calibrate", str(made.study.folder), "--judge", "keen-judge"])
    print(found.output)
    assert 0 == found.exit_code, found.output
    table = pd.DataFrame(tables.read(made.study.ratings, tables.RATINGS))
    means = table.groupby("rater_kind")["value"].mean()
    assert means["judge"] > means["human"]


def _card(folder: Path) -> Path:
    return folder / "results" / "calibration" / "keen-judge" / "judge-card.json"


def test_two_runs_make_one_study(tmp_path):
    runs = [benchmark(tmp_path / name, (name,)) for name in ("oracle", "mute")]
    made = to_study(runs, tmp_path / "s", n=10, raters=2, seed=5)
    assert (("oracle", "mute"), 10) == (made.doctors, made.encounters)
    with pytest.raises(StudyError, match="doctor oracle stands in"):
        to_study([runs[0], runs[0]], tmp_path / "t", seed=5)


def test_what_is_missing_is_said(tmp_path, rated):
    unrated = benchmark(tmp_path / "b", judged=False)
    with pytest.raises(StudyError, match=f"{RATINGS}: no such file"):
        to_study([unrated], tmp_path / "s", seed=5)
    with pytest.raises(StudyError, match="cases.json: not found; a benchmark run writes it"):
        to_study([tmp_path / "nowhere"], tmp_path / "s", seed=5)
    with pytest.raises(StudyError, match="--n 1 is fewer than the 2 doctors"):
        to_study([rated], tmp_path / "s", n=1, seed=5)
    with pytest.raises(StudyError, match="already and not empty"):
        to_study([rated], tmp_path / "b", seed=5)


def test_the_command_says_what_it_made(tmp_path, rated):
    asked = ["benchmark", "to-study", str(rated), "--into", str(tmp_path / "s"), "--n", "6", "--json"]
    found = CliRunner().invoke(cli.app, asked)
    assert 0 == found.exit_code, found.output
    assert (6, 3, ["oracle", "mute"], 6) == tuple(
        json.loads(found.output)[k] for k in ("encounters", "cases", "doctors", "ratings")
    )
    said = CliRunner().invoke(cli.app, [*asked[:4], str(tmp_path / "t"), *asked[5:7]])
    assert f"--judge RATER --about {rated}/about-RATER.toml --out {rated}/results" in said.output
