import pytest

from analysis import fitting, followup
from analysis.followup import Contrast
from analysis.load import load
from study.errors import StudyError


@pytest.fixture(scope="module")
def found(small):
    return fitting.fitted(load(small), "fluency")


def estimates(answer) -> dict[str, float]:
    return {row["term"]: row["estimate"] for row in answer.result.plain()["estimates"]}


def test_a_reference_contrast_is_a_difference_of_two_means(found):
    means = estimates(followup.effects(found, "source", ()))
    differences = estimates(followup.contrasts(found, Contrast()))
    assert list(differences) == ["model_b - expert", "model_a - expert"]
    assert differences["model_a - expert"] == pytest.approx(means["model_a"] - means["expert"])


def test_the_negation_penalty_is_a_contrast_of_contrasts(found):
    asked = Contrast(of="form", weights="affirmative=1,negative=-1", across="source")
    answer = followup.contrasts(found, asked)
    values = list(estimates(answer).values())
    assert len(values) == 2
    assert values[1] > 1.0 > abs(values[0])
    assert "Contrasts of form across source (p: Holm)" in answer.text


@pytest.mark.parametrize(("adjust", "said"), [("holm", True), ("BH", True), ("sidak", False), ("none", False)])
def test_intervals_say_how_they_are_adjusted_where_p_values_are_otherwise(found, adjust, said):
    text = followup.contrasts(found, Contrast(adjust=adjust)).text
    assert said == ("Intervals hold together, by Bonferroni" in text)


@pytest.mark.parametrize("more", [{"by": ("form",)}, {"across": "source", "by": ("source",)}])
def test_a_factor_that_is_asked_for_twice_is_refused(found, more):
    with pytest.raises(StudyError, match="(form|source) is named twice; a factor is compared, compared across"):
        followup.contrasts(found, Contrast(of="form", **more))


def test_a_factor_is_not_compared_across_itself(found):
    with pytest.raises(StudyError, match="--across form: is what is compared already"):
        followup.contrasts(found, Contrast(of="form", across="form"))


def test_groups_stand_before_their_terms(found):
    answer = followup.contrasts(found, Contrast(by=("form",), adjust="none"))
    assert ["affirmative", "affirmative", "negative"] == [r["form"] for r in answer.result.plain()["estimates"]][
        :3
    ]
    assert "negative     model_a - expert" in answer.text


def test_effect_sizes_are_in_total_standard_deviations(found):
    plain = followup.effects(found, "source", ()).result.plain()
    row = plain["differences"][1]
    assert row["d"] == pytest.approx(row["estimate"] / plain["total_sd"])
    assert 0 < plain["r_squared"]["marginal"] < plain["r_squared"]["conditional"] < 1


def test_f_tests_name_every_term(found):
    answer = followup.anova(found, 3)
    assert ["source", "category", "form", "source:category", "source:form"] == [
        r["term"] for r in answer.result.plain()["estimates"]
    ]
    assert "type III" in answer.text


def test_every_random_term_is_tested(found):
    rows = followup.ranova(found).result.plain()["estimates"]
    assert len(rows) == 1 + len(found.fit.levels)


def test_every_answer_says_its_model_size_and_convergence(found):
    for answer in (followup.anova(found, 3), followup.ranova(found), followup.effects(found, "source", ())):
        assert "score ~ source*category" in answer.text
        assert "322 simulated ratings (54 items, 6 raters" in answer.text
        assert "converged" in answer.text


def test_weights_that_cannot_be_read_are_refused(found):
    with pytest.raises(StudyError, match="--weights a:1: write each level with its weight, as a=1,b=-1"):
        followup.contrasts(found, Contrast(of="form", weights="a:1"))


def test_a_factor_that_the_model_lacks_is_refused_with_the_metrics_name(small):
    engagement = fitting.fitted(load(small), "engagement")
    with pytest.raises(StudyError, match="^engagement: 'form' is not among"):
        followup.contrasts(engagement, Contrast(of="form"))


def test_a_formula_that_leaves_a_design_term_out_is_told_what_it_costs(small):
    made = fitting.fitted(load(small), "fluency", kind="published")
    assert set(made.omitted.missing) == {"(1 | case:prompt:source)", "(1 | rater:source)"}
    assert "The design implies (1 | case:prompt:source) and (1 | rater:source), left out here" in fitting.printed(
        made
    )
    assert fitting.fitted(load(small), "fluency").omitted is None
