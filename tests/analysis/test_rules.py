"""Rules tag the planted faults, and nothing where there is none."""

import json
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from analysis import automated, cli, load, lowscores, planted, rules
from generation.sources.kinds import open_source
from generation.sources.speaker import Request
from study import config, content, design, folder, simulate, tables
from study.errors import StudyError
from study.records import Source

CONTENT = content.load(content.shipped("cases.json"), content.shipped("prompts.json"))
RULES = rules.Rules(CONTENT)
PROMPTS = {p.prompt_id: p for p in CONTENT.prompts}
KINDS = ("draft_reference", "ledger", "ledger_polarity", "ledger_clinician", "ledger_stiff")


def tagged(prompt, answer):
    return set(rules.tags(RULES.findings(prompt.prompt_id, answer)))


@pytest.fixture(scope="module")
def of_sources():
    """The tags of every embedded source's answer to every shipped prompt."""
    speakers = {kind: open_source(Source(kind, kind, kind, {}), CONTENT, Path()) for kind in KINDS}
    return {
        kind: {
            p.prompt_id: tagged(p, s.answer(Request(CONTENT.cases[p.case_id], p.text, p)).text)
            for p in CONTENT.prompts
        }
        for kind, s in speakers.items()
    }


def with_tag(found, tag):
    return {name for name, tags in found.items() if tag in tags}


@pytest.mark.parametrize("kind", ["draft_reference", "ledger"])
def test_a_source_without_a_planted_fault_has_no_tag(of_sources, kind):
    assert set() == set().union(*of_sources[kind].values())


def test_english_polarity_is_tagged_on_every_negative_question_but_the_outer_ones(of_sources):
    inner = {n for n, p in PROMPTS.items() if p.form == "negative" and not p.negation.subtype.startswith("outer")}
    assert inner == with_tag(of_sources["ledger_polarity"], "wrong particle")
    assert {"wrong particle"} == set().union(*of_sources["ledger_polarity"].values())


def test_the_clinicians_register_is_tagged_where_it_was_planted_and_nowhere_else(of_sources):
    planted = {n for n, p in PROMPTS.items() if p.category in ("clinical_reasoning", "patient_education")}
    assert planted == with_tag(of_sources["ledger_clinician"], "register")


def test_stiff_wording_is_tagged_everywhere(of_sources):
    assert set(PROMPTS) == with_tag(of_sources["ledger_stiff"], "register")


def test_tags_beyond_the_planted_faults_are_few(of_sources):
    # Stiff and clinician's wording can hide a clause's polarity from the rules: 7 tags of 2,450.
    beside = {
        "ledger_clinician": {"register"},
        "ledger_stiff": {"register"},
    }
    extra = sum(len(tags - beside[kind]) for kind in beside for tags in of_sources[kind].values())
    assert extra <= 10


@pytest.mark.parametrize(
    ("label", "tag", "n"),
    [
        ("particle_mismatch", "wrong particle", 21),
        ("fact_contradiction", "contradicts the case", 20),
        ("bare_particle", "bare particle", 21),
    ],
)
def test_contrast_answers_get_the_tag_of_their_fault(label, tag, n):
    answers = [
        (p, a) for p in CONTENT.prompts if p.negation for name, a in p.negation.contrast_answers if name == label
    ]
    assert n == len(answers)
    assert all(tag in tagged(p, a) for p, a in answers)
    others = {"wrong particle", "contradicts the case", "bare particle"} - {tag}
    assert not any(others & tagged(p, a) for p, a in answers)


def test_a_fact_that_was_not_asked_for_is_volunteering():
    prompt = PROMPTS["HEM-Q19"]  # do you smoke?
    assert "volunteers" not in tagged(prompt, prompt.reference_answer)
    assert "volunteers" in tagged(prompt, prompt.reference_answer + " 염색 공장에서 25년 일했어요.")


def test_an_answer_without_the_fact_is_tagged_and_names_it():
    found = RULES.findings("HEM-Q15", "아침마다 혈압약을 먹어요.")
    assert "lacks HEM-F26" in [f.reason for f in found]


def test_length_is_counted_in_the_tokens_of_the_practice_chat():
    pytest.importorskip("bpe_openai")
    assert 33 == max(rules.tokens(p.reference_answer) for p in CONTENT.prompts)
    assert "too long" in tagged(PROMPTS["HEM-Q19"], "네, 하루 한 갑씩 40년째 피우고 있어요. " * 3)


def test_without_the_tokenizer_length_is_missing_not_passed(monkeypatch):
    monkeypatch.setattr(rules, "_encoding", lambda: None)
    short = next(f for f in RULES.findings("HEM-Q19", "네.") if f.metric_id == "rule_short")
    assert (None, "missing") == (short.value, short.status)


def test_a_rule_that_does_not_apply_abstains():
    found = {f.metric_id: f for f in RULES.findings("HEM-Q01", "정대식이에요.")}
    assert "not_applicable" == found["rule_particle"].status


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """The demo with three raters: the embedded sources' answers, rated by simulated raters and by rules."""
    path = tmp_path_factory.mktemp("rules") / "study"
    folder.new(path, simulated=True)
    toml = path / "study.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace("raters = 17", "raters = 3"), encoding="utf-8")
    study = config.load(path)
    speakers = {s.source_id: open_source(s, CONTENT, path) for s in study.sources}
    responses = pd.DataFrame(
        {"prompt_id": p.prompt_id, "case_id": p.case_id, "source_id": name, "status": "ok", "detail": None,
         "text": speaker.answer(Request(CONTENT.cases[p.case_id], p.text, p)).text}
        for p in CONTENT.prompts for name, speaker in speakers.items()
    )  # fmt: skip
    items, key = design.items(CONTENT, responses, study.seed)
    assignment, _ = design.assignment(items, key, study.raters, study.seed)
    for frame, file, table in (
        (responses, study.responses, tables.RESPONSES),
        (items, study.items, tables.ITEMS),
        (key, study.key, tables.KEY),
        (assignment, study.assignment, tables.ASSIGNMENT),
    ):
        tables.write(frame, file, table)
    ratings = simulate.ratings(items, key, assignment, study.metrics, study.simulation, study.seed)
    tables.write(ratings, study.ratings, tables.RATINGS, {"crossed.simulated": "true"})
    said = CliRunner().invoke(cli.app, ["rules", str(path)])
    assert said.exception is None, said.exception
    return study, said.stdout


def test_rules_write_rating_rows_beside_those_of_people(rated):
    study, said = rated
    ratings = tables.check_ratings(tables.read(study.ratings, tables.RATINGS), study.metrics)
    own = ratings[ratings["rater_kind"] == "rule"]
    assert (350 * 7, {"rules"}) == (len(own), set(own["rater_id"]))
    assert own.loc[own["status"] == "not_applicable", "value"].isna().all()
    assert "true" == tables.metadata(study.ratings)["crossed.simulated"]
    assert "19/51 (37%)" in said


@pytest.fixture(scope="module")
def against(rated):
    """The rules beside the planted faults, as JSON has them: (rule, source) → row."""
    said = CliRunner().invoke(cli.app, ["rules", str(rated[0].folder), "--planted", "--json"])
    assert said.exception is None, said.exception
    return {(r["rule"], r["source"]): r for r in json.loads(said.stdout)["estimates"]}


def test_every_planted_fault_is_found_and_its_share_has_the_exact_interval(against):
    counts = {
        ("rule_particle", "ledger_polarity"): sum(
            p.form == "negative" and not p.negation.subtype.startswith("outer") for p in CONTENT.prompts
        ),
        ("rule_register", "ledger_clinician"): sum(
            p.category in ("clinical_reasoning", "patient_education") for p in CONTENT.prompts
        ),
        ("rule_register", "ledger_stiff"): len(CONTENT.prompts),
    }
    assert counts == {place: row["planted"] for place, row in against.items() if row["planted"]}
    for place, n in counts.items():
        row, expected = against[place], stats.binomtest(n, n).proportion_ci(0.95, "exact")
        assert (row["detected"], row["detection"]) == (n, 1.0)
        assert (row["detection_low"], row["detection_high"]) == pytest.approx(tuple(expected))


def test_false_alarms_are_counted_where_nothing_was_planted(against, of_sources):
    for (rule, source), row in against.items():
        tagged_there = len(with_tag(of_sources[source], rules.TAGS[rule]))
        assert row["false"] == tagged_there - row["detected"]
        assert row["planted"] + row["clean"] + row["abstained"] + row["missing"] == len(CONTENT.prompts)
        if row["clean"]:
            expected = stats.binomtest(row["false"], row["clean"]).proportion_ci(0.95, "exact")
            assert (row["false_alarm_low"], row["false_alarm_high"]) == pytest.approx(tuple(expected))
        else:
            assert row["false_alarm"] is None


def test_the_table_of_planted_faults_says_what_it_does_not_show(rated):
    said = CliRunner().invoke(cli.app, ["rules", str(rated[0].folder), "--planted"]).stdout
    assert "70/70 (100%) [95%, 100%]" in said
    assert "not how often they see those of a model" in said


def test_a_study_without_embedded_sources_has_no_planted_faults():
    nothing = pd.DataFrame()
    with pytest.raises(StudyError, match="no source has planted faults; those that do are draft_reference"):
        planted.agreement(nothing, nothing, nothing, [Source("m", "recorded", "m", {})], CONTENT)


def test_the_rules_tags_do_not_enter_the_analysis(rated):
    loaded = load.load(rated[0].folder)
    assert not any(m.metric_id.startswith("rule_") for m in loaded.metrics)
    assert "rules" not in set(loaded.frame["rater"])
    assert [("tags by rules", 2450)] == [(part.reason, part.rows) for part in loaded.left_out]


def test_ratings_of_rules_alone_are_named(rated, tmp_path):
    study, _ = rated
    ratings = tables.read(study.ratings, tables.RATINGS)
    for file in (study.folder / "study.toml", study.items, study.key):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for name in ("cases.json", "prompts.json", "checklists.json"):
        (tmp_path / name).write_bytes((study.folder / name).read_bytes())
    tables.write(ratings[ratings["rater_kind"] == "rule"], tmp_path / "ratings.parquet", tables.RATINGS)
    with pytest.raises(StudyError, match="holds only the tags of rules"):
        load.load(tmp_path)


def test_low_answers_are_those_whose_panel_mean_is_low(rated):
    loaded = load.load(rated[0].folder)
    found = lowscores.low(loaded, "fluency", below=3.0)
    frame = loaded.frame[(loaded.frame["metric"] == "fluency") & (loaded.frame["status"] == "ok")]
    means = frame.groupby("label", observed=True)["score"].mean()
    assert set(means[means < 3.0].index) == set(found.answers["label"])
    by_source = found.shares[found.shares["term"] == "source"].set_index("level")
    assert by_source["k"].sum() == len(found.answers)
    assert by_source.loc["ledger_clinician", "k"] > by_source.loc["ledger", "k"]


def test_shares_have_clopper_and_pearsons_interval():
    means = pd.DataFrame({"source": ["a"] * 10, "is_low": [True] * 3 + [False] * 7})
    row = lowscores._shares(means, "source", 0.95).iloc[0]
    # Clopper and Pearson (1934), 3 of 10, as R's binom.test gives it.
    assert pytest.approx((0.3, 0.06673951, 0.6524529), abs=1e-6) == (row["estimate"], row["low"], row["high"])
    none = lowscores._shares(means.assign(is_low=False), "source", 0.95).iloc[0]
    assert pytest.approx((0.0, 0.3084971), abs=1e-6) == (none["low"], none["high"])


def test_low_answers_carry_the_rules_tags(rated):
    found = lowscores.low(load.load(rated[0].folder), "fluency", below=3.5)
    stiff = found.answers[found.answers["source"] == "ledger_stiff"]
    assert all("register" in tags for tags in stiff["tags"])


def test_lowscores_speaks_and_gives_json(rated):
    study, _ = rated
    said = CliRunner().invoke(cli.app, ["lowscores", str(study.folder), "-m", "fluency"]).stdout
    assert "answers with a panel mean below 3 (simulated ratings)" in said
    assert "what the rules say" in said
    plain = json.loads(
        CliRunner().invoke(cli.app, ["lowscores", str(study.folder), "-m", "fluency", "--json"]).stdout
    )
    assert {"term", "level", "estimate", "low", "high", "k", "n"} == set(plain["estimates"][0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-m", "coherence"], "coherence is asked of whole encounters"),
        (["-m", "fluency", "--below", "9"], "must lie on fluency's scale, 1 to 5"),
        (["-m", "empathy"], "no metric empathy"),
    ],
)
def test_what_lowscores_cannot_do_is_said(rated, options, says):
    done = CliRunner().invoke(cli.app, ["lowscores", str(rated[0].folder), *options])
    assert says in str(done.exception)


def test_a_bare_file_has_low_scores_without_tags(tmp_path):
    bare = pd.DataFrame(
        {"who": w, "text": f"t{t}", "model": "ab"[t % 2], "stars": 1 + (t % 2) * 3, "prompt": f"p{t // 2}"}
        for w in ("x", "y") for t in range(12)
    )  # fmt: skip
    bare.to_csv(tmp_path / "r.csv", index=False)
    done = CliRunner().invoke(
        cli.app,
        ["lowscores", str(tmp_path / "r.csv"), "--rater", "who", "--item", "text", "--source", "model", "--score",
         "stars", "--prompt", "prompt", "--scale", "1:5"],
    )  # fmt: skip
    assert done.exception is None, done.exception
    assert "6/12 (50%) answers" in done.stdout
    assert "nan" not in done.stdout and "below 3" in done.stdout


def test_low_scores_of_korean_names_stand_in_one_column(tmp_path):
    bare = pd.DataFrame(
        {"rater": w, "item": f"{s}{t}", "source": s, "score": 1 + t % 5}
        for w in "xy" for s in ("환자 가", "GPT-4o") for t in range(10)
    )  # fmt: skip
    bare.to_csv(tmp_path / "r.csv", index=False)
    done = CliRunner().invoke(
        cli.app, ["lowscores", str(tmp_path / "r.csv"), "--rater", "rater", "--item", "item", "--source", "source"]
    )
    assert done.exception is None, done.exception
    assert "simulated" not in done.stdout
    # Each Korean letter takes two cells of a terminal.
    lines = done.stdout.splitlines()
    assert "  환자 가  4/10 (40%)   12% to 74%" in lines
    assert "  GPT-4o   4/10 (40%)   12% to 74%" in lines


def test_a_persons_name_is_not_a_rules(rated):
    study, _ = rated
    rows = pd.DataFrame([{"rater_id": "rater-01", "rater_kind": "rule"}])
    with pytest.raises(StudyError, match="rater-01 is a rater of the panel"):
        automated.join(study, rows)
