import numpy as np
import pytest

from analysis import fitting
from analysis.bare import Columns
from analysis.load import load
from study.errors import StudyError


@pytest.fixture(scope="module")
def found(small):
    return fitting.fitted(load(small), "fluency")


def test_the_planted_fault_shows_where_it_was_planted(found):
    estimates = found.coefficients().set_index("term")
    fault = estimates.loc["sourcemodel_a:formnegative"]
    assert fault["low"] < -1.3 and fault["high"] < -0.8
    others = estimates[estimates.index.str.contains(":") & (estimates.index != fault.name)]
    assert (others["p_value"] > 0.05 / len(others)).all()


def test_what_is_printed_says_what_was_done(found):
    text = fitting.printed(found)
    for part in (
        "Linear mixed model of fluency, fit by REML",
        "322 simulated ratings (54 items, 6 raters, 3 sources, 18 prompts, 2 cases)",
        "Left out: 2 status missing",
        f"REML criterion at convergence: {found.fit.criterion:.4f}",
        "Convergence: converged",
        "Variance components",
        "Fixed effects (df: Satterthwaite)",
        "sourcemodel_a:formnegative",
    ):
        assert part in text


def test_simulated_ratings_say_so_where_no_column_tells_raters_from_items(tmp_path):
    draws = np.random.default_rng(3).normal(size=60)
    rows = [f"{g},{3 + g % 2 + d:.3f},true" for g, d in zip(np.repeat(range(12), 5), draws, strict=True)]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(["site,score,simulated", *rows]), encoding="utf-8")
    found = fitting.fitted(load(path, Columns(score="score")), "score", formula="score ~ 1 + (1|site)")
    assert "60 simulated ratings" == fitting.sizes(found)


def test_the_result_holds_full_precision(found):
    kept = fitting.result(found).plain()
    assert found.fit.criterion == kept["criterion"]
    assert kept["coefficients"][1]["estimate"] == pytest.approx(found.fit.fixed.iloc[1], rel=1e-12)
    broom = ["term", "estimate", "std_error", "df", "statistic", "p_value", "low", "high", "n"]
    assert broom == list(kept["coefficients"][0])
    assert kept["provenance"]["study"] == "small"


def test_the_second_route_finds_the_same_estimates(small):
    loaded = load(small)
    formula = "score ~ source + (1|rater) + (1|prompt)"
    own = fitting.fitted(loaded, "fluency", formula=formula)
    second = fitting.fitted(loaded, "fluency", formula=formula, engine="statsmodels")
    np.testing.assert_allclose(own.fit.fixed, second.fit.fixed, rtol=1e-4)
    assert own.fit.criterion == pytest.approx(second.fit.criterion, abs=1e-3)


def test_maximum_likelihood_says_so(small):
    assert "Deviance" in fitting.printed(fitting.fitted(load(small), "engagement", method="ML"))


def refused(tmp_path, content: str, formula: str | None = None) -> str:
    path = tmp_path / "r.csv"
    path.write_text(content)
    with pytest.raises(StudyError) as caught:
        fitting.fitted(load(path, Columns()), "score", formula=formula)
    assert str(caught.value).count("\n") == 0
    return str(caught.value)


RATED = "rater,item,source,score\n" + "".join(
    f"{r},{i},{s},{(i * 7 + r * 3 + len(s)) % 5 + 1}\n" for r in range(4) for i in range(8) for s in ("x", "yy")
)


def test_a_constant_outcome_is_refused(tmp_path):
    constant = "rater,item,score\n" + "".join(f"{r},{i},3\n" for r in range(3) for i in range(4))
    assert "every rating of score is 3, so there is nothing to model" in refused(tmp_path, constant)


def test_a_factor_with_one_level_is_refused(tmp_path):
    content = RATED.replace(",yy,", ",x,").replace("rater,item,source,score", "rater,item,source,score")
    rows = content.splitlines()
    one = "\n".join([rows[0], *rows[1::2]]) + "\n"
    assert "source" in refused(tmp_path, one, "score ~ source + (1|rater)")


def test_an_outcome_that_is_no_column_is_refused(tmp_path):
    assert "the outcome stars is not a column" in refused(tmp_path, RATED, "stars ~ source + (1|rater)")


def test_a_bare_file_gets_a_model_of_the_columns_it_has(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(RATED)
    made = fitting.fitted(load(path, Columns()), "score")
    assert made.model.formula == "score ~ source + (1|rater) + (1|prompt) + (1|prompt:source) + (1|rater:source)"
