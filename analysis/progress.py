"""Progress of long work: a bar on standard error where that is a terminal, a line per finished part elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

Told = Callable[[int, int, str], None]


@contextmanager
def shown(doing: str, done: str) -> Iterator[Told]:
    """What is told of each finished part: its number, how many there are, which it was.

    Parameters
    ----------
    doing, done : the work in two words, as calibrating and calibrated
    """
    if not sys.stderr.isatty():
        yield lambda n, total, what: typer.echo(f"{done} {n}/{total}: {what}", err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.description}"))  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda n, total, what: bar.update(task, completed=n, total=total, description=what)
