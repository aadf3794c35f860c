import numpy as np
import pandas as pd
import pytest

from analysis.stats import adjust, contrasts, tukey
from analysis.stats.mixed.fit import fit
from study.errors import StudyError


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Source B loses 0.8 on negative questions; nothing else differs."""
    rng = np.random.default_rng(5)
    rows = [(f"r{r}", s, f"p{p}") for r in range(8) for s in "ABC" for p in range(24)]
    table = pd.DataFrame(rows, columns=["rater", "source", "prompt"])
    number = table["prompt"].str[1:].astype(int)
    table["form"] = np.array(["plain", "negative", "open"])[number % 3]
    table["x"] = number / 10
    table["score"] = 4 + rng.normal(0, 0.4, 8)[table["rater"].str[1:].astype(int)] + rng.normal(0, 0.5, len(table))
    table.loc[(table["source"] == "B") & (table["form"] == "negative"), "score"] -= 0.8
    return table


@pytest.fixture(scope="module")
def model(frame):
    return fit(frame, "score ~ source*form + (1|rater) + (1|prompt)")


def test_means_of_balanced_data_are_the_averages(frame, model):
    found = contrasts.means(model, ["source", "form"]).set_index(["source", "form"])["estimate"]
    expected = frame.groupby(["source", "form"])["score"].mean()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value)


def test_a_contrast_is_the_difference_of_its_means(model):
    means = contrasts.means(model, "source").set_index("term")["estimate"]
    pairs = contrasts.contrasts(model, "source").set_index("term")["estimate"]
    assert pairs["A - B"] == pytest.approx(means["A"] - means["B"])


def test_reference_contrasts_are_against_the_named_level(model):
    found = contrasts.contrasts(model, "source", "reference", reference="C")
    assert list(found["term"]) == ["A - C", "B - C"]


def test_the_negation_penalty_is_a_contrast_of_contrasts(frame, model):
    penalty = {"penalty": {"negative": -1, "plain": 0.5, "open": 0.5}}
    found = contrasts.interaction(model, {"source": "reference", "form": penalty})
    assert list(found["term"]) == ["B - A : penalty", "C - A : penalty"]
    cells = frame.groupby(["source", "form"])["score"].mean()

    def lost(source):
        return (cells[source, "plain"] + cells[source, "open"]) / 2 - cells[source, "negative"]

    assert found["estimate"][0] == pytest.approx(lost("B") - lost("A"))
    assert found["p_value"][0] < 0.001 < found["p_value"][1]


def test_named_weights_and_their_order_of_levels_agree(model):
    one = contrasts.contrasts(model, "form", {"c": {"plain": 1, "negative": -1}}, adjust="none")
    other = contrasts.contrasts(model, "form", {"c": [-1, 0, 1]}, adjust="none")
    assert one["estimate"][0] == pytest.approx(other["estimate"][0])


def test_by_groups_are_families_of_their_own(model):
    apart = contrasts.contrasts(model, "source", by="form", adjust="bonferroni")
    plain = contrasts.contrasts(model, "source", by="form", adjust="none")
    np.testing.assert_allclose(apart["p_value"], np.minimum(3 * plain["p_value"], 1))
    assert list(apart.columns[:2]) == ["form", "term"]


def test_a_number_counts_at_its_mean_unless_told(frame):
    model = fit(frame, "score ~ source*x + (1|rater)")
    middle = contrasts.means(model, "source", at={"x": [frame["x"].mean()]})
    pd.testing.assert_frame_equal(contrasts.means(model, "source"), middle)
    assert not np.allclose(contrasts.means(model, "source", at={"x": [0.0]})["estimate"], middle["estimate"])


def test_functions_of_a_column_follow_it_through_the_grid(frame):
    model = fit(frame, "score ~ source + x + I(x**2) + (1|rater)")
    found = contrasts.means(model, "source", at={"x": [2.0]})
    coef = model.fixed
    expected = coef["(Intercept)"] + 2 * coef["x"] + 4 * coef["I(x ** 2)"]
    assert found["estimate"][0] == pytest.approx(expected)


def test_an_empty_cell_is_missing_not_a_number(frame):
    part = frame[~((frame["source"] == "B") & (frame["form"] == "open"))]
    model = fit(part, "score ~ source*form + (1|rater) + (1|prompt)")
    cells = contrasts.means(model, ["source", "form"]).set_index(["source", "form"])
    assert np.isnan(cells.loc[("B", "open"), ["estimate", "std_error", "p_value", "low"]].astype(float)).all()
    assert cells["estimate"].notna().sum() == 8
    pairs = contrasts.contrasts(model, "source", by="form", adjust="holm")
    assert pairs.loc[pairs["form"] == "open", "estimate"].isna().sum() == 2
    assert pairs.loc[pairs["form"] == "plain", "estimate"].notna().all()


def test_weights_proportional_to_rows_average_the_rows(frame):
    part = frame[(frame["form"] != "open") | (frame["rater"] < "r4")]
    model = fit(part, "score ~ source*form + (1|rater)")
    whole = contrasts.means(model, "form", weights="proportional").set_index("term")["estimate"]
    cells = contrasts.means(model, ["source", "form"]).set_index(["source", "form"])["estimate"]
    assert whole["open"] == pytest.approx(np.mean([cells[s, "open"] for s in "ABC"]))


def test_combinations_of_coefficients_by_name(model):
    found = contrasts.custom(model, {"B at negative": {"sourceB": 1, "sourceB:formopen": 0}})
    assert found["estimate"][0] == pytest.approx(model.fixed["sourceB"])


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda m: contrasts.means(m, "colour"), "'colour' is not among the fixed effects"),
        (lambda m: contrasts.contrasts(m, "source", "helmert"), "is not known"),
        (lambda m: contrasts.contrasts(m, "source", "reference", reference="Z"), "no level 'Z'"),
        (lambda m: contrasts.contrasts(m, "source", {"c": [1, 0, 0]}), "sum to zero"),
        (lambda m: contrasts.contrasts(m, "source", {"c": [1, -1]}), "2 weights for 3 levels"),
        (lambda m: contrasts.contrasts(m, "source", adjust="dunnett"), "is not known"),
        (lambda m: contrasts.contrasts(m, "source", "reference", adjust="tukey"), "all pairs"),
        (lambda m: contrasts.means(m, "source", ddf="kr"), "are not known"),
        (lambda m: contrasts.custom(m, {"c": {"sourceZ": 1}}), "no coefficient 'sourceZ'"),
        (lambda m: contrasts.means(m, "source", at={"colour": ["red"]}), "colour is not among"),
    ],
)
def test_mistakes_are_named(model, call, said):
    with pytest.raises(StudyError, match=said):
        call(model)


def test_holm_by_hand():
    """Holm (1979): sorted p times 4, 3, 2, 1, made monotone."""
    np.testing.assert_allclose(
        adjust.adjusted(np.array([0.01, 0.04, 0.03, 0.005]), "holm"), [0.03, 0.06, 0.06, 0.02]
    )


def test_benjamini_yekutieli_by_r():
    """p.adjust(c(.01, .04, .03, .005), "BY") in R 4.2.2."""
    expected = [0.0416666667, 0.0833333333, 0.0833333333, 0.0416666667]
    np.testing.assert_allclose(adjust.adjusted(np.array([0.01, 0.04, 0.03, 0.005]), "BY"), expected, atol=1e-9)


def test_ptukey_by_r():
    """ptukey(c(3.2, 4.1, 6.3), 5, c(9.1, 57, 5222), lower = FALSE) in R 4.2.2."""
    found = tukey.tail(np.array([3.2, 4.1, 6.3]), 5, np.array([9.1, 57.0, 5222.0]))
    np.testing.assert_allclose(found, [0.239810212778, 0.0407070730127, 0.0000838600061], atol=1e-10)


@pytest.mark.parametrize("k", [2, 3, 5, 12])
def test_the_studentized_range_agrees_with_scipys(k):
    from scipy.stats import studentized_range

    q, df = np.array([0.5, 2.0, 3.5, 6.0]), np.array([3.0, 8.0, 40.0, 2000.0])
    np.testing.assert_allclose(tukey.tail(q, k, df), studentized_range.sf(q, k, df), atol=1e-8)
    np.testing.assert_allclose(tukey.tail(tukey.quantile(0.95, k, df), k, df), 0.05, atol=1e-10)
