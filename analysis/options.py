"""What every command of `analysis` takes: a study folder or a bare ratings file, and the columns of the latter."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from study.errors import StudyError

if TYPE_CHECKING:
    from analysis.fitting import Fitted
    from analysis.load import Loaded

Command = Callable[..., None]
Added = dict[str, tuple[object, object]]

Target = Annotated[Path, typer.Argument(help="A study folder, or a CSV or Parquet file of ratings.")]
Metric = Annotated[str | None, typer.Option("--metric", "-m", help="The metric; all of them if left out.")]
Formula = Annotated[str | None, typer.Option("--formula", help="Your own model, in lme4 notation.")]
Kind = Annotated[
    Literal["design", "published"],
    typer.Option("--model", help="The design's own terms, or rater and prompt only as in published studies."),
]
Ml = Annotated[bool, typer.Option("--ml", help="Maximum likelihood in place of REML.")]
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

By = Annotated[
    list[str] | None, typer.Option("--by", metavar="FACTOR", help="Apart in each level of it; may be repeated.")
]
Adjust = Annotated[
    Literal["none", "holm", "tukey", "BY", "BH", "bonferroni", "sidak", "scheffe"],
    typer.Option(help="How p values and intervals are adjusted within a family."),
]
Backend = Annotated[
    Literal["loky", "dask"], typer.Option("--backend", help="Processes here, or a Dask cluster; same numbers.")
]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", metavar="URL", help="The Dask scheduler, as tcp://host:8786.")
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


_MODELLING: dict[str, tuple[object, object]] = {
    "metric": (Metric, None),
    "formula": (Formula, None),
    "kind": (Kind, "design"),
    "ml": (Ml, False),
    "ddf": (Ddf, "satterthwaite"),
    "level": (Level, 0.95),
}


def reading(command: Command) -> Command:
    """Give a command the options of what is read; it receives them as one argument, `reader`.

    The command names `reader: Reader` last among its parameters, by keyword.
    """
    return _extended(command, {}, _READING)


def modelling(command: Command) -> Command:
    """Give a command the options of what is read and of the model; it receives both as `reader`."""
    return _extended(command, _MODELLING, _READING)


def _extended(command: Command, first: Added, last: Added) -> Command:
    """The command with `first` after its positional argument and `last` at its end, gathered in a Reader."""
    added = first | last

    @functools.wraps(command)
    def with_options(**given: object) -> None:
        own = {name: value for name, value in given.items() if name not in added}
        command(**own, reader=Reader(**{name: given[name] for name in added}))

    by_keyword = inspect.Parameter.KEYWORD_ONLY
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "reader"]
    targets = [p for p in own if p.annotation is Target]
    others = [p.replace(kind=by_keyword) for p in own if p.annotation is not Target]
    more = {
        name: inspect.Parameter(name, by_keyword, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    }
    parameters = [*targets, *(more[n] for n in first), *others, *(more[n] for n in last)]
    with_options.__signature__ = inspect.Signature(parameters)
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


class Reader:
    """The options of what is read and of the model, and the reading and fitting themselves."""

    def __init__(
        self,
        raters: str,
        without: list[str] | None,
        scale: str | None,
        metric_column: str | None,
        metric: str | None = None,
        formula: str | None = None,
        kind: str = "design",
        ml: bool = False,
        ddf: str = "satterthwaite",
        level: float = 0.95,
        **columns: str | None,
    ) -> None:
        self.raters = raters
        self.without = tuple(without or ())
        self.metric, self.formula, self.level = metric, formula, level
        self._model = {
            "formula": formula,
            "kind": kind,
            "method": "ML" if ml else "REML",
            "ddf": ddf,
            "level": level,
        }
        self.scale = bounds(scale)
        self._columns = columns | {"metric": metric_column, "scale": self.scale}

    def load(self, target: Path) -> "Loaded":
        """The tidy frame of the target; a formula's outcome names the column of ratings of a bare file."""
        from analysis import bare, load

        columns = dict(self._columns)
        if self.formula and not target.is_dir() and columns["score"] is None:
            outcome = self.formula.partition("~")[0].strip()
            columns["score"] = outcome if outcome.isidentifier() and outcome != "score" else None
        return load.load(target, bare.Columns(**columns), self.without)

    def fits(self, target: Path, **more: object) -> "list[Fitted]":
        """The fit of the metric that was asked for, or of every metric."""
        from analysis import fitting, load

        loaded = self.load(target)
        metrics = [self.metric] if self.metric else load.rated_metrics(loaded)
        return [fitting.fitted(loaded, m, raters=self.raters, **self._model, **more) for m in metrics]


def bounds(text: str | None) -> tuple[float, float] | None:
    """Lowest and highest rating of an option such as 1:5.

    Raises
    ------
    StudyError : if it is no such thing
    """
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


def numbers(text: str | None, option: str) -> tuple[float, ...]:
    """Numbers of an option that takes several: `5,8,17`.

    Raises
    ------
    StudyError : if one is no number above zero
    """
    if text is None:
        return ()
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise StudyError(f"--{option} {text}: write numbers with commas between them, as 5,8,17") from None
    if min(found) <= 0:
        raise StudyError(f"--{option} {text}: numbers are above zero")
    return found


def whole(text: str | None, option: str) -> tuple[int, ...]:
    """Whole numbers of an option that takes several."""
    found = numbers(text, option)
    if any(n % 1 for n in found):
        raise StudyError(f"--{option} {text}: write whole numbers, as 5,8,17")
    return tuple(int(n) for n in found)


def named(text: str | None, option: str) -> dict[str, float]:
    """Names with numbers: `rater=40,prompt=5`.

    Raises
    ------
    StudyError : if a part is not a name with a number
    """
    try:
        pairs = [part.split("=") for part in text.split(",")] if text else []
        return {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        raise StudyError(f"--{option} {text}: write names with numbers, as rater=40,prompt=5") from None
