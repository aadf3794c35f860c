"""study: lay out a study, check it, assign it, import ratings, see how far it has come."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from study import release_cli
from study.errors import StudyError, joined
from study.terminal import command, dump, main, say

app = command("study", "A study of rated dialogues: make it, check it, assign it, see how far it has come.")

Folder = Annotated[Path, typer.Argument(help="The study folder, with its study.toml.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]


def run() -> None:
    main(app)


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make.")],
    title: Annotated[str | None, typer.Option(help="The study's title.")] = None,
    seed: Annotated[int, typer.Option(help="Labels and orders come from it.")] = 20261130,
) -> None:
    """Make a study folder: study.toml, cases, prompts and checklists to start from.

    Example: study new my-study --title "Virtual patients, spring 2027"
    """
    from study import folder as folders

    study = folders.new(folder, title=title, seed=seed)
    say(f"{study.folder}: made. Edit study.toml, then: study check {study.folder}")


@app.command()
def check(folder: Folder = Path("."), as_json: Json = False) -> None:
    """Check a study's files, each against its contract and against the others.

    Example: study check demo-study
    """
    from study import state
    from study.config import load

    study = load(folder)
    problems = state.problems(study)
    if as_json:
        dump({"study": study.study_id, "problems": problems})
    if problems:
        if as_json:
            raise typer.Exit(1)
        raise StudyError(joined(problems))
    if not as_json:
        say(f"{folder}: no problem found")


@app.command()
def status(folder: Folder = Path("."), as_json: Json = False) -> None:
    """Say how far a study has come, file by file.

    Example: study status demo-study --json
    """
    from study import state
    from study.config import load

    arrows = state.status(load(folder))
    if as_json:
        dump([vars(a) for a in arrows])
        return
    for arrow in arrows:
        say(f"{arrow.file:<20} {arrow.says}")


@app.command()
def assign(folder: Folder = Path("."), as_json: Json = False) -> None:
    """Give every response its label and every rater an order: items, key and assignment.

    The order is balanced as in a Williams square; the key is the only file that knows which label is whose.

    Example: study assign demo-study
    """
    from study import design, tables
    from study.config import load

    study = load(folder)
    if study.ratings.exists():
        raise StudyError(
            f"{study.ratings}: ratings were given under the labels of an earlier assignment; "
            "a new one would make them meaningless. Work in a new folder"
        )
    responses = tables.read(study.responses, tables.RESPONSES)
    items, key = design.items(study.content(), responses, study.seed)
    assignment, balance = design.assignment(
        items, key, study.raters, study.seed,
        raters_per_encounter=study.design.raters_per_encounter, apart=study.design.apart,
    )  # fmt: skip
    tables.write(items, study.items, tables.ITEMS)
    tables.write(key, study.key, tables.KEY)
    tables.write(assignment, study.assignment, tables.ASSIGNMENT)
    left_out = int((responses["status"] != "ok").sum())
    if as_json:
        dump({"items": len(items), "assigned": len(assignment), "left_out": left_out, "balance": vars(balance)})
        return
    say(
        f"{len(items)} items, {assignment['rater_id'].nunique()} raters, {len(assignment)} places; "
        f"{left_out} responses without an answer left out"
    )
    say(
        f"each encounter stands {balance.place_low} to {balance.place_high} times in a place; two that may be "
        f"neighbours follow each other {balance.pair_low} to {balance.pair_high} times; "
        f"encounters of one case stand at least {balance.apart} apart"
    )
    if balance.apart < study.design.apart:
        say(f"note: apart = {study.design.apart} cannot be kept with these cases; kept {balance.apart}")


@app.command()
def simulate(
    folder: Folder = Path("."),
    published: Annotated[
        bool, typer.Option("--published", help="Instead: ratings that print as the published study's figures.")
    ] = False,
    into: Annotated[
        Path | None, typer.Option(help="With --published: the folder to make (published-twin if left out).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw ratings from the known truth in study.toml's [simulation]; every row says that it is simulated.

    Example: study simulate demo-study

    Example: study simulate --published --into published-twin
    """
    if published:
        if folder != Path("."):
            raise typer.BadParameter("with --published, the folder is named by --into", param_hint="folder")
        _twin(into or Path("published-twin"), as_json)
        return
    if into is not None:
        raise typer.BadParameter(
            "names the folder of --published; any other study is named alone", param_hint="--into"
        )
    from study import simulate as simulation
    from study import tables
    from study.config import load

    study = load(folder)
    if study.simulation is None:
        raise StudyError(f"{folder}/study.toml: has no [simulation], so there is no truth to draw ratings from")
    if study.ratings.exists() and not tables.read(study.ratings, tables.RATINGS)["simulated"].all():
        raise StudyError(f"{study.ratings}: holds ratings that people gave; simulate in a folder of its own")
    frames = [
        tables.read(p, t)
        for p, t in ((study.items, tables.ITEMS), (study.key, tables.KEY), (study.assignment, tables.ASSIGNMENT))
    ]
    ratings = simulation.ratings(*frames, study.metrics, study.simulation, study.seed)
    tables.check_ratings(ratings, study.metrics)
    tables.write(ratings, study.ratings, tables.RATINGS, {"crossed.simulated": "true"})
    if as_json:
        dump({"rows": len(ratings), "with_value": int(ratings["value"].notna().sum()), "simulated": True})
        return
    say(
        f"{len(ratings)} simulated ratings by {ratings['rater_id'].nunique()} simulated raters, "
        f"{int(ratings['value'].isna().sum())} of them missing"
    )


def _twin(folder: Path, as_json: bool) -> None:
    from study import tables
    from study.twin.build import build

    study = build(folder)
    ratings = tables.read(study.ratings, tables.RATINGS)
    if as_json:
        dump({"folder": str(folder), "rows": len(ratings), "simulated": True})
        return
    say(
        f"{folder}: {len(ratings)} simulated ratings by {len(study.raters)} simulated raters on placeholder "
        f"answers, which print as the published study's. See: analysis published {folder}"
    )


@app.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")],
    into: Annotated[Path, typer.Option(help="The study folder to make, or with --add to add to.")],
    score: Annotated[str, typer.Option(help="Column of the score (long files).")] = "score",
    rater: Annotated[str, typer.Option(help="Column of the rater (long files).")] = "rater",
    wide: Annotated[str | None, typer.Option(help="Raters' columns, comma-separated (wide files).")] = None,
    item: Annotated[
        str | None, typer.Option(help="Column of the item; else --source and --prompt name it.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Column of the source.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Column of the prompt.")] = None,
    case: Annotated[str | None, typer.Option(help="Column of the case.")] = None,
    metric: Annotated[str | None, typer.Option(help="Column of the metric.")] = None,
    metric_name: Annotated[str, typer.Option(help="The metric's name where there is no column.")] = "score",
    category: Annotated[str | None, typer.Option(help="Column of the prompt's category.")] = None,
    form: Annotated[str | None, typer.Option(help="Column of the prompt's form.")] = None,
    occasion: Annotated[str | None, typer.Option(help="Column that counts a rater's repeats.")] = None,
    kind: Annotated[str, typer.Option(help="Who rated: human, judge or rule.")] = "human",
    item_kind: Annotated[str, typer.Option(help="What was rated: utterance or encounter.")] = "utterance",
    levels: Annotated[
        str | None, typer.Option(help="Words of the scale from low to high, comma-separated.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="The scale's ends, as 1:5; else the ends found.")] = None,
    add: Annotated[bool, typer.Option("--add", help="Add to a study's ratings (say, a judge's).")] = False,
    as_json: Json = False,
) -> None:
    """Make a study folder of ratings collected elsewhere.

    Long files have a row for each rating, wide files a row for each item and a column for each rater.

    Example: study import scores.csv --into my-study --rater annotator --source system --prompt doc
    --metric dimension --score value --scale 1:5
    """
    from study import folder as folders
    from study import tables
    from study.config import load
    from study.importers import files, long
    from study.importers import wide as wide_files

    _one_of("--kind", kind, tables.RATER_KINDS)
    _one_of("--item-kind", item_kind, tables.KINDS)
    frame = files.frame(file)
    if wide:
        frame = wide_files.lengthened(frame, tuple(w.strip() for w in wide.split(",")), str(file))
        rater, score = wide_files.RATER, wide_files.SCORE
    columns = long.Columns(rater, score, item, source, prompt, case, metric, category, form, occasion)
    words = tuple(w.strip() for w in levels.split(",")) if levels else ()
    imported = long.tables(
        frame, columns, str(file), rater_kind=kind, metric_name=metric_name, levels=words,
        scale=_ends(scale), item_kind=item_kind,
    )  # fmt: skip
    if add:
        study = load(into)
        known = long.of_known_items(imported, tables.read(study.items, tables.ITEMS), str(file))
        folders.add_ratings(study, known.ratings)
    else:
        study = folders.from_ratings(into, imported, file.name, inferred=scale is None and not words)
    ratings = imported.ratings
    counts = {
        "ratings": len(ratings),
        "missing": int(ratings["value"].isna().sum()),
        "raters": ratings["rater_id"].nunique(),
        "items": imported.ratings["label"].nunique(),
        "sources": imported.key["source_id"].nunique(),
        "metrics": [m.metric_id for m in imported.metrics],
    }
    if as_json:
        dump(counts)
        return
    say(
        f"{into}: {counts['ratings']} ratings ({counts['missing']} missing) by {counts['raters']} raters on "
        f"{counts['items']} items of {counts['sources']} sources; metrics {', '.join(counts['metrics'])}"
    )
    for m in imported.metrics if scale is None and not words and not add else ():
        say(
            f"note: {m.metric_id}'s scale was taken from the scores found, {m.low:g} to {m.high:g}; "
            "set it in study.toml if it is wider"
        )


app.command()(release_cli.release)
app.command()(release_cli.verify_release)


@app.command()
def demo(folder: Annotated[Path, typer.Argument(help="The folder to make.")] = Path("demo-study")) -> None:
    """Run a whole study once through: prompts, responses, assignment, simulated ratings, analysis, report.

    Example: study demo demo-study
    """
    from study import folder as folders
    from study.config import FILE, load

    if not (folder / FILE).exists():
        folders.new(folder, title="Demo: five embedded patients and simulated raters", simulated=True)
    study = load(folder)
    if study.simulation is None:
        raise StudyError(f"{folder}: holds a study that is no demo; name a new folder")
    steps = [("study", "check"), ("generation", "run"), ("study", "assign"), ("study", "simulate")]
    if study.ratings.exists():
        steps.remove(("study", "assign"))
    for step in steps:
        _walk([step], folder)
    # The three read the ratings and nothing of each other, so two cores can share them.
    _walk([("analysis", "fit"), ("analysis", "reliability"), ("analysis", "report")], folder)
    say(f"\nThe report: {folder / 'report.html'}")


def _walk(steps: list[tuple[str, str]], folder: Path) -> None:
    """Run commands side by side, and show what each says in their order; the first failure ends the walk."""
    pipe = None if len(steps) == 1 else subprocess.PIPE
    say(f"\n$ {' '.join(steps[0])} {folder}")
    begun = [subprocess.Popen([sys.executable, "-m", *s, str(folder)], stdout=pipe, text=True) for s in steps]
    for step, process in zip(steps, begun, strict=True):
        if process is not begun[0]:
            say(f"\n$ {' '.join(step)} {folder}")
        said, _ = process.communicate()
        if said:
            say(said.rstrip())
        if process.returncode:
            for other in begun:
                other.kill()
            raise typer.Exit(process.returncode)


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise typer.BadParameter(f"{value!r}; it takes {', '.join(allowed)}", param_hint=option)


def _ends(scale: str | None) -> tuple[float, float] | None:
    if scale is None:
        return None
    try:
        low, high = (float(end) for end in scale.split(":"))
    except ValueError:
        raise typer.BadParameter(f"{scale!r}; write it as 1:5", param_hint="--scale") from None
    return low, high
