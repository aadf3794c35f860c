"""`analysis published`: a study beside the published one."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.options import Json, Out
from study.errors import StudyError
from study.terminal import dump, say


def published(
    folder: Annotated[Path, typer.Argument(metavar="study", help="A study of the published sources.")] = Path("."),
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Set every number of the published study beside the reproduced one; exit code 1 if one is not equal.

    Writes side-by-side.csv, .json, .tex, .svg and .html to results/.

    Example: analysis published published-twin
    """
    from analysis import load, published, published_figure, side_by_side

    if not folder.is_dir():
        raise StudyError(f"{folder}: no such study folder; `study simulate --published --into {folder}` makes one")
    loaded = load.load(folder)
    made = published.side_by_side(loaded)
    figure = published_figure.encounters(published.encounter_means(loaded), loaded.simulated)
    written = side_by_side.write(made, out or loaded.study.results, figure.svg)
    if as_json:
        dump(made.result().plain())
    else:
        say(made.words())
        say(f"{written['html']}: with .csv, .json, .tex and .svg beside it")
    if outside := made.outside:
        names = "; ".join(f"{pair.name} ({pair.part})" for pair in outside[:3])
        more = f" and {len(outside) - 3} more" if len(outside) > 3 else ""
        raise StudyError(f"{folder}: not equal within the tolerance: {names}{more}")
