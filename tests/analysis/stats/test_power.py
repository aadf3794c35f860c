import numpy as np
import pytest

from analysis.stats import power as pw
from analysis.stats.power import Size, Variances
from study.errors import StudyError

# Components that the published reliability of the sentence and encounter ratings implies.
SENTENCE = Variances(source_prompt=0.16, source_rater=0.01, residual=0.4225, prompt=0.0365)
ENCOUNTER = Variances(source_prompt=0.09, source_rater=0.0625, residual=0.49)
# (prompts, raters) → standard error, df, power at .15 .20 .25 .30; from an independent computation.
TABLE = {
    (70, 17): (0.080, 266, 0.46, 0.70, 0.87, 0.96),
    (70, 8): (0.093, 104, 0.36, 0.57, 0.76, 0.89),
    (70, 5): (0.105, 44, 0.29, 0.46, 0.65, 0.80),
    (140, 5): (0.087, 33, 0.39, 0.61, 0.80, 0.92),
    (35, 17): (0.108, 149, 0.28, 0.45, 0.63, 0.79),
}


@pytest.mark.parametrize("design", TABLE)
def test_power_of_the_sentence_study(design):
    std_error, df, *expected = TABLE[design]
    found = pw.source_contrast(SENTENCE, Size(5, *design))
    assert std_error == pytest.approx(found.std_error, abs=6e-4)
    assert df == pytest.approx(found.df, abs=0.5)
    np.testing.assert_allclose(expected, [pw.power(found, d) for d in (0.15, 0.2, 0.25, 0.3)], atol=0.006)


@pytest.mark.parametrize(
    ("cases", "raters", "expected"),
    [(3, 17, (0.15, 0.33, 0.68)), (3, 500, (0.19, 0.43, 0.81)), (10, 17, (0.39, 0.79, 0.99))],
)
def test_power_of_the_encounter_study(cases, raters, expected):
    found = pw.source_contrast(ENCOUNTER, Size(5, cases, raters))
    np.testing.assert_allclose(expected, [pw.power(found, d) for d in (0.3, 0.5, 0.8)], atol=0.006)


def test_the_negation_penalty_has_little_power():
    fitted = Variances(0.161072266, 0.010489242, 0.424910586, prompt=0.036544733)
    found = pw.group_effect(fitted, Size(5, 70, 17), (34, 16), groups=3)
    assert found.std_error == pytest.approx(0.143040686, rel=1e-4)  # lme4 on the synthetic sentence data
    assert found.df == pytest.approx(302.3994, rel=1e-4)
    assert pw.power(found, 0.149) == pytest.approx(0.18, abs=0.005)


def test_doubling_a_contrasts_code_does_not_change_its_power():
    size = Size(5, 70, 17)
    one, two = (pw.source_contrast(SENTENCE, size, w) for w in ((1, -1), (2, -2)))
    assert one == two
    mean = pw.source_contrast(SENTENCE, size, (1, -0.25, -0.25, -0.25, -0.25))
    assert mean.std_error < one.std_error


def test_power_without_a_difference_is_alpha():
    assert pw.power(pw.source_contrast(SENTENCE, Size(5, 70, 17)), 0.0) == pytest.approx(0.05, abs=1e-9)


def test_the_detectable_difference_has_the_power_it_promises():
    found = pw.source_contrast(ENCOUNTER, Size(5, 3, 17))
    assert pw.power(found, pw.detectable(found, 0.8)) == pytest.approx(0.8, abs=1e-6)


def test_power_grows_with_every_facet_and_with_the_difference():
    grid = pw.power_grid(SENTENCE, 5, [35, 70, 140], [3, 9, 27], [0.1, 0.2, 0.4])
    for facet in ("prompts", "raters", "difference"):
        others = [name for name in ("prompts", "raters", "difference") if name != facet]
        for _, rows in grid.groupby(others):
            assert rows.sort_values(facet).power.is_monotonic_increasing


def test_answers_that_share_their_case_cost_degrees_of_freedom():
    apart = pw.source_contrast(SENTENCE, Size(5, 70, 17))
    shared = Variances(0.16, 0.01, 0.4225, source_case=0.05)
    together = pw.source_contrast(shared, Size(5, 70, 17, cases=14))
    assert together.std_error > apart.std_error and together.df < apart.df


def test_three_cases_say_add_cases():
    said = pw.plateau(ENCOUNTER, Size(5, 3, 17), 0.5, called="case")
    assert "More raters will not help" in said
    assert "add cases: 11 reach 0.8" in said


def test_a_study_with_enough_power_is_told_so_and_no_more():
    assert pw.plateau(SENTENCE, Size(5, 70, 17), 0.3).endswith("with probability 0.96.")


def test_many_prompts_cannot_replace_raters_who_disagree_about_sources():
    said = pw.plateau(Variances(0.01, 0.16, 0.4225), Size(5, 70, 5), 0.2)
    assert "no number of prompts reaches 0.8 with 5 raters" in said


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: Variances(-0.1, 0, 1), "variance source_prompt is -0.1"),
        (lambda: Variances(0.1, 0, 0), "residual variance is zero"),
        (lambda: Size(5, 70, 1), "1 raters"),
        (lambda: Size(5, 10, 3, cases=11), "11 cases for 10 prompts"),
        (lambda: pw.source_contrast(SENTENCE, Size(2, 9, 3), (1, 1)), "must sum to zero"),
        (lambda: pw.source_contrast(SENTENCE, Size(2, 9, 3), (1, -1, 0)), "3 weights for 2 sources"),
        (lambda: pw.source_contrast(Variances(0.1, 0.1, 1, source_case=0.1), Size(2, 9, 3)), "how many cases"),
        (lambda: pw.detectable(pw.Precision(1, 10), 1.0), "cannot be aimed at"),
        (lambda: pw.assumed({"source_promt": 1}), "component source_promt is unknown"),
        (lambda: pw.assumed({"source_prompt": 1}), "component source_rater is missing"),
    ],
)
def test_designs_without_power_are_refused_with_the_reason(call, reason):
    with pytest.raises(StudyError, match=reason):
        call()
