"""Simulated ratings come from the stated truth and say that they are simulated."""

import numpy as np
import pandas as pd
import pytest

from study import simulate, tables
from study.config import EffectRow, SimulationSection
from study.errors import StudyError
from study.records import Metric

FLUENCY = Metric("fluency", "utterance", 1, 5)
SMOOTH = Metric("fluency", "utterance", -100, 100, step=0)
QUIET = {"severity_sd": 0, "prompt_sd": 0, "response_sd": 0, "rater_source_sd": 0, "noise_sd": 0}


def study(n_prompts=40, n_raters=30, sources=("a", "b")):
    """A crossed design of utterances: items, key, assignment."""
    rows = [
        (f"U{s}{p:03d}", "utterance", "C", f"Q{p:03d}", "E", p, "history", "negative" if p % 2 else "open", "…", s)
        for s in sources
        for p in range(n_prompts)
    ]
    items = pd.DataFrame(rows, columns=[*tables.ITEMS.names, "source_id"])
    assigned = [(f"r{r}", i, label, 1, "main") for r in range(n_raters) for i, label in enumerate(items["label"])]
    return (
        items[tables.ITEMS.names],
        items[["label", "source_id"]],
        pd.DataFrame(assigned, columns=tables.ASSIGNMENT.names),
    )


def drawn(metric=SMOOTH, seed=1, design=None, **truth):
    items, key, assigned = design or study()
    ratings = simulate.ratings(items, key, assigned, (metric,), SimulationSection(**truth), seed)
    return ratings.merge(items, on="label").merge(key, on="label")


def test_without_noise_a_rating_is_its_mean_and_its_effects():
    effect = EffectRow(metrics=("fluency",), source="b", form="negative", shift=-2)
    ratings = drawn(mean=4, effect=(effect,), **QUIET)
    hit = (ratings["source_id"] == "b") & (ratings["form"] == "negative")
    assert {2.0} == set(ratings.loc[hit, "value"])
    assert {4.0} == set(ratings.loc[~hit, "value"])


def test_every_row_says_simulated_and_keeps_the_contract():
    ratings = drawn(FLUENCY, missing=0.1)[[c.name for c in tables.RATINGS.columns if not c.optional]]
    assert ratings["simulated"].all()
    tables.check_ratings(ratings, [FLUENCY])
    assert 0.07 < ratings["value"].isna().mean() < 0.13


def test_a_scale_has_a_ceiling():
    assert 5 == drawn(FLUENCY, mean=9)["value"].min()


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("severity_sd", ["rater_id"]),
        ("prompt_sd", ["prompt_id"]),
        ("response_sd", ["label"]),
        ("rater_source_sd", ["rater_id", "source_id"]),
    ],
)
def test_each_standard_deviation_moves_its_own_groups_and_no_other(name, groups):
    # 60 levels at least: the sample SD of normal deviates lies within a third of the true one.
    ratings = drawn(design=study(n_prompts=60, n_raters=60), mean=0, **(QUIET | {name: 2.0}))
    by_group = ratings.groupby(groups)["value"]
    assert by_group.nunique().max() == 1
    assert 1.4 < by_group.first().std() < 2.7


def test_the_seed_decides():
    pd.testing.assert_frame_equal(drawn(seed=3), drawn(seed=3))
    assert not np.allclose(drawn(seed=3)["value"], drawn(seed=4)["value"])


def test_an_effect_on_something_unknown_is_named():
    with pytest.raises(StudyError, match=r"simulation.effect 1: no source z among the items"):
        drawn(effect=(EffectRow(metrics=("fluency",), source="z", shift=1),))
    with pytest.raises(StudyError, match=r"no metric charm"):
        drawn(effect=(EffectRow(metrics=("charm",), shift=1),))
