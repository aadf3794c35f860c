import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats.laplace import Laplace
from analysis.stats.ordinal import fit_ordinal
from analysis.stats.quadrature import Quadrature
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "ordinal.json").read_text(encoding="utf-8"))


def data(name: str) -> pd.DataFrame:
    frame = pd.DataFrame(GOLD[name.split()[0]])
    if name.endswith("without warm 2s"):
        frame = frame[(frame.temp != "warm") | (frame.rating != 2)]
    return frame


@pytest.mark.parametrize("name", GOLD["models"])
def test_a_fit_is_clmms(name):
    gold = GOLD["models"][name]
    tolerance = GOLD["tolerance"] | gold.get("tolerance", {})
    fit = fit_ordinal(data(gold["data"]), gold["formula"], link=gold["link"])
    table = pd.concat([fit.thresholds(), fit.coefficients()]).set_index("term")
    assert gold["logLik"] == pytest.approx(fit.log_likelihood, abs=tolerance["logLik"])
    for term, value in gold["coef"].items():
        assert value == pytest.approx(table.estimate[term], abs=tolerance["coef"]), term
    for term, value in gold.get("se", {}).items():
        assert value == pytest.approx(table.std_error[term], abs=tolerance["se"]), term
    for group, value in gold["sd"].items():
        group = "prompt:source" if group == "ps" else group
        assert value == pytest.approx(fit.sd[group], abs=tolerance["sd"])
    assert fit.optimum.converged


def test_quadrature_of_one_random_term_is_clmms():
    gold = GOLD["wine_agq10"]
    fit = fit_ordinal(data("wine"), "rating ~ temp + contact + (1|judge)", nodes=10)
    table = pd.concat([fit.thresholds(), fit.coefficients()]).set_index("term")
    assert gold["logLik"] == pytest.approx(fit.log_likelihood, abs=1e-6)
    for term, value in gold["coef"].items():
        assert value == pytest.approx(table.estimate[term], abs=2e-4), term
        assert gold["se"][term] == pytest.approx(table.std_error[term], abs=2e-4), term
    assert "quadrature at 10 nodes" in repr(fit)


def test_one_quadrature_node_is_laplaces_approximation():
    rng = np.random.default_rng(3)
    y, X, group = rng.integers(0, 4, 120), rng.normal(size=(120, 2)), (rng.integers(0, 9, 120), 9)
    at = np.array([-1.2, 0.1, 1.0, 0.3, -0.4, 0.8])
    laplace = Laplace(y, X, [group], "logit").value(at)
    assert laplace == pytest.approx(Quadrature(y, X, group, "logit", 1).value(at), abs=1e-10)


def test_quadrature_of_crossed_terms_is_refused():
    with pytest.raises(StudyError, match="10 quadrature nodes for 2 random terms"):
        fit_ordinal(data("wine"), "rating ~ temp + (1|judge) + (1|bottle)", nodes=10)


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("sizes", [(9,), (4, 11), (11, 4, 7)])
def test_the_gradient_is_the_likelihoods_slope(link, sizes):
    rng = np.random.default_rng(3)
    y, X = rng.integers(0, 4, 120), rng.normal(size=(120, 2))
    model = Laplace(y, X, [(rng.integers(0, n, 120), n) for n in sizes], link)
    at = np.concatenate([[-1.2, 0.1, 1.0, 0.3, -0.4], np.linspace(0.5, 1.2, len(sizes))])
    step = 1e-5 * np.eye(len(at))
    slope = [(model.value(at + e) - model.value(at - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(slope, model.value_and_gradient(at)[1], atol=2e-5)


def test_a_vanishing_variance_is_named_and_leaves_the_rest_alone():
    crossed, alone = (
        fit_ordinal(data("wine"), f"rating ~ temp + contact + (1|judge){more}") for more in (" + (1|bottle)", "")
    )
    assert crossed.singular_terms == ["bottle"]
    assert "bottle" in crossed.notes[0]
    np.testing.assert_allclose(alone.coefficients().std_error, crossed.coefficients().std_error, rtol=1e-4)


def test_turning_the_scale_round_turns_the_coefficients_round():
    frame = data("small")
    fit = fit_ordinal(frame, "m1 ~ source + (1|rater) + (1|prompt)")
    turned = fit_ordinal(frame.assign(m1=6 - frame.m1), "m1 ~ source + (1|rater) + (1|prompt)")
    np.testing.assert_allclose(fit.fixed, -turned.fixed, atol=1e-5)
    assert fit.log_likelihood == pytest.approx(turned.log_likelihood, abs=1e-6)


def test_the_order_of_rows_and_of_random_terms_does_not_matter():
    frame = data("small")
    fit = fit_ordinal(frame, "m1 ~ source + (1|rater) + (1|prompt)")
    other = fit_ordinal(frame.sample(frac=1, random_state=2), "m1 ~ source + (1|prompt) + (1|rater)")
    np.testing.assert_allclose(fit.fixed, other.fixed, atol=1e-5)
    np.testing.assert_allclose(fit.sd.sort_index(), other.sd.sort_index(), atol=1e-5)
    mine, theirs = (f.blups("rater").set_index("level").estimate for f in (fit, other))
    np.testing.assert_allclose(mine, theirs[mine.index], atol=1e-4)


def test_known_effects_are_found_again():
    rng = np.random.default_rng(8)
    rater, prompt, source = (part.ravel() for part in np.indices((20, 40, 3)))
    eta = np.array([0.0, 0.8, -0.5])[source] + rng.normal(0, 0.7, 20)[rater] + rng.normal(0, 1.0, 40)[prompt]
    latent = eta + rng.logistic(size=len(eta))
    frame = pd.DataFrame({"rater": rater, "prompt": prompt, "source": source.astype(str)})
    frame["score"] = np.searchsorted([-2.0, -0.5, 1.0, 2.5], latent) + 1
    fit = fit_ordinal(frame, "score ~ source + (1|rater) + (1|prompt)")
    error = fit.coefficients().std_error
    np.testing.assert_array_less(np.abs(fit.fixed - [0.8, -0.5]), 3 * error)
    assert fit.sd["prompt"] == pytest.approx(1.0, abs=0.35)
    assert fit.sd["rater"] == pytest.approx(0.7, abs=0.35)


def test_a_source_whose_ratings_are_all_at_the_top_has_no_finite_estimate():
    frame = data("small")
    frame.loc[frame.source == "S4", "m1"] = 5
    fit = fit_ordinal(frame, "m1 ~ source + (1|rater) + (1|prompt)")
    table = fit.coefficients().set_index("term")
    assert np.isnan(table.estimate["sourceS4"])
    assert table.estimate.drop("sourceS4").notna().all()
    assert "sourceS4 has no finite estimate (upward" in fit.notes[-1]
    assert not fit.optimum.converged


def test_a_category_nobody_used_is_passed_over_with_a_note():
    frame = data("wine")
    frame = frame[frame.rating != 3]
    fit = fit_ordinal(frame, "rating ~ temp + (1|judge)")
    assert list(fit.thresholds().term) == ["1|2", "2|4", "4|5"]
    assert "Nobody used 3" in fit.notes[0]


@pytest.mark.parametrize(
    ("change", "formula", "reason"),
    [
        ({"rating": 3}, "rating ~ temp + (1|judge)", "every rating is 3"),
        ({"rating": np.arange(72.0)}, "rating ~ temp + (1|judge)", "72 different values"),
        ({}, "rating ~ 0 + temp + (1|judge)", "keep the intercept"),
        ({}, "rating ~ temp + (temp|judge)", "random intercepts only"),
        ({"rating": "good"}, "rating ~ temp + (1|judge)", "must be numbers"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_its_reason(change, formula, reason):
    with pytest.raises(StudyError, match=reason):
        fit_ordinal(data("wine").assign(**change), formula)


def test_an_unknown_link_is_refused():
    with pytest.raises(StudyError, match="choose logit or probit"):
        fit_ordinal(data("wine"), "rating ~ temp + (1|judge)", link="cauchit")


def test_the_published_shape_is_clmms():
    frame = pd.read_csv(Path(__file__).parents[2] / "golden" / "lmm" / "data" / "sim5950.csv")
    gold = GOLD["sim5950"]
    fit = fit_ordinal(frame, gold["formula"])
    assert gold["logLik"] == pytest.approx(fit.log_likelihood, abs=1e-6)
    assert fit.optimum.decrement < 1e-9


def small_study(seed: int) -> pd.DataFrame:
    """Simulated study of few raters and prompts, often at the end of its scale, a tenth missing."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(2, 7), rng.integers(3, 15), rng.integers(2, 5)
    rater, prompt, source = (part.ravel() for part in np.indices(shape))
    eta = rng.choice([0, 3, 5]) + rng.normal(0, rng.choice([0.5, 3]), shape[2])[source]
    eta += rng.normal(0, 1, shape[0])[rater] + rng.normal(0, 1, shape[1])[prompt] + rng.logistic(size=len(rater))
    score = np.searchsorted(np.sort(rng.normal(0, 1.5, rng.integers(1, 5))), eta) + 1.0
    score[rng.random(len(score)) < 0.1] = np.nan
    return pd.DataFrame({"rater": rater, "prompt": prompt, "source": source.astype(str), "score": score})


@pytest.mark.parametrize("seed", range(16))
def test_small_studies_end_in_a_fit_a_note_or_a_refusal(seed):
    try:
        fit = fit_ordinal(small_study(seed), "score ~ source + (1|rater) + (1|prompt)")
    except StudyError as refused:
        assert "needs two categories" in str(refused)
        return
    assert fit.optimum.converged or any("no finite estimate" in note for note in fit.notes)
    assert fit.coefficients().std_error.isna().equals(fit.coefficients().estimate.isna())
