"""Many replicates in fixed chunks, each with its own seed: the same numbers on any number of machines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import numpy as np
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from study.errors import StudyError

Backend = Literal["loky", "dask"]
Result = TypeVar("Result")


def in_chunks(
    task: Callable[[int, np.random.Generator], Result],
    n: int,
    *,
    seed: int,
    size: int = 250,
    jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
) -> list[Result]:
    """What `task(n_in_chunk, rng)` returns for each chunk of `n` replicates, in order.

    The chunks and their random streams depend on `n`, `size` and `seed` only, so that `jobs`, `backend` and
    `scheduler` change the time and never the numbers.

    Parameters
    ----------
    task : picklable; takes the number of replicates and their generator
    jobs : processes; -1 for all cores
    backend : "loky" on this machine, "dask" on the machines behind `scheduler`
    scheduler : address of a Dask scheduler, as tcp://host:8786

    Raises
    ------
    StudyError : n or size below one; backend unknown, not installed or not answering
    """
    if n < 1 or size < 1:
        raise StudyError(f"{n} replicates in chunks of {size}: give numbers of at least 1")
    sizes = [size] * (n // size) + [n % size] * (n % size > 0)
    streams = np.random.SeedSequence(seed).spawn(len(sizes))
    if jobs == 1 and backend == "loky":
        return [_run(task, *pair) for pair in zip(sizes, streams, strict=True)]
    with _workers(backend, scheduler):
        return Parallel(n_jobs=jobs)(delayed(_run)(task, *pair) for pair in zip(sizes, streams, strict=True))


def _run(
    task: Callable[[int, np.random.Generator], Result], n: int, stream: np.random.SeedSequence
) -> Result:
    """One chunk, with a generator made where it runs.

    One thread each: threads would only get in each other's way, and they may change the last digits.
    """
    with threadpool_limits(limits=1):
        return task(n, np.random.default_rng(stream))


@contextmanager
def _workers(backend: Backend, scheduler: str | None) -> Iterator[None]:
    """joblib's workers for the time of one call; a Dask client is closed again."""
    if backend == "loky":
        with parallel_config(backend="loky"):
            yield
        return
    if backend != "dask":
        raise StudyError(f"backend {backend!r} is unknown; choose loky or dask")
    try:
        from distributed import Client
    except ImportError:
        raise StudyError("backend dask needs the package distributed: pip install distributed") from None
    if scheduler is None:
        raise StudyError("backend dask needs the address of its scheduler, as tcp://host:8786")
    try:
        client = Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise StudyError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client, parallel_config(backend="dask", client=client):
        yield
