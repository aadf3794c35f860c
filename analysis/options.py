"""What every command of `analysis` takes: a study folder or a bare ratings file, and the columns of the latter."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from study.errors import StudyError

Target = Annotated[Path, typer.Argument(help="A study folder, or a CSV or Parquet file of ratings.")]
Metric = Annotated[str | None, typer.Option("--metric", "-m", help="The metric; all of them if left out.")]
Formula = Annotated[str | None, typer.Option("--formula", help="Your own model, in lme4 notation.")]
Kind = Annotated[
    Literal["design", "published"],
    typer.Option("--model", help="The design's own terms, or rater and prompt only as in published studies."),
]
Level = Annotated[float, typer.Option("--level", min=0.5, max=0.9999, help="Confidence of the intervals.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, in full precision.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="Also write the table of estimates to this file.")]
Seed = Annotated[int, typer.Option("--seed", help="Random draws come from it.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes; the numbers do not depend on it.")]
Bootstrap = Annotated[int, typer.Option("--bootstrap", min=100, help="Bootstrap draws.", metavar="N")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder for the JSON of results; a study has its own, results.")
]
Ddf = Annotated[
    Literal["satterthwaite", "kenward-roger", "z"],
    typer.Option("--df", help="Where the degrees of freedom come from."),
]

Raters = Annotated[
    Literal["auto", "human", "judge", "rule", "all"],
    typer.Option("--raters", help="Whose ratings; auto: people where there are any."),
]
Without = Annotated[
    list[str] | None, typer.Option("--without", metavar="RATER", help="A rater to leave out; may be repeated.")
]

_BARE = "Bare file: "


def _column(name: str, help: str) -> object:
    return Annotated[str | None, typer.Option(f"--{name}", help=_BARE + help, metavar="COLUMN")]


_READING: dict[str, tuple[object, object]] = {
    "raters": (Raters, "auto"),
    "without": (Without, None),
    "rater": (_column("rater", "column of raters."), None),
    "item": (_column("item", "column of items."), None),
    "score": (_column("score", "column of ratings."), None),
    "source": (_column("source", "column of sources."), None),
    "prompt": (_column("prompt", "column of prompts."), None),
    "case": (_column("case", "column of cases."), None),
    "category": (_column("category", "column of categories."), None),
    "form": (_column("form", "column of forms."), None),
    "metric_column": (_column("metric-column", "column of metrics."), None),
    "scale": (
        Annotated[
            str | None,
            typer.Option(help=_BARE + "lowest and highest rating possible, as 1:5."),
        ],
        None,
    ),
    "reference": (
        Annotated[
            str | None,
            typer.Option(help=_BARE + "the source others are compared with."),
        ],
        None,
    ),
}


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of what is read; it receives them as one argument, `reader`.

    The command names `reader: Reader` last among its parameters, by keyword.
    """

    @functools.wraps(command)
    def with_options(**given: object) -> None:
        own = {name: value for name, value in given.items() if name not in _READING}
        command(**own, reader=Reader(**{name: given[name] for name in _READING}))

    own = [p for p in inspect.signature(command).parameters.values() if p.name != "reader"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _READING.items()
    ]
    with_options.__signature__ = inspect.Signature([*own, *added])
    with_options.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
    return with_options


class Reader:
    """The options of what is read, and the reading itself."""

    def __init__(
        self,
        raters: str,
        without: list[str] | None,
        scale: str | None,
        metric_column: str | None,
        **columns: str | None,
    ) -> None:
        self.raters = raters
        self.without = tuple(without or ())
        self._columns = columns | {"metric": metric_column, "scale": _scale(scale)}

    def load(self, target: Path, formula: str | None = None):
        """The tidy frame of the target; a formula's outcome names the column of ratings of a bare file."""
        from analysis import bare, load

        columns = dict(self._columns)
        if formula and not target.is_dir() and columns["score"] is None:
            outcome = formula.partition("~")[0].strip()
            columns["score"] = outcome if outcome.isidentifier() and outcome != "score" else None
        return load.load(target, bare.Columns(**columns), self.without)


def _scale(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        scale = float(low), float(high)
    except ValueError:
        raise StudyError(f"--scale {text}: is not a scale; write the lowest and highest rating as 1:5") from None
    if scale[0] >= scale[1]:
        raise StudyError(f"--scale {text}: the lowest rating comes first, as 1:5")
    return scale
