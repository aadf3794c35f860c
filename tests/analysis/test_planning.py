"""Planning the next study: what a pilot or assumed variances say of other sizes."""

import pytest

from analysis import planning
from analysis.fitting import fitted
from analysis.load import load
from analysis.stats.power import Size, Variances
from study.errors import StudyError

IN_CASES = Variances(source_prompt=0.1, source_rater=0.01, residual=0.3, source_case=0.4)
START = Size(5, 24, 5)


def powers(cases: tuple[int, ...], n: int | None, **more) -> dict[float, float]:
    sizes = planning.Sizes((5,), (24,), cases)
    how = planning.Simulation(n=n, seed=3) if n else None
    grid = planning.power_of(IN_CASES, START, sizes, [1.0], simulation=how, **more).result.values["estimates"]
    return dict(zip(grid["cases"], grid["power"], strict=True))


def test_simulated_studies_know_of_the_cases_that_hold_their_prompts():
    expected, simulated = powers((4, 12), None), powers((4, 12), 100)
    assert expected[4] + 0.2 < expected[12]
    assert simulated == pytest.approx(expected, abs=0.15)


def test_a_simulation_without_its_cases_is_refused():
    with pytest.raises(StudyError, match="say with --n-cases how many cases hold the prompts"):
        powers((), 100)


def test_the_sentence_advises_cases_where_cases_hold_the_prompts():
    text = planning.power_of(IN_CASES, START, planning.Sizes((5,), (24,), (3,)), [0.8]).text
    assert "24 prompts in 3 cases and 5 raters" in text
    assert "add cases of 8 prompts" in text
    assert "in cases" in text


def test_the_cases_of_an_encounter_study_are_its_items(small):
    found = fitted(load(small), "engagement", formula="score ~ source + (1|rater) + (1|case) + (1|source:case) + "
                   "(1|source:rater)")  # fmt: skip
    sizes = planning.Sizes((6,), (), (2, 40))
    grid = planning.power_of(*planning.pilot(found), sizes, [0.5], found=found, called="case").result.values
    assert [2, 40] == grid["estimates"]["prompts"].tolist()
    assert grid["estimates"]["cases"].isna().all()
