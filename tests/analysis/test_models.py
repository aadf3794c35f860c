from dataclasses import replace

import pytest

from analysis.load import load, select
from analysis.models import model

FULL = "score ~ source*category + source*form + (1|rater) + (1|case:prompt)"
UTTERANCE = FULL + " + (1|case:prompt:source) + (1|rater:source)"


def test_utterances_get_the_designs_terms(small):
    loaded = load(small)
    assert model(select(loaded, "fluency"), loaded.study).formula == UTTERANCE


def test_encounters_have_their_case_in_the_place_of_the_prompt(small):
    loaded = load(small)
    expected = "score ~ source + (1|rater) + (1|case) + (1|case:source) + (1|rater:source)"
    assert expected == model(select(loaded, "engagement"), loaded.study).formula


def test_the_published_model_keeps_rater_and_prompt_only(small):
    loaded = load(small)
    expected = "score ~ source*category + source*form + (1|rater) + (1|case:prompt)"
    assert expected == model(select(loaded, "fluency"), loaded.study, "published").formula


def test_the_studys_own_formula_goes_before_the_designs(written, study_toml):
    own = "score ~ source + (1|rater) + (1|prompt)"
    loaded = load(written(toml=study_toml + f'[analysis]\nutterance = "{own}"\n'))
    found = model(select(loaded, "fluency"), loaded.study)
    assert (own, "study.toml") == (found.formula, found.origin)


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        (["category"], "score ~ source*form + (1|rater)"),
        (["category", "form"], "score ~ source + (1|rater)"),
        (["source"], "score ~ 1 + (1|rater) + (1|case:prompt)"),
        (["case"], "score ~ source*category + source*form + (1|rater) + (1|prompt)"),
    ],
)
def test_a_term_without_its_column_is_not_in_the_model(small, absent, expected):
    chosen = select(load(small), "fluency")
    assert model(replace(chosen, frame=chosen.frame.drop(columns=absent))).formula.startswith(expected)


def test_one_rating_per_response_leaves_no_response_term(small):
    chosen = select(load(small), "fluency", "all")
    one = chosen.frame[chosen.frame["rater"] == "rater-01"]
    one = one.assign(rater=one["rater"].cat.remove_unused_categories())
    found = model(replace(chosen, frame=one))
    assert found.formula.endswith("+ (1|case:prompt)")
    assert "one rater: no rater term" in found.notes
    assert "(1|case:prompt:source) is not in the model: every rating is its own level" in found.notes
