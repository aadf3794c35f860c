import numpy as np
import pandas as pd
import pytest

from analysis.stats.comparison import compare, of_arrays
from analysis.stats.judge_bias import conditional, flips, unconditional
from study.errors import StudyError

PROMPTS, SOURCES = 120, 4
SOURCE = np.tile(np.arange(SOURCES), PROMPTS)
PROMPT = np.repeat(np.arange(PROMPTS), SOURCES)


def judged(bias=(0.0, 0.0, 0.35, 0.0), length=0.0, noise=0.5, raters=5, slope=0.8, seed=0):
    """A judge with known bias for one source, and a known liking of long answers."""
    rng = np.random.default_rng(seed)
    truth = np.array([4.5, 4.0, 3.6, 4.2])[SOURCE] + 0.5 * rng.normal(size=len(SOURCE))
    panel = truth[:, None] + 0.2 * rng.normal(size=raters) + 0.6 * rng.normal(size=(len(truth), raters))
    doublings = 0.7 * rng.normal(size=len(truth))
    judge = (
        4 * (1 - slope)
        + slope * truth
        + np.array(bias)[SOURCE]
        + length * doublings
        + noise * rng.normal(size=len(truth))
    )
    items = pd.DataFrame(
        {
            "label": [f"i{i}" for i in range(len(truth))],
            "prompt": [f"p{p}" for p in PROMPT],
            "source": pd.Categorical.from_codes(SOURCE, list("abcd")),
            "form": pd.Categorical.from_codes(PROMPT % 2, ["plain", "negative"]),
            "length": 40 * 2.0**doublings,
        }
    )
    return of_arrays(judge, panel, PROMPT, items)


def level(bias, name, factor="source"):
    table = bias.table
    return table[(table["factor"] == factor) & (table["level"] == name)].iloc[0]


def test_a_planted_bias_is_found_and_no_other():
    found = conditional(judged())
    row = level(found, "c")
    assert row["low"] < 0.35 * 3 / 4 < row["high"]
    assert row["p_holm"] < 0.001
    for name in "abd":
        other = level(found, name)
        assert other["low"] < -0.35 / 4 < other["high"]


def test_levels_add_to_zero():
    assert conditional(judged()).table["estimate"].sum() == pytest.approx(0, abs=1e-12)


def test_a_liking_of_long_answers_is_found():
    row = level(conditional(judged(length=0.15), length=True), "per doubling", "length")
    assert row["low"] < 0.15 < row["high"]
    assert row["p_value"] < 0.01


def test_without_bias_none_is_found():
    found = conditional(judged(bias=(0, 0, 0, 0)))
    assert found.joint["p_value"].item() > 0.05
    assert (found.table["p_holm"] > 0.05).all()


def test_the_panels_own_error_is_taken_out_of_the_slope():
    """Least squares on the panel's mean would find 0.8 × its reliability."""
    found = conditional(judged(noise=0.2, raters=2))
    assert found.reliability < 0.75
    assert found.slope.low < 0.8 < found.slope.high


def test_moments_are_the_closed_form_of_error_in_variables():
    """Against regression calibration done by hand on one factor."""
    data = judged()
    found = conditional(data)
    frame = pd.DataFrame({"m": data.panel_mean, "j": data.score, "s": SOURCE})
    centred = frame.groupby("s")[["m", "j"]].transform(lambda x: x - x.mean())
    slope = (centred.m * centred.j).sum() / (centred.m**2).sum() / found.reliability
    excess = frame.groupby("s")["j"].mean() - slope * frame.groupby("s")["m"].mean()
    assert found.slope.estimate == pytest.approx(slope)
    assert found.table["estimate"].to_numpy() == pytest.approx((excess - excess.mean()).to_numpy())


def test_own_family_is_labelled_and_held_against_the_others():
    found = conditional(judged(), own_family=["c"])
    assert level(found, "c")["own_family"]
    row = level(found, "own − others", "own family")
    assert row["low"] < 0.35 < row["high"]


def test_bias_by_form_stands_beside_source():
    found = conditional(judged(), ("source", "form"))
    assert list(found.joint["factor"]) == ["source", "form"]
    assert level(found, "negative", "form")["p_value"] > 0.01


def test_rows_in_another_order_give_the_same_numbers():
    data = judged()
    order = np.random.default_rng(1).permutation(data.n)
    one, two = conditional(data).table, conditional(data.keep(order)).table
    assert two["estimate"].to_numpy() == pytest.approx(one["estimate"].to_numpy())
    assert two["std_error"].to_numpy() == pytest.approx(one["std_error"].to_numpy())


def test_mixed_model_interaction_agrees_on_a_judge_without_shrinkage():
    """With slope one there is no regression to the mean, and both routes see the planted bias."""
    data = judged(bias=(0, 0, 0.5, 0), noise=0.3, slope=1.0)
    found = unconditional(data)
    row = found.table.set_index("term").loc["c"]
    assert row["low"] < 0.375 < row["high"]
    assert found.test["p_value"].item() < 0.001
    assert level(conditional(data), "c")["estimate"] == pytest.approx(row["estimate"], abs=0.1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: of_arrays(np.full(d.n, 3.0), d.panel, d.cluster, d.items), "constant judge"),
        (lambda d: of_arrays(d.score, d.panel[:, :1], d.cluster, d.items), "no item was rated by two raters"),
        (lambda d: of_arrays(d.score, d.panel, d.cluster % 3, d.items, unit="case"), "supported by 3 cases"),
        (lambda d: of_arrays(d.score, np.random.default_rng(0).normal(size=d.panel.shape), d.cluster, d.items),
         "too unreliable"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused(change, words):
    with pytest.raises(StudyError, match=words):
        conditional(change(judged()))


def test_lengths_that_are_missing_are_refused():
    data = judged()
    with pytest.raises(StudyError, match="items have no length"):
        conditional(
            of_arrays(data.score, data.panel, data.cluster, data.items.drop(columns="length")), length=True
        )


def tidy(scores):
    """Two people and a judge, who judged twice."""
    rows = [
        {"rater": rater, "rater_kind": kind, "label": f"i{i}", "prompt": f"p{i}", "source": "a", "metric": "m",
         "occasion": occasion, "score": score, "status": "ok"}
        for (rater, kind, occasion), values in scores.items()
        for i, score in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_flips_count_judgements_that_changed():
    frame = tidy(
        {("r", "human", 1): [1, 2, 3, 4], ("j", "judge", 1): [1, 2, 3, 4], ("j", "judge", 2): [1, 3, 3, 2]}
    )
    found = flips(compare(frame, "judge")[0])
    assert found.rate.estimate == 0.5
    assert found.size.estimate == 0.75


def test_a_judge_that_judged_once_has_no_flips():
    frame = tidy({("r", "human", 1): [1, 2, 3, 4], ("j", "judge", 1): [1, 2, 3, 4]})
    assert flips(compare(frame, "judge")[0]) is None


def test_a_person_is_compared_with_the_others_by_the_same_door():
    frame = tidy({("r", "human", 1): [1, 2, 3], ("s", "human", 1): [2, 2, 2], ("j", "judge", 1): [3, 2, 1]})
    found = {c.name: c.raters for c in compare(frame, ["r", "j"])}
    assert found == {"r": ("s",), "j": ("r", "s")}


def test_nobody_to_compare_with_is_refused():
    frame = tidy({("r", "human", 1): [1, 2, 3]})
    with pytest.raises(StudyError, match="compared with nobody"):
        compare(frame, "r")
