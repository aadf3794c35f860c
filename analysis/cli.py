"""analysis: numbers from ratings. Every command takes a study folder, or a bare file of ratings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from analysis.calibrate import calibrate
from analysis.options import (
    Adjust,
    Bootstrap,
    By,
    Csv,
    Jobs,
    Json,
    Level,
    Metric,
    Out,
    Raters,
    Reader,
    Seed,
    Target,
    Without,
    modelling,
    reading,
)
from study.errors import StudyError
from study.terminal import command, dump, main, say

if TYPE_CHECKING:
    from analysis.followup import Answer
    from analysis.results import Result

app = command("analysis", "Mixed models, reliability and the report of a study of ratings.")


def run() -> None:
    main(app)


@app.command()
@modelling
def fit(
    target: Target = Path("."),
    engine: Annotated[
        Literal["crossed", "statsmodels"],
        typer.Option(help="statsmodels is a slow second route to the same numbers."),
    ] = "crossed",
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Fit a linear mixed model: fixed effects, variance components, convergence, what was left out.

    Example: analysis fit demo-study --metric fluency

    Example: analysis fit ratings.csv --formula "stars ~ model + (1|who) + (1|text)"
    """
    from analysis import fitting, results

    fits = reader.fits(target, engine=engine)
    found = [fitting.result(f) for f in fits]
    results.keep(found, out or results.folder(fits[0].loaded), csv, table="coefficients")
    if as_json:
        _dump(found, reader.metric)
    elif len(fits) == 1:
        say(fitting.printed(fits[0]))
    else:
        say(fitting.summary(fits))
        say("\nOne metric in full: --metric NAME")


@app.command()
@modelling
def contrasts(
    target: Target = Path("."),
    of: Annotated[str, typer.Option(help="The factor whose levels are compared.")] = "source",
    method: Annotated[
        Literal["reference", "pairwise", "sum"],
        typer.Option(help="Each level less the first, all pairs, or each less the mean of all."),
    ] = "reference",
    weights: Annotated[
        str | None, typer.Option(help="Your own contrast, as affirmative=1,negative=-1.", metavar="LEVEL=W,…")
    ] = None,
    across: Annotated[
        str | None, typer.Option(help="Compare the contrasts between this factor's levels too.", metavar="FACTOR")
    ] = None,
    by: By = None,
    adjust: Adjust = "holm",
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Compare estimated marginal means: with a reference, pairwise, by weights, contrasts of contrasts.

    Example: analysis contrasts demo-study --metric fluency --method pairwise --adjust tukey

    Example: analysis contrasts demo-study -m fluency --of form --weights affirmative=1,negative=-1 --across source
    """
    from analysis import followup

    asked = followup.Contrast(of, method, weights, across, tuple(by or ()), adjust)
    _deliver([followup.contrasts(f, asked) for f in reader.fits(target)], reader, as_json, csv, out)


@app.command()
@modelling
def anova(
    target: Target = Path("."),
    type: Annotated[
        int, typer.Option("--type", min=1, max=3, help="3: each term given all others; 2; or 1: in order.")
    ] = 3,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Test the fixed terms of a model by F tests.

    Example: analysis anova demo-study --metric fluency
    """
    from analysis import followup

    _deliver([followup.anova(f, type) for f in reader.fits(target)], reader, as_json, csv, out)


@app.command()
@modelling
def ranova(
    target: Target = Path("."),
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Test the random terms of a model, leaving one out at a time.

    Example: analysis ranova demo-study --metric fluency
    """
    from analysis import followup

    _deliver([followup.ranova(f) for f in reader.fits(target)], reader, as_json, csv, out)


@app.command()
@modelling
def effects(
    target: Target = Path("."),
    of: Annotated[str, typer.Option(help="The factor whose means and differences are wanted.")] = "source",
    by: By = None,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Estimate marginal means, and differences from the first level in points and in standard deviations.

    Example: analysis effects demo-study --metric fluency --by form
    """
    from analysis import followup

    _deliver([followup.effects(f, of, tuple(by or ())) for f in reader.fits(target)], reader, as_json, csv, out)


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
        _dump(kept, metric)
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


app.command()(calibrate)


def _deliver(
    answers: "list[Answer]",
    reader: Reader,
    as_json: bool,
    csv: Path | None,
    out: Path | None,
    table: str = "estimates",
) -> None:
    """Keep the answers as results, and print them as words or as JSON."""
    from analysis import results

    found = [a.result for a in answers]
    results.keep(found, out or results.folder(answers[0].loaded), csv, table=table)
    if as_json:
        _dump(found, reader.metric)
    else:
        say("\n\n".join(a.text for a in answers))


def _dump(found: "list[Result]", metric: str | None) -> None:
    """One document if one metric was asked for, else a list."""
    dump(found[0].plain() if metric else [r.plain() for r in found])
