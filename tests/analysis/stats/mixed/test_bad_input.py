"""What cannot be fitted is refused in one sentence that says what to do."""

import numpy as np
import pandas as pd
import pytest

from analysis.stats.mixed.fit import fit
from study.errors import StudyError


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [(f"r{r}", s, f"p{p}") for r in range(6) for s in "ABC" for p in range(8)]
    table = pd.DataFrame(rows, columns=["rater", "source", "prompt"])
    table["score"] = rng.normal(3, 1, len(table)) + table["rater"].str[1].astype(float)
    return table.assign(
        twin=table["rater"] + "x", one="k", row=[f"i{i}" for i in range(len(table))], constant=3.0,
        text=table["score"].round(1).astype(str), exact=table["source"].map({"A": 1.0, "B": 2.0, "C": 4.0}),
        per_rater=table["rater"].str[1].astype(float), infinite=np.inf, nothing=np.nan,
        x=rng.normal(size=len(table)),
    )  # fmt: skip


@pytest.mark.parametrize(
    "formula, said",
    [
        ("score ~ source", "has no random term"),
        ("score ~ 0 + (1|rater)", "has no fixed effect"),
        ("score ~ sauce + (1|rater)", "There is no column 'sauce'; the columns are rater"),
        ("score ~ source + (1|rator)", "There is no column 'rator' for (1 | rator)"),
        ("scor ~ source + (1|rater)", "There is no column 'scor'"),
        ("text ~ source + (1|rater)", "text holds text, such as"),
        ("constant ~ source + (1|rater)", "constant is 3 in every row"),
        ("exact ~ source + (1|rater)", "The fixed effects explain exact exactly"),
        ("per_rater ~ 1 + (1|rater)", "The random effects explain per_rater exactly"),
        ("infinite ~ source + (1|rater)", "infinite values"),
        ("nothing ~ source + (1|rater)", "No row has a value of nothing"),
        ("score ~ one + (1|rater)", "one has one level (k)"),
        ("score ~ source + (1|one)", "one has one level (k)"),
        ("score ~ source + (1|row)", "(1 | row) has 144 levels for 144 rows"),
        ("score ~ source + (x|rater:prompt:source)", "levels for 144 rows"),
        ("score ~ x + (source|rater:prompt)", "has 144 random effects for 144 rows"),
        ("score ~ source + (1|rater) + (1|twin)", "group the rows in the same way"),
        ("score ~ source + (1|source)", "is already in the fixed effects"),
        ("score ~ C(source, contr.poly) + (1|rater)", "the coding 'poly' is not known"),
        ("score ~ wave(x) + (1|rater)", "wave(x) cannot be evaluated"),
    ],
)
def test_one_sentence_for_each(frame, formula, said):
    with pytest.raises(StudyError) as caught:
        fit(frame, formula)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_table(frame):
    with pytest.raises(StudyError, match="There are no rows"):
        fit(frame.iloc[:0], "score ~ source + (1|rater)")


def test_more_crossed_levels_than_memory_holds():
    n = 60_000
    rng = np.random.default_rng(1)
    rows = {"a": rng.permutation(n) // 3, "b": rng.permutation(n) // 3, "score": rng.normal(size=n)}
    with pytest.raises(StudyError, match="their table would take"):
        fit(pd.DataFrame(rows), "score ~ 1 + (1|a) + (1|b)")


def test_an_unknown_method(frame):
    with pytest.raises(StudyError, match="use REML or ML"):
        fit(frame, "score ~ source + (1|rater)", method="reml")


def test_dropped_columns_are_named(frame):
    part = frame[~((frame["source"] == "B") & (frame["prompt"] == "p3"))]
    found = fit(part, "score ~ source*prompt + (1|rater)")
    assert found.dropped_columns == ["sourceB:promptp3"]
    assert any("sourceB:promptp3" in note for note in found.notes)


def test_missing_ratings_are_counted_by_reason(frame):
    table = frame.assign(status="ok")
    table.loc[:4, ["score", "status"]] = [np.nan, "cannot_judge"]
    table.loc[5, "source"] = None
    found = fit(table, "score ~ source + (1|rater)")
    assert found.n_missing == {"cannot_judge": 5, "source missing": 1}
    assert found.n_rows == 138
    assert found.notes == ["6 rows are left out: cannot_judge 5, source missing 1."]


def test_a_zero_variance_is_named_and_does_not_stop_the_fit(frame):
    table = frame.assign(score=frame["score"] - frame.groupby("prompt")["score"].transform("mean"))
    found = fit(table, "score ~ source + (1|rater) + (1|prompt)")
    assert found.singular_terms == ["(1 | prompt)"]
    assert found.optimum.converged
    assert "(1 | prompt) is estimated as zero" in found.notes[0]


def test_a_large_constant_costs_no_digits(frame):
    plain = fit(frame, "score ~ source + (1|rater)")
    far = fit(frame.assign(score=frame["score"] + 1e8), "score ~ source + (1|rater)")
    assert far.sigma == pytest.approx(plain.sigma, rel=1e-6)
