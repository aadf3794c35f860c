"""Providers are told from names without surprise, and prices that nobody knows are none."""

import datetime

import pytest

from analysis.benchmarks.vaidya import pricing, providers, usage
from analysis.benchmarks.vaidya.judge import evaluator
from analysis.benchmarks.vaidya.usage import Tokens
from generation.settings import Price
from study.errors import StudyError

PRICE = Price(input=2.5, output=10.0, cached_input=0.25, as_of=datetime.date(2026, 11, 1))


@pytest.mark.parametrize(
    ("model", "provider", "how"),
    [
        ("grok-3", "xai", "inferred"), ("xai/Grok-4", "xai", "inferred"),
        ("deepseek-ai/DeepSeek-V3", "together", "inferred"), ("DeepSeek-R1", "together", "inferred"),
        ("qwen2.5-7b", "local_openai", "inferred"), ("Qwen/Qwen3-8B", "local_openai", "inferred"),
        ("google/medgemma-27b-it", "local_openai", "inferred"), ("II-Medical-8B", "local_openai", "inferred"),
        ("gpt-4o", "openai", "inferred"), ("llama-3-8b", "openai", "assumed"),
        ("meta-llama/Llama-3.1-8B", "openai", "assumed"), ("embedded", "embedded", "here"),
    ],
)  # fmt: skip
def test_a_provider_is_told_from_a_name(model, provider, how):
    found = providers.served(model, None, "doctor")
    assert (provider, how) == (found.provider, found.how)


def test_a_name_that_no_rule_knows_is_said_to_leave_the_machine():
    said = providers.served("llama-3-8b", None, "patient").line("patient")
    assert "the cases' text goes there" in said and "--patient-provider" in said


def test_strict_takes_no_provider_that_was_not_named():
    with pytest.raises(StudyError, match="--doctor-provider; from its name it would be local_openai"):
        providers.served("qwen2.5-7b", None, "doctor", strict=True)
    assert "given" == providers.served("qwen2.5-7b", "local_openai", "doctor", strict=True).how
    assert "here" == providers.served("embedded", None, "doctor", strict=True).how


@pytest.mark.parametrize(("model", "provider"), [("gpt-4o", "nobody"), ("embedded", "openai"), (" ", None)])
def test_a_wrong_provider_is_refused(model, provider):
    with pytest.raises(StudyError):
        providers.served(model, provider, "doctor")


def test_a_server_of_ones_own_needs_no_key_wherever_it_is():
    who = providers.served("qwen2.5-7b", "local_openai", "doctor")
    elsewhere = {"LOCAL_OPENAI_BASE_URL": "http://10.0.0.7:8000/v1"}
    assert "not-required" == providers.settings(who, None, 4, {}, {}).key()
    found = providers.settings(who, None, 4, {}, elsewhere)
    assert ("http://10.0.0.7:8000/v1", "not-required") == (found.base_url, found.key())


def test_other_providers_do(monkeypatch):
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    found = providers.settings(providers.served("grok-3", None, "doctor"), None, 4, {}, {})
    assert "https://api.x.ai/v1" == found.base_url
    with pytest.raises(StudyError, match="XAI_API_KEY"):
        found.key()


def test_the_evaluator_is_flag_then_variables_then_the_documents_own():
    both = {"VAIDYA_EVALUATOR_MODEL": "v", "DIAGBENCH_EVALUATOR_MODEL": "d"}
    assert ["f", "v", "d", "gpt-4.1"] == [
        evaluator("f", both), evaluator(None, both), evaluator(None, {"DIAGBENCH_EVALUATOR_MODEL": "d"}),
        evaluator(None, {"VAIDYA_EVALUATOR_MODEL": " "}),
    ]  # fmt: skip


def priced(tmp_path, text):
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return pricing.load(path)


ROW = "provider: openai, input_cost_per_million_tokens: 2.5, output_cost_per_million_tokens: 10"


def test_an_unknown_model_has_no_price(tmp_path):
    found = priced(tmp_path, f"models:\n  gpt-4o: {{{ROW}}}\n")
    assert (2.5, 10.0) == (found.of("gpt-4o", "openai").input, found.of("gpt-4o", "openai").output)
    assert [None, None] == [found.of("gpt-4o", "together"), found.of("gpt-5", "openai")]
    assert None is pricing.load(None).of("gpt-4o", "openai")


@pytest.mark.parametrize(
    "text",
    [
        "models: [", "models:\n  a: {provider: openai}", f"models:\n  a: {{{ROW}, colour: red}}",
        f"models:\n  a: {{{ROW}}}\n  a: {{{ROW}}}\n", "5", "models:\n  a: {provider: x, "
        "input_cost_per_million_tokens: -1, output_cost_per_million_tokens: 1}",
    ],
)  # fmt: skip
def test_a_table_of_prices_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(StudyError, match="prices.yaml"):
        priced(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"), [("[1]", "is no table of prices"), ("models: {a: 5}", "models.a has no keys")]
)
def test_what_is_no_table_of_prices_is_told_in_words(tmp_path, text, said):
    with pytest.raises(StudyError, match=said):
        priced(tmp_path, text)


def test_the_documents_sums():
    assert 443055 == Tokens(412034, 31021).total
    assert 0.742 == 742 / 1000


def test_cached_tokens_are_paid_once():
    tokens = Tokens(prompt=1_000_000, completion=100_000, cached=400_000)
    assert 0.6 * 2.5 + 0.4 * 0.25 + 0.1 * 10 == pytest.approx(tokens.cost(PRICE), abs=1e-12)


def test_what_is_unknown_makes_a_sum_unknown():
    assert None is usage.added([Tokens(5, 1), Tokens(None, 1)]).total
    assert None is usage.whole([1.0, None])
    assert None is Tokens(5, None).cost(PRICE)


def test_the_documents_own_example_is_said_to_contradict_itself():
    tokens, notes = usage.read({"prompt_tokens": 5101, "completion_tokens": 584, "total_tokens": 6981})
    assert ["the total 6,981 is not prompt 5,101 + completion 584: 1,296 tokens more"] == notes
    assert "which is 0.0186" in usage.cost_note(0.0229, tokens, PRICE)
    assert None is usage.cost_note(0.0186, tokens, PRICE)


@pytest.mark.parametrize("count", ["12", -1, True, 1.5])
def test_what_is_no_count_is_unknown_and_said(count):
    tokens, notes = usage.read({"prompt": count, "completion": 1, "total": 2})
    assert None is tokens.prompt and "no number of tokens" in notes[0]
