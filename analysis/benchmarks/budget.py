"""What a run may cost, and how many calls it may make: it stops before it exceeds either.

Before a call leaves, the most that it can cost is held; when its answer is there, what it did cost takes that
place. A call that was sent and lost may have been billed, so what was held for it counts as spent. The currency is
that of the prices.
"""

import threading
from collections.abc import Mapping

from generation.asking import Note
from generation.retry import Stopped
from study.errors import StudyError


class BudgetSpent(Stopped):
    """The next call could exceed the budget; the message says which part of it."""


class Budget:
    """Shared by all threads of a run. Both limits are of the whole folder, earlier runs included.

    Raises
    ------
    StudyError : for a limit that is not above nothing
    """

    def __init__(self, max_cost: float | None = None, max_calls: int | None = None) -> None:
        for name, limit in (("max-cost", max_cost), ("max-calls", max_calls)):
            if limit is not None and not limit > 0:
                raise StudyError(f"--{name} {limit:g}: a budget is more than nothing")
        self.max_cost, self.max_calls = max_cost, max_calls
        self._change = threading.Condition()
        self.reset()

    def reset(self) -> None:
        """Forget what was counted, before the events of a folder are counted from the first."""
        self.spent, self.calls = 0.0, 0
        self.closed: str | None = None
        self._held: dict[str, dict[str, float]] = {}  # by question, by attempt

    def noting(self, note: Note) -> Note:
        """A note for an Asker: it asks the budget before a call leaves, and then tells `note`."""

        def noted(record: Mapping[str, object]) -> None:
            if record["event"] == "asked":
                self.admit(str(record["key"]), str(record["attempt"]), _number(record.get("bound")))
            else:
                self.count(record)
            note(record)

        return noted

    def admit(self, key: str, attempt: str, bound: float | None) -> None:
        """Hold what a call can cost at most; waits while calls under way may leave enough of the budget.

        Raises
        ------
        BudgetSpent : if it does not fit; nothing fits from then on
        """
        with self._change:
            while self.closed is None and not self._fits(key, bound):
                self._change.wait(0.2)
            if self.closed is not None:
                raise BudgetSpent(self.closed)
            self._hold(key, attempt, bound)

    def count(self, record: Mapping[str, object]) -> None:
        """Take a line of the events into account."""
        with self._change:
            match record.get("event"):
                case "asked":
                    self._hold(str(record["key"]), str(record["attempt"]), _number(record.get("bound")))
                case "missed":
                    held = self._held.get(str(record["key"]), {}).pop(str(record["attempt"]), 0.0)
                    self.spent += held if record.get("kind") == "transport" else 0.0
                case "said" | "scored" if record.get("question"):
                    held = sum(self._held.pop(str(record["question"]), {}).values())
                    cost = _number(record.get("cost"))
                    self.spent += held if cost is None else cost
            self._change.notify_all()

    def settle(self) -> None:
        """Count what is still held as spent: its calls were under way when an earlier run was killed."""
        with self._change:
            self.spent += self._sum()
            self._held.clear()

    def _fits(self, key: str, bound: float | None) -> bool:
        """Whether a call may leave; closes the budget where none ever will."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            self.closed = f"--max-calls {self.max_calls} is reached"
        if self.max_cost is None or self.closed is not None:
            return self.closed is None
        if bound is None:
            self.closed = "--max-cost needs a price and a token limit for every model"
        elif self.spent + self._sum() + bound > self.max_cost:
            if not any(held for name, held in self._held.items() if name != key):
                self.closed = f"--max-cost {self.max_cost:g} would be exceeded ({self.spent:.4f} is spent)"
            return False
        return self.closed is None

    def _hold(self, key: str, attempt: str, bound: float | None) -> None:
        self.calls += 1
        self._held.setdefault(key, {})[attempt] = bound or 0.0

    def _sum(self) -> float:
        return sum(sum(held.values()) for held in self._held.values())


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
