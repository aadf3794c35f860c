"""Form and negation of Korean questions, by the coding manual."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.errors import StudyError
from study.language.question import Question, particle, polarity_particle, recognise

NEGATIVE = {
    "통증은 없으세요?": "inner_lexical",
    "열은 없으셨고요?": "inner_lexical",
    "그때 그 약 이름은 모르세요?": "inner_lexical",
    "이해가 안 되세요?": "inner_lexical",
    "당뇨는 아니시죠?": "inner_lexical",
    "열은 없다고 하셨죠?": "inner_lexical",
    "같이 사시는 분은 안 계세요?": "inner_short",
    "잠을 잘 못 주무세요?": "inner_short",
    "안 아프신 거예요?": "inner_short",
    "숨이 차지는 않으세요?": "inner_long_neun",
    "살이 빠지진 않았고요?": "inner_long_neun",
    "숨이 차지 않으시죠?": "inner_long_neun",
    "수술받으신 적은 없으세요?": "inner_npi",
    "한 번도 없으셨나요?": "inner_npi",
    "집에 아무도 안 계신가요?": "inner_npi",
    "감기를 앓은 건 아니죠?": "inner_npi",
    "약을 드시고 있지 않으세요?": "outer_long",
    "열이 나지 않습니까?": "outer_long",
    "이수진 님 아니세요?": "outer_copula",
    "다치신 거 아니에요?": "outer_copula",
}
AFFIRMATIVE = (
    "담배를 피우시나요?",
    "기침이 오늘 오신 이유인가요?",
    "몇 가지 여쭤봐도 괜찮으시겠어요?",
    "아프신 거 맞죠?",
    "어디 불편하신 데 있으세요?",
    "뭐 드시는 약 있으세요?",
    "얼마 전에 다치셨나요?",
    "들이지 않으시는 게 좋은데, 그렇게 해 보실 수 있을까요?",
)
OPEN = (
    "성함이 어떻게 되세요?",
    "언제부터예요?",
    "어디가 아프세요?",
    "무슨 약을 드세요?",
    "왜 안 드세요?",
    "자세히 말씀해 주시겠어요?",
    "가족분들의 병을 알려 주세요.",
    "언제부터 아팠는지 기억나세요?",
    "다른 증상은요?",
)


@pytest.mark.parametrize(("text", "subtype"), NEGATIVE.items())
def test_a_negated_main_predicate_makes_a_question_negative(text, subtype):
    assert ("negative", subtype) == (recognise(text).form, recognise(text).subtype)


@pytest.mark.parametrize("text", AFFIRMATIVE)
def test_a_positive_main_predicate_makes_a_question_affirmative(text):
    assert Question("affirmative") == Question(recognise(text).form)


@pytest.mark.parametrize("text", OPEN)
def test_a_content_word_or_a_request_to_tell_makes_a_question_open(text):
    assert recognise(text).form == "open_ended"


@pytest.mark.parametrize("text", [
    "기침은 낮에 심한가요, 밤에 심한가요?", "통증은 계속 있나요? 아니면 왔다 갔다 하나요?",
])  # fmt: skip
def test_either_or_is_affirmative_and_has_no_particle(text):
    question = recognise(text)
    assert ("affirmative", True, "none") == (question.form, question.alternative, particle(question, True))


@pytest.mark.parametrize(("text", "present", "absent"), [
    ("통증이 있으세요?", "네", "아니요"),
    ("통증은 없으세요?", "아니요", "네"),
    ("숨이 차지는 않으세요?", "아니요", "네"),
    ("이수진 님 아니세요?", "네", "아니요"),
    ("약을 드시고 있지 않으세요?", "네", "아니요"),
    ("못 주무시지는 않으세요?", "네", "아니요"),
    ("열은 없으신 거 맞나요?", "아니요", "네"),
])  # fmt: skip
def test_a_particle_judges_the_proposition_as_asked(text, present, absent):
    question = recognise(text)
    assert (present, absent) == (particle(question, True), particle(question, False))


def test_english_polarity_turns_the_particles_of_inner_negation_only():
    inner, outer = recognise("통증은 없으세요?"), recognise("이수진 님 아니세요?")
    assert ("네", "아니요") == (polarity_particle(inner, True), polarity_particle(inner, False))
    assert particle(outer, True) == polarity_particle(outer, True)


def test_only_a_bare_long_negation_without_a_cue_is_ambiguous():
    assert recognise("가슴이 답답하지 않으세요?").ambiguous
    assert not recognise("혹시 가슴이 답답하지 않으세요?").ambiguous
    assert not recognise("가슴이 답답하지는 않으세요?").ambiguous


def test_only_the_last_clause_decides():
    assert recognise("열은 나지만 기침은 없으시다는 거네요?").subtype == "inner_lexical"
    assert recognise("열은 없으시군요. 기침은 하세요?").form == "affirmative"


@given(st.sampled_from(sorted(NEGATIVE)), st.sampled_from(["안녕하세요. ", "네, 알겠습니다. ", "39.1도군요. "]))
def test_what_stands_before_does_not_change_the_form(text, before):
    assert recognise(text) == recognise(before + text)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="가나다안못없않아니요네는은? .,1a\n", min_size=1, max_size=20))
def test_any_text_has_a_form_or_is_refused_as_empty(text):
    if text.strip():
        assert recognise(text).form in ("affirmative", "negative", "open_ended")
    else:
        with pytest.raises(StudyError, match="empty"):
            recognise(text)


def test_a_language_without_rules_is_refused():
    with pytest.raises(StudyError, match="ko, ja, en"):
        recognise("Avez-vous de la fièvre ?", "fr")
