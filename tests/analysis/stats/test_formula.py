import pytest

from analysis.stats.formula import parse
from study.errors import StudyError


def random_terms(formula: str) -> list[str]:
    return [term.text for term in parse(formula).random]


def test_a_formula_is_outcome_fixed_terms_and_random_terms():
    read = parse("score ~ source*form + (1|rater)")
    assert read.outcome == "score"
    assert read.terms == ((), ("source",), ("form",), ("source", "form"))
    assert [term.text for term in read.random] == ["(1 | rater)"]


@pytest.mark.parametrize(
    "written, terms",
    [
        ("y ~ (1|a:b)", ["(1 | a:b)"]),
        ("y ~ (1|a/b)", ["(1 | a)", "(1 | a:b)"]),
        ("y ~ (1|a/b/c)", ["(1 | a)", "(1 | a:b)", "(1 | a:b:c)"]),
        ("y ~ x + (x|g)", ["(x | g)"]),
        ("y ~ x + (1 + x|g)", ["(x | g)"]),
        ("y ~ x + (0+x|g)", ["(0 + x | g)"]),
        ("y ~ x + (x||g)", ["(1 | g)", "(0 + x | g)"]),
        ("y ~ (1|a) + x + (1|b)", ["(1 | a)", "(1 | b)"]),
    ],
)
def test_random_terms_follow_lme4s_grammar(written, terms):
    assert random_terms(written) == terms


def test_fixed_effects_may_be_functions_powers_and_codings():
    terms = parse("y ~ C(a, contr.sum)*b + np.log(x) + I(x^2) + (1|g)").terms
    assert ("C(a, contr.sum)", "b") in terms
    assert ("I(x ** 2)",) in terms


def test_the_intercept_can_be_taken_out():
    assert parse("y ~ 0 + a + (1|g)").terms == (("a",),)
    assert parse("y ~ (1|g) + a - 1").terms == (("a",),)


def test_only_random_terms_leave_an_intercept():
    assert parse("y ~ (1|g)").terms == ((),)


def test_a_formula_reads_back_as_itself():
    text = "score ~ source*form + (1 | rater) + (0 + x | case:prompt)"
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    "written, said",
    [
        ("", "is empty"),
        ("score", "has no ~"),
        ("y ~~ x + (1|g)", "a tilde too many, at position 4"),
        ("log(y) ~ x + (1|g)", "is not one column name"),
        ("y ~ x | g", "position 7: a bar outside parentheses"),
        ("y ~ x*(1|g)", 'position 7: a random term after "*"'),
        ("y ~ x + (1|g", "position 9: a parenthesis that is never closed"),
        ("y ~ x + 1|g)", "position 10: a bar outside parentheses"),
        ("y ~ x + (|g)", "position 10: nothing before the bar"),
        ("y ~ x + (1|)", '"nothing" after the bar is not a group'),
        ("y ~ x + (1|g+h)", 'position 12: "g+h" after the bar is not a group'),
        ("y ~ x + (1|||g)", "more bars than"),
        ("y ~ . + (1|g)", "position 5: a dot for all columns"),
        ("y ~ (1|g) + (1|g)", "has (1 | g) twice"),
        ("y ~ (1|a:b) + (1|b:a)", "twice"),
        ("y ~ x + (1|g) (1|h)", "position 14"),
        ("y ~ x +* z + (1|g)", "is not understood"),
        ("y ~ x + 2 + (1|g)", "is not understood"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(written, said):
    with pytest.raises(StudyError) as caught:
        parse(written)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
