"""Whatever a judge sends, a score comes only from a verdict; the rule scores alike each time."""

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.benchmarks.vaidya import questions, rule
from analysis.benchmarks.vaidya.cases import Question
from analysis.benchmarks.vaidya.judge import DEFAULTS, Judge
from analysis.benchmarks.vaidya.metrics import covered
from analysis.benchmarks.vaidya.rule import Rule
from analysis.verdict import NoVerdict
from generation.settings import ModelSettings, Price
from study.records import Encounter, Turn, Vignette

_spec = importlib.util.spec_from_file_location("loopback", Path(__file__).parents[2] / "loopback.py")
loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loopback)
Loopback, Wire, chat, failure, response = (
    loopback.Loopback, loopback.Wire, loopback.chat, loopback.failure, loopback.response
)  # fmt: skip

EXPECTED = [{"question": "Do you have a fever?", "score": 3}, {"question": "Do you smoke?", "score": 1}]
CASE = Vignette("0", "Double vision.", "Myasthenia gravis (MG)", "en", {"expected_questions": EXPECTED})


def met(last="Diagnosis: Myasthenia gravis", status="concluded", **other):
    turns = (Turn(1, "patient", "I see double."), Turn(1, "doctor", "Have you had any fever?"),
             Turn(2, "patient", "No."), Turn(2, "doctor", last))  # fmt: skip
    given = {"turns": turns, "diagnosis": None} | other
    return Encounter("0/1/d", "0", "d", "p", 1, status, **given)


def judged(server, encounter=None, benchmark="diagbench", extractor=False, **more):
    settings = ModelSettings(
        model="judge-model", base_url=server.url, first_wait=0.001, attempts=2, **(DEFAULTS | more)
    )
    judge = Judge(benchmark, settings, settings.model_copy(update={"model": "extractor"}) if extractor else None)
    judge.open(lambda record: None)
    try:
        return judge.score(CASE, encounter or met(), "k")
    finally:
        judge.close()


def verdict(score=1):
    return json.dumps({"score": score, "reasoning": "r"})


def test_a_verdict_over_the_responses_api():
    with Loopback(lambda hit, n: response(verdict())) as server:
        found = judged(server)
    assert ("ok", {"diagnosis": 1.0}, "r") == (found.status, found.values, found.reason)
    assert ("responses", 900, 20, 100) == tuple(
        found.about[k] for k in ("api", "prompt_tokens", "completion_tokens", "cached_tokens")
    )
    sent = server.hits[0].body
    assert sent["text"]["format"]["strict"] is True and "store" in sent
    assert "Myasthenia gravis" in sent["input"][0]["content"]


@pytest.mark.parametrize("status", [404, 405])
def test_without_a_responses_api_the_judge_turns_to_chat(status):
    def script(hit, n):
        return failure(status, "no such path") if hit.path.endswith("/responses") else chat(verdict(0))

    with Loopback(script) as server:
        found = judged(server)
    assert ("ok", {"diagnosis": 0.0}, "chat") == (found.status, found.values, found.about["api"])
    assert ["/v1/responses", "/v1/chat/completions"] == [h.path for h in server.hits]
    assert "json_schema" == server.hits[1].body["response_format"]["type"]


def test_a_server_that_takes_no_schema_is_asked_without_and_read_as_strictly():
    def script(hit, n):
        if hit.path.endswith("/responses"):
            return failure(404)
        if "response_format" in hit.body:
            return failure(400, "Unknown field: response_format")
        return chat(verdict(2) if len(server.hits) < 4 else verdict(1))

    with Loopback(script) as server:
        found = judged(server)
    assert ("ok", {"diagnosis": 1.0}, "chat", False) == (
        found.status, found.values, found.about["api"], found.about["schema"]
    )  # fmt: skip
    assert 4 == len(server.hits)


def test_many_at_once_find_the_way_that_a_server_takes():
    def script(hit, n):
        return failure(404) if hit.path.endswith("/responses") else chat(verdict())

    with Loopback(script, delay=0.01) as server:
        judge = Judge("diagbench", ModelSettings(model="m", base_url=server.url, concurrency=8, **DEFAULTS))
        judge.open(lambda record: None)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda i: judge.score(CASE, met(), f"k{i}"), range(24)))
        judge.close()
    assert {"ok"} == {f.status for f in found}


def test_an_unknown_model_is_a_failure_not_a_score():
    with Loopback(lambda hit, n: failure(404, "no such model", "model_not_found")) as server:
        found = judged(server)
    assert ("failed", {}) == (found.status, found.values)
    assert 2 == len(server.hits)


def test_a_server_that_is_down_is_a_failure_not_a_score():
    with Loopback(lambda hit, n: failure(500)) as server:
        found = judged(server)
    assert ("failed", {}) == (found.status, found.values)


BAD = {
    "prose": "The diagnosis is right.", "nothing": "", "cut": verdict()[:-4], "a list": f"[{verdict()}]",
    "a bare number": "1", "no score": '{"reasoning": "r"}', "score 2": verdict(2), "score -1": verdict(-1),
    "score 0.5": verdict(0.5), "score true": verdict(True), "false as a word": verdict("false"),
    "one as a word": verdict("1"), "null": verdict(None), "another name": '{"overall_score": 1, "reasoning": "r"}',
    "a key too many": '{"score": 1, "reasoning": "r", "confidence": 1}', "no reason": '{"score": 1}',
    "twice": '{"score": 0, "score": 1, "reasoning": "r"}', "NaN": '{"score": NaN, "reasoning": "r"}',
    "reason as object": '{"score": 1, "reasoning": {}}', "prose behind": f"{verdict()} I hope this helps.",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_reply_is_asked_for_again_twice_and_never_becomes_a_score(text):
    with Loopback(lambda hit, n: response(text)) as server:
        found = judged(server)
    assert ("judge_error", {}, 3) == (found.status, found.values, len(server.hits))
    assert "without a verdict" in found.reason


def test_a_reply_that_was_cut_or_refused_is_no_verdict_either():
    cut = response(verdict(), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    with Loopback(lambda hit, n: cut) as server:
        assert "judge_error" == judged(server).status
        limits = [h.body["max_output_tokens"] for h in server.hits]
    assert [600, 1200, 2400] == limits
    refused = response() | {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}
    with Loopback(lambda hit, n: refused) as server:
        assert "judge_error" == judged(server).status


def test_a_judge_that_mends_its_reply_is_heard_and_all_its_tokens_count():
    with Loopback(lambda hit, n: response(verdict(2) if n == 0 else verdict(1))) as server:
        found = judged(server)
        again = server.hits[1].question
    assert ("ok", 1800, 2) == (found.status, found.about["prompt_tokens"], found.about["asks"])
    assert "2; it can only be 0 or 1" in again


def test_a_doctor_without_a_diagnosis_scores_nothing_and_nobody_is_asked():
    with Loopback() as server:
        found = judged(server, met("Have you had any fever?", "max_rounds"))
    assert ("ok", {"diagnosis": 0.0}, "no_diagnosis", 0) == (
        found.status, found.values, found.reason, len(server.hits)
    )  # fmt: skip


@pytest.mark.parametrize("status", ["doctor_failed", "patient_failed"])
def test_a_conversation_without_words_has_no_score(status):
    with Loopback() as server:
        for benchmark in ("diagbench", "medconvbench"):
            found = judged(server, met(status=status), benchmark)
            assert ("not_applicable", {}) == (found.status, found.values)
            assert {} == Rule(benchmark).score(CASE, met(status=status), "k").values
    assert [] == server.hits


def test_the_last_turn_is_judged_unless_a_diagnosis_is_extracted():
    def script(hit, n):
        return response('{"diagnosis": "MG"}' if hit.body["model"] == "extractor" else verdict())

    with Loopback(script) as server:
        judged(server, met("Thank you. It may be MG, I think."))
        assert "statement:\nThank you." in server.hits[-1].question
        found = judged(server, met("Thank you. It may be MG, I think."), extractor=True)
        assert server.hits[-1].question.endswith("statement:\nMG")
    assert (1800, 3) == (found.about["prompt_tokens"], len(server.hits))


def test_where_nothing_can_be_extracted_there_is_no_diagnosis():
    with Loopback(lambda hit, n: response('{"diagnosis": null}')) as server:
        found = judged(server, met("Rest well."), extractor=True)
    assert ({"diagnosis": 0.0}, "no_diagnosis", 1) == (found.values, found.reason, len(server.hits))
    assert None is found.about["model"] and 900 == found.about["prompt_tokens"]
    assert ["extractor"] == found.about["unpriced"]


def test_the_model_without_a_price_is_named_as_it_was_asked_for():
    def script(hit, n):
        return response('{"diagnosis": "MG"}' if hit.body["model"] == "extractor" else verdict())

    price = Price(input=1, output=1, as_of="2026-01-01")
    with Loopback(script) as server:
        judge = ModelSettings(model="j", base_url=server.url, price=price, **DEFAULTS)
        scorer = Judge("diagbench", judge, judge.model_copy(update={"model": "e", "price": None}))
        scorer.open(lambda record: None)
        found = scorer.score(CASE, met(), "k")
        scorer.close()
    assert (None, ["e"]) == (found.about["cost"], found.about["unpriced"])


@pytest.mark.parametrize("said", ['{"diagnosis": ""}', '{"diagnosis": 5}', '{"diagnosis": ["MG"]}', "MG", "{}"])
def test_what_is_no_extraction_is_an_error(said):
    with Loopback(lambda hit, n: response(said)) as server:
        assert "judge_error" == judged(server, extractor=True).status


def asked(**answers):
    return json.dumps({"asked": answers, "reasoning": "r"})


def test_coverage_is_weighted_by_score():
    with Loopback(lambda hit, n: response(asked(q1=True, q2=False))) as server:
        found = judged(server, benchmark="medconvbench")
    assert {"question_coverage": 0.75} == found.values
    assert "1 of 2" in found.reason
    said = json.dumps(server.hits[0].body)
    assert "q2. Do you smoke?" in said and "Myasthenia" not in server.hits[0].question.split("conversation")[0]


@pytest.mark.parametrize(
    "said",
    [asked(q1=True), asked(q1=True, q2="false"), asked(q1=1, q2=0), asked(q1=True, q2=None),
     asked(q1=True, q2=True, q3=True), '{"asked": ["q1"], "reasoning": "r"}', "{}"],
)  # fmt: skip
def test_a_bad_list_of_questions_is_no_coverage(said):
    with Loopback(lambda hit, n: response(said)) as server:
        found = judged(server, benchmark="medconvbench")
    assert ("judge_error", {}) == (found.status, found.values)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 100)), min_size=1))
def test_coverage_lies_between_none_and_all(pairs):
    hits, scores = zip(*pairs, strict=True)
    value, _ = covered(hits, [Question("?", s) for s in scores])
    assert 0 <= value <= 1 + 1e-12
    assert 1 == pytest.approx(value + covered([not h for h in hits], [Question("?", s) for s in scores])[0])


@given(st.text())
def test_no_text_but_a_verdict_is_read(text):
    with pytest.raises(NoVerdict):
        questions.diagnosis("a", "b").read(text)


@pytest.mark.parametrize(
    ("last", "expected", "value"),
    [
        ("Diagnosis: Myasthenia Gravis", "Myasthenia gravis", 1), ("Diagnosis: MG", "Myasthenia gravis (MG)", 1),
        ("Diagnosis: Botulism", "Myasthenia gravis", 0), ("You have myasthenia gravis.", "Myasthenia gravis", 1),
        ("Diagnosis: Botulism or myasthenia gravis", "Myasthenia gravis", 0), ("Rest well.", "Asthma", 0),
        ("진단: 중증 근무력증", "중증 근무력증", 1), ("진단: 천식 또는 폐렴", "천식", 0),
        ("Diagnosis: asthmatic", "Asthma", 0),
    ],
)  # fmt: skip
def test_the_rule_looks_for_the_diagnosis_by_its_names(last, expected, value):
    case = Vignette("0", "x", expected)
    found = Rule("diagbench").score(case, met(last), "k")
    assert value == found.values["diagnosis"], found.reason


def test_the_rule_finds_questions_that_were_asked():
    found = Rule("medconvbench").score(CASE, met(), "k")
    assert {"question_coverage": 0.75} == found.values
    korean = [Question("열이 나셨나요?", 1), Question("담배를 피우세요?", 1)]
    assert [True, False] == rule.asked(["안녕하세요. 혹시 열이 나셨나요?"], korean)
    assert [False, False] == rule.asked(["..."], korean)
    assert [False, True] == rule.asked(["약은 드세요? 담배는 피우시나요?"], korean)


def test_the_rule_costs_nothing_and_says_the_same_again():
    one, two = (Rule("diagbench").score(CASE, met(), "k") for _ in range(2))
    assert one == two and 0.0 == one.about["cost"]
