"""Calibrating the judges of a study: which, against whom, on what, side by side over processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace

import pandas as pd
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from analysis import display, judge_identity, load, tables
from analysis.judge_identity import Identity
from analysis.stats.calibration import Calibration, Options, Refused, calibrate, verdict
from analysis.stats.calibration_map import Map
from analysis.stats.clusters import Estimate
from analysis.stats.comparison import Comparison, compare
from analysis.tables import Table
from study.errors import StudyError

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Judged:
    """One judge with its calibration on each metric, or the reason why there is none; and what it was beside."""

    identity: Identity
    calibrations: dict[str, Calibration | Refused]
    comparisons: dict[str, Comparison]

    @property
    def verdicts(self) -> dict[str, str]:
        return {
            metric: f"{self.identity.name} on {metric}: not calibrated: {found.reason}"
            if isinstance(found, Refused)
            else verdict(found)
            for metric, found in self.calibrations.items()
        }


def judges_of(
    loaded: load.Loaded, wanted: Sequence[str] = (), panel: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Names of the judges and of the panel: judges and rules beside people unless they are named.

    Raises
    ------
    StudyError : for a name that nobody has; if there is no judge or no panel
    """
    for column, option in (("rater", "rater"), ("label", "item")):
        if column not in loaded.frame.columns:
            raise StudyError(f"{loaded.name}: has no column of {option}s; name it with --{option}")
    kinds = loaded.frame.drop_duplicates("rater").set_index("rater")["rater_kind"]
    kinds.index = kinds.index.astype(str)
    for name in (*wanted, *panel):
        if name not in kinds.index:
            raise StudyError(f"{loaded.name}: no rater {name}; the raters are {', '.join(kinds.index)}")
    judges = list(wanted) or [n for n, k in kinds.items() if k != "human" and n not in panel]
    people = list(panel) or [n for n, k in kinds.items() if k == "human" and n not in judges]
    if not judges:
        raise StudyError(f"{loaded.name}: has no judge and no rule; `analysis judge` makes one rate, `study "
                         "import --add --kind judge` brings them in, --judge NAME takes any rater")  # fmt: skip
    if not people:
        raise StudyError(f"{loaded.name}: nobody is left for the panel; name its raters with --panel")
    return judges, people


def calibrations(
    loaded: load.Loaded,
    judges: Sequence[str],
    panel: Sequence[str],
    metrics: Sequence[str],
    options: Options,
    *,
    about: dict[str, object] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Judged]:
    """Each judge on each metric that it rated; the numbers do not depend on the number of processes.

    Raises
    ------
    StudyError : if a judge rated none of the metrics
    """
    frame = _with_lengths(loaded)
    identities = {name: judge_identity.identity(loaded, name, about) for name in judges}
    tasks: list[tuple[str, str, Comparison]] = []
    for metric_id in metrics:
        metric, rows = loaded.metric(metric_id), frame[frame["metric"] == metric_id]
        rated = set(rows.loc[rows["status"] == "ok", "rater"].astype(str))
        here = [name for name in judges if name in rated]
        beside = [p for p in panel if p in rated]
        if here and beside:
            scale = metric.low, metric.high
            tasks += [(c.name, metric_id, c) for c in compare(rows, here, beside, scale=scale)]
    idle = [name for name in judges if name not in {task[0] for task in tasks}]
    if idle:
        raise StudyError(f"{loaded.name}: {', '.join(idle)} rated no metric that the panel rated")
    found = _run(tasks, identities, loaded, options, jobs, progress)
    return [
        Judged(
            identities[name],
            {m: found[i] for i, (judge, m, _) in enumerate(tasks) if judge == name},
            {m: c for judge, m, c in tasks if judge == name},
        )
        for name in judges
    ]


def found_of(judged: Judged) -> dict[str, Calibration]:
    """The metrics on which a judge could be calibrated."""
    return {m: c for m, c in judged.calibrations.items() if not isinstance(c, Refused)}


def table(judged: Sequence[Judged]) -> pd.DataFrame:
    """One row per judge and metric: the figures that a table of judges needs, with intervals."""
    return pd.DataFrame([_row(j.identity.name, m, c) for j in judged for m, c in j.calibrations.items()])


def printed(judged: Sequence[Judged], metrics: Sequence[str]) -> str:
    """A table of judges per metric, and the verdicts."""
    parts = []
    rows = table(judged)
    for metric in metrics:
        here = rows[rows["metric"] == metric]
        if len(here):
            parts.append(f"{metric}\n{tables.as_text(_summary(metric, here), '  ')}")
    parts += ["\n".join(line for j in judged for line in j.verdicts.values())]
    return "\n\n".join(parts)


def plain(value: object) -> object:
    """A calibration as dicts, lists and frames that a result can write."""
    if isinstance(value, Refused):
        return {"refused": value.reason}
    if hasattr(value, "parameters") and is_dataclass(value):
        found: Map = value
        return found.parameters()
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def _run(
    tasks: Sequence[tuple[str, str, Comparison]],
    identities: dict[str, Identity],
    loaded: load.Loaded,
    options: Options,
    jobs: int,
    progress: Progress | None,
) -> list[Calibration | Refused]:
    jobs = max(1, min(jobs, len(tasks)))
    own = [
        replace(options, alpha_level=loaded.metric(metric).level,
                own_family=options.own_family or identities[name].own_family)
        for name, metric, _ in tasks
    ]  # fmt: skip
    found: list[Calibration | Refused] = [Refused("")] * len(tasks)
    work = (delayed(_one)(i, c, o) for i, ((_, _, c), o) in enumerate(zip(tasks, own, strict=True)))
    with parallel_config(
        backend="loky" if jobs > 1 else "sequential", inner_max_num_threads=1 if jobs > 1 else None
    ):
        for done, (i, result) in enumerate(Parallel(n_jobs=jobs, return_as="generator_unordered")(work), 1):
            found[i] = result
            if progress is not None:
                progress(done, len(tasks), f"{tasks[i][0]} on {tasks[i][1]}")
    return found


def _one(place: int, comparison: Comparison, options: Options) -> tuple[int, Calibration | Refused]:
    try:
        with threadpool_limits(limits=1):  # the matrices are small: threads would only wait for each other
            return place, calibrate(comparison, options)
    except StudyError as error:
        return place, Refused(str(error))


def _with_lengths(loaded: load.Loaded) -> pd.DataFrame:
    if loaded.study is None:
        return loaded.frame
    known = judge_identity.lengths(loaded.study)
    if known.empty:
        return loaded.frame
    return loaded.frame.assign(length=loaded.frame["label"].astype(str).map(known))


def _row(judge: str, metric: str, found: Calibration | Refused) -> dict[str, object]:
    """Estimate, low and high of each figure; missing where its part was refused."""
    row: dict[str, object] = {"judge": judge, "metric": metric}
    if isinstance(found, Refused):
        return row | {"refused": found.reason}
    row |= {"n": found.n_labelled, "n_clusters": found.n_clusters, "refused": ""}
    test = found.alternative["pooled"]
    if not isinstance(test, Refused):
        others = [t for s, t in found.alternative.items() if s != "pooled" and not isinstance(t, Refused)]
        row |= {"omega": test.omega, "passed": test.passed, "tie_rate": test.tie,
                "sources_passed": sum(t.passed for t in others), "sources_tested": len(others)}  # fmt: skip
        row |= _ends("rho", test.rho)
    for key, kept in found.prmse.items():
        if not isinstance(kept, Refused) and kept.estimable:
            row |= _ends(f"prmse_{key}", kept.estimate)
    if not isinstance(found.ceiling, Refused):
        row |= _ends("r_above_rater", found.ceiling.difference("r"))
        row |= _ends("kappa_above_rater", found.ceiling.difference("kappa"))
    bias = found.bias.get("source")
    if bias is not None and not isinstance(bias, Refused):
        levels = bias.table[bias.table["factor"] == "source"]
        worst = levels.loc[levels["estimate"].abs().idxmax()]
        row |= {"worst_source": worst["level"], "worst_bias": worst["estimate"], "worst_bias_low": worst["low"],
                "worst_bias_high": worst["high"], "worst_bias_p_holm": worst["p_holm"],
                "sources_biased": int((levels["p_holm"] < 0.05).sum())}  # fmt: skip
    if not isinstance(found.maps, Refused):
        row |= _ends("ece", found.maps.error.ece) | {"ece_expected": found.maps.error.expected}
        row |= {"best_map": found.maps.best, "gap": found.maps.gap, "gap_read": found.maps.gap_read}
    if not isinstance(found.ranking, Refused):
        within = found.ranking.pairs.iloc[-1]
        row |= {"pairs": within["grouping"], "accuracy": within["accuracy"], "accuracy_low": within["low"],
                "accuracy_high": within["high"], "always_tie": within["always_tie"]}  # fmt: skip
        if found.ranking.soft is not None:
            row |= _ends("soft_accuracy", found.ranking.soft)
    return row


def _ends(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}


def _summary(metric: str, rows: pd.DataFrame) -> Table:
    """The table of judges as it is printed."""
    columns = ("judge", "ρ", "ω", "PRMSE", "r − rater's", "worst bias by source", "accuracy of pairs")
    written = []
    for row in rows.to_dict("records"):
        bias = _interval(row, "worst_bias")
        if bias != display.MISSING:
            bias = f"{row['worst_source']} {bias}"
        written.append((
            str(row["judge"]), _interval(row, "rho"), display.number(row.get("omega")),
            _interval(row, "prmse_calibrated"), _interval(row, "r_above_rater"), bias, _interval(row, "accuracy"),
        ))  # fmt: skip
    return Table(metric, metric, columns, tuple(written))


def _interval(row: dict[str, object], name: str) -> str:
    return display.estimate(row.get(name), row.get(f"{name}_low"), row.get(f"{name}_high"))
