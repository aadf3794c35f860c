"""Ratings that a user may well have, and that statistics cannot use: one sentence, or what is not estimable."""

import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.cli import app
from study.errors import StudyError


def complete(raters: int = 4, prompts: int = 12, **cases: int) -> pd.DataFrame:
    """Every rater on two sources' answers to every prompt, on five points."""
    rng = np.random.default_rng(6)
    r, p, s = (x.ravel() for x in np.indices((raters, prompts, 2)))
    latent = 3 + rng.normal(0, 0.4, prompts)[p] + rng.normal(0, 0.4, raters)[r] + 0.4 * s
    frame = pd.DataFrame({"rater": [f"r{i}" for i in r], "prompt": [f"p{i}" for i in p],
                          "source": np.array(["A", "B"])[s],
                          "score": (latent + rng.normal(0, 0.7, len(r))).round().clip(1, 5)})  # fmt: skip
    return frame.assign(case=[f"c{i % cases['cases']}" for i in p]) if cases else frame


GOOD = complete()
NUMBER = GOOD["prompt"].str[1:].astype(int)
BAD = {
    "one rater": GOOD[GOOD["rater"] == "r0"],
    "one item": GOOD[(GOOD["prompt"] == "p0") & (GOOD["source"] == "A")],
    "one prompt": GOOD[GOOD["prompt"] == "p0"],
    "constant": GOOD.assign(score=3),
    "nearly constant": GOOD.assign(score=GOOD["score"].where(GOOD["rater"] == "r0", 4)),
    "perfect": GOOD.assign(score=NUMBER % 5 + 1),
    "no overlap": GOOD[NUMBER % 4 == GOOD["rater"].str[1:].astype(int)],
    "silent rater": GOOD.assign(score=GOOD["score"].where(GOOD["rater"] != "r3")),
    "empty columns": GOOD.assign(form=np.nan, category=np.nan),
    "no source named": GOOD.assign(source=np.nan),
    "no rater named": GOOD.assign(rater=np.nan),
    "no score": GOOD.assign(score=np.nan),
    "text": GOOD.assign(score=GOOD["score"].map({1: "bad", 2: "poor", 3: "fair", 4: "good", 5: "great"})),
    "one word": GOOD.assign(score=GOOD["score"].astype(object).where(GOOD.index != 5, "four")),
    "three cases": complete(prompts=3).rename(columns={"prompt": "case"}),
    "prompts in three cases": complete(cases=3),
    "one source": GOOD[GOOD["source"] == "A"],
    "no column of raters": GOOD.drop(columns="rater"),
    "no column of sources": GOOD.drop(columns="source").drop_duplicates(["rater", "prompt"]),
    "huge numbers": GOOD.assign(score=GOOD["score"] * 1e12),
}
COMMANDS = {
    "reliability": ("reliability", "--bootstrap", "100"),
    "panel": ("reliability", "--full", "--bootstrap", "100"),
    "gstudy": ("gstudy",),
    "fit": ("fit",),
    "ordinal": ("fit", "--ordinal"),
    "power": ("power", "--n-raters", "4", "--n-prompts", "10"),
    "compare": ("compare", "--where", "source=A", "--where", "source=B"),
    "influence": ("influence",),
    "contrasts": ("contrasts",),
    "lowscores": ("lowscores",),
    "calibrate": ("calibrate", "--judge", "r0", "--bootstrap", "100"),
}
# What the sentence says, where a command must refuse: (input, command) → words; * is every command.
SAYS = {
    ("one rater", "reliability"): "only r0 rated: agreement needs at least two raters",
    ("one rater", "panel"): "only r0 rated",
    ("one rater", "gstudy"): "score: rater has 1 level: a facet needs two or more",
    ("one rater", "power"): "one rater: no rater term",
    ("one rater", "calibrate"): "nobody is left for the panel",
    ("one item", "reliability"): "only 1 item was rated: agreement needs at least two items",
    ("one item", "fit"): "allows no random term, so there is no mixed model",
    ("one prompt", "gstudy"): "prompt has 1 level",
    ("constant", "reliability"): "reliability is not estimable (100% agreement, no variation)",
    ("constant", "gstudy"): "every score is 3: there is no variance to take apart",
    ("constant", "fit"): "every rating of score is 3, so there is nothing to model",
    ("constant", "ordinal"): "every rating of score is 3",
    ("constant", "power"): "every rating of score is 3",
    ("perfect", "fit"): "no residual variance is left to estimate",
    ("no overlap", "reliability"): "no item was rated by two raters",
    ("no overlap", "power"): "every rating is its own level",
    ("silent rater", "*"): "no rating by r3; wait for them, or leave them out with --without r3",
    ("no source named", "*"): "no row names its source; fill the column, or leave it out of the file",
    ("no rater named", "*"): "no row names its rater",
    ("no score", "*"): "no rating by r0, r1, r2, r3",
    ("text", "*"): "in row 1 of column score is not a number (and 95 more)",
    ("one word", "*"): "'four' in row 6 of column score is not a number",
    ("three cases", "reliability"): "has no column of items; name it with --item",
    ("three cases", "lowscores"): "has no column of items",
    ("three cases", "calibrate"): "has no column of items",
    ("one source", "gstudy"): "source has 1 level",
    ("one source", "contrasts"): "there are none, so that nothing can be compared",
    ("one source", "compare"): "--where source=B: no rating; source has A",
    ("no column of raters", "reliability"): "has no column of raters; name it with --rater",
    ("no column of raters", "calibrate"): "has no column of raters; name it with --rater",
    ("no column of sources", "gstudy"): "has no column of sources; name it with --source",
}
FINE = {"empty columns", "prompts in three cases", "nearly constant"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("bad")
    for name, frame in BAD.items():
        frame.to_csv(place / f"{name}.csv", index=False)
    GOOD.to_csv(place / "good.csv", index=False)
    return place


def called(*words) -> tuple[str, StudyError | None]:
    """What is printed, and the sentence; a traceback, a warning and another exit code fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = CliRunner().invoke(app, [str(w) for w in words])
    if done.exception is not None and not isinstance(done.exception, StudyError):
        raise done.exception
    return done.stdout, done.exception


@pytest.mark.parametrize(("name", "command"), SAYS)
def test_ratings_that_cannot_be_used_are_refused_in_a_sentence(folder, name, command):
    for verb, *more in COMMANDS.values() if command == "*" else [COMMANDS[command]]:
        _, refused = called(verb, folder / f"{name}.csv", *more)
        assert refused is not None and SAYS[name, command] in str(refused)
        assert str(refused).count("\n") == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_no_command_ends_in_a_traceback_or_a_warning(folder, name):
    for command, (verb, *more) in COMMANDS.items():
        _, refused = called(verb, folder / f"{name}.csv", *more)
        if name in FINE and command not in ("compare", "calibrate"):
            assert refused is None, (command, refused)


def test_nearly_constant_ratings_keep_their_estimate_without_an_interval(folder):
    said, refused = called("reliability", folder / "nearly constant.csv", "--full", "--bootstrap", "100")
    assert refused is None
    assert "note: no interval for alpha: " in said and "bootstrap samples had no variation" in said


def test_a_file_is_not_compared_with_itself(folder):
    _, refused = called("compare", folder / "good.csv", "--with", folder / "good.csv")
    assert "cannot be compared with itself" in str(refused)


def test_what_the_second_set_lacks_is_named(folder):
    _, refused = called("compare", folder / "prompts in three cases.csv", "--with", folder / "good.csv")
    assert "good.csv has no case, which the model" in str(refused)


def test_a_factor_that_is_not_in_the_model_has_no_contrasts_to_compare(folder):
    words = ("--where", "source=A", "--where", "source=B", "--of", "rater")
    _, refused = called("compare", folder / "good.csv", *words)
    assert "rater is not a fixed factor of the model" in str(refused)


def test_bootstrap_replicates_that_the_common_search_leaves_are_sought_one_by_one(tmp_path):
    gone = (GOOD["rater"] == "r0") & (GOOD["source"] == "B")
    GOOD[~gone].to_csv(tmp_path / "gap.csv", index=False)
    said, refused = called("fit", tmp_path / "gap.csv", "--intervals", "bootstrap", "--bootstrap", "200")
    assert refused is None
    assert "did not settle" not in said
