import numpy as np
import pandas as pd
import pytest

from analysis.stats.diagnostics import influence, normal_scores, residual_table, spread_by
from analysis.stats.mixed.fit import fit
from study.errors import StudyError


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Rater r3 likes source B by two points more than the others do."""
    rng = np.random.default_rng(2)
    rows = [(f"r{r}", s, f"p{p}") for r in range(7) for s in "ABC" for p in range(10)]
    table = pd.DataFrame(rows, columns=["rater", "source", "prompt"])
    table["score"] = 3 + rng.normal(0, 0.3, 7)[table["rater"].str[1].astype(int)] + rng.normal(0, 0.5, len(table))
    table.loc[(table["rater"] == "r3") & (table["source"] == "B"), "score"] += 2
    return table[rng.random(len(table)) > 0.08]


@pytest.fixture(scope="module")
def model(frame):
    return fit(frame, "score ~ source + (1|rater) + (1|prompt)")


@pytest.mark.parametrize("group", ["rater", "prompt", "rater:source"])
def test_leaving_a_level_out_equals_fitting_without_it(frame, model, group):
    found = influence(model, group, refit=True).changes
    level = found.index[4]
    names = group.split(":")
    labels = frame[names[0]]
    for name in names[1:]:
        labels = labels + ":" + frame[name]
    again = fit(frame[labels != level], "score ~ source + (1|rater) + (1|prompt)")
    np.testing.assert_allclose(found.loc[level] + model.fixed, again.fixed, atol=1e-6)


def test_the_odd_rater_stands_out(model):
    table = influence(model, "rater").table.sort_values("cooks_distance")
    assert table.iloc[-1]["level"] == "r3"
    assert table.iloc[-1]["term"] == "sourceB"
    assert table.iloc[-1]["change"] < -1


def test_a_level_that_alone_holds_a_coefficient_is_missing_not_a_number(frame):
    table = frame.assign(form=np.where(frame["prompt"] == "p3", "negative", "plain"))
    found = influence(fit(table, "score ~ form + (1|rater) + (1|prompt)"), "prompt").table.set_index("level")
    assert np.isnan(found.loc["p3", "cooks_distance"])
    assert found["cooks_distance"].notna().sum() == 9


def test_ceilings_are_counted_at_the_scales_end(frame):
    capped = fit(frame.assign(score=np.minimum(frame["score"].round(), 4)), "score ~ source + (1|rater)")
    row = residual_table(capped, low=1, high=4).iloc[0]
    assert row["at_high"] == pytest.approx((frame["score"].round() >= 4).mean())
    assert spread_by(capped, "source", high=4)["at_high"].between(0, 1).all()


def test_normal_residuals_follow_their_scores():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": np.repeat(np.arange(20), 30), "score": rng.normal(size=600)})
    row = residual_table(fit(frame, "score ~ 1 + (1|g)")).iloc[0]
    assert row["normality"] > 0.995
    assert abs(row["skewness"]) < 0.3
    scores, ordered = normal_scores(fit(frame, "score ~ 1 + (1|g)"))
    assert (np.diff(scores) > 0).all() and (np.diff(ordered) >= 0).all()


def test_an_unknown_group_is_refused(model):
    with pytest.raises(StudyError, match="'colour' is not a group"):
        influence(model, "colour")
