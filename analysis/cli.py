"""analysis: numbers from ratings. Every command takes a study folder, or a bare file of ratings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from analysis.automated_cli import judge, lowscores, rules
from analysis.benchmark_cli import app as benchmark
from analysis.calibrate import calibrate
from analysis.options import (
    Adjust,
    Backend,
    Bootstrap,
    By,
    Csv,
    Jobs,
    Json,
    Level,
    Metric,
    Out,
    Reader,
    Scheduler,
    Seed,
    Target,
    modelling,
    named,
    numbers,
    reading,
    whole,
)
from analysis.published_cli import published
from analysis.reporting_cli import checklist, grim, report
from study.errors import StudyError
from study.terminal import command, dump, main, say

if TYPE_CHECKING:
    from analysis.followup import Answer
    from analysis.results import Result

RaterNumbers = Annotated[
    str | None, typer.Option("--n-raters", metavar="N,…", help="Numbers of raters to look at, as 5,8,17.")
]
PromptNumbers = Annotated[
    str | None,
    typer.Option("--n-prompts", metavar="N,…", help="Numbers of prompts (of cases, for encounters), as 35,70."),
]

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
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="A cumulative-link model too: ratings as ordered categories.")
    ] = False,
    link: Annotated[Literal["logit", "probit"], typer.Option(help="Link of the ordinal model.")] = "logit",
    intervals: Annotated[
        Literal["wald", "profile", "bootstrap"],
        typer.Option(help="wald: t and df; profile likelihood; parametric bootstrap. The last two, of SDs too."),
    ] = "wald",
    bootstrap: Bootstrap = 1000,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Fit a linear mixed model: fixed effects, variance components, convergence, what was left out.

    Example: analysis fit demo-study --metric fluency

    Example: analysis fit demo-study --metric fluency --intervals bootstrap

    Example: analysis fit ratings.csv --formula "stars ~ model + (1|who) + (1|text)"
    """
    from analysis import fitting, results
    from analysis import intervals as ends
    from analysis.progress import shown

    if ordinal and intervals != "wald":
        raise StudyError(f"--intervals {intervals} is of the linear model; leave out --ordinal")
    fits = reader.fits(target, engine=engine)
    if ordinal:
        from analysis import ordinals

        _deliver([ordinals.ordinal(f, link) for f in fits], reader.metric, as_json, csv, out, "coefficients")
        return
    with shown("intervals", "intervals") as progress:
        how = ends.Draws(bootstrap, seed, jobs)
        fits = [ends.with_intervals(f, intervals, how, progress) for f in fits]
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
    _deliver([followup.contrasts(f, asked) for f in reader.fits(target)], reader.metric, as_json, csv, out)


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

    _deliver([followup.anova(f, type) for f in reader.fits(target)], reader.metric, as_json, csv, out)


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

    _deliver([followup.ranova(f) for f in reader.fits(target)], reader.metric, as_json, csv, out)


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

    _deliver(
        [followup.effects(f, of, tuple(by or ())) for f in reader.fits(target)], reader.metric, as_json, csv, out
    )


@app.command()
@modelling
def influence(
    target: Target = Path("."),
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="GROUP", help="What is left out, as rater or case:prompt; may be repeated."),
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Find the variances anew without each level; slower.")
    ] = False,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Leave out each rater and each prompt in turn: what the fixed effects hang on, by Cook's distance.

    Example: analysis influence demo-study --metric fluency --by rater --by case:prompt
    """
    from analysis import followup

    fits = reader.fits(target)
    _deliver([followup.influence(f, tuple(by or ()), refit) for f in fits], reader.metric, as_json, csv, out)


@app.command()
@reading
def reliability(
    target: Target = Path("."),
    metric: Metric = None,
    level: Level = 0.95,
    bootstrap: Bootstrap = 1000,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    full: Annotated[
        bool, typer.Option("--full", help="All six ICCs, alpha, AC2 and percent agreement, and rater by rater.")
    ] = False,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Say how far raters agree: ICC(2,1), ICC(2,k) and Krippendorff's alpha, over all sources and for each; who is
    severe, and whom the others agree without.

    Example: analysis reliability demo-study --metric fluency

    Example: analysis reliability ratings.csv --rater who --item text --score stars
    """
    from analysis import load, raters, reliability, results

    loaded = reader.load(target)
    how = reliability.Bootstrap(bootstrap, seed, jobs, level, backend, scheduler)
    metrics = [metric] if metric else load.rated_metrics(loaded)
    if full:
        from analysis import panel

        answers = [panel.panel(loaded, name, how, reader.raters) for name in metrics]
        _deliver(answers, metric, as_json, csv, out)
        return
    found = [reliability.reliability(loaded, name, reader.raters, how) for name in metrics]
    by_rater = [raters.raters(f) for f in found]
    kept = [reliability.result(f, r.plain()) for f, r in zip(found, by_rater, strict=True)]
    results.keep(kept, out or results.folder(loaded), csv, table="estimates")
    if as_json:
        _dump(kept, metric)
        return
    one = len(found) == 1
    say(reliability.printed(found, [raters.printed(r, full=one) for r in by_rater]))
    if not one:
        say(f"\n{raters.ONE_METRIC}")


@app.command()
@reading
def gstudy(
    target: Target = Path("."),
    metric: Metric = None,
    n_raters: RaterNumbers = None,
    n_prompts: PromptNumbers = None,
    cost: Annotated[float, typer.Option(help="What one rating costs.")] = 0.0,
    cost_of: Annotated[
        str | None, typer.Option(help="What each costs besides, as rater=40,prompt=5.", metavar="FACET=C,…")
    ] = None,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Decompose the variance of ratings, and say what studies of other sizes would measure, at which cost.

    For a study it draws figures/precision-METRIC.svg and .pdf too (for a bare file, into --out).

    Example: analysis gstudy demo-study --metric fluency --n-raters 5,8,17 --n-prompts 35,70,140 --cost 0.2
    """
    from analysis import load, planning

    loaded = reader.load(target)
    sizes = planning.Sizes(whole(n_raters, "n-raters"), whole(n_prompts, "n-prompts"))
    costs = planning.Cost(cost, named(cost_of, "cost-of"))
    metrics = [metric] if metric else load.rated_metrics(loaded)
    answers = [planning.gstudy(loaded, name, sizes, costs, reader.raters) for name in metrics]
    _deliver(answers, metric, as_json, csv, out)
    if folder := out or (loaded.study.path("figures") if loaded.study else None):
        from analysis.reporting import precision

        precision.kept(answers, folder)


@app.command()
@modelling
def power(
    target: Target = Path("."),
    assume: Annotated[
        str | None,
        typer.Option(
            help="Assumed variances in place of a pilot's.", metavar="source_prompt=V,source_rater=V,residual=V"
        ),
    ] = None,
    sources: Annotated[int, typer.Option(min=2, help="Sources, with assumed variances.")] = 2,
    n_raters: RaterNumbers = None,
    n_prompts: PromptNumbers = None,
    n_cases: Annotated[
        str | None, typer.Option("--n-cases", help="Numbers of cases that hold prompts, as 3,10.", metavar="N,…")
    ] = None,
    difference: Annotated[str, typer.Option(help="True differences of two sources.", metavar="D,…")] = "0.2,0.3",
    target_power: Annotated[float, typer.Option("--power", min=0.5, max=0.999, help="The power wanted.")] = 0.8,
    alpha: Annotated[float, typer.Option(min=0.0001, max=0.5, help="The test's level.")] = 0.05,
    simulate: Annotated[
        int | None, typer.Option(min=100, help="Simulate so many studies of each size.", metavar="N")
    ] = None,
    mean: Annotated[float, typer.Option(help="Simulation: mean rating, before rounding to --scale.")] = 0.0,
    missing: Annotated[float, typer.Option(min=0, max=0.9, help="Simulation: share of ratings missing.")] = 0.0,
    raters_per_prompt: Annotated[
        int | None, typer.Option(min=1, help="Simulation: incomplete blocks of so many raters.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Say how likely a study finds a difference, from a pilot's fit or from assumed variances.

    Example: analysis power demo-study --metric fluency --n-raters 5,17 --n-prompts 70,140 --difference 0.1,0.2

    Example: analysis power --assume source_prompt=0.16,source_rater=0.01,residual=0.4 --n-prompts 70 --n-raters 17
    """
    from analysis import planning
    from analysis.stats import power as statistics

    sizes = planning.Sizes(whole(n_raters, "n-raters"), whole(n_prompts, "n-prompts"), whole(n_cases, "n-cases"))
    how = (
        planning.Simulation(
            simulate or 0, mean, reader.scale, missing, raters_per_prompt, seed, jobs, backend, scheduler
        )
        if simulate
        else None
    )
    asked = {"target": target_power, "alpha": alpha, "simulation": how}
    differences = numbers(difference, "difference")
    if assume is not None:
        if not (sizes.prompts and sizes.raters):
            raise StudyError("--assume needs the sizes to look at: --n-prompts and --n-raters")
        start = statistics.Size(sources, sizes.prompts[0], sizes.raters[0])
        variances = statistics.assumed(named(assume, "assume"))
        answers = [planning.power_of(variances, start, sizes, differences, **asked)]
    else:
        answers = [
            planning.power_of(
                *planning.pilot(f),
                sizes,
                differences,
                found=f,
                **asked,
                called="prompt" if f.selected.metric.item == "utterance" else "case",
            )
            for f in reader.fits(target)
        ]
    _deliver(answers, reader.metric or assume, as_json, csv, out)


@app.command()
@modelling
def compare(
    target: Target = Path("."),
    second: Annotated[
        Path | None, typer.Option("--with", help="The second study or file; the first again if left out.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Given twice: the two sets of rows.", metavar="COLUMN=VALUE")
    ] = None,
    of: Annotated[str, typer.Option(help="The factor whose contrasts are compared.")] = "source",
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """Compare two studies, two waves or two subsets: the same contrasts, and how they differ.

    Example: analysis compare pilot-study --with main-study --metric fluency

    Example: analysis compare demo-study --metric fluency --where form=affirmative --where form=negative
    """
    from analysis import load, pairs

    if (second is None) != (where is not None) or (where is not None and len(where) != 2):
        raise StudyError("compare takes a second study (--with), or two sets of rows (--where twice)")
    one = reader.load(target)
    two = reader.load(second) if second is not None else one
    metrics = (
        [reader.metric] if reader.metric else [m for m in load.rated_metrics(one) if m in load.rated_metrics(two)]
    )
    how = {"formula": reader.formula, "factor": of, "raters": reader.raters, "level": reader.level}
    answers = [pairs.compare(one, two, m, where=tuple(where) if where else None, **how) for m in metrics]
    _deliver(answers, reader.metric, as_json, csv, out)


app.add_typer(benchmark, name="benchmark")
app.command()(calibrate)
app.command()(judge)
app.command()(rules)
app.command()(lowscores)
app.command()(report)
app.command()(checklist)
app.command()(grim)
app.command()(published)


def _deliver(
    answers: "list[Answer]",
    metric: str | None,
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
        _dump(found, metric)
    else:
        say("\n\n".join(a.text for a in answers))


def _dump(found: "list[Result]", metric: str | None) -> None:
    """One document if one metric was asked for, else a list."""
    dump(found[0].plain() if metric else [r.plain() for r in found])
