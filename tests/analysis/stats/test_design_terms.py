import numpy as np
import pandas as pd
import pytest

from analysis.stats.design_terms import compare, implied, missing
from analysis.stats.mixed.fit import fit
from study.errors import StudyError


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """9 raters × 4 sources × 20 prompts; every response has an effect of its own."""
    rng = np.random.default_rng(3)
    r, s, p = (a.ravel() for a in np.indices((9, 4, 20)))
    score = 4 + rng.normal(0, 0.5, 9)[r] + rng.normal(0, 0.3, 20)[p] + rng.normal(0, 0.5, (4, 20))[s, p]
    return pd.DataFrame(
        {
            "rater": [f"r{i}" for i in r], "source": [f"S{i}" for i in s], "case": [f"c{i % 4}" for i in p],
            "prompt": [f"p{i:02}" for i in p], "score": score + rng.normal(0, 0.6, len(r)),
        }
    )  # fmt: skip


ALL = ("(1 | rater)", "(1 | case:prompt)", "(1 | case:prompt:source)", "(1 | rater:source)")
PUBLISHED = "score ~ source + (1|rater) + (1|prompt)"


def test_a_crossed_design_implies_four_terms(frame):
    assert implied(frame) == ALL


def test_one_rating_per_response_implies_no_response_term(frame):
    one = frame.groupby(["source", "prompt"]).sample(1, random_state=1)
    assert "(1 | case:prompt:source)" not in implied(one)


def test_an_encounter_is_rated_under_its_case(frame):
    assert implied(frame, item=["case"]) == (
        "(1 | rater)",
        "(1 | case)",
        "(1 | case:source)",
        "(1 | rater:source)",
    )


def test_terms_are_known_however_they_are_written(frame):
    """Prompts are named once for all cases, so (1|prompt) is (1|case:prompt)."""
    lacking = missing(fit(frame, PUBLISHED), frame, ALL)
    assert [term.text for term in lacking] == ["(1 | case:prompt:source)", "(1 | rater:source)"]


def test_the_missing_response_term_makes_standard_errors_too_small(frame):
    found = compare(frame, PUBLISHED, ALL)
    assert found.missing == ("(1 | case:prompt:source)", "(1 | rater:source)")
    assert (found.table["ratio"] > 1.5).all()
    assert (found.table["df_full"] < found.table["df_given"]).all()
    assert found.gain > 50
    assert "left out here; with them the standard errors of the contrasts are" in found.sentence


def test_a_complete_formula_needs_no_sentence(frame):
    found = compare(frame, "score ~ source + " + " + ".join(ALL), ALL)
    assert found.missing == ()
    assert found.sentence == ""
    assert found.full is found.given


def test_without_the_factor_the_criterion_still_speaks(frame):
    found = compare(frame, "score ~ 1 + (1|rater) + (1|prompt)", ALL)
    assert found.table.empty
    assert "the criterion falls" in found.sentence


def test_an_absent_column_is_named(frame):
    with pytest.raises(StudyError, match="no column 'prompt'"):
        implied(frame.drop(columns="prompt"))
