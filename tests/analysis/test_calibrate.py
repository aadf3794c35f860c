import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import analysis.cli
from analysis import calibrations, judge_card, judge_pairs
from analysis.calibrate import calibrate
from analysis.load import load
from analysis.stats.calibration import Options
from study import content, tables
from study.errors import StudyError
from study.terminal import command, main

PROMPTS = 24
SOURCES = ("expert", "model")
STUDY = """
[study]
id = "judged"
title = "Judged"
seed = 1

[[source]]
id = "expert"
kind = "expert"

[[source]]
id = "model"
kind = "openai_chat"

[panel]
raters = ["r1", "r2", "r3", "r4"]

[[judge]]
id = "strict"
rubric = "rubric.toml"
kind = "openai_chat"
model = "gpt-x"
temperature = 0.0

[[metric]]
id = "fluency"
item = "utterance"
low = 1
high = 5
"""


def app():
    made = command("analysis", "as the house registers it")
    made.command()(calibrate)
    made.command()(lambda: None)  # a second command, so that the first keeps its name
    return made


def call(*words):
    return CliRunner().invoke(app(), ["calibrate", *map(str, words), "--bootstrap", "200"])


def items_of(prompts):
    return pd.DataFrame(
        {
            "label": [f"{s[0]}{p}" for p in prompts for s in SOURCES], "kind": "utterance", "case_id": None,
            "prompt_id": [f"p{p}" for p in prompts for _ in SOURCES], "encounter": None,
            "turn": pd.array([pd.NA] * (2 * len(prompts)), "Int64"), "category": None, "form": None,
            "text": [f"네, {'아주 ' * (p % 4)}아파요." for p in prompts for _ in SOURCES],
        }
    )  # fmt: skip


def rating_rows(rater, kind, items, values, **more):
    return pd.DataFrame(
        {"rater_id": rater, "rater_kind": kind, "label": items["label"], "metric_id": "fluency", "occasion": 1,
         "value": values, "status": "ok", "reason": None, "simulated": True} | more
    )  # fmt: skip


def made(folder, prompts, *, panel=True, model="gpt-x", rubric="Rate.", toml=STUDY, judges=("strict",), seed=0):
    """A study of two sources whose judge adds half a point to the model; `panel` False for the judge alone."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    items = items_of(prompts)
    truth = 3.4 - 0.6 * items["label"].str.startswith("m") + rng.normal(0, 0.8, len(items))
    frames = []
    for rater in ("r1", "r2", "r3", "r4") if panel else ("r1", "r2", "r3", "r4")[:1]:
        seen = items if panel else items.head(2)
        frames.append(
            rating_rows(
                rater, "human", seen, (truth[seen.index] + rng.normal(0, 0.5, len(seen))).round().clip(1, 5)
            )
        )
    for judge in judges:
        score = truth + 0.5 * items["label"].str.startswith("m") + rng.normal(0, 0.4, len(items))
        frames.append(
            rating_rows(judge, "judge", items, score.round().clip(1, 5), model=model, prompt_hash="h", cost=0.1)
        )
    ratings = pd.concat(frames, ignore_index=True)
    ratings["cost"] = ratings["cost"].astype(float)
    (folder / "study.toml").write_text(
        toml if panel else toml.replace('"r1", "r2", "r3", "r4"', '"r1"'), encoding="utf-8"
    )
    (folder / "rubric.toml").write_text(rubric, encoding="utf-8")
    tables.write(items, folder / "items.parquet", tables.ITEMS)
    sources = [s for _ in prompts for s in SOURCES]
    tables.write(pd.DataFrame({"label": items["label"], "source_id": sources}), folder / "key.parquet", tables.KEY)
    tables.write(ratings, folder / "ratings.parquet", tables.RATINGS)
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A calibrated study and its card."""
    folder = made(tmp_path_factory.mktemp("old") / "old", range(PROMPTS))
    done = call(folder)
    assert done.exit_code == 0, done.output
    return folder, folder / "results" / "calibration" / "strict" / "judge-card.json"


def test_a_card_says_who_the_judge_is(old):
    card = json.loads(old[1].read_text(encoding="utf-8"))
    assert card["judge"]["models"] == ["gpt-x"]
    assert len(card["judge"]["prompt_sha256"]) == 64
    assert card["judge"]["temperature"] == 0.0
    assert card["provenance"]["simulated"] is True
    assert card["metrics"]["fluency"]["n_labelled"] == 2 * PROMPTS


def test_the_page_stands_alone_and_says_simulated(old):
    page = old[1].with_suffix(".html").read_text(encoding="utf-8")
    assert "<strong>simulated</strong>" in page and "(simulated)" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
    assert "not for comparing sources" in page
    assert page.count("<svg") >= 2


def test_what_is_printed_has_a_verdict_and_the_progress_is_apart(old):
    done = call(old[0], "--out", old[0] / "again")
    assert "strict on fluency:" in done.stdout
    assert "calibrated 1/1: strict on fluency" in done.stderr
    assert "simulated" in done.stdout


def test_new_judgements_are_read_while_the_calibration_holds(old, tmp_path):
    new = made(tmp_path / "new", range(10, 60), panel=False, seed=5)
    done = call(new, "--apply", old[1])
    assert done.exit_code == 0, done.output
    read = pd.read_csv(new / "results" / "calibration" / "strict" / "calibrated-fluency.csv")
    assert read["calibrated_on"].sum() == 2 * (PROMPTS - 10)
    assert (read["low"] <= read["read_as"]).all() and (read["read_as"] <= read["high"]).all()
    assert "labels may not be used twice" in done.stdout
    means = pd.read_csv(new / "results" / "calibration" / "strict" / "panel-means-fluency.csv").set_index("term")
    assert means.loc["model", "n_unlabelled"] == 60 - PROMPTS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"model": "gpt-y", "toml": STUDY.replace("gpt-x", "gpt-y")},
            "the judge's model changed from gpt-x to gpt-y",
        ),
        ({"rubric": "Rate kindly."}, "the judge's prompt changed"),
        ({"toml": STUDY.replace("high = 5", 'high = 5\nquestion = "really?"')}, "the metric"),
    ],
)
def test_a_calibration_is_void_when_what_it_holds_for_changes(old, tmp_path, change, words):
    new = made(tmp_path / "new", range(30), panel=False, **change)
    done = call(new, "--apply", old[1])
    assert isinstance(done.exception, StudyError)
    assert "the calibration of strict is void" in str(done.exception)
    assert words in str(done.exception)
    assert not (new / "results").exists()


PACK = ("cases.json", "prompts.json", "checklists.json")
WITH_PACK = STUDY + """
[content]
cases = "cases.json"
prompts = "prompts.json"
checklists = "checklists.json"
"""


@pytest.fixture
def packed(tmp_path):
    """A study with its content pack, and the card of its calibrated judge."""
    folder = made(tmp_path / "packed", range(PROMPTS), toml=WITH_PACK)
    for name in PACK:
        shutil.copy(content.shipped(name), folder / name)
    assert call(folder).exit_code == 0
    return folder, folder / "results" / "calibration" / "strict" / "judge-card.json"


def test_a_card_holds_while_its_content_pack_stays(packed):
    folder, card = packed
    assert call(folder, "--apply", card).exit_code == 0


@pytest.mark.parametrize(
    ("name", "old_words", "new_words", "says"),
    [
        ("cases.json", "기침", "재채기", "the content pack changed"),
        ("prompts.json", "기침", "재채기", "the content pack changed"),
        ("checklists.json", "기침", "재채기", "the content pack changed"),
        ("rubric.toml", "Rate.", "Rate kindly.", "the judge's prompt changed"),
    ],
)
def test_a_changed_file_voids_the_card_in_one_sentence_and_exit_code_one(
    packed, capsys, name, old_words, new_words, says
):
    folder, card = packed
    before = (folder / name).read_text(encoding="utf-8")
    (folder / name).write_text(before.replace(old_words, new_words), encoding="utf-8")
    assert (folder / name).read_text(encoding="utf-8") != before
    with pytest.raises(SystemExit) as caught:
        main(lambda: analysis.cli.app(["calibrate", str(folder), "--apply", str(card)], standalone_mode=False))
    printed = capsys.readouterr()
    assert caught.value.code == 1 and printed.out == ""
    assert printed.err.startswith("error: the calibration of strict is void: ") and printed.err.count("\n") == 1
    assert says in printed.err


def test_a_card_without_model_and_prompt_is_never_applied(tmp_path):
    bare = STUDY[: STUDY.index("[[judge]]")] + STUDY[STUDY.index("[[metric]]") :]
    folder = made(tmp_path / "old", range(PROMPTS), model=None, toml=bare)
    assert call(folder).exit_code == 0
    done = call(folder, "--apply", folder / "results" / "calibration" / "strict" / "judge-card.json")
    assert "does not say which model and prompt strict had" in str(done.exception)


def test_what_is_told_about_a_judge_stands_on_its_card(tmp_path):
    bare = STUDY[: STUDY.index("[[judge]]")] + STUDY[STUDY.index("[[metric]]") :]
    folder = made(tmp_path / "old", range(PROMPTS), model=None, toml=bare)
    about = tmp_path / "about.toml"
    about.write_text('model = "m-1"\nprompt = "Rate."\ndate = "2026-11-01"\nown_family = ["model"]\n')
    assert call(folder, "--about", about).exit_code == 0
    card = json.loads((folder / "results" / "calibration" / "strict" / "judge-card.json").read_text())
    assert card["judge"]["models"] == ["m-1"] and card["judge"]["first_date"] == "2026-11-01"
    bias = card["metrics"]["fluency"]["bias"]["source"]["table"]
    assert [row["level"] for row in bias if row["own_family"]] == ["model", "own − others"]


def test_numbers_do_not_depend_on_jobs(tmp_path):
    folder = made(tmp_path / "two", range(PROMPTS), judges=("strict", "mild"))
    loaded, options = load(folder), Options(n_boot=200)
    judges, panel = calibrations.judges_of(loaded)
    one, two = (
        [judge_card.result(loaded, j, options).plain()
         for j in calibrations.calibrations(loaded, judges, panel, ["fluency"], options, jobs=jobs)]
        for jobs in (1, 2)
    )  # fmt: skip
    assert one == two


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A study with a good judge, one like it, and one that rates at random."""
    folder = made(tmp_path_factory.mktemp("three") / "three", range(PROMPTS), judges=("strict", "mild", "coin"))
    ratings = tables.read_parquet(folder / "ratings.parquet")
    coin = ratings["rater_id"] == "coin"
    ratings.loc[coin, "value"] = np.random.default_rng(2).integers(1, 6, coin.sum()).astype(float)
    tables.write(ratings, folder / "ratings.parquet", tables.RATINGS)
    return folder


def test_judges_are_set_against_each_other_in_a_table_by_swapping_whole_prompts(three):
    done = call(three, "--out", three / "results")
    assert "Judges on fluency against each other (simulated ratings)" in done.stdout
    assert "correlates best with the panel on fluency" in done.stdout
    kept = json.loads((three / "results" / "judge-pairs-fluency.json").read_text(encoding="utf-8"))
    pairs = pd.DataFrame(kept["estimates"])
    assert len(pairs) == 3 and (pairs["n_prompts"] == PROMPTS).all()
    assert (pairs["r_first"] >= pairs["r_second"]).all()
    beaten = pairs[pairs["second"] == "coin"]
    assert set(beaten["first"]) == {"strict", "mild"} and (beaten["p_holm"] < 0.05).all()
    assert pairs.loc[pairs["second"] != "coin", "p_holm"].item() > 0.05


def test_more_judges_are_drawn_more_often_so_that_holm_can_find_one(tmp_path):
    judges = ("strict", "mild", "coin", "dull", "odd", "vague")
    folder = made(tmp_path / "six", range(PROMPTS), judges=judges)
    ratings = tables.read_parquet(folder / "ratings.parquet")
    at_random = ratings["rater_id"].isin(judges[2:])
    ratings.loc[at_random, "value"] = np.random.default_rng(2).integers(1, 6, at_random.sum()).astype(float)
    tables.write(ratings, folder / "ratings.parquet", tables.RATINGS)
    loaded, options = load(folder), Options(n_boot=100)
    names, panel = calibrations.judges_of(loaded)
    found = judge_pairs.compared(
        calibrations.calibrations(loaded, names, panel, ["fluency"], options), "fluency", options
    )
    best = found[(found["first"] == "mild") & found["second"].isin(judges[2:])]
    assert len(best) == 4 and (best["p_holm"] < 0.05).all()


def test_the_pairs_of_judges_follow_their_cards_in_json(three):
    documents = json.loads(call(three, "--out", three / "again", "--json").stdout)
    assert ["judge-card"] * 3 + ["judge-pairs"] == [d["kind"] for d in documents]


def test_judges_that_share_no_item_say_so_in_place_of_a_p(three, tmp_path):
    folder = made(tmp_path / "apart", range(2 * PROMPTS), judges=("strict", "mild"))
    ratings = tables.read_parquet(folder / "ratings.parquet")
    number = ratings["label"].str[1:].astype(int)
    early = number < PROMPTS
    gone = (ratings["rater_id"] == "strict") & early | (ratings["rater_id"] == "mild") & ~early
    tables.write(ratings[~gone], folder / "ratings.parquet", tables.RATINGS)
    done = call(folder)
    assert done.exit_code == 0, done.output
    assert "note: strict and mild: " in done.stdout


def test_a_constant_judge_is_refused_in_words_and_the_exit_code_says_so(tmp_path):
    folder = made(tmp_path / "constant", range(PROMPTS))
    ratings = tables.read_parquet(folder / "ratings.parquet")
    ratings.loc[ratings["rater_kind"] == "judge", "value"] = 4.0
    tables.write(ratings, folder / "ratings.parquet", tables.RATINGS)
    done = call(folder)
    assert "not calibrated: strict gave 4 to all 48 items" in done.stdout
    assert "no judge could be calibrated" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--judge", "nobody"), "no rater nobody; the raters are"),
        (("--panel", "nobody"), "no rater nobody"),
        (("--own-family", "nobody"), "no such source"),
        (("--metric", "charm"), "no metric charm"),
        (
            ("--judge", "strict", "--judge", "r1", "--judge", "r2", "--judge", "r3", "--judge", "r4"),
            "nobody is left",
        ),
    ],
)
def test_a_wrong_name_is_said_with_the_right_ones(old, words, message):
    assert message in str(call(old[0], *words).exception)


def test_a_study_without_judges_says_how_to_get_one(small):
    assert "has no judge and no rule" in str(call(small).exception)


def test_a_bare_file_needs_only_the_judges_name(old, tmp_path):
    ratings = tables.read_parquet(old[0] / "ratings.parquet")
    items = tables.read_parquet(old[0] / "items.parquet").merge(tables.read_parquet(old[0] / "key.parquet"))
    flat = ratings.merge(items[["label", "prompt_id", "source_id"]])
    flat = flat[["rater_id", "label", "prompt_id", "source_id", "value"]]
    flat.to_csv(tmp_path / "flat.csv", index=False)
    done = call(tmp_path / "flat.csv", "--judge", "strict", "--scale", "1:5", "--csv", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    row = pd.read_csv(tmp_path / "out.csv").iloc[0]
    assert (row["judge"], row["n"], row["n_clusters"]) == ("strict", 48, PROMPTS)
