import numpy as np
import pandas as pd
import pytest

from analysis.stats.mixed.fit import fit
from analysis.stats.two_studies import compare
from study.errors import StudyError

FORMULA = "score ~ source + (1|rater) + (1|prompt)"


def wave(effect: float, seed: int, raters: str = "r", prompts: str = "p", people: int = 8) -> pd.DataFrame:
    """Simulated wave: source B lies `effect` above A; raters and prompts of one name are the same ones."""
    rng = np.random.default_rng(seed)
    prompt, rater, source = (part.ravel() for part in np.indices((25, people, 2)))
    by_rater = np.random.default_rng(len(raters) + ord(raters[0])).normal(0, 0.5, people)
    score = by_rater[rater] + rng.normal(0, 0.4, 25)[prompt] + effect * source + rng.normal(0, 0.7, len(rater))
    frame = pd.DataFrame({"score": score, "source": np.array(["A", "B"])[source]})
    return frame.assign(
        rater=[f"{raters}{i}" for i in rater], prompt=[f"{prompts}{i}" for i in prompt],
    )  # fmt: skip


def test_separate_studies_add_their_errors():
    one, two = wave(0.2, 1), wave(0.9, 2, raters="s", prompts="q")
    found = compare(one, two, FORMULA)
    row = found.table.iloc[0]
    alone = [fit(frame, FORMULA).coefficients().set_index("term").loc["sourceB"] for frame in (one, two)]
    assert not found.joint
    assert row.term == "B − A"
    assert row.estimate == pytest.approx(alone[1].estimate - alone[0].estimate)
    assert row.std_error == pytest.approx(np.hypot(alone[0].std_error, alone[1].std_error))
    assert min(a.df for a in alone) < row.df <= sum(a.df for a in alone)
    assert row.p_value < 0.01


def test_waves_that_share_raters_are_fitted_together():
    found = compare(wave(0.5, 3), wave(0.5, 4), FORMULA, names=("spring", "autumn"))
    assert found.joint and len(found.fits) == 1
    assert "spring and autumn share 8 of 8 raters, 25 of 25 prompts" in found.notes[0]
    assert found.table.low[0] < 0 < found.table.high[0]


def test_a_study_does_not_differ_from_itself():
    found = compare(wave(0.5, 5), wave(0.5, 5), FORMULA).table.iloc[0]
    assert found.estimate == pytest.approx(0, abs=1e-9)
    assert found["first"] == pytest.approx(found.second)


def test_the_order_of_sources_is_that_of_the_first_study():
    frames = [
        wave(0.3, seed, raters=name, prompts=name).assign(
            source=lambda f: pd.Categorical(f.source, categories=["B", "A"])
        )
        for seed, name in ((6, "r"), (7, "s"))
    ]
    assert compare(*frames, FORMULA).table.term[0] == "A − B"


def test_a_source_that_one_study_lacks_is_named():
    with pytest.raises(StudyError, match="second: has no source B"):
        compare(wave(0.2, 1), wave(0.2, 2).query("source == 'A'"), FORMULA)
    with pytest.raises(StudyError, match="first: has no column model"):
        compare(wave(0.2, 1), wave(0.2, 2), FORMULA, factor="model")
