"""`analysis benchmark vaidya`: run, evaluate and run-many, by their commands and files."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.benchmarks.vaidya.evaluation import estimates
from analysis.cli import app
from study import tables
from study.cli import app as study_app
from study.errors import StudyError

_spec = importlib.util.spec_from_file_location("loopback", Path(__file__).parents[2] / "loopback.py")
loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loopback)
Loopback, chat, failure, response = loopback.Loopback, loopback.chat, loopback.failure, loopback.response

NAMES = ("Gout", "Asthma", "Migraine", "Scurvy", "Rickets", "Measles", "Rabies", "Malaria", "Mumps", "Angina")
PRICES = """
models:
  %s: {provider: local_openai, input_cost_per_million_tokens: 2, output_cost_per_million_tokens: 8}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with ten cases, and no key in the environment."""
    for name in ("OPENAI_API_KEY", "XAI_API_KEY", "VAIDYA_EVALUATOR_MODEL", "DIAGBENCH_EVALUATOR_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    write_cases()
    return tmp_path


def write_cases(name="cases.json", **more):
    cases = [
        {"patient_id": i, "case_study": f"Patient {i}. It began {i + 2} days ago. No fever. I smoke.",
         "expected_diagnosis": d} | more
        for i, d in enumerate(NAMES)
    ]  # fmt: skip
    Path(name).write_text(json.dumps(cases), encoding="utf-8")
    return cases


def vaidya(*words, code=0):
    """What a command prints; its standard error is `.stderr`."""
    found = CliRunner().invoke(app, ["benchmark", "vaidya", *map(str, words)])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert code == found.exit_code, found.output
    return found


def run(folder="out", doctor="embedded", *more, patient="embedded", code=0):
    return vaidya("run", "--input", "cases.json", "--output-dir", folder, "--doctor-model", doctor,
                  "--patient-model", patient, *more, code=code)  # fmt: skip


def evaluate(folder="out", *more, by="rule", code=0):
    words = ["--by", "rule"] if by == "rule" else ["--evaluator-model", by]
    return vaidya("evaluate", "--input", "cases.json", "--output-dir", folder, *words, *more, code=code)


def summary(folder="out", rater="diagbench-rule"):
    return json.loads(Path(folder, f"evaluation-{rater}.json").read_text("utf-8"))["summary"]


def results(folder="out", rater="diagbench-rule"):
    return json.loads(Path(folder, f"evaluation-{rater}.json").read_text("utf-8"))["results"]


def changed(path, **more):
    held = json.loads(Path(path).read_text("utf-8"))
    Path(path).write_text(json.dumps(held | more), encoding="utf-8")


def playing(hit, n):
    """A server that plays the doctor, who concludes in the second turn, the patient, and the judge."""
    said = hit.body.get("messages")
    if said is None or "JSON object" in said[0]["content"]:
        if hit.path.endswith("/responses"):
            return response('{"score": 1, "reasoning": "the same disease"}')
        return failure(404)
    if "You are a doctor" in said[0]["content"]:
        turn = sum(m["role"] == "assistant" for m in said)
        return chat("Diagnosis: Gout\nConsidered: Gout 80" if turn else "Any fever?", model="doc-1")
    return chat("My toe hurts.", model="pat-1")


@pytest.fixture
def server(here, monkeypatch):
    with Loopback(playing) as up:
        monkeypatch.setenv("LOCAL_OPENAI_BASE_URL", up.url)
        Path("prices.yaml").write_text(PRICES % "qwen-doc" + PRICES.split("models:\n")[1] % "qwen-pat")
        yield up


def with_models(folder="out", *more, code=0):
    return run(folder, "qwen-doc", "--prices", "prices.yaml", *more, patient="qwen-pat", code=code)


def test_embedded_speakers_leave_a_file_for_each_patient(here):
    found = run()
    assert {f"patient_{i}.json" for i in range(10)} < {p.name for p in Path("out").iterdir()}
    assert "no score says anything of a model" in found.stdout
    manifest = json.loads(Path("out/manifest.json").read_text("utf-8"))
    assert (10, "embedded", True) == (manifest["cases"], manifest["doctor_model"], manifest["simulated"])


def test_the_oracle_scores_all_and_the_mute_nothing(here):
    for doctor, mean, silent in (("oracle", 1.0, 0), ("mute", 0.0, 10)):
        run(doctor, doctor)
        evaluate(doctor)
        found = summary(doctor)
        assert (10, mean, silent) == (found["evaluated"], found["score_mean"], len(found["no_diagnosis"]))
        assert [] == found["judge_errors"]
    assert {"no_diagnosis"} == {r["status"] for r in results("mute")}
    assert {"doctor_told_diagnosis": 10} == {k: len(v) for k, v in summary("oracle")["leaks"].items()}


def test_a_score_is_printed_with_all_that_it_needs(here):
    run()
    said = evaluate().stdout
    score = r"diagnosis by diagbench-rule: [01]\.\d+ \[0\.\d+, [01]\.\d+\]"
    assert re.search(score + r", n = 10/10 \(100%\), uncalibrated", said)
    assert "with all that is not evaluated as 0" in said and "bootstrap draws of the cases" in said


def test_few_cases_have_no_interval_and_say_so(here):
    Path("cases.json").write_text(json.dumps(write_cases()[:4]))
    run()
    changed("out/patient_0.json", crossed={})
    held = json.loads(Path("out/patient_0.json").read_text("utf-8"))
    last = held["conversation"][-1]
    changed("out/patient_0.json", conversation=[*held["conversation"][:-1], last | {"Doctor": "Diagnosis: Gout"}])
    assert "no interval: fewer than 10 cases support none" in evaluate().stdout
    assert None is summary()["estimates"][0]["low"]


def test_ratings_are_rows_that_the_house_knows(here):
    run()
    evaluate()
    rows = tables.read(Path("out/ratings.parquet"), tables.RATINGS)
    assert (10, {"rule"}, {"diagnosis"}) == (len(rows), set(rows["rater_kind"]), set(rows["metric_id"]))
    assert set(rows["label"]) == {f"{i}/1/embedded" for i in range(10)}


def test_models_leave_tokens_and_a_cost_that_can_be_computed_again(server):
    with_models()
    held = json.loads(Path("out/patient_0.json").read_text("utf-8"))
    used = held["token_usage"]
    assert (4 * 900, 4 * 12, 4 * 912) == (used["prompt"], used["completion"], used["total"])
    assert (3600 * 2 + 48 * 8) / 1e6 == pytest.approx(held["total_cost"], abs=1e-12)
    assert [{"Patient": "My toe hurts.", "Doctor": "Any fever?"}] == held["conversation"][:1]
    assert {"Gout": 80.0} == held["disease_scores"]


def test_without_a_price_the_cost_is_null(server):
    found = run("out", "qwen-doc", patient="qwen-pat")
    assert None is json.loads(Path("out/patient_0.json").read_text("utf-8"))["total_cost"]
    assert "cost unknown" in found.stdout


def test_a_judge_scores_and_its_tokens_are_the_evaluations(server):
    with_models()
    evaluate(by="qwen-judge")
    found = summary(rater="diagbench-judge-qwen-judge")
    assert (10, 10.0, 1.0) == (found["evaluated"], found["score_total"], found["score_mean"])
    assert {"prompt": 9000, "completion": 200, "total": 9200, "prompt_cached_tokens": 1000,
            "completion_reasoning_tokens": 80} == found["eval_token_usage"]  # fmt: skip
    assert (None, ["qwen-judge"]) == (found["eval_cost"], found["unpriced"])
    by_the_documents_fields("out/evaluation-diagbench-judge-qwen-judge.json")


def by_the_documents_fields(path):
    """What a reader finds who has the document and nothing else."""
    held = json.loads(Path(path).read_text("utf-8"))
    scores = [r["score"] for r in held["results"] if r["score"] is not None]
    assert all({"patient_id", "score", "reasoning"} <= set(r) for r in held["results"])
    found, used = held["summary"], held["summary"]["eval_token_usage"]
    assert (len(scores), sum(scores)) == (found["evaluated"], found["score_total"])
    assert found["score_mean"] == found["score_total"] / found["evaluated"]
    assert used["total"] == used["prompt"] + used["completion"]


def test_a_replay_has_equal_scores_and_makes_no_call(server):
    with_models()
    evaluate(by="qwen-judge")
    evaluate()
    before = [results(rater=r) for r in ("diagbench-judge-qwen-judge", "diagbench-rule")]
    ratings = tables.read(Path("out/ratings.parquet"), tables.RATINGS)
    files = {p.name: p.read_bytes() for p in Path("out").glob("patient_*.json")}
    hits = len(server.hits)
    server.script = lambda hit, n: failure(500)
    with_models("out", "--replay")
    evaluate("out", "--replay", by="qwen-judge")
    evaluate("out", "--replay")
    assert before == [results(rater=r) for r in ("diagbench-judge-qwen-judge", "diagbench-rule")]
    assert hits == len(server.hits)
    pd.testing.assert_frame_equal(
        ratings.sort_values(["rater_id", "label"]).reset_index(drop=True),
        tables.read(Path("out/ratings.parquet"), tables.RATINGS)
        .sort_values(["rater_id", "label"]).reset_index(drop=True),
    )  # fmt: skip
    assert files == {p.name: p.read_bytes() for p in Path("out").glob("patient_*.json")}


def test_a_replay_wants_no_key(server, monkeypatch):
    monkeypatch.setenv("XAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("XAI_BASE_URL", server.url)
    run("out", "grok-a", patient="grok-b")
    evaluate(by="grok-c")
    before = results(rater="diagbench-judge-grok-c")
    monkeypatch.delenv("XAI_API_KEY")
    run("out", "grok-a", "--replay", patient="grok-b")
    evaluate("out", "--replay", by="grok-c")
    assert before == results(rater="diagbench-judge-grok-c")
    assert not any("sk-of-nobody" in p.read_text("utf-8") for p in Path("out").iterdir() if p.suffix != ".parquet")


def test_settings_reach_the_models(server):
    with_models("out", "--doctor-setting", "max_tokens=99", "--patient-setting", 'unsupported=["temperature"]')
    sent = {h.body["model"]: h.body for h in server.hits}
    assert 99 == sent["qwen-doc"]["max_tokens"] and "temperature" not in sent["qwen-pat"]
    evaluate("out", "--evaluator-setting", 'unsupported=["temperature"]', by="qwen-judge")
    assert "temperature" not in server.hits[-1].body
    for words, said in ((("x",), "no KEY=VALUE"), (("sede=1",), "unknown key"), (("seed=1", "seed=2"), "twice")):
        with pytest.raises(StudyError, match=said):
            with_models("out", *(word for one in words for word in ("--doctor-setting", one)))


def test_a_run_that_was_stopped_goes_on_and_asks_nothing_twice(server):
    found = with_models("out", "--max-calls", "14", "--concurrency", "1", code=2)
    assert "7 encounters are open; run again" in found.stderr and "--max-calls 14" in found.stderr
    assert (14, 3) == (len(server.hits), len(list(Path("out").glob("patient_*.json"))))
    evaluate(code=2)
    assert ([str(i) for i in range(3, 10)], 3) == (summary()["missing"], summary()["evaluated"])
    with_models()
    assert (40, 10) == (len(server.hits), len(list(Path("out").glob("patient_*.json"))))
    evaluate()


def test_a_budget_of_money_is_kept(server):
    found = with_models("out", "--max-cost", "0.03", "--concurrency", "1", code=2)
    spent = sum(json.loads(p.read_text("utf-8"))["total_cost"] for p in Path("out").glob("patient_*.json"))
    assert 0 < spent <= 0.03 and "--max-cost 0.03" in found.stderr


def test_a_server_that_refuses_leaves_no_conversation_and_no_score(server):
    server.script = lambda hit, n: failure(401, "bad key")
    found = with_models(code=2)
    assert [] == list(Path("out").glob("patient_*.json"))
    assert "10 encounters are open" in found.stderr
    with pytest.raises(StudyError, match="holds no conversation"):
        evaluate()


def test_a_doctor_that_says_nothing_has_no_score_and_no_words_are_made_up(server):
    def script(hit, n):
        said = playing(hit, n)
        return chat("") if "doctor" in hit.body["messages"][0]["content"][:20] and n < 2 else said

    server.script = script
    with_models("out", "--concurrency", "1")
    evaluate(code=2)
    silent = summary()["no_words"]
    assert 1 == len(silent)
    row = next(r for r in results() if str(r["patient_id"]) == silent[0])
    assert (None, "doctor_failed") == (row["score"], row["status"])
    assert ["My toe hurts."] == [
        text for pair in json.loads(Path(f"out/patient_{silent[0]}.json").read_text("utf-8"))["conversation"]
        for text in pair.values()
    ]  # fmt: skip


def test_what_is_not_evaluated_leaves_the_mean_and_is_nought_beside_it(here):
    run("out", "oracle")
    Path("out/patient_1.json").unlink()
    whole = Path("out/patient_2.json").read_text("utf-8")
    Path("out/patient_2.json").write_text(whole[: len(whole) // 2])
    changed("out/patient_3.json", metadata={"case_id": "4", "doctor_model": "oracle"})
    found = evaluate(code=2)
    s = summary()
    assert (["1"], ["2", "3"], 7, 1.0) == (s["missing"], sorted(s["invalid"]), s["evaluated"], s["score_mean"])
    assert 0.7 == s["coverage"] == pytest.approx(s["estimates"][1]["estimate"])
    assert "score_mean_missing_zero" == s["estimates"][1]["term"]
    assert "half written" in s["invalid"]["2"] and 'holds case "4"' in s["invalid"]["3"]
    assert [None] * 3 == [r["score"] for r in results() if r["patient_id"] in (1, 2, 3)]
    assert "n = 7/10 (70%)" in found.stdout
    assert "cases without a score: 1 missing, 2 invalid" in found.stderr


def test_a_judge_that_cannot_be_read_has_no_say(server):
    def script(hit, n):
        if hit.path.endswith("/responses"):
            odd = "Rickets" in str(hit.body["input"])
            return response('{"score": "1", "reasoning": "r"}' if odd else '{"score": 0, "reasoning": "r"}')
        return playing(hit, n)

    server.script = script
    with_models()
    found = evaluate(by="qwen-judge", code=2)
    s = summary(rater="diagbench-judge-qwen-judge")
    assert (["4"], 9, 0.0) == (s["judge_errors"], s["evaluated"], s["score_mean"])
    assert "1 judge errors: 4" in found.stdout and '"score" is "1", not a number' in found.stdout


def test_a_judge_is_asked_of_diagnoses_only_and_its_tokens_are_known(server):
    run("out", "mute", patient="embedded")
    evaluate(by="qwen-judge")
    found = summary(rater="diagbench-judge-qwen-judge")
    assert (10, 0.0, 0) == (found["evaluated"], found["score_mean"], found["eval_token_usage"]["total"])
    assert [] == server.hits


def test_a_judge_that_is_not_there_leaves_cases_unjudged(server):
    with_models()
    server.script = lambda hit, n: failure(401, "bad key")
    found = evaluate(by="qwen-judge", code=2)
    s = summary(rater="diagbench-judge-qwen-judge")
    assert (0, None, 10, []) == (s["evaluated"], s["score_mean"], len(s["unjudged"]), s["estimates"])
    assert "no score" in found.stdout and "bad key" in found.stdout
    assert {"unjudged"} == {r["status"] for r in results(rater="diagbench-judge-qwen-judge")}
    assert 0 == s["eval_token_usage"]["total"]
    server.script = playing
    evaluate(by="qwen-judge")


def test_existing_conversations_stay_as_they_are(here):
    run()
    before = {p.name: p.read_bytes() for p in Path("out").glob("patient_*.json")}
    assert "0 files written" in run().stdout
    assert before == {p.name: p.read_bytes() for p in Path("out").glob("patient_*.json")}
    Path("out/events.jsonl").unlink()
    assert "all 10 conversations are there already" in run().stdout
    run("out", "embedded", "--no-skip-existing")
    assert before != {p.name: p.read_bytes() for p in Path("out").glob("patient_*.json")}


def test_an_existing_file_is_skipped_only_if_it_is_the_one_asked_for(here):
    run()
    text = Path("out/patient_0.json").read_text("utf-8")
    Path("out/patient_0.json").write_text(text[:100])
    assert "1 files written" in run().stdout
    assert "10 files written" in run("out", "embedded", "--max-rounds", "3").stdout
    cases = write_cases()
    cases[5]["case_study"] += " I travelled."
    Path("cases.json").write_text(json.dumps(cases))
    evaluate(code=2)
    assert "another text of case 5" in summary()["invalid"]["5"]


def test_a_case_file_is_never_written_over(here):
    before = Path("cases.json").read_bytes()
    with pytest.raises(StudyError, match="lies in the folder of conversations"):
        run(".")
    assert before == Path("cases.json").read_bytes()


def test_a_corrected_answer_is_scored_without_another_conversation(here):
    run("out", "mute")
    cases = write_cases()
    cases[5]["expected_diagnosis"] = "Rubella"
    Path("cases.json").write_text(json.dumps(cases))
    evaluate()
    assert {} == summary()["invalid"]


@pytest.mark.parametrize("folder", ["taken", "taken/out"])
def test_a_file_in_the_place_of_a_folder_is_named(here, folder):
    Path("taken").write_text("mine")
    with pytest.raises(StudyError, match="taken: is a file; conversations go into a folder"):
        run(folder)
    doctors(models="[mute]")
    asked = Path("doctors.yaml").read_text().replace("log_dir: logs", f"log_dir: {folder}")
    Path("doctors.yaml").write_text(asked)
    with pytest.raises(StudyError, match="taken: is a file; logs go into a folder"):
        vaidya("run-many", "doctors.yaml")


def test_no_call_is_made_for_a_folder_of_another_doctor(server):
    run("out", "mute")
    with pytest.raises(StudyError, match="with doctor mute, not qwen-doc"):
        with_models()
    with pytest.raises(StudyError, match="with patient embedded, not qwen-pat"):
        run("out", "mute", patient="qwen-pat")
    run("two", "oracle")
    Path("out/patient_3.json").write_bytes(Path("two/patient_3.json").read_bytes())
    with pytest.raises(StudyError, match=r"more than one doctor .*oracle of embedded in patient_3.json"):
        evaluate(by="qwen-judge")
    assert [] == server.hits


def test_no_call_is_made_for_wrong_cases_keys_or_providers(server):
    for words, said in (
        (("qwen-doc", "--benchmark", "medconvbench"), "expected_questions is missing"),
        (("grok-3",), "XAI_API_KEY"),
        (("qwen-doc", "--strict"), "--strict wants its provider named"),
        (("qwen-doc", "--max-cost", "1"), "no price"),
        (("qwen-doc", "--prices", "none.yaml"), "none.yaml: cannot be read"),
    ):
        with pytest.raises(StudyError, match=said):
            run("out", *words, patient="qwen-pat")
    with_models("strict", "--strict", "--doctor-provider", "local_openai", "--patient-provider", "local_openai")
    hits = len(server.hits)
    for words, said in ((("--by", "somebody"), "no such rater"), (("--evaluator-model", "grok-3"), "XAI_API_KEY"),
                        (("--evaluator-model", "mute"), "judges none")):  # fmt: skip
        with pytest.raises(StudyError, match=said):
            vaidya("evaluate", "--input", "cases.json", "--output-dir", "strict", *words)
    assert hits == len(server.hits)


def test_conversations_of_another_program_are_scored_and_never_replaced(here):
    run("out", "oracle")
    for path in Path("out").glob("patient_*.json"):
        held = json.loads(path.read_text("utf-8"))
        del held["crossed"]
        held["token_usage"]["total"] = 7
        path.write_text(json.dumps(held))
    before = Path("out/patient_0.json").read_bytes()
    found = evaluate()
    assert 1.0 == summary()["score_mean"] and "7 is not prompt 0 + completion 0" in found.stdout
    with pytest.raises(StudyError, match="does not say which text"):
        run("out", "oracle")
    assert before == Path("out/patient_0.json").read_bytes()


def test_a_patient_who_gives_the_answer_away_is_flagged(here):
    run("out", "mute")
    for path in Path("out").glob("patient_*.json"):
        held = json.loads(path.read_text("utf-8"))
        del held["crossed"]
        if held["metadata"]["case_id"] == "0":
            held["conversation"][1]["Patient"] = "They told me that it is gout."
        path.write_text(json.dumps(held))
    assert {"patient_named_diagnosis": ["0"]} == (evaluate(), summary()["leaks"])[1]


def test_medconvbench_weighs_what_was_asked(here):
    asked = [{"question": "When did this start?", "score": 3}, {"question": "Any pets?", "score": 1}]
    write_cases(expected_questions=asked)
    run("out", "mute", "--benchmark", "medconvbench")
    evaluate("out", "--benchmark", "medconvbench")
    evaluate("out", "--benchmark", "diagbench")
    assert {0.75} == {r["score"] for r in results(rater="medconvbench-rule")}
    assert ["question_coverage", "diagnosis"] == [
        summary(rater=f"{b}-rule")["metric"] for b in ("medconvbench", "diagbench")
    ]
    rows = tables.read(Path("out/ratings.parquet"), tables.RATINGS)
    assert {"medconvbench-rule": 10, "diagbench-rule": 10} == rows["rater_id"].value_counts().to_dict()


def test_a_studys_own_cases_are_both_benchmarks(here):
    CliRunner().invoke(study_app, ["new", "my-study"], catch_exceptions=False)
    Path("cases.json").unlink()
    vaidya("cases", "my-study")
    held = json.loads(Path("cases.json").read_text("utf-8"))
    assert ["HEM", "FIP", "CCO"] == [c["case_id"] for c in held]
    assert not any(c["expected_diagnosis"] in c["case_study"] for c in held)
    with pytest.raises(StudyError, match="say --benchmark"):
        run()
    for benchmark, doctor, score in (("diagbench", "oracle", 1.0), ("medconvbench", "mute", None)):
        run(doctor, doctor, "--benchmark", benchmark)
        evaluate(doctor, "--benchmark", benchmark)
        found = summary(doctor, f"{benchmark}-rule")
        assert 3 == found["evaluated"] and (score is None or score == found["score_mean"])
    assert all(0 < r["score"] < 1 for r in results("mute", "medconvbench-rule"))
    with pytest.raises(StudyError, match="is there already"):
        vaidya("cases", "my-study")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=10, max_size=40), st.integers(0, 10))
def test_means_lie_in_their_intervals_and_missing_cases_only_lower_them(scores, missing):
    mean, lowered = estimates(scores, len(scores) + missing, 0, binary=False)
    assert len(set(scores)) == 1 or mean.low <= mean.estimate <= mean.high
    assert mean.estimate == pytest.approx(np.mean(scores))
    assert lowered.estimate == pytest.approx(sum(scores) / (len(scores) + missing))
    assert lowered.estimate <= mean.estimate + 1e-12


def test_the_interval_is_that_of_cases_drawn_anew():
    # Independent: NumPy's own draws, 20,000 of them. Tolerance: three Monte Carlo errors of a percentile.
    scores = np.array([1.0] * 60 + [0.0] * 40)
    found = estimates(list(scores), 100, 0, binary=True)[0]
    draws = np.random.default_rng(1).choice(scores, (20_000, 100)).mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    assert (low, high) == pytest.approx((found.low, found.high), abs=0.015)
    assert np.std(scores) / 10 == pytest.approx(found.std_error, rel=0.05)


def test_scores_that_are_all_alike_are_not_certain():
    # Exact: 1 - 0.025 ** (1 / 10), the rule behind "three in n".
    found = estimates([0.0] * 10, 10, 0, binary=True)[0]
    assert (0.0, 1 - 0.025**0.1) == pytest.approx((found.low, found.high), abs=1e-12)
    assert np.isnan(estimates([0.5] * 10, 10, 0, binary=False)[0].low)


def doctors(text="", models="[oracle, embedded, mute]"):
    lines = ["input: cases.json", "output_root: runs", "log_dir: logs", "patient_model: embedded"]
    Path("doctors.yaml").write_text("\n".join([*lines, f"doctor_models: {models}", text]))


def test_run_many_gives_each_doctor_a_folder_and_a_log(here):
    doctors()
    said = vaidya("run-many", "doctors.yaml").stdout
    for name in ("oracle", "embedded", "mute"):
        assert 10 == len(list(Path("runs", name).glob("patient_*.json")))
        log = [json.loads(line) for line in Path("logs", f"{name}.jsonl").read_text("utf-8").splitlines()]
        assert [("begun", name), ("ended", None)] == [(r["event"], r.get("doctor_model")) for r in log]
        assert f"{name} with patient embedded: 10 encounters" in said
    assert "0 files written" in vaidya("run-many", "doctors.yaml").stdout


def test_run_many_goes_on_with_others_when_one_is_not_reached(server):
    doctors(models="[{model: x/qwen-a, settings: {attempts: 1, max_tokens: 99}}, 'qwen:b']")
    server.script = lambda hit, n: failure(401) if hit.body["model"] == "x/qwen-a" else playing(hit, n)
    found = vaidya("run-many", "doctors.yaml", code=2)
    assert "encounters of x/qwen-a are open" in found.stderr
    assert [0, 10] == [len(list(Path("runs", name).glob("patient_*.json"))) for name in ("x-qwen-a", "qwen-b")]
    assert 99 == server.hits[0].body["max_tokens"]


@pytest.mark.parametrize(
    ("text", "models", "said"),
    [
        ("", "[a/b, 'a:b']", "a/b and a:b would share the folder a-b"), ("", "[GPT-4o, gpt-4o]", "would share"),
        ("", "[mute, mute]", "mute stands twice"), ("", "[]", "doctor_models"), ("", "[grok-3]", "XAI_API_KEY"),
        ("rounds: 8", "[mute]", "unknown key rounds"), ("max_rounds: 0", "[mute]", "max_rounds"),
        ("input: cases", "[mute]", "input stands twice"), ("", "[{name: x}]", "doctor_models.0"),
        ("", "[{model: mute, provider: openai}]", "no provider"),
        ("", "[{model: mute, settings: {seed: 1}}]", "no settings"),
        ("max_cost: 1", "[mute, qwen-a]", "max_cost needs a price and a token limit for qwen-a"),
        ("", "[{model: qwen-a, settings: {sede: 1}}]", "unknown key sede"), (": :", "[mute]", "not YAML"),
    ],
)  # fmt: skip
def test_a_file_of_doctors_that_is_wrong_is_refused_before_anything_is_asked(server, text, models, said):
    doctors(text, models)
    with pytest.raises(StudyError, match=re.escape(said)):
        vaidya("run-many", "doctors.yaml")
    assert [] == server.hits and not Path("runs").exists()


@pytest.mark.parametrize("source", ["folder.json", "cases.jsonl", "cases"])
def test_run_many_takes_one_json_file(here, source):
    Path("folder.json").mkdir()
    doctors()
    Path("doctors.yaml").write_text(Path("doctors.yaml").read_text().replace("cases.json", source))
    with pytest.raises(StudyError, match="one .json file"):
        vaidya("run-many", "doctors.yaml")
