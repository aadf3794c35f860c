"""How often a true null hypothesis is rejected, and how often intervals hold the truth, by simulation.

The published design: 17 raters × 5 sources × 70 prompts, SDs of source:prompt .40, rater:source .10 and
residual .65; nothing distinguishes the sources. Seeds are fixed, so every run gives the same figures. The
short forms run with the suite; `make validate` runs the long ones and prints their figures.
"""

import numpy as np
import pandas as pd
import pytest

from analysis.stats.bootstrap import bootstrap
from analysis.stats.mixed.fit import MixedFit, fit

SD = {"rater": 0.35, "item": 0.30, "response": 0.40, "rater_source": 0.10, "residual": 0.65}
PUBLISHED = "score ~ source + (1|rater) + (1|item)"
DEFAULT = f"{PUBLISHED} + (1|item:source) + (1|rater:source)"


def crossed(raters: int, sources: int, items: int) -> pd.DataFrame:
    r, s, i = (part.ravel() for part in np.indices((raters, sources, items)))
    return pd.DataFrame({"rater": r, "source": pd.Categorical.from_codes(s, list("ABCDEFG")[:sources]), "item": i})


def null_scores(frame: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Ratings of sources that do not differ."""
    r, s, i = frame["rater"].to_numpy(), frame["source"].cat.codes.to_numpy(), frame["item"].to_numpy()
    raters, sources, items = r.max() + 1, s.max() + 1, i.max() + 1
    return (
        4
        + rng.normal(0, SD["rater"], raters)[r]
        + rng.normal(0, SD["item"], items)[i]
        + rng.normal(0, SD["response"], (sources, items))[s, i]
        + rng.normal(0, SD["rater_source"], (raters, sources))[r, s]
        + rng.normal(0, SD["residual"], len(frame))
    )


def rejected(frame: pd.DataFrame, formula: str, count: int, seed: int, ddf: str = "satterthwaite") -> float:
    """Share of source contrasts with p < .05."""
    rng = np.random.default_rng(seed)
    model: MixedFit | None = None
    found = []
    for _ in range(count):
        y = null_scores(frame, rng)
        model = fit(frame.assign(score=y), formula) if model is None else model.refit(y)
        found.append((model.coefficients(ddf)["p_value"][1:] < 0.05).mean())
    return float(np.mean(found))


@pytest.mark.parametrize(
    "count, low, high", [(100, 0.02, 0.10), pytest.param(2000, 0.04, 0.06, marks=pytest.mark.slow)]
)
def test_the_default_model_rejects_a_true_null_one_time_in_twenty(count, low, high):
    share = rejected(crossed(17, 5, 70), DEFAULT, count, seed=1)
    print(f"\ntype I error of a source contrast, default model, {count} data sets: {share:.3f}")
    assert low < share < high


@pytest.mark.parametrize(
    "count, low, high", [(100, 0.3, 0.6), pytest.param(2000, 0.40, 0.50, marks=pytest.mark.slow)]
)
def test_the_published_model_rejects_it_nearly_every_second_time(count, low, high):
    share = rejected(crossed(17, 5, 70), PUBLISHED, count, seed=1)
    print(f"\ntype I error of a source contrast, published model, {count} data sets: {share:.3f}")
    assert low < share < high


@pytest.mark.slow
@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])
def test_missing_ratings_do_not_spoil_the_default_model(ddf):
    """One rating in ten missing, one rater half done."""
    frame = crossed(17, 5, 70)
    lost = np.random.default_rng(0).random(len(frame)) < np.where(frame["rater"] == 5, 0.5, 0.1)
    share = rejected(frame[~lost].reset_index(drop=True), DEFAULT, 600, seed=2, ddf=ddf)
    print(f"\ntype I error with missing ratings, {ddf}: {share:.3f}")
    assert 0.03 < share < 0.07


@pytest.mark.slow
@pytest.mark.parametrize("formula, low, high", [(DEFAULT, 0.01, 0.07), (PUBLISHED, 0.2, 0.5)])
def test_encounters_of_three_cases(formula, low, high):
    """15 encounters: the default model is right or cautious, the published one is not."""
    share = rejected(crossed(17, 5, 3), formula, 2000, seed=3)
    print(f"\ntype I error of a source contrast, three cases, {formula}: {share:.3f}")
    assert low < share < high


def covered(count: int, replicates: int, seed: int) -> pd.Series:
    """Share of intervals that hold the truth: Wald and bootstrap of a contrast, bootstrap of two SDs."""
    frame, rng = crossed(17, 5, 70), np.random.default_rng(seed)
    truth = {"rater": SD["rater"], "residual": SD["residual"]}
    rows = []
    model = fit(frame.assign(score=null_scores(frame, rng)), DEFAULT)
    for i in range(count):
        model = model.refit(null_scores(frame, rng))
        run = bootstrap(model, replicates, seed=i)
        row = {}
        wald = model.coefficients().iloc[1]
        row["contrast, Wald"] = wald["low"] <= 0 <= wald["high"]
        for interval in ("percentile", "normal"):
            boot = run.coefficient_table(interval=interval).iloc[1]
            row[f"contrast, {interval}"] = boot["low"] <= 0 <= boot["high"]
        sds = run.component_table(interval="basic").set_index("term")
        for name, value in truth.items():
            row[f"sd {name}, basic"] = sds.loc[name, "low"] <= value <= sds.loc[name, "high"]
        rows.append(row)
    return pd.DataFrame(rows).mean()


@pytest.mark.parametrize("count, least", [(25, 0.75), pytest.param(800, 0.93, marks=pytest.mark.slow)])
def test_intervals_hold_the_truth_nineteen_times_in_twenty(count, least):
    share = covered(count, 199, seed=4)
    print(f"\ncoverage of 95% intervals, {count} data sets:\n{share.to_string()}")
    assert (
        share[["contrast, Wald", "contrast, percentile", "contrast, normal", "sd residual, basic"]] > least
    ).all()
    assert share["sd rater, basic"] > least - 0.08
