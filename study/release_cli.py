"""`study release` and `verify-release`: the data package of a study, and its check."""

from pathlib import Path
from typing import Annotated

import typer

from study.errors import StudyError, joined
from study.terminal import dump, say

Folder = Annotated[Path, typer.Argument(metavar="study", help="The study folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]


def release(
    folder: Folder = Path("."),
    into: Annotated[Path | None, typer.Option(help="The folder to write. Default: release in the study.")] = None,
    label_simulated: Annotated[
        bool, typer.Option("--label-simulated", help="Let simulated ratings out, with the label on everything.")
    ] = False,
    audit: Annotated[
        Path | None, typer.Option(help="Also write a sample of the texts to this CSV, for a person to read.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a study's data package: tables, data card, Croissant description, checksums.

    Raters get new names, texts lose what tells who somebody is, and everything that may not leave is refused with
    its reason. The new names come from release.secret in the study folder: keep it, and to yourself.

    Example: study release demo-study --into demo-release
    """
    from study import release as releasing
    from study.config import load

    study = load(folder)
    target = into or study.path("release")
    made = releasing.package(study, label_simulated=label_simulated)
    sums = releasing.write(made, target)
    told = releasing.counts(made)
    if audit:
        told["audit"] = releasing.write_sample(made, audit)
    if as_json:
        dump({"folder": str(target), "files": sums} | told)
        return
    for name, rows in told["rows"].items():
        say(f"{name:<20} {rows:>8} rows")
    replaced = ", ".join(f"{n} {kind}" for kind, n in told["replaced"].items()) or "nothing"
    say(f"replaced in texts: {replaced}; reasons emptied: {told['reasons_emptied']}")
    for why, n in told["raters_left_out"].items():
        say(f"raters left out: {n} who {why}")
    if made.simulated:
        say(f"{made.simulated} ratings are simulated; every file says so")
    if audit:
        say(f"{audit}: {told['audit']} texts to read; tell what was overlooked as audit under [release]")
    for note in made.notes:
        say(f"note: {note}")
    say(f"{target}: written and checked")


def verify_release(
    folder: Annotated[Path, typer.Argument(metavar="package", help="The folder of the data package.")],
    as_json: Json = False,
) -> None:
    """Check a data package as a stranger would: what it must say, its hashes, types, records, and personal data.

    Example: study verify-release demo-release
    """
    from study.release_check import problems_of

    found = problems_of(folder)
    if as_json:
        dump({"problems": found})
    if found and as_json:
        raise typer.Exit(1)
    if found:
        raise StudyError(joined([f"{folder}: {p}" for p in found]))
    if not as_json:
        say(f"{folder}: no problem found")
