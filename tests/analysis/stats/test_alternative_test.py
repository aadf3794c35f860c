import json
from pathlib import Path

import numpy as np
import pytest

from analysis.stats.alternative_test import alternative_test
from analysis.stats.comparison import of_arrays
from study.errors import StudyError

GOLD = json.loads((Path(__file__).parents[2] / "golden" / "calibration.json").read_text(encoding="utf-8"))["cases"]
TOY = GOLD["alttest_toy"]
COMPARED = of_arrays(TOY["input"]["judge"], np.transpose(TOY["input"]["human"]))


@pytest.mark.parametrize("expected", TOY["expected"], ids=lambda e: f"{e['score']} {e['epsilon']}")
def test_outcome_is_that_of_the_authors_notebook(expected):
    found = alternative_test(COMPARED, epsilon=expected["epsilon"], score=expected["score"], q=TOY["input"]["q"])
    assert found.omega == expected["omega"]
    assert found.rho.estimate == pytest.approx(expected["rho"], abs=TOY["tol"])
    assert found.rho_by_rater == pytest.approx(expected["rho_per_rater"], abs=TOY["tol"])
    assert found.rho_human == pytest.approx(expected["rho_human"], abs=TOY["tol"])
    assert found.p_values == pytest.approx(expected["p"], abs=TOY["tol"])


def test_shares_of_meetings_add_to_one():
    found = alternative_test(COMPARED)
    assert found.win + found.lose + found.tie == pytest.approx(1)


def unanimous(n=40, k=3):
    scores = np.tile(np.arange(1.0, 6), n // 5)
    return of_arrays(scores, np.repeat(scores[:, None], k, axis=1))


def test_every_difference_zero_is_a_win_where_the_judge_is_granted_something():
    found = alternative_test(unanimous(), epsilon=0.2)
    assert (found.p_values == 0).all()
    assert found.passed and found.tie == 1


def test_every_difference_equal_to_epsilon_is_undefined_and_no_win():
    found = alternative_test(unanimous(), epsilon=0.0)
    assert np.isnan(found.p_values).all()
    assert not found.passed
    assert "not defined" in " ".join(found.notes)


def test_two_raters_are_refused():
    with pytest.raises(StudyError, match="needs 3 raters or more"):
        alternative_test(unanimous(k=2))


def test_three_cases_as_clusters_are_refused():
    data = unanimous(n=45)
    with pytest.raises(StudyError, match="cannot be supported by 3 cases: items of one case"):
        alternative_test(of_arrays(data.score, data.panel, np.arange(45) % 3, unit="case"))


def test_no_rater_with_thirty_items_is_refused_with_the_count():
    data = unanimous(n=25)
    with pytest.raises(StudyError, match="no rater has more than 25"):
        alternative_test(of_arrays(data.score, data.panel))


def test_a_rater_with_few_items_is_left_out_and_named():
    panel = np.array(COMPARED.panel)
    panel[10:, 0] = np.nan
    found = alternative_test(of_arrays(COMPARED.score, panel))
    assert found.skipped == {"rater 1": 10}
    assert found.raters == ("rater 2", "rater 3", "rater 4")


def test_a_rater_who_rated_one_half_is_judged_on_that_half():
    panel = np.tile(COMPARED.panel, (2, 1))
    panel[32:, 0] = np.nan
    found = alternative_test(of_arrays(np.tile(COMPARED.score, 2), panel), epsilon=0.1)
    assert found.rho_by_rater[0] == alternative_test(COMPARED, epsilon=0.1).rho_by_rater[0]
    assert found.n == 64


def test_items_of_one_prompt_in_concert_widen_the_interval():
    rng = np.random.default_rng(3)
    shift = np.repeat(rng.normal(0, 1, 40), 5)
    panel = np.round(3 + rng.normal(0, 1, (200, 3)))
    judge = np.round(3 + shift)
    alone = alternative_test(of_arrays(judge, panel)).rho
    together = alternative_test(of_arrays(judge, panel, np.repeat(np.arange(40), 5))).rho
    assert together.std_error > 1.3 * alone.std_error
