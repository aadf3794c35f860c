"""Every way in which a compatible server has been seen to answer, over a real connection."""

import datetime
import importlib.util
import random
from pathlib import Path

import pytest

from generation.client import Client, body, key, retry_after
from generation.retry import CallError, Gate, Policy, persist
from generation.settings import model_settings
from study.errors import StudyError

_spec = importlib.util.spec_from_file_location("loopback", Path(__file__).parents[1] / "loopback.py")
loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loopback)
Loopback, Wire, chat, failure, response = (
    loopback.Loopback, loopback.Wire, loopback.chat, loopback.failure, loopback.response
)  # fmt: skip

MESSAGES = [{"role": "system", "content": "당신은 환자입니다."}, {"role": "user", "content": "열은 없으세요?"}]
QUICK = Policy(attempts=3, first_wait=0.001, patience=120)


def settings(server, **more):
    return model_settings({"model": "fake-1", "base_url": server.url, "timeout": 5} | more, "source fake")


def asked(server, policy=QUICK, **more):
    """One question, persisted with; the reply, and each attempt's error."""
    chosen = settings(server, **more)
    client, seen = Client(chosen), []
    try:
        call = persist(
            lambda number: client.send(body(chosen, MESSAGES), f"a-{number}"),
            policy, Gate(), random.Random(0), lambda number, error: seen.append(error),
        )  # fmt: skip
    finally:
        client.close()
    return call.reply, seen


def error_of(wire, policy=QUICK, **more):
    with Loopback(lambda hit, n: wire) as server:
        with pytest.raises(CallError) as caught:
            asked(server, policy, **more)
        return caught.value, len(server.hits)


def reply_of(wire, **more):
    with Loopback(lambda hit, n: wire) as server:
        return asked(server, **more)[0]


def test_an_answer_comes_with_where_it_is_from():
    reply = reply_of(chat(" 네, 없어요. ", usage={
        "prompt_tokens": 900, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 512},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }))  # fmt: skip
    assert (reply.status, reply.text, reply.flags) == ("ok", "네, 없어요.", ())
    assert (
        reply.model, reply.response_id, reply.fingerprint, reply.finish
    ) == ("fake-1", "chatcmpl-1", "fp_1", "stop")  # fmt: skip
    assert (
        reply.usage.prompt, reply.usage.cached, reply.usage.completion, reply.usage.reasoning
    ) == (900, 512, 12, 4)  # fmt: skip


def test_the_responses_api_says_the_same():
    with Loopback(lambda hit, n: response("네, 없어요.")) as server:
        reply, _ = asked(server, api="responses", seed=3)
    assert (
        reply.text, reply.usage.prompt, reply.usage.cached, reply.usage.completion, reply.usage.reasoning
    ) == ("네, 없어요.", 900, 100, 20, 8)  # fmt: skip
    sent = server.hits[0]
    assert sent.path == "/v1/responses"
    assert sent.body["instructions"] == "당신은 환자입니다."
    assert sent.body["input"] == [{"role": "user", "content": "열은 없으세요?"}]
    assert {"model", "instructions", "input", "store", "temperature", "top_p", "max_output_tokens"} == set(
        sent.body
    )


def test_a_models_own_words_go_back_in_the_responses_apis_form():
    # llama.cpp's server answers 400 to an assistant's turn in any other form.
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    sent = body(model_settings({"model": "m", "api": "responses"}, "here"), turns)
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]}
    assert [turns[0], said] == sent["input"]


def test_a_cut_response_of_the_responses_api_is_truncated():
    cut = response("네, 없", status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert reply_of(cut, api="responses").flags == ("truncated",)


def test_an_answer_of_text_parts_is_their_text():
    assert (
        reply_of(chat([{"type": "text", "text": "네, "}, {"type": "text", "text": "없어요."}])).text
        == "네, 없어요."
    )


@pytest.mark.parametrize(
    ("wire", "says"),
    [
        (Wire("<html>502 Bad Gateway</html>", headers={"content-type": "text/html"}), "a web page, not JSON"),
        (Wire('{"id": "x", "choices": [{"mess'), "broken JSON"),
        (Wire(""), "an empty body"),
        (Wire(b"\xff\xfe\x00"), "not UTF-8"),
        (Wire("[]"), "an empty list where an object belongs"),
        (Wire('"hello"'), "a string where an object belongs"),
        ({"id": "x", "choices": None}, "no choice (choices is null)"),
        ({"id": "x", "choices": []}, "no choice (choices is an empty list)"),
        ({"id": "x", "choices": ["x"]}, "has no message"),
        ({"choices": [{"index": 0, "text": "completions, not chat"}]}, "has no message"),
        ({"error": {"message": "model overloaded", "code": 503}}, "200 with an error: model overloaded"),
        ({"error": "busy"}, "200 with an error: busy"),
        (chat(12), "content is a number, not text"),
        (chat({"a": 1}), "content is an object, not text"),
        (chat([{"type": "image_url", "image_url": "x"}]), "something other than text parts"),
        (Wire("[" * 20000 + "]" * 20000), "nested too deeply"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_answer_is_said_so_once(wire, says):
    error, hits = error_of(wire)
    assert (error.kind, hits) == ("unreadable", 1)
    assert says in error.detail
    assert "\n" not in error.detail


@pytest.mark.parametrize(
    ("body", "status", "flags", "says"),
    [
        (chat(""), "empty", ("empty",), "the answer is empty"),
        (chat(None), "empty", ("empty",), "the answer is empty"),
        (chat(" \n\t"), "empty", ("whitespace",), "white space"),
        (chat("", finish="length"), "empty", ("truncated", "empty"), "token limit was used up"),
        (chat(None, message={"reasoning_content": "음…"}), "empty", ("empty",), "reasoned and said nothing"),
        (chat(None, message={"refusal": "I can't help with that."}), "refused", ("refusal",), "refused: I can't"),
        (chat(None, finish="content_filter"), "filtered", ("filtered",), "content filter"),
    ],
)  # fmt: skip
def test_an_answer_without_words_is_an_outcome_and_is_not_asked_again(body, status, flags, says):
    with Loopback(lambda hit, n: body) as server:
        reply, _ = asked(server)
        assert len(server.hits) == 1
    assert (status, None, flags) == (reply.status, reply.text, reply.flags)
    assert says in reply.detail


@pytest.mark.parametrize(("finish", "flag"), [("length", "truncated"), ("content_filter", "filtered")])
def test_a_cut_answer_is_kept_and_flagged(finish, flag):
    reply = reply_of(chat("네, 두 달 전부터 기침이", finish=finish))
    assert ("ok", "네, 두 달 전부터 기침이", (flag,)) == (reply.status, reply.text, reply.flags)


def test_wrong_types_around_an_answer_are_unknown_not_guessed():
    strange = chat(usage={"prompt_tokens": "900", "completion_tokens": -1}, model=None, id=7, created="2026")
    reply = reply_of(strange)
    assert (
        reply.status,
        reply.usage.prompt,
        reply.usage.completion,
        reply.response_id,
    ) == ("ok", None, None, None)


def test_missing_finish_usage_and_model_leave_the_answer_whole():
    reply = reply_of({"choices": [{"message": {"content": "네."}}]})
    assert (reply.status, reply.text, reply.model, reply.usage.prompt) == ("ok", "네.", None, None)


@pytest.mark.parametrize(
    ("wire", "kind", "hits", "says"),
    [
        (Wire(act="reset"), "transport", 3, "connection failed"),
        (Wire(chat(), act="cut"), "transport", 3, "connection failed"),
        (failure(500, "internal"), "server", 3, "HTTP 500: internal (3 attempts)"),
        (Wire("<html>bad gateway</html>", 502), "server", 3, "HTTP 502"),
        (failure(529, "overloaded"), "server", 3, "HTTP 529: overloaded"),
        (failure(408, "slow"), "server", 3, "HTTP 408"),
        (failure(429, "slow down"), "busy", 3, "HTTP 429: slow down"),
        (failure(429, "slow down", headers={"retry-after": "121"}), "busy", 1, "asks to wait 121 s, longer"),
        (failure(429, "no money", "insufficient_quota"), "fatal", 1, "insufficient_quota"),
        (failure(401, "bad key"), "fatal", 1, "check the key"),
        (failure(403, "not yours"), "fatal", 1, "check the key"),
        (failure(404, "no such model"), "fatal", 1, "is fake-1 a model of"),
        (failure(413, "too large"), "rejected", 1, "HTTP 413: too large"),
        (failure(400, "context length exceeded", 400), "rejected", 1, "context length exceeded"),
        (failure(400, "Unsupported parameter: 'max_tokens'", "unsupported_parameter"), "fatal", 1,
         'try token_limit_param = "max_completion_tokens"'),
        (failure(400, "temperature does not support 0.7", "unsupported_value"), "fatal", 1,
         'unsupported = ["temperature"]'),
        (Wire({"detail": [{"msg": "extra fields not permitted", "loc": ["x"]}]}, 422), "rejected", 1,
         "HTTP 422: extra fields not permitted"),
        (Wire({"status": {"code": "40000"}, "message": "CLOVA says no"}, 400), "rejected", 1, "CLOVA says no"),
        (Wire("", 418), "rejected", 1, "HTTP 418"),
    ],
)  # fmt: skip
def test_an_error_is_retried_only_where_nothing_was_answered(wire, kind, hits, says):
    error, n = error_of(wire)
    assert (kind, hits) == (error.kind, n)
    assert says in error.detail
    assert "\n" not in error.detail


def test_a_hang_ends_at_the_timeout():
    error, hits = error_of(Wire(act="hang"), Policy(attempts=2, first_wait=0.001), timeout=0.3)
    assert (error.kind, hits) == ("transport", 2)
    assert error.detail == "no answer within 0.3 s (2 attempts)"


def test_nobody_listening_is_said_in_a_sentence():
    with Loopback() as server:
        pass
    with pytest.raises(CallError, match="connection failed: .*refused"):
        asked(server)


def test_a_question_that_a_filter_took_is_filtered_and_final():
    with Loopback(lambda hit, n: failure(400, "triggered the policy", "content_filter")) as server:
        reply, _ = asked(server)
        assert len(server.hits) == 1
    assert (reply.status, reply.flags) == ("filtered", ("filtered",))


def test_a_busy_server_is_asked_again_after_the_time_it_names():
    busy = failure(429, headers={"retry-after": "0.2"})
    start = datetime.datetime.now()
    with Loopback(lambda hit, n: chat() if n else busy) as server:
        reply, seen = asked(server)
    assert reply.status == "ok"
    assert [e is not None for e in seen] == [True, False]
    assert (datetime.datetime.now() - start).total_seconds() >= 0.2


def test_one_request_to_wait_holds_every_worker_of_a_source():
    gate = Gate()
    gate.hold(0.15)
    start = datetime.datetime.now()
    gate.wait()
    assert (datetime.datetime.now() - start).total_seconds() >= 0.15


def test_a_rate_spaces_questions():
    gate = Gate(per_minute=60 / 0.05)
    start = datetime.datetime.now()
    for _ in range(4):
        gate.wait()
    assert (datetime.datetime.now() - start).total_seconds() >= 0.15


def test_a_fatal_error_stops_the_questions_behind_it():
    gate = Gate()
    gate.close("HTTP 401: bad key")
    with pytest.raises(CallError, match="not asked: HTTP 401"):
        persist(lambda n: pytest.fail("was asked"), QUICK, gate, random.Random(0))


def test_every_attempt_has_its_own_name_on_the_server():
    with Loopback(lambda hit, n: chat() if n == 2 else failure(503)) as server:
        asked(server)
    assert [hit.attempt for hit in server.hits] == ["a-1", "a-2", "a-3"]


def test_a_proxy_in_the_environment_does_not_reach_a_server_on_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert reply_of(chat()).status == "ok"


def test_an_empty_key_is_named_before_anything_is_sent(monkeypatch):
    monkeypatch.setenv("MY_KEY", " ")
    with Loopback() as server:
        with pytest.raises(StudyError, match="MY_KEY is empty: set it to the key of 127.0.0.1"):
            asked(server, api_key_env="MY_KEY")
        assert server.hits == []


def test_a_server_that_repeats_the_key_does_not_bring_it_into_our_files(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret-123456")
    error, _ = error_of(failure(401, "Incorrect API key provided: sk-secret-123456"), api_key_env="MY_KEY")
    assert "sk-secret" not in error.detail
    assert "[key]" in error.detail


@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ({}, "max_tokens"),
        ({"token_limit_param": "max_completion_tokens"}, "max_completion_tokens"),
        ({"api": "responses"}, "max_output_tokens"),
    ],
)
def test_the_token_limit_goes_by_the_servers_name(more, sent):
    with Loopback() as server:
        found = body(settings(server, **more), MESSAGES)
    assert {sent} == {name for name in found if name.startswith("max_")}


def test_openai_itself_takes_max_completion_tokens():
    assert model_settings({"model": "m"}, "x").limit_name == "max_completion_tokens"


def test_unsupported_settings_are_not_sent_and_are_reported():
    with Loopback() as server:
        chosen = settings(server, unsupported=["temperature", "top_p"])
    assert {"model", "messages", "max_tokens"} == set(body(chosen, MESSAGES))
    assert "temperature = 0.7 is not supported by fake-1 and was not sent" in chosen.deviations()


def test_extra_settings_go_out_at_the_top_level():
    with Loopback() as server:
        asked(server, extra_body={"top_k": 40})
    assert server.hits[0].body["top_k"] == 40


def test_the_key_of_a_question_tells_apart_what_is_another_draw():
    with Loopback() as server:
        plain = settings(server)
        others = [
            settings(server, replicate=2),
            settings(server, temperature=0.2),
            settings(server, model="fake-2"),
            settings(server, base_url="http://127.0.0.1:1/v1"),
            settings(server, extra_body={"top_k": 1}),
        ]
    keys = [key("a", s, body(s, MESSAGES)) for s in (plain, *others)]
    keys += [key("b", plain, body(plain, MESSAGES)), key("a", plain, body(plain, MESSAGES[:1]))]
    assert len(keys) == len(set(keys))


def test_the_key_of_a_question_ignores_how_fast_it_is_asked():
    with Loopback() as server:
        one, other = settings(server), settings(server, concurrency=9, attempts=2, timeout=9.0)
    assert key("a", one, body(one, MESSAGES)) == key("a", other, body(other, MESSAGES))


def test_replicates_with_a_seed_are_sent_different_seeds():
    with Loopback() as server:
        seeds = [settings(server, seed=5, replicate=r).sampling()["seed"] for r in (1, 2)]
    assert seeds == [5, 6]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 00:00:10 GMT"}, 10.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "x"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_its_three_forms(headers, seconds):
    now = datetime.datetime(2026, 11, 30, tzinfo=datetime.UTC)
    assert seconds == retry_after(headers, now)


def test_waits_are_jittered_and_bounded():
    waits = []

    class Recorder(Gate):
        def wait(self, seconds=0.0):
            waits.append(seconds)

    def broken(number):
        raise CallError("server", "HTTP 500")

    with pytest.raises(CallError):
        persist(broken, Policy(attempts=12, first_wait=1.0), Recorder(), random.Random(1))
    bounds = [min(60, 2**n) for n in range(11)]
    assert waits[0] == 0.0
    assert all(0 <= wait <= bound for wait, bound in zip(waits[1:], bounds, strict=True))
    assert len(set(waits[1:])) == 11


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"modle": "x", "model": "m"}, "source a has an unknown key modle; known are model, base_url"),
        ({}, "source a lacks model"),
        ({"model": "m", "temperature": 3}, "temperature = 3"),
        ({"model": "m", "base_url": "localhost:8000"}, "is not an address such as"),
        ({"model": "m", "base_url": "https://u:p@h/v1"}, "holds a secret"),
        ({"model": "m", "extra_body": {"messages": []}}, "extra_body may not set messages"),
        ({"model": "m", "price": {"input": 1, "output": 1}}, "lacks price.as_of"),
        (
            {"model": "m", "price": {"input": 1, "output": 1, "as_of": "2026-01-01", "in": 1}},
            "unknown key price.in",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_place(given, says):
    with pytest.raises(StudyError, match=".*") as caught:
        model_settings(given, "source a")
    assert says in str(caught.value)


def test_a_key_for_an_unknown_host_must_be_named(monkeypatch):
    with pytest.raises(StudyError, match="name the variable that holds it in api_key_env"):
        model_settings({"model": "m", "base_url": "https://llm.example.org/v1"}, "x").key()
    monkeypatch.setenv("XAI_API_KEY", "k")
    assert model_settings({"model": "m", "base_url": "https://api.x.ai/v1"}, "x").key() == "k"
