"""Two sets of ratings out of one study, one question."""

import numpy as np
import pandas as pd
import pytest

from analysis import pairs
from analysis.load import load


@pytest.fixture
def two_raters(tmp_path):
    """Two raters who agree on answers that differ much: what they say of a source differs little."""
    rng = np.random.default_rng(8)
    r, p, s = (x.ravel() for x in np.indices((2, 20, 2)))
    score = rng.normal(3, 1.0, (20, 2))[p, s] + rng.normal(0, 0.3, len(r))
    frame = pd.DataFrame({"rater": r, "prompt": p, "source": np.array(["A", "B"])[s], "score": score})
    frame.to_csv(tmp_path / "two.csv", index=False)
    return load(tmp_path / "two.csv")


def test_raters_of_the_same_answers_are_compared_within_each_answer(two_raters):
    sets = ("rater=0", "rater=1")
    found = pairs.compare(two_raters, two_raters, "score", where=sets)
    assert "Formula: score ~ source + (1|prompt) + (1|prompt:source)" in found.text
    plain = pairs.compare(two_raters, two_raters, "score", where=sets, formula="score ~ source + (1|prompt)")
    within, beside = (f.result.values["estimates"]["std_error"].item() for f in (found, plain))
    assert within < beside / 2


def test_sets_that_share_no_answer_keep_the_models_own_terms(small):
    loaded = load(small)
    found = pairs.compare(loaded, loaded, "fluency", where=("form=affirmative", "form=negative"))
    assert found.text.splitlines()[1].count("(1|case:prompt:source)") == 1
