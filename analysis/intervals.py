"""Intervals of a fit that do not lean on a t: by profile likelihood, and by parametric bootstrap."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from analysis import display
from analysis.fitting import Fitted, Intervals
from analysis.stats import bootstrap, profile
from study.errors import StudyError

Kind = Literal["wald", "profile", "bootstrap"]
Progress = Callable[[int, int, str], None]
# So many replicates may fail before their intervals are refused.
MOST_FAILURES = 0.05


@dataclass(frozen=True)
class Draws:
    """How many bootstrap replicates, from which seed, in how many processes."""

    n: int = 1000
    seed: int = 0
    jobs: int = 1


def with_intervals(found: Fitted, kind: Kind, how: Draws, progress: Progress | None = None) -> Fitted:
    """The fit with intervals of that kind for its coefficients and its standard deviations.

    Wald intervals are the fit's own.

    Raises
    ------
    StudyError : for a fit by statsmodels; a random term of three columns; replicates that fail
    """
    if kind == "wald":
        return found
    if found.engine != "crossed":
        raise StudyError(f"{found.metric_id}: --intervals {kind} needs --engine crossed")
    try:
        made = _profiled(found, how, progress) if kind == "profile" else _drawn(found, how, progress)
    except StudyError as error:
        raise StudyError(f"{found.metric_id}: {error}") from None
    return replace(found, intervals=made)


def _profiled(found: Fitted, how: Draws, progress: Progress | None) -> Intervals:
    ends = profile.profile_intervals(found.fit, found.level, jobs=how.jobs, progress=progress)
    coefficients = ends[ends["term"].isin(found.fit.design.fixed.names)]
    components = ends.drop(coefficients.index).reset_index(drop=True)
    components["term"] = components["term"].str.removeprefix("sd ").replace({"sigma": "residual"})
    note = "intervals by profile likelihood (of the ML deviance, as lme4's confint)"
    return Intervals("profile", coefficients.set_index("term")[["low", "high"]], components, note)


def _drawn(found: Fitted, how: Draws, progress: Progress | None) -> Intervals:
    made = bootstrap.bootstrap(found.fit, how.n, seed=how.seed, jobs=how.jobs, progress=progress)
    if made.n_failed > MOST_FAILURES * how.n:
        raise StudyError(
            f"{made.n_failed} of {how.n} bootstrap replicates did not settle, too many for an interval; "
            "use --intervals profile"
        )
    coefficients = made.coefficient_table(found.level).set_index("term")[["low", "high"]]
    components = made.component_table(found.level)[["term", "estimate", "low", "high"]]
    failed = f"; {display.count(made.n_failed)} that did not settle are left out" if made.n_failed else ""
    note = f"intervals by parametric bootstrap, percentiles of {how.n:,} draws (seed {how.seed}){failed}"
    return Intervals("bootstrap", coefficients, components, note, made.n_failed)

