"""The panel rater by rater: all coefficients, who is severe, whose absence matters, who agrees with themselves."""

import pandas as pd

from analysis import display, results, tables
from analysis.load import Loaded, select
from analysis.raters import tried
from analysis.reliability import Bootstrap, beyond_chance, check_columns, clusters
from analysis.results import Answer, Result
from analysis.stats import agreement, icc_bootstrap, icc_incomplete, raters
from study.errors import StudyError


def panel(loaded: Loaded, metric_id: str, how: Bootstrap, kind: str = "auto") -> Answer:
    """Agreement on a metric in full, all sources pooled.

    Raises
    ------
    StudyError : if the ratings name no rater or item, or allow no coefficient
    """
    selected = select(loaded, metric_id, kind)
    check_columns(loaded, selected)
    matrix = agreement.rating_matrix(selected.frame)
    try:
        complete = matrix.notna().to_numpy().all()
        forms = agreement.icc(matrix, how.level) if complete else icc_incomplete.icc_incomplete(
            matrix, how.level, seed=how.seed)  # fmt: skip
        owners = clusters(selected.frame, matrix)
        chance = [_of_level(matrix, owners, level, how) for level in agreement.LEVELS if level != "ratio"]
        severity = raters.severity(matrix, how.level)
    except StudyError as error:
        raise StudyError(f"{metric_id}: {error}") from None
    drawn = _by_cluster(matrix, owners, how)
    absent, why_not = tried(lambda: raters.leave_one_rater_out(matrix))
    again = _repeats(loaded, metric_id, set(selected.frame["rater_kind"]))
    ceiling = raters.ceiling_note(matrix)
    estimates = pd.concat([forms.assign(level=None), *chance], ignore_index=True)
    values = {
        "metric": metric_id, "level": how.level, "bootstrap": how.n, "estimates": estimates, "by_cluster": drawn,
        "severity": severity,
        "leave_one_rater_out": absent, "leave_one_rater_out_reason": why_not, "repeats": again, "ceiling": ceiling,
    }  # fmt: skip
    source = results.provenance(loaded, selected, seed=how.seed)
    n, k = matrix.shape
    simulated = "simulated " if selected.simulated else ""
    cells = display.share(int(matrix.notna().to_numpy().sum()), matrix.size)
    parts = [
        f"Panel on {metric_id}: {n:,} targets, {k} raters, {cells} {simulated}cells rated",
        "",
        tables.as_text(_forms(forms, drawn, owners[0]), "  "),
        "",
        f"Agreement beyond chance (bootstrap over raters and over {_drawn(*owners)}, {how.n:,} draws)",
        tables.as_text(_chance(pd.concat(chance)), "  "),
        "",
        "Raters, the severest first (difference from the panel's mean on the same items)",
        tables.as_text(_severity(severity), "  "),
    ]
    without = f"  not shown: {why_not}" if absent is None else tables.as_text(_absent(absent), "  ")
    parts += ["", "Without each rater in turn", without]
    if again is not None:
        parts += ["", "Raters with themselves, on items that came back", tables.as_text(_again(again), "  ")]
    refused = [str(r) for r in pd.concat([forms["reason"], *(c["reason"] for c in chance)]).dropna().unique()]
    notes = [*selected.notes, *refused, *([ceiling] if ceiling else [])]
    parts += ["", *(f"note: {note}" for note in notes)] if notes else []
    return Answer(Result("panel", source, values), "\n".join(parts), loaded)


def _of_level(
    matrix: pd.DataFrame, owners: tuple[str, pd.Series], level: agreement.Level, how: Bootstrap
) -> pd.DataFrame:
    found = beyond_chance(matrix, owners, level, how)
    return found if level == "ordinal" else found[found["term"] == "alpha"]


def _by_cluster(matrix: pd.DataFrame, owners: tuple[str, pd.Series], how: Bootstrap) -> pd.DataFrame | None:
    """The ICCs with intervals over whole prompts, for these raters; None where there is nothing to draw whole."""
    unit, of = owners
    if of.nunique() in (len(matrix), 1) or matrix.isna().to_numpy().any():
        return None
    found, _ = tried(lambda: icc_bootstrap.icc_bootstrap(
        matrix, clusters=of, n_boot=how.n, confidence=how.level, seed=how.seed, jobs=how.jobs,
        backend=how.backend, scheduler=how.scheduler))  # fmt: skip
    return found


def _repeats(loaded: Loaded, metric_id: str, kinds: set[str]) -> pd.DataFrame | None:
    frame = loaded.frame
    own = frame[(frame["metric"] == metric_id) & frame["rater_kind"].isin(kinds) & (frame["status"] == "ok")]
    return raters.repeats(own) if (own["occasion"] > 1).any() else None


def _forms(forms: pd.DataFrame, drawn: pd.DataFrame | None, unit: str) -> tables.Table:
    rows = [(r.term, r.also, display.estimate(r.estimate, r.low, r.high)) for r in forms.itertuples()]
    columns = ("ICC", "also", "estimate")
    if drawn is not None:
        own = drawn.set_index("term")
        rows = [(*row, f"[{display.number(own.low[row[0]])}, {display.number(own.high[row[0]])}]") for row in rows]
        columns = (*columns, f"over {unit}s, these raters")
    return tables.Table("icc", "", columns, tuple(rows), text_columns=(0, 1))


def _drawn(unit: str, of: pd.Series) -> str:
    return f"{unit}s" if of.nunique() == len(of) else f"whole {unit}s"


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
