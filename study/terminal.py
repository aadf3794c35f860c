"""How every command of the house speaks: one sentence for a user's mistake, exit code 1."""

import json
import math
import sys
from collections.abc import Callable

import typer

from study.errors import StudyError


def main(app: Callable[[], object]) -> None:
    """Run a command; a StudyError becomes its sentence on standard error and exit code 1.

    A reader that closes the pipe early (`… | head`) is not an error.
    """
    try:
        app()
    except StudyError as error:
        for line in str(error).splitlines():
            typer.echo(f"error: {line}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def command(name: str, about: str) -> typer.Typer:
    """An empty command group in the manner of the house."""
    return typer.Typer(
        name=name,
        help=about,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def say(text: str = "") -> None:
    typer.echo(text)


def warn(text: str) -> None:
    typer.echo(f"note: {text}", err=True)


def dump(value: object) -> None:
    """One JSON document on standard output, full precision, Korean readable.

    JSON knows no NaN and no infinity: NaN becomes null, infinity the word "inf".
    """
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, indent=2, allow_nan=False))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
