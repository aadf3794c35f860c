import pytest

from generation.flags import FLAGS, flags, of_text
from generation.price import cost
from generation.reply import Reply, Usage
from generation.settings import Price
from study.content import load, shipped

INSTRUCTIONS = (
    "당신은 비뇨의학과 외래를 처음 찾은 환자 '정대식'입니다.",
    "환자로서 할 말만 하고, 한 번에 한두 문장으로 대답합니다.",
)


@pytest.fixture(scope="module")
def content():
    return load(shipped("cases.json"), shipped("prompts.json"))


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("죄송하지만 그 질문에는 답변드릴 수 없어요. 저는 AI 언어 모델이에요.", "refusal"),
        ("As an AI language model, I have no body.", "refusal"),
        ("<think>환자는 열이 없다</think> 네, 없어요.", "thinking_leak"),
        ("◁think▷음◁/think▷ 네.", "thinking_leak"),
        ("네, 없어요.<|im_end|>", "markup_leak"),
        ("[INST] 네, 없어요.", "markup_leak"),
        ("네, 이름이 \ufffd", "mojibake"),
        ("네, 없어요.".encode().decode("latin-1"), "mojibake"),
        ("(행동 제약) 환자로서 할 말만 하고, 한 번에 두 번", "prompt_leak"),
        ("Nonsense! I'm not a doctor. I'm a patient.", "wrong_language"),
        ("はい、ありません。", "wrong_language"),
        ("네, 혈뇨 소견은 없습니다.", "register"),
        ("네, 열은 없습니다.", "register"),
        ("환자분, 어디가 불편하세요?", "role_drift"),
        ("무엇을 도와드릴까요?", "role_drift"),
    ],
)
def test_a_noteworthy_text_is_flagged(text, flag):
    assert flag in of_text(text, language="ko", instructions=INSTRUCTIONS)


def test_no_reference_answer_is_flagged(content):
    for prompt in content.prompts:
        persona = content.cases[prompt.case_id].persona
        parts = (persona.role_declaration, persona.conversational_style, persona.behavioral_constraints)
        assert set() == of_text(prompt.reference_answer, language="ko", instructions=parts), prompt.prompt_id


def test_what_is_said_of_the_patient_is_no_leak(content):
    history = content.cases["HEM"].persona.history
    assert "prompt_leak" not in of_text(history[:80], language="ko", instructions=INSTRUCTIONS)


def test_other_languages_are_held_to_their_own_letters():
    assert set() == of_text("No, I don't have any pain.", language="en")
    assert {"wrong_language"} == of_text("네, 없어요.", language="en")
    assert set() == of_text("はい、ありません。", language="ja")


def test_a_server_that_ignores_the_limit_is_flagged():
    reply = Reply("ok", "네, 없어요.", usage=Usage(prompt=900, completion=41))
    assert flags(reply, language="ko", limit=10) == ("over_limit",)
    assert flags(reply, language="ko", limit=41) == ()


def test_a_silently_cut_prompt_is_flagged():
    sent = "가" * 8000
    assert flags(Reply("ok", "네.", usage=Usage(prompt=512)), language="ko", sent=sent) == ("prompt_cut",)
    assert flags(Reply("ok", "네.", usage=Usage(prompt=4100)), language="ko", sent=sent) == ()
    assert flags(Reply("ok", "네.", usage=Usage()), language="ko", sent=sent) == ()


def test_flags_come_in_one_order():
    reply = Reply("ok", "<think>", flags=("truncated",), usage=Usage(completion=99))
    found = flags(reply, language="ko", limit=9)
    assert list(found) == [name for name in FLAGS if name in found]
    assert {"truncated", "thinking_leak", "over_limit"} <= set(found)


PRICE = Price(input=2, output=8, cached_input=0.5, as_of="2026-11-01")


def test_cached_tokens_are_paid_once():
    # A bill that adds cached tokens to the prompt's counts them twice.
    assert cost(Usage(1000, 400, 100), PRICE) == (600 * 2 + 400 * 0.5 + 100 * 8) / 1e6


def test_cached_tokens_without_a_price_of_their_own_cost_the_full_price():
    price = Price(input=2, output=8, as_of="2026-11-01")
    assert cost(Usage(1000, 400, 100), price) == (1000 * 2 + 100 * 8) / 1e6


@pytest.mark.parametrize(
    ("usage", "price"), [(Usage(1000, 0, 100), None), (Usage(None, 0, 100), PRICE), (Usage(5), PRICE)]
)
def test_an_unknown_cost_is_not_zero(usage, price):
    assert cost(usage, price) is None
