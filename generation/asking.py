"""Many questions to one model: each asked until it has an outcome, every attempt noted, several at a time."""

import random
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from generation.client import Call, Client
from generation.retry import CallError, Gate, Policy, Stopped, persist
from generation.settings import ModelSettings

Note = Callable[[Mapping[str, object]], object]
Job = TypeVar("Job")
_LAST_CALLS = 5.0  # seconds that calls under way are given when a run is stopped


@dataclass(frozen=True)
class Asked:
    """A question's outcome: a call with its reply, or the error of the last attempt."""

    call: Call | None
    error: CallError | None
    attempts: int
    asked_at: str
    answered_at: str


class Asker:
    """Puts questions to one model.

    `note` is told of every attempt before it leaves and of every one that brought nothing, so that each request a
    server received has its line on our side, even if this process is killed meanwhile.
    """

    def __init__(self, settings: ModelSettings, note: Note = lambda record: None) -> None:
        self.settings = settings
        self.note = note
        self.gate = Gate(settings.per_minute)
        self._client = Client(settings)
        self._policy = Policy(settings.attempts, settings.first_wait, settings.patience)
        self._chance = random.Random()  # jitter only: it may differ between runs

    def close(self) -> None:
        self._client.close()

    def ask(self, key: str, sent: Mapping[str, object], about: Mapping[str, object]) -> Asked:
        """Ask one question.

        Parameters
        ----------
        about : goes into every note, to tell whose question it was

        Raises
        ------
        Stopped : if the run ends while the question waits
        """
        made: list[str] = []

        def call(number: int) -> Call:
            made.append(uuid.uuid4().hex)
            self.note({"event": "asked", "key": key, **about, "attempt": made[-1], "number": number, "at": now()})
            return self._client.send(sent, made[-1])

        def ended(number: int, error: CallError | None) -> None:
            if error is not None:
                missed = {"kind": error.kind, "code": error.code, "detail": error.detail}
                self.note({"event": "missed", "key": key, **about, "attempt": made[-1], **missed, "at": now()})

        begun = now()
        try:
            found = persist(call, self._policy, self.gate, self._chance, ended)
        except CallError as error:
            return Asked(None, error, len(made), begun, now())
        return Asked(found, None, len(made), begun, now())


def spread(jobs: Iterable[Job], do: Callable[[Job], None], workers: int, gate: Gate) -> "Spread":
    """Start doing all jobs, `workers` at a time; each is drawn from the iterable only when its turn comes."""
    return Spread(iter(jobs), do, workers, gate)


class Spread:
    """Jobs under way."""

    def __init__(self, jobs: Iterator[Job], do: Callable[[Job], None], workers: int, gate: Gate) -> None:
        self._jobs, self._do, self._gate = jobs, do, gate
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until all is done.

        Raises
        ------
        BaseException : whatever a job raised first, once the others have ended
        """
        for thread in self._threads:
            while thread.is_alive():
                thread.join(0.2)  # in pieces, so that Ctrl-C is heard
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Let nothing new begin, and give calls under way a moment to end."""
        self._gate.stop()
        for thread in self._threads:
            thread.join(_LAST_CALLS / len(self._threads))

    def _work(self) -> None:
        while self._error is None:
            with self._lock:
                job = next(self._jobs, None)
            if job is None:
                return
            try:
                self._do(job)
            except Stopped:
                return
            except BaseException as error:  # handed to the thread that joins
                self._error = self._error or error
                self._gate.stop()
                return


def now() -> str:
    """The time in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
