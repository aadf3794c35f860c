import pandas as pd
import pytest

from analysis.bare import Columns
from analysis.load import load
from analysis.reliability import POOLED, Bootstrap, printed, reliability, result
from analysis.stats import agreement
from study.errors import StudyError

QUICK = Bootstrap(n=100, seed=5)


@pytest.fixture(scope="module")
def found(small):
    return reliability(load(small), "fluency", bootstrap=QUICK)


def test_every_pool_has_its_coefficients(found):
    assert list(pd.unique(found.estimates["source"])) == [POOLED, "expert", "model_b", "model_a"]
    terms = ["ICC(2,1)", "ICC(2,k)", "alpha, ordinal", "alpha, interval"]
    assert terms == list(found.estimates.loc[found.estimates["source"] == POOLED, "term"])


def test_targets_raters_and_cells_are_always_said(found):
    first = found.estimates.iloc[0]
    assert (first["n"], first["k"], first["n_ratings"], first["cells"]) == (54, 6, 322, 324)
    text = printed([found])
    assert "322/324 (99.4%)" in text
    assert "ICC(2,k) = ICC(A,k)" in text
    assert "variance components, no item dropped" in text
    assert "simulated" in text


def test_complete_ratings_have_the_closed_form(written):
    loaded = load(written())
    estimates = reliability(loaded, "fluency", bootstrap=QUICK).estimates
    frame = loaded.frame[loaded.frame["metric"] == "fluency"]
    expected = agreement.icc(agreement.rating_matrix(frame)).set_index("term")
    own = estimates[estimates["source"] == POOLED].set_index("term")
    for term in ("ICC(2,1)", "ICC(2,k)"):
        assert (
            expected.loc[term, ["estimate", "low", "high"]].tolist()
            == own.loc[term, ["estimate", "low", "high"]].tolist()
        )


def test_a_pool_that_allows_no_coefficient_keeps_its_row_and_its_reason(written, rating_maker):
    ratings = rating_maker()
    flat = ratings["label"].str.startswith("U0")
    found = reliability(load(written(ratings.assign(value=ratings["value"].where(~flat, 4.0)))), "fluency",
                        bootstrap=QUICK)  # fmt: skip
    expert = found.estimates[found.estimates["source"] == "expert"]
    assert expert["estimate"].isna().all()
    assert expert["reason"].str.contains("every rating is 4").all()
    assert "note: expert: every rating is 4" in printed([found])


def test_one_rater_is_refused(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("rater,item,score\na,x,1\na,y,2\n")
    with pytest.raises(StudyError, match="agreement needs at least two raters"):
        reliability(load(path, Columns()), "score", bootstrap=QUICK)


def test_a_file_without_raters_is_refused(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("item,score\nx,1\ny,2\n")
    with pytest.raises(StudyError, match="has no column of raters; name it with --rater"):
        reliability(load(path, Columns()), "score", bootstrap=QUICK)


def test_the_same_seed_gives_the_same_intervals(small, found):
    again = reliability(load(small), "fluency", bootstrap=QUICK)
    assert result(found).plain() == result(again).plain()


def test_a_cluster_without_an_address_is_refused_before_any_row(small):
    with pytest.raises(StudyError, match="--backend dask needs its scheduler's address"):
        reliability(load(small), "fluency", bootstrap=Bootstrap(n=100, backend="dask"))


def test_no_interval_of_no_width_is_printed(tmp_path):
    path = tmp_path / "opposed.csv"
    path.write_text("rater,item,score\na,x,3\nb,x,1\na,y,3\nb,y,1\na,z,1\nb,z,3\n")
    found = reliability(load(path, Columns()), "score", bootstrap=QUICK)
    assert found.estimates[["low", "high"]].isna().all(axis=None)
    text = printed([found])
    assert "note: all sources: items differ less than raters' error alone would make them" in text
    assert "no interval for alpha: every bootstrap sample gives the same value" in text
