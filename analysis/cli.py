"""analysis: numbers from ratings. Every command takes a study folder, or a bare file of ratings."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from analysis.options import (
    Bootstrap,
    Csv,
    Ddf,
    Formula,
    Jobs,
    Json,
    Kind,
    Level,
    Metric,
    Out,
    Raters,
    Reader,
    Seed,
    Target,
    Without,
    reading,
)
from study.errors import StudyError
from study.terminal import command, dump, main, say

app = command("analysis", "Mixed models, reliability and the report of a study of ratings.")


def run() -> None:
    main(app)


@app.command()
@reading
def fit(
    target: Target = Path("."),
    metric: Metric = None,
    formula: Formula = None,
    model: Kind = "design",
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood in place of REML.")] = False,
    engine: Annotated[
        Literal["crossed", "statsmodels"],
        typer.Option(help="statsmodels is a slow second route to the same numbers."),
    ] = "crossed",
    ddf: Ddf = "satterthwaite",
    level: Level = 0.95,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Fit a linear mixed model: fixed effects, variance components, convergence, what was left out.

    Example: analysis fit demo-study --metric fluency

    Example: analysis fit ratings.csv --score stars --formula "stars ~ model + (1|who) + (1|text)"
    """
    from analysis import fitting, load, results

    loaded = reader.load(target, formula)
    metrics = [metric] if metric else load.rated_metrics(loaded)
    fits = [
        fitting.fitted(
            loaded, name, formula=formula, kind=model, raters=reader.raters,
            method="ML" if ml else "REML", engine=engine, ddf=ddf, level=level,
        )
        for name in metrics
    ]  # fmt: skip
    found = [fitting.result(f) for f in fits]
    results.keep(found, out or results.folder(loaded), csv, table="coefficients")
    if as_json:
        dump(found[0].plain() if metric else [r.plain() for r in found])
    elif len(fits) == 1:
        say(fitting.printed(fits[0]))
    else:
        say(fitting.summary(fits))
        say("\nOne metric in full: --metric NAME")


@app.command()
@reading
def reliability(
    target: Target = Path("."),
    metric: Metric = None,
    level: Level = 0.95,
    bootstrap: Bootstrap = 1000,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Say how far raters agree: ICC(2,1), ICC(2,k) and Krippendorff's alpha, over all sources and for each.

    Example: analysis reliability demo-study --metric fluency

    Example: analysis reliability ratings.csv --rater who --item text --score stars
    """
    from analysis import load, reliability, results

    loaded = reader.load(target)
    how = reliability.Bootstrap(bootstrap, seed, jobs, level)
    metrics = [metric] if metric else load.rated_metrics(loaded)
    found = [reliability.reliability(loaded, name, reader.raters, how) for name in metrics]
    kept = [reliability.result(f) for f in found]
    results.keep(kept, out or results.folder(loaded), csv, table="estimates")
    if as_json:
        dump(kept[0].plain() if metric else [r.plain() for r in kept])
    else:
        say(reliability.printed(found))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="study", help="The study folder.")] = Path("."),
    bootstrap: Bootstrap = 1000,
    seed: Seed = 0,
    jobs: Jobs = 1,
    raters: Raters = "auto",
    without: Without = None,
) -> None:
    """Write report.html, tables/*.tex and figures/*.svg into the study folder.

    Example: analysis report demo-study
    """
    from analysis import load, report
    from analysis.reliability import Bootstrap

    if not folder.is_dir():
        raise StudyError(f"{folder}: is not a study folder; a report is made of one (`study import` makes one)")
    loaded = load.load(folder, without=without or ())
    made = report.report(loaded, Bootstrap(bootstrap, seed, jobs), raters)
    written = report.write(made, folder)
    say(f"{written[-1]}: with {len(made.tables())} tables and {len(made.figures())} figures beside it")
