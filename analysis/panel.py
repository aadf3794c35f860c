"""The panel rater by rater: all coefficients, who is severe, whose absence matters, who agrees with themselves."""

import pandas as pd

from analysis import display, results, tables
from analysis.load import Loaded, select
from analysis.reliability import Bootstrap
from analysis.results import Answer, Result
from analysis.stats import agreement, agreement_intervals, icc_incomplete, raters
from study.errors import StudyError


def panel(loaded: Loaded, metric_id: str, how: Bootstrap, kind: str = "auto") -> Answer:
    """Agreement on a metric in full, all sources pooled.

    Raises
    ------
    StudyError : if the ratings name no rater or item, or allow no coefficient
    """
    selected = select(loaded, metric_id, kind)
    for column, option in (("rater", "rater"), ("label", "item")):
        if column not in selected.frame.columns:
            raise StudyError(f"{loaded.name}: has no column {column}; name it with --{option}")
    matrix = agreement.rating_matrix(selected.frame)
    try:
        complete = matrix.notna().to_numpy().all()
        forms = agreement.icc(matrix, how.level) if complete else icc_incomplete.icc_incomplete(
            matrix, how.level, seed=how.seed)  # fmt: skip
        chance = [_of_level(matrix, level, how) for level in agreement.LEVELS if level != "ratio"]
        severity = raters.severity(matrix, how.level)
    except StudyError as error:
        raise StudyError(f"{metric_id}: {error}") from None
    absent = _tried(lambda: raters.leave_one_rater_out(matrix))
    again = _repeats(loaded, metric_id, set(selected.frame["rater_kind"]))
    ceiling = raters.ceiling_note(matrix)
    estimates = pd.concat([forms.assign(level=None), *chance], ignore_index=True)
    values = {
        "metric": metric_id, "level": how.level, "bootstrap": how.n, "estimates": estimates, "severity": severity,
        "leave_one_rater_out": absent, "repeats": again, "ceiling": ceiling,
    }  # fmt: skip
    source = results.provenance(loaded, selected, seed=how.seed)
    n, k = matrix.shape
    simulated = "simulated " if selected.simulated else ""
    cells = display.share(int(matrix.notna().to_numpy().sum()), matrix.size)
    parts = [
        f"Panel on {metric_id}: {n:,} targets, {k} raters, {cells} {simulated}cells rated",
        "",
        tables.as_text(_forms(forms), "  "),
        "",
        f"Agreement beyond chance (bootstrap over items and raters, {how.n:,} draws)",
        tables.as_text(_chance(pd.concat(chance)), "  "),
        "",
        "Raters, the severest first (difference from the panel's mean on the same items)",
        tables.as_text(_severity(severity), "  "),
    ]
    if absent is not None:
        parts += ["", "Without each rater in turn", tables.as_text(_absent(absent), "  ")]
    if again is not None:
        parts += ["", "Raters with themselves, on items that came back", tables.as_text(_again(again), "  ")]
    notes = [*selected.notes, *([ceiling] if ceiling else [])]
    parts += ["", *(f"note: {note}" for note in notes)] if notes else []
    return Answer(Result("panel", source, values), "\n".join(parts), loaded)


def _of_level(matrix: pd.DataFrame, level: str, how: Bootstrap) -> pd.DataFrame:
    found = agreement_intervals.agreement_intervals(
        matrix, level, n_boot=how.n, confidence=how.level, seed=how.seed, jobs=how.jobs, backend=how.backend,
        scheduler=how.scheduler,
    )  # fmt: skip
    return found if level == "ordinal" else found[found["term"] == "alpha"]


def _repeats(loaded: Loaded, metric_id: str, kinds: set[str]) -> pd.DataFrame | None:
    frame = loaded.frame
    own = frame[(frame["metric"] == metric_id) & frame["rater_kind"].isin(kinds) & (frame["status"] == "ok")]
    return raters.repeats(own) if (own["occasion"] > 1).any() else None


def _tried(asked) -> pd.DataFrame | None:
    """A table that two raters are too few for."""
    try:
        return asked()
    except StudyError:
        return None


def _forms(forms: pd.DataFrame) -> tables.Table:
    rows = tuple((r.term, r.also, display.estimate(r.estimate, r.low, r.high)) for r in forms.itertuples())
    return tables.Table("icc", "", ("ICC", "also", "estimate"), rows, text_columns=(0, 1))


def _chance(found: pd.DataFrame) -> tables.Table:
    names = {"alpha": "Krippendorff's alpha", "percent_agreement": "percent agreement", "ac2": "Gwet's AC2"}
    rows = tuple(
        (
            f"{names[r.term]}{f', {r.level}' if r.term == 'alpha' else ''}",
            display.estimate(r.estimate, r.low, r.high),
        )
        for r in found.itertuples()
    )
    return tables.Table("agreement", "", ("coefficient", "estimate"), rows)


def _severity(severity: pd.DataFrame) -> tables.Table:
    rows = tuple(
        (str(r.term), display.estimate(r.estimate, r.low, r.high), display.number(r.mean), display.number(r.sd),
         display.percent(r.at_top), display.percent(r.at_bottom), display.number(r.rest_correlation),
         display.count(r.n))
        for r in severity.itertuples()
    )  # fmt: skip
    columns = ("rater", "severity", "mean", "SD", "at top", "at bottom", "r with rest", "ratings")
    return tables.Table("severity", "", columns, rows)


def _absent(absent: pd.DataFrame) -> tables.Table:
    rows = tuple(
        (str(r.left_out), display.number(r.icc_1), display.number(r.icc_k), display.number(r.alpha),
         display.number(r.change_icc_1, 3), display.number(r.change_alpha, 3))
        for r in absent.itertuples()
    )  # fmt: skip
    columns = ("left out", "ICC(2,1)", "ICC(2,k)", "alpha", "change of ICC(2,1)", "change of alpha")
    return tables.Table("left-out", "", columns, rows)


def _again(again: pd.DataFrame) -> tables.Table:
    rows = tuple(
        (str(r.rater), display.count(r.n), display.estimate(r.icc, r.low, r.high), display.number(r.kappa),
         display.percent(r.equal), display.percent(r.within_one), display.number(r.shift))
        for r in again.itertuples()
    )  # fmt: skip
    columns = ("rater", "pairs", "ICC(3,1)", "weighted kappa", "equal", "within one", "shift")
    return tables.Table("repeats", "", columns, rows)
