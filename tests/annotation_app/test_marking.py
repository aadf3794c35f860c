"""The training's gate, the manner of raters, agreement, and the two catalogues."""

import random
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import annotation_app
from analysis.stats import agreement
from annotation_app import marking, quality
from annotation_app.catalogue import catalogue
from study.records import Metric

CONSENSUS = [1, 2, 3, 4, 5] * 6


@pytest.mark.parametrize(
    ("rates", "passes"),
    [
        (lambda c, _: c, True),
        (lambda c, _: min(5, c + 1), False),
        (lambda c, r: r.randint(1, 5), False),
        (lambda c, _: 4, False),
        (lambda c, _: 6 - c, False),
    ],
    ids=["perfect", "one too high", "random", "straight line", "reversed"],
)
def test_the_gate_tells_raters_apart(rates, passes):
    rng = random.Random(1)
    assert marking.marks([rates(c, rng) for c in CONSENSUS], CONSENSUS).passed is passes


def test_a_rater_one_too_high_fails_for_bias():
    found = marking.marks([min(5, c + 1) for c in CONSENSUS], CONSENSUS)
    assert (found.tendency, found.kappa > marking.KAPPA, found.within) == ("high", True, 1.0)


def test_agreement_is_that_of_the_analysis():
    rng = random.Random(2)
    truth = [rng.gauss(3, 1) for _ in range(30)]
    table = [[min(5, max(1, round(q + rng.gauss(0, 1)))) for _ in range(4)] for q in truth]
    frame = pd.DataFrame(table)
    theirs = agreement.icc(frame)["estimate"]
    single, mean = quality.icc(table)
    assert any(abs(single - t) < 1e-9 for t in theirs)
    assert any(abs(mean - t) < 1e-9 for t in theirs)
    ours = quality.alpha(table)
    assert min(
        abs(ours - agreement.krippendorff_alpha(f, level="interval")) for f in (frame, frame.T)
    ) == pytest.approx(0, abs=1e-9)


def test_agreement_without_spread_is_no_number():
    assert quality.icc([[3, 3], [3, 3]]) == (None, None)
    assert quality.alpha([[3, 3], [3, 3]]) is None


def test_both_catalogues_have_the_same_entries_and_gaps():
    texts = Path(annotation_app.__file__).parent / "texts"
    files = {code: tomllib.loads((texts / f"{code}.toml").read_text("utf-8")) for code in ("ko", "en")}
    assert files["ko"].keys() == files["en"].keys()
    for section in files["ko"]:
        assert files["ko"][section].keys() == files["en"][section].keys(), section


def test_no_korean_in_the_english_catalogue():
    english = catalogue("en")
    assert not [k for k, text in english.texts.items() if any("가" <= c <= "힣" for c in text)]


def test_a_metric_is_asked_in_the_readers_language():
    metric = Metric("fluency", "utterance", 1, 5, question="자연스럽습니까?", anchors=tuple("가나다라마"))
    assert catalogue("en").scale(metric, "ko")[0] == "Does it sound natural, as a patient would speak?"
    assert catalogue("ko").scale(metric, "ko")[0] == "자연스럽습니까?"


def test_streamlit_still_has_every_option_that_the_server_sets():
    from streamlit import config

    from annotation_app.server import OPTIONS

    assert not [o for o in OPTIONS if o not in config._config_options_template]


def test_no_collection_after_each_click():
    from annotation_app.server import OPTIONS

    assert OPTIONS["runner.postScriptGC"] is False
