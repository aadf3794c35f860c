"""How far a run has come, on standard error: a live line on a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self, TextIO

_EVERY = 15.0  # seconds between lines where there is no terminal
_REDRAW = 0.2


@dataclass
class Tally:
    """What has been done for one source or judge. `cost` is None as long as nothing has a known cost."""

    total: int
    kept: int = 0
    done: int = 0
    failed: int = 0
    flagged: int = 0
    unpriced: int = 0
    cost: float | None = None

    def add(self, *, failed: bool = False, flagged: bool = False, cost: float | None = None) -> None:
        self.done += 1
        self.failed += failed
        self.flagged += flagged
        if cost is None:
            self.unpriced += 1
        else:
            self.cost = (self.cost or 0.0) + cost


@dataclass
class Meter:
    """Tallies by name, shown while they grow."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    quiet: bool = False
    clock: Callable[[], float] = time.monotonic
    tallies: dict[str, Tally] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._begun = self._shown = self.clock()
        self._lock = threading.Lock()
        self._live = not self.quiet and self.stream.isatty()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def begin(self, name: str, total: int, kept: int) -> None:
        """Say how much there is to do for one name, and how much of it stood before."""
        self.tallies[name] = Tally(total, kept)

    def add(self, name: str, *, failed: bool = False, flagged: bool = False, cost: float | None = None) -> None:
        with self._lock:
            self.tallies[name].add(failed=failed, flagged=flagged, cost=cost)
            now = self.clock()
            if not self.quiet and now - self._shown >= (_REDRAW if self._live else _EVERY):
                self._shown = now
                self._show(self.line(now))

    def line(self, now: float) -> str:
        """One line on all tallies."""
        each = self.tallies.values()
        total, kept, done = (sum(getattr(t, n) for t in each) for n in ("total", "kept", "done"))
        parts = [f"{kept + done}/{total}", f"{sum(t.failed for t in each)} failed"]
        parts.append(f"{sum(t.flagged for t in each)} flagged")
        if costs := [t.cost for t in each if t.cost is not None]:
            parts.append(f"cost {sum(costs):.4f}")
        if left := total - kept - done:
            parts.append(f"about {_duration((now - self._begun) / done * left)} left" if done else f"{left} left")
        return ", ".join(parts)

    def _show(self, line: str) -> None:
        self.stream.write(f"\r\x1b[K{line}" if self._live else f"{line}\n")
        self.stream.flush()


def _duration(seconds: float) -> str:
    """
    >>> _duration(42), _duration(130), _duration(7300)
    ('42 s', '2 min', '2 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
