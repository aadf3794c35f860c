import numpy as np
import pandas as pd
import pytest

from analysis.stats.bootstrap import bootstrap, bootstrap_many
from analysis.stats.mixed.fit import fit, fit_many
from study.errors import StudyError


def ratings(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(f"r{r}", f"S{s}", f"p{p}") for r in range(8) for s in range(3) for p in range(12)]
    frame = pd.DataFrame(rows, columns=["rater", "source", "prompt"])
    for name in ("one", "two"):
        raters = rng.normal(0, 0.5, 8)[frame["rater"].str[1:].astype(int)]
        prompts = rng.normal(0, 0.7, 12)[frame["prompt"].str[1:].astype(int)]
        frame[name] = 4 + raters + prompts + rng.normal(0, 0.6, len(frame))
    return frame


EFFECTS = "source + (1|rater) + (1|prompt)"
KINDS = [("parametric", ()), ("residual", ()), ("cluster", ("rater",)), ("cluster", ("rater", "prompt"))]


@pytest.fixture(scope="module")
def model():
    return fit(ratings(), f"one ~ {EFFECTS}")


@pytest.mark.parametrize("kind, clusters", KINDS)
def test_the_seed_decides_and_the_number_of_jobs_does_not(model, kind, clusters):
    runs = [bootstrap(model, 45, seed=5, kind=kind, clusters=clusters, jobs=jobs) for jobs in (1, 1, 2)]
    for run in runs[1:]:
        pd.testing.assert_frame_equal(runs[0].coefficients, run.coefficients, check_exact=True)
        pd.testing.assert_frame_equal(runs[0].variances, run.variances, check_exact=True)
    assert not bootstrap(model, 45, seed=6, kind=kind, clusters=clusters).coefficients.equals(runs[0].coefficients)


@pytest.mark.parametrize("kind", ["parametric", "residual"])
def test_replicates_spread_as_the_standard_errors_say(model, kind):
    spread = bootstrap(model, 400, seed=2, kind=kind).coefficient_table()
    np.testing.assert_allclose(spread["std_error"], model.coefficients()["std_error"], rtol=0.2)


def test_replicates_centre_on_the_estimates(model):
    run = bootstrap(model, 400, seed=3)
    away = (run.coefficients.mean() - model.fixed) / run.coefficients.std() * np.sqrt(400)
    assert np.abs(away).max() < 4
    assert list(run.variances) == ["rater", "prompt", "residual"]


def test_drawing_a_rater_twice_makes_two_raters(model):
    """A rater drawn twice must not become one rater with twice the ratings, or the rater variance would grow."""
    run = bootstrap(model, 60, seed=4, kind="cluster", clusters=("rater",))
    drawn = np.sqrt(run.variances["rater"].mean())
    assert drawn == pytest.approx(model.components()["sd"][0], rel=0.35)
    assert np.sqrt(run.variances["residual"].mean()) == pytest.approx(model.sigma, rel=0.1)


@pytest.mark.parametrize("interval", ["percentile", "basic", "normal"])
def test_every_interval_holds_its_estimate(model, interval):
    table = bootstrap(model, 200, seed=1).coefficient_table(interval=interval)
    assert ((table["low"] < table["estimate"]) & (table["estimate"] < table["high"])).all()


def test_lost_replicates_are_counted_not_filled():
    """Prompts of one form only are easily all missed; such draws cannot estimate the form."""
    frame = ratings().assign(form=lambda f: np.where(f["prompt"] == "p3", "negative", "plain"))
    run = bootstrap(
        fit(frame, "one ~ form + (1|rater) + (1|prompt)"), 60, seed=1, kind="cluster", clusters=("prompt",)
    )
    assert 5 < run.n_failed < 45
    assert len(run.coefficients) == 60 - run.n_failed
    assert run.coefficients.notna().all(axis=None)


def test_metrics_of_one_design_get_the_same_draws():
    frame = ratings().assign(copy=lambda f: 2 * f["one"])
    runs = bootstrap_many(
        fit_many(frame, ["one", "copy"], EFFECTS), 20, seed=1, kind="cluster", clusters=("rater", "prompt")
    )
    np.testing.assert_allclose(runs["copy"].coefficients, 2 * runs["one"].coefficients, rtol=1e-4)


def test_random_slopes_and_ml_are_bootstrapped_too():
    frame = ratings().assign(x=lambda f: f["prompt"].str[1:].astype(float) / 10)
    for method in ("REML", "ML"):
        run = bootstrap(fit(frame, "one ~ x + (x|rater)", method=method), 12, seed=1)
        assert run.n_failed == 0
        assert list(run.variances) == ["rater", "rater x", "residual"]


@pytest.mark.parametrize(
    "options, said",
    [
        ({"kind": "jackknife"}, "is not known"),
        ({"kind": "cluster"}, "one or two clusters"),
        ({"kind": "cluster", "clusters": ("ratr",)}, "not a column of the model"),
        ({"n": 0}, "one replicate or more"),
    ],
)
def test_what_cannot_be_drawn_is_refused(model, options, said):
    with pytest.raises(StudyError, match=said):
        bootstrap(model, options.pop("n", 10), seed=1, **options)
