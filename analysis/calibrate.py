"""`analysis calibrate`: how far a judge can be trusted, and using a calibration that still holds."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from analysis.options import Csv, Jobs, Json, Level, Metric, Out, Reader, Seed, Target, reading
from study.errors import StudyError
from study.terminal import dump, say, warn

Judges = Annotated[
    list[str] | None,
    typer.Option("--judge", metavar="NAME", help="A judge, rule or rater; may be repeated. All judges and rules."),
]
Panel = Annotated[
    list[str] | None, typer.Option("--panel", metavar="NAME", help="A rater of the panel; repeatable. All people.")
]
About = Annotated[
    Path | None,
    typer.Option("--about", help="TOML file: model, prompt or prompt_file, temperature, date, own_family."),
]
Family = Annotated[
    list[str] | None,
    typer.Option("--own-family", metavar="SOURCE", help="A source of the judge's model family; repeatable."),
]
Apply = Annotated[
    Path | None, typer.Option("--apply", metavar="CARD", help="Read judgements by this judge-card.json.")
]


@reading
def calibrate(
    target: Target = Path("."),
    judge: Judges = None,
    metric: Metric = None,
    panel: Panel = None,
    epsilon: Annotated[
        float, typer.Option(min=0, max=1, help="Advantage granted: 0.2 beside experts, 0.15 skilled, 0.1 crowd.")
    ] = 0.2,
    agreement: Annotated[
        Literal["neg_rmse", "accuracy"], typer.Option(help="How agreement of one item is scored.")
    ] = "neg_rmse",
    threshold: Annotated[
        float | None, typer.Option(help="Answers scored below it are low; the middle of the scale.")
    ] = None,
    width: Annotated[
        float | None, typer.Option(help="Interval width that panel sizes are planned for; a tenth of the scale.")
    ] = None,
    about: About = None,
    own_family: Family = None,
    bootstrap: Annotated[int, typer.Option("--bootstrap", min=100, metavar="N", help="Bootstrap draws.")] = 1000,
    seed: Seed = 0,
    jobs: Jobs = 1,
    level: Level = 0.95,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    card: Apply = None,
    *,
    reader: Reader,
) -> None:
    """Hold judges against the panel: as good as a rater, biased where, worth how much; writes judge cards.

    Example: analysis calibrate demo-study --judge gpt-judge --metric fluency

    Example: analysis calibrate new-study --apply old-study/results/calibration/gpt-judge/judge-card.json
    """
    from analysis import calibrations, judge_identity, load, results
    from analysis.progress import shown
    from analysis.stats.calibration import Options

    loaded = reader.load(target)
    told = judge_identity.read_about(about) if about else None
    options = Options(
        epsilon=epsilon, score=agreement, threshold=threshold, width=width, own_family=tuple(own_family or ()),
        n_boot=bootstrap, seed=seed, level=level,
    )  # fmt: skip
    root = out or results.folder(loaded)
    if card is not None:
        _apply(loaded, card, judge, told, root, options, as_json)
        return
    judges, people = calibrations.judges_of(loaded, judge or (), panel or ())
    metrics = [loaded.metric(metric).metric_id] if metric else load.rated_metrics(loaded)
    _check_sources(loaded, options)
    with shown("calibrating", "calibrated") as progress:
        judged = calibrations.calibrations(
            loaded, judges, people, metrics, options, about=told, jobs=jobs, progress=progress
        )
    _finish(loaded, judged, metrics, options, root, as_json, csv)


def _finish(loaded, judged, metrics, options, root, as_json, csv) -> None:
    """Write the cards and say what they say."""
    from analysis import calibrations, judge_card, judge_pairs, results

    if csv is not None:
        results.write_csv(calibrations.table(judged), csv)
    pages = [judge_card.write(loaded, j, options, root) for j in judged] if root is not None else []
    pairs = {m: judge_pairs.compared(judged, m, options) for m in metrics}
    pairs = {m: found for m, found in pairs.items() if len(found)}
    beside = [judge_pairs.result(loaded, m, found, options) for m, found in pairs.items()]
    results.keep(beside, root, None, table="estimates")
    if as_json:
        dump([*(judge_card.result(loaded, j, options).plain() for j in judged), *(r.plain() for r in beside)])
        return
    say(calibrations.printed(judged, metrics))
    for metric, found in pairs.items():
        say(f"\n{judge_pairs.printed(metric, found, simulated=loaded.simulated)}")
    if loaded.simulated:
        say("\nThe ratings are simulated: they say nothing about any real judge.")
    for page in pages:
        say(f"{page}")
    if not any(calibrations.found_of(j) for j in judged):
        raise StudyError("no judge could be calibrated on any metric; the reasons stand above")


def _apply(loaded, card, judge, told, root, options, as_json) -> None:
    from analysis import calibration_use, calibrations, judge_identity, results
    from analysis.stats.comparison import compare

    known = calibration_use.read_card(card)
    name = judge[0] if judge else known["judge"]["name"]
    calibrations.judges_of(loaded, [name])
    identity = judge_identity.identity(loaded, name, told)
    mine = loaded.frame[loaded.frame["rater"] == name]
    shared = [m for m in known["metrics"] if m in set(mine["metric"])]
    if not shared:
        raise StudyError(f"{name} rated none of the card's metrics here ({', '.join(known['metrics'])})")
    found = []
    for metric_id in shared:
        metric, rows = loaded.metric(metric_id), loaded.frame[loaded.frame["metric"] == metric_id]
        beside = compare(rows[rows["rater"] == name], name, name, scale=(metric.low, metric.high), alone=True)[0]
        found.append(calibration_use.apply(known, loaded, metric_id, beside, identity, options.level))
    if root is not None:
        from analysis.judge_card import folder

        for part in found:
            warn(f"written: {calibration_use.write(part, folder(root, name))}")
    if as_json:
        dump([{"judge": f.judge, "metric": f.metric, "notes": list(f.notes),
               "scores": results._plain(f.scores), "means": results._plain(f.means)} for f in found])  # fmt: skip
        return
    say("\n\n".join(calibration_use.printed(f) for f in found))


def _check_sources(loaded, options) -> None:
    sources = set(loaded.frame["source"].dropna().astype(str)) if "source" in loaded.frame else set()
    if strange := [s for s in options.own_family if s not in sources]:
        raise StudyError(
            f"--own-family {strange[0]}: no such source; the sources are {', '.join(sorted(sources))}"
        )
