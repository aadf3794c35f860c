"""A study becomes a data package that a stranger can use, and that tells nobody who anybody is."""

import json
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from annotation_app.founding import open_study
from study import cli, config, pseudonyms, release, simulate, tables
from study.config import SimulationSection
from study.errors import StudyError
from study.release_check import problems_of
from study.store import consents, export, ratings, seals, traces, withdrawal

ABOUT = """
[release]
date = 2026-12-01
description = "A made-up study."
license = "CC-BY-4.0"
creators = ["A. Author"]
url = "https://example.org/data"
cleared = ["최민아", "한지우", "서하준"]
RELEASE

[rai]
data_limitations = "Few prompts."
data_biases = "One case."
personal_sensitive_information = "None."
data_use_cases = "Tests."
data_social_impact = "None."
"""
APART = pd.to_datetime(["2026-01-01"] * 3 + ["2026-01-20"], utc=True)


def about(folder, extra="", drop=""):
    """The study again, with [release] and [rai] in its study.toml."""
    path = folder / "study.toml"
    before = path.read_text("utf-8").split("\n[release]\ndate = 2026")[0]
    text = ABOUT.replace("RELEASE", extra)
    path.write_text(before + "\n".join(x for x in text.splitlines() if not drop or drop not in x) + "\n", "utf-8")
    return config.load(folder)


def only_asked(study):
    """The study without the prompts that its responses do not answer."""
    asked = set(tables.read(study.responses, tables.RESPONSES)["prompt_id"])
    path = study.path("prompts.json")
    content = json.loads(path.read_text("utf-8"))
    content["prompts"] = [p for p in content["prompts"] if p["id" if "id" in p else "prompt_id"] in asked]
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")


@pytest.fixture(scope="module")
def _simulated(tmp_path_factory, study_maker):
    folder = tmp_path_factory.mktemp("release") / "simulated"
    study = study_maker(folder, raters=12, sources=2, prompts=2, cases=1)
    only_asked(study)
    frames = [pd.read_parquet(p) for p in (study.items, study.key, study.assignment)]
    given = simulate.ratings(*frames, study.metrics, SimulationSection(missing=0.02), study.seed)
    tables.write(given, study.ratings, tables.RATINGS, {"crossed.simulated": "true"})
    about(folder, 'simulated = "labelled"')
    return folder


@pytest.fixture
def simulated(_simulated, tmp_path):
    """Twelve simulated raters of two sources' answers to two prompts, ready for release."""
    shutil.copytree(_simulated, tmp_path / "simulated")
    return config.load(tmp_path / "simulated")


@pytest.fixture(scope="module")
def _rated(tmp_path_factory, study_maker):
    folder = tmp_path_factory.mktemp("release") / "rated"
    study = study_maker(folder, raters=4, sources=2, prompts=2, cases=1)
    only_asked(study)
    study = about(folder)
    database = open_study(study)
    given = export.export(database).ratings
    for n, row in enumerate(given.itertuples()):
        place = given[given["rater_id"] == row.rater_id]["label"].unique().tolist().index(row.label) + 1
        value, reason = (None, "unclear") if n == 5 else (1 + n % 5, None)
        ratings.save(
            database, row.rater_id, place, row.metric_id,
            value=value, reason=reason, base_version=0, nonce=str(n),
        )  # fmt: skip
    for n, rater in enumerate(study.raters):
        choices = {"participation": True, "sharing": n != 1}
        consents.agree(database, rater, version="1", text="…", locale="ko", choices=choices)
    traces.write_note(database, "rater-01", 1, "", "저는 김민수입니다. 010-1234-5678", base_version=0, tab="")
    traces.write_note(database, "rater-02", 1, "", "이건 나가면 안 돼요", base_version=0, tab="")
    database.close()
    return folder


@pytest.fixture
def rated(_rated, tmp_path):
    """Four people rated everything in the app; rater-02 did not agree to sharing. Not locked yet."""
    shutil.copytree(_rated, tmp_path / "rated")
    return config.load(tmp_path / "rated")


def closed(study, before=lambda database: None):
    """The study locked and exported."""
    database = open_study(study)
    before(database)
    seals.lock(database, "test")
    export.write(database, study.ratings)
    database.close()
    return study


def released(study, folder, **options):
    made = release.package(study, **options)
    release.write(made, folder)
    return made


def said(folder):
    """All that the files of a package say, with the metadata of its tables."""
    texts = [p.read_text("utf-8") for p in folder.iterdir() if p.suffix != ".parquet"]
    for path in folder.glob("*.parquet"):
        texts += [pd.read_parquet(path).to_csv(), str(tables.metadata(path))]
    return "\n".join(texts)


@pytest.fixture(scope="module")
def package(_simulated, tmp_path_factory):
    """The simulated study's package; tests read it and leave it as it is."""
    folder = tmp_path_factory.mktemp("release") / "package"
    released(config.load(_simulated), folder)
    return folder


def refusal(study, **options):
    with pytest.raises(StudyError) as error:
        release.package(study, **options)
    lines = str(error.value).splitlines()
    assert 1 == len(lines), lines
    return lines[0]


def test_a_package_holds_the_whole_study_and_passes_its_check(package):
    assert [] == problems_of(package)
    rows = {p.stem: len(pd.read_parquet(p)) for p in package.glob("*.parquet")}
    expected = {"metrics": 9, "sources": 2, "prompts": 2, "responses": 4, "items": 6, "raters": 12}
    assert expected | {"ratings": 12 * (4 * 3 + 2 * 6)} == rows


def test_the_reference_implementation_reads_every_record(package):
    code = (
        "import sys, mlcroissant as m; d = m.Dataset(sys.argv[1]);"
        "assert not d.metadata.issues.errors | d.metadata.issues.warnings, d.metadata.issues.report();"
        "import json; print(json.dumps({r.id: len(list(d.records(r.id))) for r in d.metadata.record_sets}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, package / "croissant.json"], capture_output=True, text=True
    )
    assert 0 == done.returncode, done.stderr
    rows = {p.stem: len(pd.read_parquet(p)) for p in package.glob("*.parquet")}
    assert rows == json.loads(done.stdout)


def test_released_again_it_is_the_same_to_the_byte(simulated, tmp_path):
    for name in ("one", "two", "two"):
        released(simulated, tmp_path / name)
    files = sorted(p.name for p in (tmp_path / "one").iterdir())
    assert files == sorted(p.name for p in (tmp_path / "two").iterdir())
    assert all((tmp_path / "one" / f).read_bytes() == (tmp_path / "two" / f).read_bytes() for f in files)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_checksums_are_those_of_sha256sum(package):
    assert 0 == subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=package).returncode


def test_a_package_may_say_where_its_files_will_lie(simulated, tmp_path):
    study = about(simulated.folder, 'simulated = "labelled"\nfiles_url = "https://example.org/data/"')
    released(study, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    assert "https://example.org/data/metrics.parquet" == told["distribution"][0]["contentUrl"]
    assert [] == problems_of(tmp_path / "out")


def test_simulated_is_said_in_every_file(package):
    for path in package.glob("*.parquet"):
        assert "true" == tables.metadata(path)["crossed.simulated"], path
    assert "**The panel's ratings are SIMULATED" in (package / "README.md").read_text("utf-8")
    told = json.loads((package / "croissant.json").read_text("utf-8"))
    assert "SIMULATED" in told["description"]
    assert told["rai:hasSyntheticData"] is True


def test_a_panel_of_both_says_how_many_ratings_are_simulated(simulated, tmp_path):
    people = ["rater-01", "rater-02"]
    changed(simulated.ratings, tables.RATINGS, lambda f: f.assign(simulated=~f["rater_id"].isin(people)))
    released(about(simulated.folder, 'simulated = "labelled"\nconsent = "Both signed."'), tmp_path / "out")
    told = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    assert "Of the panel's 288 ratings 240 are SIMULATED" in told["description"]
    assert [] == problems_of(tmp_path / "out")


def test_simulated_ratings_need_their_label(simulated):
    about(simulated.folder)
    said = refusal(config.load(simulated.folder))
    assert "288 of 288 ratings are simulated" in said
    assert 288 == release.package(config.load(simulated.folder), label_simulated=True).simulated


def test_a_rating_keeps_its_value_under_the_new_name(_simulated, package):
    simulated = config.load(_simulated)
    before = tables.read(simulated.ratings, tables.RATINGS)
    after = pd.read_parquet(package / "ratings.parquet")
    key = pseudonyms.secret(simulated.path(pseudonyms.SECRET))
    names = pseudonyms.renamed(before["rater_id"], key)
    cell = ["rater_id", "label", "metric_id"]
    both = before.assign(rater_id=before["rater_id"].map(names)).merge(after, on=cell, validate="1:1")
    assert len(before) == len(both)
    pd.testing.assert_series_equal(both["value_x"], both["value_y"], check_names=False)


def test_no_old_name_of_a_rater_and_no_secret_is_in_the_package(_simulated, package):
    simulated = config.load(_simulated)
    key = pseudonyms.secret(simulated.path(pseudonyms.SECRET)).hex()
    assert not re.search(rf"rater-\d|{key}|{simulated.seed}", said(package))


def test_new_names_follow_no_order_and_need_the_secret():
    raters = [f"rater-{i:02d}" for i in range(1, 41)]
    names = pseudonyms.renamed(raters, b"k" * 32)
    assert sorted(names.values()) == [f"R{i:02d}" for i in range(1, 41)]
    assert names == pseudonyms.renamed(reversed(raters), b"k" * 32)
    assert names != pseudonyms.renamed(raters, b"j" * 32)
    order = pd.Series([int(names[r][1:]) for r in raters])
    assert abs(order.corr(pd.Series(range(40)), method="spearman")) < 0.4


def test_the_secret_is_the_owners_alone_and_is_missed_when_it_is_spoilt(tmp_path):
    path = tmp_path / "release.secret"
    assert pseudonyms.secret(path) == pseudonyms.secret(path)
    assert 0o600 == path.stat().st_mode & 0o777
    path.write_text("gone")
    with pytest.raises(StudyError, match="64 hexadecimal digits"):
        pseudonyms.secret(path)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("aaaaabbbbb", {"a": 5, "b": 5}),
        ("aaaaaabbbcc", {"a": 6, "other": 5}),
        ("aaaaaabbbbbbc", {"other": 7, "b": 6}),  # the single c takes the next rarest along
        ("aaaaaabbbb", None),  # one value would be left, which tells nothing
        ("aaaaaaaabbbbbbcccccd", {"a": 8, "b": 6, "other": 6}),
        ("abcdefgh", None),
    ],
)
def test_an_attribute_is_shared_by_five_or_is_not_released(values, found):
    coarse = pseudonyms.coarse(pd.Series(list(values)))
    assert found == (None if coarse is None else coarse.value_counts().to_dict())


def test_an_attribute_of_raters_leaves_only_coarse(simulated, tmp_path):
    who = pd.DataFrame({"rater_id": simulated.raters, "role": ["nurse"] * 6 + ["physician"] * 4 + ["student"] * 2})
    who.to_csv(simulated.path("raters.csv"), index=False)
    released(about(simulated.folder, 'simulated = "labelled"\nrater_attribute = "role"'), tmp_path / "out")
    raters = pd.read_parquet(tmp_path / "out" / "raters.parquet")
    assert {"nurse": 6, "other": 6} == raters["attribute"].value_counts().to_dict()


@pytest.mark.parametrize("name", ["data_limitations", "data_biases", "data_use_cases", "data_social_impact",
                                  "personal_sensitive_information"])  # fmt: skip
def test_what_a_data_set_must_say_of_itself_is_asked_for(simulated, name):
    assert f"[rai] lacks {name}" in refusal(about(simulated.folder, 'simulated = "labelled"', drop=name))


def test_a_study_that_says_nothing_of_its_data_is_told_all_at_once(simulated):
    path = simulated.folder / "study.toml"
    path.write_text(path.read_text("utf-8").split("\n[release]\ndate = 2026")[0], "utf-8")
    with pytest.raises(StudyError) as error:
        release.package(config.load(simulated.folder), label_simulated=True)
    assert ["[release]"] + ["[rai]"] * 5 == re.findall(r"\[r\w+\]", str(error.value))


def changed(path, table, change):
    frame = change(tables.read(path, table).copy())
    tables.write(frame, path, table, tables.metadata(path))


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("responses", lambda f: f.assign(demo=f.index == 1), "is for demonstration only"),
        ("responses", lambda f: f.drop(index=0), "lacks a row for"),
        ("responses", lambda f: f.assign(status=["failed", *f["status"][1:]],
                                         text=f["text"].mask(f.index == 0, None)), "1 responses failed"),
        ("responses", lambda f: f.assign(answered_at=APART), "asked over 19.0 days"),
        ("ratings", lambda f: f.drop(index=f.index[f["rater_id"] == "rater-03"][:2]),
         "rater-03 has no row for 2 assigned ratings"),
        ("key", lambda f: f.drop(index=2), "names no source for"),
    ],
)  # fmt: skip
def test_what_is_not_fit_to_leave_is_refused_in_a_sentence(simulated, file, change, says):
    changed(getattr(simulated, file), tables.TABLES[file], change)
    assert says in refusal(simulated)


def test_a_waiver_lets_answers_from_further_apart_out_and_is_published(simulated, tmp_path):
    changed(simulated.responses, tables.RESPONSES, lambda f: f.assign(answered_at=APART))
    path = simulated.folder / "study.toml"
    path.write_text(path.read_text("utf-8") + '[generation]\nwaiver = "the server was down"\n', "utf-8")
    released(config.load(simulated.folder), tmp_path / "out")
    assert "the server was down" in (tmp_path / "out" / "README.md").read_text("utf-8")
    told = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    assert ["2026-01-01", "2026-01-20"] == told["rai:dataCollectionTimeframe"]


def test_how_a_model_was_asked_leaves_but_not_where(simulated, tmp_path):
    source = simulated.sources[1].source_id
    sent = {"model": "m-1", "temperature": 0.7, "base_url": "https://inside.example", "extra_body": {"u": "kim"}}
    manifest = {"sources": {source: {"kind": "openai_chat", "settings": sent}}}
    simulated.path("generation.json").write_text(json.dumps(manifest), "utf-8")
    changed(simulated.responses, tables.RESPONSES, lambda f: f.assign(
        model="m-1-2026", request_id="req-7", cost=0.1, prompt_tokens=[5, None, 7, 8], answered_at=APART[0]
    ))  # fmt: skip
    released(simulated, tmp_path / "out")
    told = pd.read_parquet(tmp_path / "out" / "sources.parquet").set_index("source_id").loc[source]
    assert ("m-1", {"temperature": 0.7}) == (told["model"], json.loads(told["settings"]))
    responses = pd.read_parquet(tmp_path / "out" / "responses.parquet")
    assert ({"m-1-2026"}, {"2026-01-01"}) == (set(responses["model"]), set(responses["answered_on"]))
    assert 1 == responses["prompt_tokens"].isna().sum()
    assert not re.search("inside.example|req-7|kim", said(tmp_path / "out"))


def test_texts_are_scrubbed_and_say_how_often(simulated, tmp_path):
    said = ["저는 김민수입니다, 010-1234-5678이에요.", "혈압이 120/80이래요.", "네.", None]
    changed(simulated.responses, tables.RESPONSES,
            lambda f: f.assign(text=said, status=["ok", "ok", "ok", "refused"]))  # fmt: skip
    made = released(simulated, tmp_path / "out")
    after = pd.read_parquet(tmp_path / "out" / "responses.parquet").set_index(["prompt_id", "source_id"])
    first = tables.read(simulated.responses, tables.RESPONSES).iloc[0]
    row = after.loc[(first["prompt_id"], first["source_id"])]
    assert ("저는 [NAME]입니다, [PHONE]이에요.", 2) == (row["text"], row["replaced"])
    assert [0, 0, 0, 2] == sorted(after["replaced"])
    assert {"name": 1, "phone": 1} == made.replaced
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "replaced by placeholders: 2 (1 × name, 1 × phone)" in card


def test_what_a_person_must_decide_is_refused_until_it_is_decided(simulated, tmp_path):
    changed(simulated.responses, tables.RESPONSES,
            lambda f: f.assign(text=["김민수 교수님이 보셨어요.", *f["text"][1:]]))  # fmt: skip
    assert "holds '김민수', which may tell who somebody is" in refusal(simulated)
    released(about(simulated.folder, 'simulated = "labelled"\nredact = ["김민수"]'), tmp_path / "out")
    assert "[REDACTED] 교수님" in "".join(pd.read_parquet(tmp_path / "out" / "responses.parquet")["text"])


def test_an_unlocked_study_stays(rated):
    database = open_study(rated)
    export.write(database, rated.ratings)
    database.close()
    assert "the study is not locked" in refusal(rated)


def test_people_who_did_not_agree_to_sharing_stay_out(rated, tmp_path):
    made = released(closed(rated), tmp_path / "out")
    after = pd.read_parquet(tmp_path / "out" / "ratings.parquet")
    assert {"R01", "R02", "R03"} == set(after["rater_id"])
    assert {"rater-02": "did not agree to sharing"} == made.left_out
    assert "did not agree to sharing: 1." in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_ratings_without_consent_are_refused(rated):
    folder = rated.folder
    closed(rated)
    database = open_study(rated)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("drop trigger consent_kept")
        connection.exec_driver_sql("delete from consent where person_id = 'rater-03'")
        connection.commit()
    database.close()
    assert "no consent of rater-03 is on record" in refusal(rated)
    assert "rater-03" in release.package(about(folder, 'withdrawn = ["rater-03"]')).left_out


def test_a_withdrawn_rater_is_in_no_release_even_if_the_file_still_has_them(rated, tmp_path):
    database = open_study(rated)
    export.write(database, tmp_path / "early" / "ratings.parquet")
    withdrawal.withdraw(database, "rater-01", "test")
    seals.lock(database, "test")
    database.close()
    shutil.copy(tmp_path / "early" / "ratings.parquet", rated.ratings)
    made = released(rated, tmp_path / "out")
    assert "withdrew" == made.left_out["rater-01"]
    assert 2 == pd.read_parquet(tmp_path / "out" / "raters.parquet")["rater_id"].nunique()


def test_a_file_that_is_not_what_the_database_holds_is_refused(rated):
    closed(rated)
    changed(rated.ratings, tables.RATINGS, lambda f: f.assign(value=f["value"].mask(f.index == 3, 1)))
    assert "is not what the locked database holds" in refusal(rated)


def test_ratings_from_an_app_need_its_database(rated, tmp_path, monkeypatch):
    closed(rated)
    for path in rated.folder.glob("ratings.db*"):
        path.unlink()
    assert "put ratings.db back" in refusal(rated)
    monkeypatch.setenv("CROSSED_DATABASE", f"sqlite:///{tmp_path / 'empty.db'}")
    assert "the ratings database holds no study" in refusal(rated)


def test_comments_leave_only_when_asked_for_and_without_their_rater(rated, tmp_path):
    made = released(closed(rated), tmp_path / "plain")
    assert not (tmp_path / "plain" / "comments.parquet").exists()
    assert "1 comments of raters stay here" in made.notes[0]
    released(about(rated.folder, "comments = true"), tmp_path / "with")
    comments = pd.read_parquet(tmp_path / "with" / "comments.parquet")
    assert ["저는 [NAME]입니다. [PHONE]"] == list(comments["text"])
    assert "rater_id" not in comments.columns


def test_rules_and_judges_leave_under_their_own_names_with_their_metrics(simulated, tmp_path):
    items = tables.read(simulated.items, tables.ITEMS)
    spoken = items.loc[items["kind"] == "utterance", "label"]
    rule = pd.DataFrame({
        "rater_id": "rules", "rater_kind": "rule", "label": spoken,
        "metric_id": "rule_true", "occasion": 1, "value": 1.0, "status": "ok", "reason": None, "simulated": False,
    })  # fmt: skip
    changed(simulated.ratings, tables.RATINGS, lambda f: pd.concat([f, rule]))
    released(simulated, tmp_path / "out")
    raters = pd.read_parquet(tmp_path / "out" / "raters.parquet").set_index("rater_id")
    assert ("rule", 4) == tuple(raters.loc["rules", ["rater_kind", "ratings"]])
    assert "rule_true" in set(pd.read_parquet(tmp_path / "out" / "metrics.parquet")["metric_id"])


def test_a_judge_for_trying_things_out_is_refused(simulated):
    path = simulated.folder / "study.toml"
    path.write_text(path.read_text("utf-8") + '[[judge]]\nid = "small"\nkind = "local"\n', "utf-8")
    own = {"rater_id": "small", "rater_kind": "judge", "simulated": False}
    changed(simulated.ratings, tables.RATINGS, lambda f: pd.concat([f, f.head(3).assign(**own)]))
    assert "judge small is for demonstration only" in refusal(config.load(simulated.folder))


def encounter(n, demo=False):
    turns = [
        {"round": 1, "speaker": "patient", "text": "배가 아파요.", "flags": []},
        {"round": 1, "speaker": "doctor", "text": "저는 김민지입니다. 혈압은 120/80이네요.", "flags": ["long"]},
    ]
    return {
        "encounter_id": f"enc-{n}", "case_id": "c1", "source_id": "doc", "patient_id": "pat", "replicate": 1,
        "status": "concluded", "detail": None, "rounds": 1, "turns": json.dumps(turns, ensure_ascii=False),
        "diagnosis": "위염", "config": "x", "demo": demo,
    }  # fmt: skip


def test_dialogues_leave_turn_by_turn_and_scrubbed(simulated, tmp_path):
    path = simulated.path("encounters.parquet")
    frame = pd.DataFrame([dict.fromkeys(tables.ENCOUNTERS.names) | encounter(n) for n in (1, 2)])
    tables.write(frame, path, tables.ENCOUNTERS)
    made = released(simulated, tmp_path / "out")
    turns = pd.read_parquet(tmp_path / "out" / "dialogues.parquet")
    assert [("enc-1", 1), ("enc-1", 2), ("enc-2", 1), ("enc-2", 2)] == list(
        zip(turns["encounter_id"], turns["turn"], strict=True)
    )
    assert "저는 [NAME]입니다. 혈압은 120/80이네요." == turns["text"][1]
    assert {"name": 2} == made.replaced
    tables.write(frame.assign(demo=True), path, tables.ENCOUNTERS)
    assert "2 dialogues are for demonstration only" in refusal(simulated)


def imported(tmp_path, extra=""):
    scores = pd.DataFrame(
        [(f"p{r}", f"d{d}", s, (r + d) % 5 + 1) for r in range(5) for d in range(4) for s in ("a", "b (tag)")],
        columns=["rater", "doc", "system", "score"],
    )
    scores.to_csv(tmp_path / "scores.csv", index=False)
    words = ["--into", tmp_path / "imported", "--rater", "rater", "--source", "system", "--prompt", "doc"]
    done = CliRunner().invoke(cli.app, ["import", *map(str, (tmp_path / "scores.csv", *words)), "--scale", "1:5"])
    assert 0 == done.exit_code, done.output
    return about(tmp_path / "imported", extra)


def test_imported_ratings_need_a_word_on_consent(tmp_path):
    study = imported(tmp_path)
    assert "say how the 5 raters consented" in refusal(study)
    assert "withdrawn names p9, of whom there is no rating" in refusal(about(study.folder, 'withdrawn = ["p9"]'))
    study = about(study.folder, 'consent = "Each signed a form."\nwithdrawn = ["p2"]')
    released(study, tmp_path / "out")
    assert 4 == len(pd.read_parquet(tmp_path / "out" / "raters.parquet"))
    assert not (tmp_path / "out" / "responses.parquet").exists()
    told = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    assert "rai:dataAnnotationPlatform" not in told, "of ratings from elsewhere nobody knows where they were given"
    assert "The answers of 2 sources were rated. Raters: 4 human." == told["rai:dataCollection"]


def test_a_reason_in_a_persons_own_words_is_emptied(tmp_path):
    study = imported(tmp_path, 'consent = "Each signed a form."')
    changed(study.ratings, tables.RATINGS, lambda f: f.assign(
        value=f["value"].mask(f.index < 2), status=["cannot_judge"] * 2 + ["ok"] * (len(f) - 2),
        reason=["had an operation", "unclear"] + [None] * (len(f) - 2)))  # fmt: skip
    assert 1 == released(study, tmp_path / "out").dropped
    assert ["unclear"] == list(pd.read_parquet(tmp_path / "out" / "ratings.parquet")["reason"].dropna())


def test_a_reader_gets_a_hundred_texts_as_they_leave_and_their_finding_is_published(simulated, tmp_path):
    own = {"rater_id": "gpt", "rater_kind": "judge", "simulated": False}
    own |= {"reason": [f"{n}번째 이유" for n in range(200)], "occasion": range(200)}
    changed(simulated.ratings, tables.RATINGS, lambda f: pd.concat([f, f.head(200).assign(**own)]))
    study = about(simulated.folder, 'simulated = "labelled"\naudit = "100 texts read, none overlooked."')
    made = released(study, tmp_path / "out")
    for name in ("one.csv", "two.csv"):
        assert 100 == release.write_sample(made, tmp_path / name)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    sample = pd.read_csv(tmp_path / "one.csv")
    assert ["table", "row", "column", "text", "overlooked"] == list(sample.columns)
    assert sample["text"].is_unique and sample["text"].str.endswith("이유").sum() > 80
    assert "100 texts read, none overlooked." in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_a_folder_that_is_no_release_is_left_alone(simulated, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("mine")
    with pytest.raises(StudyError, match="holds no release"):
        released(simulated, tmp_path / "thesis")
    assert ["chapter.txt"] == [p.name for p in (tmp_path / "thesis").iterdir()]


def test_a_release_that_somebody_touched_is_left_alone(simulated, tmp_path):
    released(simulated, tmp_path / "out")
    (tmp_path / "out" / "LICENSE").write_text("mine")
    with pytest.raises(StudyError, match="was changed after its release .LICENSE"):
        released(simulated, tmp_path / "out")
    assert "mine" == (tmp_path / "out" / "LICENSE").read_text()


def test_what_a_killed_run_left_is_cleared_away(simulated, tmp_path):
    (tmp_path / ".out.part").mkdir()
    (tmp_path / ".out.part" / "ratings.parquet").write_bytes(b"half")
    released(simulated, tmp_path / "out")
    assert [] == problems_of(tmp_path / "out")
    assert not (tmp_path / ".out.part").exists()
