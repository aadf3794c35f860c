"""What must hold for every data set."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.stats.anova import anova
from analysis.stats.contrasts import contrasts, means
from analysis.stats.mixed.fit import fit

FORMULA = "score ~ source*form + (1|rater) + (1|prompt)"
MODERATE = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def ratings(seed: int, missing: float = 0.1, rater_sd: float = 0.6, prompt_sd: float = 0.5) -> pd.DataFrame:
    """5 raters × 3 sources × 8 prompts, two forms, some ratings missing at random."""
    rng = np.random.default_rng(seed)
    rows = [(f"r{r}", f"S{s}", f"p{p}") for r in range(5) for s in range(3) for p in range(8)]
    frame = pd.DataFrame(rows, columns=["rater", "source", "prompt"])
    frame["form"] = np.where(frame["prompt"].isin(["p0", "p1", "p2"]), "negative", "plain")
    raters = dict(zip(frame["rater"].unique(), rng.normal(0, rater_sd, 5), strict=True))
    prompts = dict(zip(frame["prompt"].unique(), rng.normal(0, prompt_sd, 8), strict=True))
    frame["score"] = 4 + frame["rater"].map(raters) + frame["prompt"].map(prompts) + rng.normal(0, 0.8, len(frame))
    return frame[rng.random(len(frame)) >= missing].reset_index(drop=True)


def same(one, other, tolerance: float = 1e-6) -> None:
    assert other.criterion == pytest.approx(one.criterion, abs=1e-7)
    np.testing.assert_allclose(other.components()["variance"], one.components()["variance"], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(other.coefficients()["estimate"], one.coefficients()["estimate"], atol=tolerance)


@MODERATE
@given(st.integers(0, 10_000))
def test_the_order_of_rows_does_not_matter(seed):
    frame = ratings(seed)
    shuffled = frame.sample(frac=1, random_state=seed)
    same(fit(frame, FORMULA), fit(shuffled, FORMULA))


@MODERATE
@given(st.integers(0, 10_000))
def test_the_names_of_levels_do_not_matter(seed):
    frame = ratings(seed)
    names = {name: f"z{9 - int(name[1])}" for name in frame["rater"].unique()}
    same(fit(frame, FORMULA), fit(frame.assign(rater=frame["rater"].map(names)), FORMULA))


@MODERATE
@given(st.integers(0, 10_000), st.sampled_from(["sum", "helmert"]))
def test_the_coding_changes_neither_means_nor_f_tests(seed, coding):
    frame = ratings(seed)
    one = fit(frame, FORMULA)
    other = fit(frame, FORMULA, contrasts={"source": coding, "form": coding})
    np.testing.assert_allclose(other.components()["variance"], one.components()["variance"], rtol=1e-5, atol=1e-9)
    for table in (lambda f: means(f, "source", by="form"), lambda f: contrasts(f, "source", adjust="tukey")):
        np.testing.assert_allclose(
            table(other)[["estimate", "std_error", "df"]],
            table(one)[["estimate", "std_error", "df"]],
            rtol=1e-5,
            atol=1e-7,
        )
    columns = ["statistic", "ndf", "df"]
    np.testing.assert_allclose(anova(other)[columns], anova(one)[columns], rtol=1e-5)


@MODERATE
@given(st.integers(0, 10_000), st.floats(-1e4, 1e4), st.floats(1e-3, 1e3))
def test_shifting_and_scaling_the_outcome_shifts_and_scales_the_estimates(seed, shift, scale):
    frame = ratings(seed)
    one = fit(frame, FORMULA).coefficients()
    other = fit(frame.assign(score=shift + scale * frame["score"]), FORMULA).coefficients()
    moved = one["estimate"] * scale
    moved[0] += shift
    np.testing.assert_allclose(other["estimate"], moved, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(other["std_error"], one["std_error"] * scale, rtol=1e-5)
    np.testing.assert_allclose(other["df"], one["df"], rtol=1e-3)


@MODERATE
@given(st.integers(0, 10_000))
def test_a_factor_split_into_two_columns_groups_the_same(seed):
    frame = ratings(seed)
    number = frame["prompt"].str[1].astype(int)
    split = frame.assign(case=number % 2, part=number // 2)
    same(fit(frame, FORMULA), fit(split, "score ~ source*form + (1|rater) + (1|case:part)"))


@MODERATE
@given(st.integers(0, 10_000))
def test_ml_is_never_above_its_value_at_the_reml_estimates(seed):
    from analysis.stats.mixed.objective import criterion

    frame = ratings(seed)
    reml, ml = fit(frame, FORMULA), fit(frame, FORMULA, method="ML")
    assert ml.criterion <= criterion(ml.sums, ml.outcome, reml.best.theta, "ML").value + 1e-8


@MODERATE
@given(st.integers(0, 10_000))
def test_balanced_data_give_the_closed_form_estimates(seed):
    """Raters × prompts, one rating each: mean squares (Searle, Casella, McCulloch 1992, ch. 4)."""
    frame = ratings(seed, missing=0.0, rater_sd=1.0, prompt_sd=1.0)
    frame = frame[frame["source"] == "S0"]
    table = frame.pivot_table(index="rater", columns="prompt", values="score").to_numpy()
    r, p = table.shape
    rows, columns, grand = table.mean(axis=1), table.mean(axis=0), table.mean()
    ms_rater = p * ((rows - grand) ** 2).sum() / (r - 1)
    ms_prompt = r * ((columns - grand) ** 2).sum() / (p - 1)
    residual = table - rows[:, None] - columns + grand
    ms_residual = (residual**2).sum() / ((r - 1) * (p - 1))
    if min(ms_rater, ms_prompt) <= ms_residual:
        return
    found = fit(frame, "score ~ 1 + (1|rater) + (1|prompt)")
    expected = [(ms_rater - ms_residual) / p, (ms_prompt - ms_residual) / r, ms_residual]
    np.testing.assert_allclose(found.components()["variance"], expected, rtol=1e-6)
    assert found.vcov.iloc[0, 0] == pytest.approx((ms_rater + ms_prompt - ms_residual) / (r * p), rel=1e-6)


@MODERATE
@given(st.integers(0, 10_000))
def test_the_gradient_is_that_of_the_criterion(seed):
    from analysis.stats.mixed.objective import criterion

    frame = ratings(seed).assign(x=lambda f: np.sin(np.arange(len(f))))
    model = fit(frame, "score ~ source + (x|rater) + (1|prompt)")
    theta = np.abs(model.best.theta) + [0.3, 0.1, 0.2, 0.25]
    for method in ("REML", "ML"):
        slope, curve = criterion(model.sums, model.outcome, theta, method).derivatives
        for k, step in enumerate(1e-5 * np.eye(len(theta))):
            up, down = (criterion(model.sums, model.outcome, theta + s, method) for s in (step, -step))
            assert slope[k] == pytest.approx((up.value - down.value) / 2e-5, rel=1e-5, abs=1e-5)
            np.testing.assert_allclose(
                curve[k], (up.derivatives[0] - down.derivatives[0]) / 2e-5, rtol=1e-4, atol=1e-4
            )


def test_refitting_shares_the_design_and_equals_a_new_fit():
    frame = ratings(3)
    model = fit(frame, FORMULA)
    y = frame["score"].to_numpy() ** 2
    again = model.refit(y)
    assert again.sums is model.sums
    same(fit(frame.assign(score=y), FORMULA), again)


def test_two_columns_grouped_alike_keep_categorical_order():
    frame = ratings(1).assign(source=lambda f: pd.Categorical(f["source"], categories=["S2", "S0", "S1"]))
    assert list(fit(frame, "score ~ source + (1|rater)").fixed.index) == [
        "(Intercept)",
        "sourceS0",
        "sourceS1",
    ]


def test_fitted_values_and_residuals_add_up_and_residuals_average_zero_by_cell():
    frame = ratings(2)
    model = fit(frame, FORMULA)
    np.testing.assert_allclose(model.fitted() + model.residuals, frame["score"])
    assert model.residuals.mean() == pytest.approx(0, abs=1e-10)


def test_the_summary_names_what_a_reader_needs():
    model = fit(ratings(4), FORMULA)
    for text in (repr(model), model._repr_html_()):
        for part in ("score ~ source*form", "REML criterion", "converged", "rater 5", "prompt 8", "sourceS1"):
            assert part in text
