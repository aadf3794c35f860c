import numpy as np
import pandas as pd
import pytest

from analysis.stats import power_simulation as ps
from analysis.stats.mixed.fit import fit
from analysis.stats.power import Size, Variances, from_fit, interaction, power, source_contrast
from study.errors import StudyError

SMALL = Size(sources=3, prompts=12, raters=5)
SPREAD = Variances(source_prompt=0.16, source_rater=0.02, residual=0.4225, prompt=0.04, rater=0.03)
FORMULA = "score ~ source + (1|rater) + (1|prompt) + (1|source:rater) + (1|source:prompt)"
TRUTH = {
    "variances": {"rater": 0.03, "prompt": 0.04, "source:rater": 0.02, "source:prompt": 0.16},
    "residual": 0.4225,
}


def simulated(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = ps.crossed_frame(SMALL)
    s, p, r = (frame[name].cat.codes.to_numpy() for name in ("source", "prompt", "rater"))
    frame["score"] = (
        rng.normal(0, 0.2, 12)[p] + rng.normal(0, 0.4, (3, 12))[s, p] + rng.normal(0, 0.3, (3, 5))[s, r]
        + rng.normal(0, 0.65, len(frame))
    )  # fmt: skip
    return frame


@pytest.mark.parametrize("seed", range(12))
def test_mean_squares_test_balanced_data_as_the_mixed_model_does(seed):
    frame = simulated(seed)
    fitted = fit(frame, FORMULA).coefficients().set_index("term").loc["source2"]
    y = frame.score.to_numpy().reshape(1, 3, 12, 5)
    estimate, error, df = (float(x[0]) for x in ps.balanced_test(y))
    assert fitted.estimate == pytest.approx(estimate, abs=1e-9)
    assert fitted.std_error == pytest.approx(error, rel=1e-5)
    assert fitted.df == pytest.approx(df, rel=1e-3)


def test_simulation_agrees_with_the_closed_form():
    size = Size(5, 20, 7)
    spread = Variances(0.16, 0.01, 0.4225)
    found = ps.simulate_balanced(spread, size, [0.0, 0.3, 0.5], n_sim=4000, seed=3)
    precision = source_contrast(spread, size)
    expected = [0.05, power(precision, 0.3), power(precision, 0.5)]
    np.testing.assert_allclose(expected, found.power, atol=0.025)
    assert ((found.low < found.power) & (found.power < found.high)).all()


def test_rating_scales_keep_the_level_of_the_test_and_cost_power_at_the_ceiling():
    scale = ps.Scale(1, 5)
    middle, top = (
        ps.simulate_balanced(SPREAD, Size(5, 20, 7), [0.0, 0.5], mean=mean, scale=scale, n_sim=600)
        for mean in (3.0, 5.6)
    )
    assert middle.power[0] == pytest.approx(0.05, abs=0.03)
    assert top.power[1] < middle.power[1]
    assert top.observed[1] < 0.5


def test_refits_find_what_the_closed_form_expects():
    found = ps.simulate_refits(
        ps.crossed_frame(SMALL), FORMULA, {"source2": 1}, coefficients={"source2": 0.7}, n_sim=60, seed=2, **TRUTH
    ).iloc[0]
    assert found.power == pytest.approx(power(source_contrast(SPREAD, SMALL), 0.7), abs=0.15)
    assert (found.n_sim, found.n_failed) == (60, 0)


def test_two_processes_give_the_powers_of_one():
    call = {"coefficients": {"source2": 0.7}, "n_sim": 30, **TRUTH}
    frame = ps.incomplete_blocks(ps.crossed_frame(SMALL), 3)
    one = ps.simulate_refits(frame, FORMULA, {"source2": 1}, **call)
    pd.testing.assert_frame_equal(one, ps.simulate_refits(frame, FORMULA, {"source2": 1}, jobs=2, **call))


@pytest.mark.slow
def test_a_dask_cluster_gives_the_powers_of_one_process():
    distributed = pytest.importorskip("distributed")
    call = {"n_sim": 40, "seed": 4}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = {"jobs": -1, "backend": "dask", "scheduler": cluster.scheduler_address}
        spread = ps.simulate_balanced(SPREAD, SMALL, [0.5], **call, **there)
    pd.testing.assert_frame_equal(ps.simulate_balanced(SPREAD, SMALL, [0.5], **call), spread)


def test_blocks_give_every_prompt_its_raters_and_every_rater_a_share():
    frame = ps.incomplete_blocks(ps.crossed_frame(Size(2, 15, 5)), 3)
    assert (frame.groupby("prompt", observed=True).rater.nunique() == 3).all()
    assert frame.rater.value_counts().nunique() == 1


def test_forms_cases_and_missing_ratings_are_laid_out():
    frame = ps.crossed_frame(Size(2, 10, 3, cases=4), {"affirmative": 7, "negative": 3})
    assert frame.groupby("form", observed=True).prompt.nunique().to_dict() == {"affirmative": 7, "negative": 3}
    assert frame.groupby("prompt", observed=True).case.nunique().max() == 1
    assert frame.case.nunique() == 4
    assert len(ps.some_missing(frame, 0.25)) == pytest.approx(45, abs=12)


def test_a_pilots_components_are_read_from_its_fit():
    fitted = fit(simulated(1), FORMULA)
    found, table = from_fit(fitted), fitted.components().set_index("group").variance
    assert found.source_prompt == table["source:prompt"]
    assert found.residual == table["residual"]


def test_a_pilot_of_encounters_has_cases_in_the_place_of_prompts():
    frame = simulated(2).rename(columns={"prompt": "case"})
    fitted = fit(frame, "score ~ source + (1|rater) + (1|case) + (1|source:rater) + (1|source:case)")
    found, table = from_fit(fitted), fitted.components().set_index("group").variance
    assert (found.source_prompt, found.source_case) == (table["source:case"], 0)


def test_a_pilot_without_the_response_term_is_refused():
    with pytest.raises(StudyError, match=r"no \(1\|source:prompt\): without it power is overstated"):
        from_fit(fit(simulated(1), "score ~ source + (1|rater) + (1|prompt)"))


def test_studies_without_variation_are_refused_not_counted_out():
    with pytest.raises(StudyError, match="could not be analysed"):
        ps.simulate_balanced(SPREAD, SMALL, [0.0], mean=30.0, scale=ps.Scale(1, 5), n_sim=50)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"test": {"sourceB": 1}}, "no coefficient sourceB"),
        ({"test": {"source2": 0}}, "every weight is zero"),
        ({"variances": {"rater": 1}}, "give a variance for each of rater, prompt"),
        ({"residual": 0}, "residual's is above zero"),
    ],
)
def test_a_plan_that_does_not_fit_its_model_is_refused(change, reason):
    options = {"test": {"source2": 1}, "coefficients": {}, **TRUTH} | change
    with pytest.raises(StudyError, match=reason):
        ps.simulate_refits(ps.crossed_frame(SMALL), FORMULA, **options)


def test_wilsons_interval_has_width_at_the_ends():
    low, high = ps.wilson(0, 10)
    assert low == 0 and high == pytest.approx(0.2775, abs=1e-4)


@pytest.mark.slow
def test_the_published_designs_power_by_refits():
    size, spread = Size(5, 70, 17), Variances(0.16, 0.01, 0.4225, prompt=0.0365, rater=0.02)
    truth = {"rater": 0.02, "prompt": 0.0365, "source:rater": 0.01, "source:prompt": 0.16}
    found = ps.simulate_refits(
        ps.crossed_frame(size), FORMULA, {"source2": 1}, coefficients={"source2": 0.2}, variances=truth,
        residual=0.4225, n_sim=1000, jobs=2,
    ).iloc[0]  # fmt: skip
    assert found.power == pytest.approx(power(source_contrast(spread, size), 0.2), abs=0.045)


@pytest.mark.slow
def test_a_difference_of_penalties_by_refits():
    """Source 2 loses more on negative questions than source 1: the interaction of source and form."""
    size, spread = Size(3, 30, 8), Variances(0.16, 0.02, 0.4225, prompt=0.04, rater=0.03)
    frame = ps.crossed_frame(size, {"affirmative": 20, "negative": 10})
    found = ps.simulate_refits(
        frame, FORMULA.replace("source +", "source * form +", 1), {"source2:formnegative": 1},
        coefficients={"source2:formnegative": -0.6}, n_sim=1000, jobs=2, **TRUTH,
    ).iloc[0]  # fmt: skip
    assert found.power == pytest.approx(power(interaction(spread, size, (20, 10)), 0.6), abs=0.045)
