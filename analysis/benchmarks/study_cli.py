"""`analysis benchmark to-study`: encounters that people rate as judges did."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.options import Json
from study.terminal import dump, say


def to_study(
    benchmarks: Annotated[
        list[Path], typer.Argument(metavar="FOLDER…", help="Folders of rated benchmark runs, one for each doctor.")
    ],
    into: Annotated[Path, typer.Option(help="The study folder to make.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Encounters: each case with every doctor.")] = 30,
    raters: Annotated[int, typer.Option(min=1, help="People who are to rate all of them.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Draws the cases, labels and orders.")] = 20261130,
    answer: Annotated[
        bool, typer.Option("--answer/--no-answer", help="Show raters what the case expects, as judges are.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Make a study folder of a benchmark's encounters: people rate them in the app, blind to the doctor.

    What judges and rules said of these encounters comes along. When people have rated and their ratings are
    exported, `analysis calibrate` holds one against the other.

    Example: analysis benchmark to-study runs/gpt-4o runs/embedded --into panel-study --n 30 --raters 5
    """
    from analysis.benchmarks import to_study as slices

    made = slices.to_study(benchmarks, into, n=n, raters=raters, seed=seed, answer=answer)
    told = {
        "study": str(into), "encounters": made.encounters, "cases": made.cases, "doctors": list(made.doctors),
        "ratings": made.ratings, "raters": raters,
    }  # fmt: skip
    if as_json:
        dump(told)
        return
    say(
        f"{into}: {made.encounters} encounters of {made.cases} cases and {len(made.doctors)} doctors for {raters} "
        f"raters; {made.ratings} ratings by judges and rules came along"
    )
    run = benchmarks[0]
    say(
        f"next: annotation_app serve {into} --links; annotation_app export {into}; analysis calibrate {into} "
        f"--judge RATER --about {run}/about-RATER.toml --out {run}/results"
    )
