"""Every published number stands beside the reproduced one, and what is not equal is named."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import cli, load, published, published_figure, side_by_side
from analysis.side_by_side import Pair, SideBySide
from study.errors import StudyError

TWIN = Path(__file__).parents[2] / "data" / "published-twin"


@pytest.fixture(scope="module")
def loaded():
    return load.load(TWIN)


@pytest.fixture(scope="module")
def made(loaded):
    return published.side_by_side(loaded)


def test_every_number_of_the_twin_is_equal_within_its_tolerance(made):
    assert [] == [pair.name for pair in made.outside]
    # 10 of the design, 30 means with 2 ends and 2 lags, 5 of agreement, 12 of sentences, 10 of the model, 4 low.
    assert 10 + 30 * 3 + 2 + 5 + 12 + 10 + 4 == len(made.pairs)


def test_one_rating_less_is_seen(loaded, monkeypatch):
    frame = loaded.frame
    hit = (frame["metric"] == "coherence") & (frame["source"] == "llama") & (frame["score"] == 4)
    changed = frame.assign(score=frame["score"].where(frame.index != frame.index[hit][0], 2.0))
    monkeypatch.setattr(published, "_low", lambda figures, loaded: [])  # the slow part, of another metric
    made = published.side_by_side(dataclasses.replace(loaded, frame=changed))
    assert "Llama-3.1 70B, coherence" in {pair.quantity for pair in made.outside}
    assert {"Llama-3.1 70B"} == {
        pair.quantity.split(",")[0] for pair in made.outside if "ICC" not in pair.quantity
    }


def test_a_missing_rating_is_no_failure(loaded, monkeypatch):
    frame = loaded.frame.astype({"status": str})
    gone = frame.index == frame.index[frame["metric"] == "engagement"][0]
    changed = frame.assign(score=frame["score"].mask(gone), status=frame["status"].mask(gone, "missing"))
    monkeypatch.setattr(published, "_low", lambda figures, loaded: [])
    made = published.side_by_side(dataclasses.replace(loaded, frame=changed))
    rows = next(pair for pair in made.pairs if pair.quantity == "rows of ratings")
    assert (19380, 19379, False) == (rows.published, rows.reproduced, rows.within)
    icc = next(pair for pair in made.pairs if pair.quantity == "ICC(2,k), encounters")
    assert abs(icc.reproduced - 0.912) < 0.002


def test_questions_of_one_form_are_refused(loaded):
    frame = loaded.frame[loaded.frame["form"] != "negative"]
    with pytest.raises(StudyError, match="has no rated question of negative form"):
        published.side_by_side(dataclasses.replace(loaded, frame=frame))


def test_the_files_hold_what_the_page_shows(made, tmp_path):
    paths = side_by_side.write(made, tmp_path, "<svg></svg>")
    rows = pd.read_csv(paths["csv"])
    assert ["quantity", "published", "reproduced", "tolerance"] == list(rows.columns[1:5])
    assert {"yes"} == set(rows["equal_within"])
    document = json.loads(paths["json"].read_text("utf-8"))
    assert document["provenance"]["simulated"] and len(rows) == len(document["estimates"])
    page = paths["html"].read_text("utf-8")
    assert "133/133 (100%)" in page and "simulated" in page and "<svg>" in page
    assert page.count("<caption>") + page.count("<figcaption>") == len(made.tables())
    assert len(made.tables()) == paths["tex"].read_text("utf-8").count(r"\begin{table}")


def test_full_precision_is_kept(made):
    of = made.frame().set_index("quantity")
    assert 247 / 51 == of.at["Human, comprehensibility", "reproduced"]
    assert "4.84 [4.75, 4.94]" in made.words()


@pytest.mark.parametrize(
    ("pair", "within"),
    [
        (Pair("p", "q", 4.84, 247 / 51), True),
        (Pair("p", "q", 4.84, 246 / 51), False),
        (Pair("p", "q", 3.53, 179 / 51, 0.02), True),  # prints as 3.51
        (Pair("p", "q", 3.53, 178 / 51, 0.02), False),
        (Pair("p", "q", 0.91, 0.9149, 0.005, rule="in full"), True),
        (Pair("p", "q", 0.91, 0.9151, 0.005, rule="in full"), False),
        (Pair("p", "q", 0.149, 0.1485001, digits=3), True),
        (Pair("p", "q", 0.149, 0.1484, digits=3), False),
        (Pair("p", "q", 0.09, 0.09, rule="less"), False),
        (Pair("p", "q", 1.2, 1.22, rule="more"), True),
        (Pair("p", "q", 16, None, digits=0), False),
        (Pair("p", "q", 16, float("nan"), digits=0), False),
        (Pair("p", "q", "a, b", "a, b", rule="same"), True),
        (Pair("p", "q", "a, b", "a, c", rule="same"), False),
    ],
    ids=str,
)
def test_within(pair, within):
    assert within == pair.within


def test_a_study_of_other_sources_is_refused(loaded):
    with pytest.raises(StudyError, match="has no source titled Human; only a study of the same sources"):
        published.side_by_side(dataclasses.replace(loaded, study=None))


def test_the_command_writes_its_files_and_prints_json(made, monkeypatch, tmp_path):
    monkeypatch.setattr(published, "side_by_side", lambda loaded: made)
    done = CliRunner().invoke(cli.app, ["published", str(TWIN), "--out", str(tmp_path), "--json"])
    assert 0 == done.exit_code
    assert len(made.pairs) == len(json.loads(done.stdout)["estimates"])
    assert {"csv", "html", "json", "svg", "tex"} == {f.suffix[1:] for f in tmp_path.iterdir()}


def test_a_file_in_the_place_of_the_folder_is_named(made, tmp_path):
    (tmp_path / "taken").touch()
    with pytest.raises(StudyError, match="taken: is a file; results go into a folder"):
        side_by_side.write(made, tmp_path / "taken", "<svg/>")


def test_no_folder_is_told_how_one_is_made(tmp_path):
    done = CliRunner().invoke(cli.app, ["published", str(tmp_path / "none")])
    assert "study simulate --published --into" in str(done.exception)


def test_a_number_outside_ends_with_exit_code_1(loaded, monkeypatch, tmp_path):
    outside = SideBySide("t", loaded, (Pair("part", "mean", 4.84, 4.9), Pair("part", "other", 1.0, 1.0)))
    monkeypatch.setattr(published, "side_by_side", lambda loaded: outside)
    monkeypatch.setattr(published_figure, "encounters", lambda means, simulated: SimpleNamespace(svg="<svg/>"))
    done = CliRunner().invoke(cli.app, ["published", str(TWIN), "--out", str(tmp_path)])
    assert isinstance(done.exception, StudyError)  # `study.terminal` makes it a sentence and exit code 1
    assert "not equal within the tolerance: mean (part)" in str(done.exception)
    assert "1/2 (50%) published numbers" in done.stdout
    assert "no" == pd.read_csv(tmp_path / "side-by-side.csv")["equal_within"][0]


def test_the_figure_names_every_source_and_says_simulated(loaded):
    svg = published_figure.encounters(published.encounter_means(loaded), loaded.simulated).svg
    for word in ("Human", "GPT-4o", "HyperCLOVA X", "published", "reproduced", "simulated ratings", "coherence"):
        assert word in svg
