"""How fast the mixed models are against lme4 and its kin, as ratios of CPU seconds on one BLAS thread.

R does its part in the same run where Rscript and the packages are there; else, and for work that takes R
minutes, the recorded seconds stand in (the same data and kind of machine, R 4.2.2) and are printed as such.
"""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from time import process_time

import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from analysis.stats import contrasts, inference
from analysis.stats.bootstrap import bootstrap
from analysis.stats.mixed.fit import fit

pytestmark = pytest.mark.benchmark_only

DATA = Path(__file__).parents[1] / "golden" / "lmm" / "data" / "sim5950.csv"
TWO = "m1 ~ source*category + source*form + (1|rater) + (1|case:utterance)"
FOUR = f"{TWO} + (1|rater:source) + (1|case:utterance:source)"
RECORDED = {
    "two": 0.52, "four": 2.46, "satterthwaite": 1.0, "kenward_roger": 651.0, "bootstrap_two": 447.0,
    "bootstrap_four": 1290.0, "rows_595000": 70.8, "rows_5000000": 692.0, "tukey": 0.10,
}  # fmt: skip
"""CPU seconds of lme4 1.1-31, lmerTest 3.1-3, pbkrtest 0.5.2, emmeans 1.8.4-1."""

R_SCRIPT = """
suppressPackageStartupMessages({library(lme4); library(lmerTest); library(emmeans)})
data <- read.csv("%s", stringsAsFactors = TRUE)
cpu <- function(work) { gc(FALSE); t <- system.time(work()); t[[1]] + t[[2]] }
two <- %s
four <- %s
say <- function(name, seconds) cat(name, seconds, "\\n")
say("two", min(replicate(3, cpu(function() lme4::lmer(two, data)))))
say("four", cpu(function() model4 <<- lme4::lmer(four, data)))
model <- lme4::lmer(two, data)
say("satterthwaite", cpu(function() { tested <<- lmerTest::as_lmerModLmerTest(model); summary(tested) }))
emm_options(lmerTest.limit = 1e6, pbkrtest.limit = 0)
say("tukey", min(replicate(3, cpu(function()
  summary(pairs(emmeans(tested, ~ source | form, lmer.df = "satterthwaite")))))))
say("bootstrap_two", 100 * cpu(function() bootMer(model, fixef, nsim = 10)))
say("bootstrap_four", 250 * cpu(function() bootMer(model4, fixef, nsim = 4)))
"""


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.read_csv(DATA)


@pytest.fixture(scope="module")
def theirs() -> dict[str, tuple[float, str]]:
    """Seconds by kind of work, and whether R was measured in this run."""
    seconds = {name: (value, "recorded") for name, value in RECORDED.items()}
    if shutil.which("Rscript") is None:
        return seconds
    script = R_SCRIPT % (DATA, TWO, FOUR)
    run = subprocess.run(
        ["Rscript", "-e", script],
        capture_output=True,
        text=True,
        env={"OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )
    for line in run.stdout.splitlines():
        name, _, value = line.partition(" ")
        if name in RECORDED:
            seconds[name] = (float(value), "measured")
    return seconds


def fastest(call, times: int = 5) -> float:
    """CPU seconds of the quickest of several calls."""
    seconds = []
    for _ in range(times):
        start = process_time()
        call()
        seconds.append(process_time() - start)
    return min(seconds)


def judged(work: str, ours: float, theirs: tuple[float, str], at_least: float) -> None:
    ratio = theirs[0] / ours
    print(f"\n{work}: {ours:.4f} s; R {theirs[0]:.3g} s ({theirs[1]}); {ratio:,.0f} times as fast")
    assert ratio >= at_least


def test_two_random_terms_fit_40_times_faster(frame, theirs):
    judged("fit, two random terms", fastest(lambda: fit(frame, TWO), 10), theirs["two"], 40)


def test_four_random_terms_fit_15_times_faster(frame, theirs):
    judged("fit, four random terms", fastest(lambda: fit(frame, FOUR)), theirs["four"], 15)


def test_satterthwaite_is_200_times_faster(frame, theirs):
    model = fit(frame, TWO)

    def once():
        model.memory.clear()
        model.coefficients()

    judged("Satterthwaite, all coefficients", fastest(once), theirs["satterthwaite"], 200)


def test_kenward_roger_is_10000_times_faster(frame, theirs):
    model = fit(frame, TWO)

    def once():
        model.memory.clear()
        inference.kenward_roger(model)

    judged("Kenward-Roger", fastest(once), theirs["kenward_roger"], 10_000)


def test_tukey_contrasts_are_10_times_faster(frame, theirs):
    model = fit(frame, TWO)

    def once():
        model.memory.clear()
        contrasts.contrasts(model, "source", by="form", adjust="tukey")

    judged("30 Tukey contrasts", fastest(once), theirs["tukey"], 10)


def test_a_thousand_bootstraps_of_two_terms_are_1000_times_faster(frame, theirs):
    model = fit(frame, TWO)
    judged(
        "1,000 bootstraps, two terms",
        fastest(lambda: bootstrap(model, 1000, seed=1), 3),
        theirs["bootstrap_two"],
        1000,
    )


def test_a_thousand_bootstraps_of_four_terms_are_100_times_faster(frame, theirs):
    model = fit(frame, FOUR)
    ours = fastest(lambda: bootstrap(model, 1000, seed=1), 3)
    judged("1,000 bootstraps, four terms, balanced", ours, theirs["bootstrap_four"], 100)
    uneven = fit(pd.read_csv(DATA.with_name("sim5950_unbal.csv")), FOUR)
    ours = 10 * fastest(lambda: bootstrap(uneven, 100, seed=1), 1)
    judged("1,000 bootstraps, four terms, 10% missing (ten times 100)", ours, theirs["bootstrap_four"], 50)


BIG = """
import resource, time
import numpy as np, pandas as pd
from threadpoolctl import threadpool_limits
from analysis.stats.mixed.fit import fit
raters, prompts, sources = {raters}, {prompts}, 5
rng = np.random.default_rng(1)
shape = (raters, prompts, sources)
r = np.repeat(np.arange(raters, dtype=np.int16), prompts * sources)
p = np.tile(np.repeat(np.arange(prompts, dtype=np.int16), sources), raters)
s = np.tile(np.arange(sources, dtype=np.int8), raters * prompts)
score = rng.normal(3, 0.8, len(r))
score += rng.normal(0, 0.4, raters)[r]
score += rng.normal(0, 0.3, prompts)[p]
kind = pd.Categorical.from_codes
frame = pd.DataFrame({{
    "score": score, "source": kind(s, list("ABCDE")),
    "rater": kind(r, range(raters)), "prompt": kind(p, range(prompts)),
    "category": kind(rng.integers(0, 11, prompts).astype(np.int8)[p], range(11)),
    "form": kind(rng.integers(0, 3, prompts).astype(np.int8)[p], ["negative", "plain", "open"]),
}})
del r, p, s, score
tiny = pd.DataFrame({{"y": rng.normal(size=60), "g": np.arange(60) % 6}})
fit(tiny, "y ~ 1 + (1|g)")  # what is imported late is imported now, as R's packages are
with threadpool_limits(1):
    start = time.process_time()
    model = fit(frame, "score ~ source*category + source*form + (1|rater) + (1|prompt)")
    seconds = time.process_time() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, model.optimum.converged, model.n_rows)
"""


@pytest.mark.parametrize("name, raters, prompts", [("rows_595000", 170, 700), ("rows_5000000", 500, 2000)])
def test_many_rows_fit_200_times_faster_in_little_memory(theirs, name, raters, prompts):
    script = textwrap.dedent(BIG.format(raters=raters, prompts=prompts))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, peak, converged, rows = run.stdout.split()
    print(
        f"\n{int(rows):,} rows: peak memory {float(peak):.2f} GB with the table (lme4: 16 GB at 5 million)"
    )
    judged(f"fit of {int(rows):,} rows", float(seconds), theirs[name], 200)
    assert converged == "True"
    assert float(peak) < 1.5
