"""Asking again where a server was not reached, was busy or broke; never because of what it answered."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

Kind = Literal["transport", "busy", "server", "rejected", "unreadable", "fatal"]
RETRIED: tuple[Kind, ...] = ("transport", "busy", "server")
_LONGEST = 60.0  # seconds: the cap of our own waits, whatever the number of attempts

Answer = TypeVar("Answer")


class CallError(Exception):
    """One attempt without an answer.

    `kind` fatal means that every further question would fare the same: a wrong key, an unknown model, no money.
    """

    def __init__(
        self, kind: Kind, detail: str, *, code: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True)
class Policy:
    """How long to persist: attempts in all, the first wait and the longest wait a server may ask for (seconds)."""

    attempts: int = 6
    first_wait: float = 1.0
    patience: float = 120.0


class Stopped(Exception):
    """The run was asked to stop while this question waited its turn."""


class Gate:
    """When the next question of one source may leave: its rate, a server's request to wait, and the end.

    All workers of a source pass through one gate, so that one Retry-After holds them all.
    """

    def __init__(self, per_minute: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = 60.0 / per_minute if per_minute else 0.0
        self._clock = clock
        self._next = 0.0
        self._held = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._closed: str | None = None

    @property
    def closed(self) -> str | None:
        """Why no question may leave any more; None while they may."""
        return self._closed

    def close(self, reason: str) -> None:
        self._closed = self._closed or reason

    def hold(self, seconds: float) -> None:
        """Let nothing leave for so long."""
        with self._lock:
            self._held = max(self._held, self._clock() + seconds)

    def stop(self) -> None:
        """End every wait: the run is over."""
        self._stop.set()

    def wait(self, seconds: float = 0.0) -> None:
        """Come back after `seconds`, and not before this source's turn.

        Raises
        ------
        Stopped : if the run ends meanwhile
        """
        earliest = self._clock() + seconds
        while True:
            with self._lock:
                now = self._clock()
                due = max(earliest, self._held, self._next)
                if now >= due and not self._stop.is_set():
                    self._next = now + self._every
                    return
            if self._stop.wait(max(0.0, due - now)):
                raise Stopped


def persist(
    call: Callable[[int], Answer],
    policy: Policy,
    gate: Gate,
    chance: random.Random,
    note: Callable[[int, CallError | None], None] = lambda number, error: None,
) -> Answer:
    """The answer of the first attempt that has one.

    Waits are full jitter: uniform between 0 and a doubling bound (Brooker 2015, "Exponential backoff and
    jitter"), and never shorter than the server's Retry-After.

    Parameters
    ----------
    call : asks once; receives the attempt's number from 1
    note : told of each attempt's end, with its error if it had one

    Raises
    ------
    CallError : the last attempt's, if none had an answer
    Stopped : if the run ends while waiting
    """
    wait = 0.0
    for number in range(1, policy.attempts + 1):
        gate.wait(wait)
        if gate.closed:
            raise CallError("fatal", f"not asked: {gate.closed}")
        try:
            answer = call(number)
        except CallError as error:
            note(number, error)
            if error.kind == "fatal":
                gate.close(error.detail)
            wait = _wait(error, number, policy, chance)
            if wait is None:
                raise _final(error, number, policy) from None
            if error.retry_after:
                gate.hold(error.retry_after)
        else:
            note(number, None)
            return answer
    raise AssertionError("the last attempt returns or raises")


def _wait(error: CallError, number: int, policy: Policy, chance: random.Random) -> float | None:
    """Seconds until the next attempt; None if there is none."""
    asked = error.retry_after or 0.0
    if error.kind not in RETRIED or number == policy.attempts or asked > policy.patience:
        return None
    return asked + chance.uniform(0, min(_LONGEST, policy.first_wait * 2 ** (number - 1)))


def _final(error: CallError, number: int, policy: Policy) -> CallError:
    detail = error.detail
    if error.kind in RETRIED and number == policy.attempts and number > 1:
        detail += f" ({number} attempts)"
    elif error.kind in RETRIED and (error.retry_after or 0) > policy.patience:
        detail += f"; it asks to wait {error.retry_after:g} s, longer than patience = {policy.patience:g}"
    return CallError(error.kind, detail, code=error.code, retry_after=error.retry_after)
