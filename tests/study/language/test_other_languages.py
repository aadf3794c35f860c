import pytest

from study.language.question import particle, polarity_particle, recognise


@pytest.mark.parametrize(("text", "form", "subtype"), [
    ("痛みはありますか？", "affirmative", None),
    ("咳は続いていますよね？", "affirmative", None),
    ("痛みはありませんか？", "negative", "inner_lexical"),
    ("熱はないですか？", "negative", "inner_lexical"),
    ("手術を受けたことはありませんか？", "negative", "inner_npi"),
    ("タバコは吸いませんか？", "negative", "inner_short"),
    ("田中さんじゃないですか？", "negative", "outer_copula"),
    ("どこか痛いところはありませんか？", "negative", "inner_lexical"),
    ("いつから咳が出ますか？", "open_ended", None),
    ("お名前を教えてください。", "open_ended", None),
])  # fmt: skip
def test_a_japanese_question_is_read_by_its_ending(text, form, subtype):
    assert (form, subtype) == (recognise(text, "ja").form, recognise(text, "ja").subtype)


@pytest.mark.parametrize(("text", "form"), [
    ("Do you cough at night?", "affirmative"),
    ("You smoke, don't you?", "affirmative"),
    ("You don't smoke, do you?", "negative"),
    ("Isn't there any pain?", "negative"),
    ("Have you never had stones?", "negative"),
    ("What brings you in today?", "open_ended"),
    ("Could you tell me when it started?", "open_ended"),
])  # fmt: skip
def test_an_english_question_is_read_by_its_auxiliary(text, form):
    assert form == recognise(text, "en").form


def test_no_denies_in_english_and_agrees_in_japanese():
    english, japanese = recognise("You don't have a fever?", "en"), recognise("熱はないですか？", "ja")
    assert polarity_particle(english, False) == "아니요"
    assert particle(japanese, False) == "네"
