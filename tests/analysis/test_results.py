import json
import math

import pandas as pd
import pytest

from analysis.load import load, select
from analysis.results import Result, keep, provenance, sizes, write_json
from study.errors import StudyError


def test_a_result_knows_where_it_comes_from(small):
    loaded = load(small)
    source = provenance(loaded, select(loaded, "fluency"), formula="score ~ 1", seed=7)
    assert source["study"] == "small"
    assert loaded.study.digest == source["study_sha256"]
    assert source["n"] == {"ratings": 322, "items": 54, "raters": 6, "sources": 3, "prompts": 18, "cases": 2}
    assert source["left_out"] == [{"reason": "status missing", "rows": 2}]
    assert (source["formula"], source["seed"], source["simulated"]) == ("score ~ 1", 7, True)
    assert {"python", "numpy", "scipy", "pandas", "crossed-raters"} <= set(source["versions"])


def test_json_knows_no_nan(tmp_path):
    frame = pd.DataFrame({"term": ["a"], "estimate": [math.nan], "df": [math.inf]})
    write_json(Result("fit", {}, {"coefficients": frame, "note": "한국어"}), tmp_path / "fit.json")
    text = (tmp_path / "fit.json").read_text(encoding="utf-8")
    assert json.loads(text)["coefficients"] == [{"term": "a", "estimate": None, "df": "inf"}]
    assert "한국어" in text


def test_sizes_count_only_what_the_ratings_name():
    frame = pd.DataFrame({"score": [1.0, math.nan], "rater": ["a", "b"]})
    assert sizes(frame) == {"ratings": 1, "raters": 2}


def test_results_lie_under_their_kind_and_metric(tmp_path):
    frame = pd.DataFrame({"term": ["a"]})
    found = [Result("fit", {}, {"metric": m, "coefficients": frame}) for m in ("fluency", "a/b")]
    keep(found, tmp_path / "results", tmp_path / "all.csv", table="coefficients")
    assert {"fit-fluency.json", "fit-a_b.json"} == {p.name for p in (tmp_path / "results").iterdir()}
    assert list(pd.read_csv(tmp_path / "all.csv")["metric"]) == ["fluency", "a/b"]


def test_a_folder_in_the_way_of_a_file_is_refused(tmp_path):
    with pytest.raises(StudyError, match="is a folder; name a file"):
        write_json(Result("fit", {}), tmp_path)
