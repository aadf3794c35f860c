"""Moves of whole ratings that change how well raters agree, and nothing else that was published.

For a target × rater table, ICC(2,k) depends on four sums only: of all ratings (T), of their squares (S), of the
squared row totals (Q) and of the squared column totals (R). Two moves change one sum each:

- *swap*: one rater's ratings of two targets change places. T, S and R stay, and so does how often each rating was
  given; only Q moves: targets drift apart or together.
- *spread*: on one target one rater goes up a point and another down, on a second target the other way round. T, Q
  and R stay, and so do every target's mean and every rater's; only S moves: the noise.

The sum that gives the wanted ICC has a closed form, and moves are taken as long as they come nearer to it.
All is done in integers, so that the result is the same on every machine.

References
----------
McGraw and Wong (1996), Psychological Methods 1, 30-46, table 4: ICC(A,k)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from study.errors import StudyError

_BATCHES, _BATCH = 100, 2000  # of random moves
_NEAR_SQUARES, _NEAR_ROWS = 1, 4  # of the sum wanted: squares keep their parity, rows move by even numbers


@dataclass(frozen=True)
class Sums:
    """What ICC(2,k) of n targets and k raters depends on."""

    n: int
    k: int
    total: int
    squares: int
    rows: int
    columns: int

    @property
    def icc(self) -> float:
        targets, raters, error = self._mean_squares()
        return (targets - error) / (targets + (raters - error) / self.n)

    def squares_for(self, icc: float) -> int:
        """The sum of squares that gives this ICC, all else as it is."""
        targets, raters, _ = self._mean_squares()
        error = (targets * (1 - icc) - icc * raters / self.n) / (1 - icc / self.n)
        return round(self.rows / self.k + self.columns / self.n - self._centre + error * self._degrees)

    def rows_for(self, icc: float) -> int:
        """The sum of squared row totals that gives this ICC, all else as it is."""
        _, raters, _ = self._mean_squares()
        rest = self.squares - self.columns / self.n  # what targets and error share
        per_target = (1 - icc) / (self.n - 1) + (1 - icc / self.n) / self._degrees
        between = (icc * raters / self.n + (1 - icc / self.n) * rest / self._degrees) / per_target
        return round(self.k * (between + self._centre))

    def _mean_squares(self) -> tuple[float, float, float]:
        targets = self.rows / self.k - self._centre
        raters = self.columns / self.n - self._centre
        error = self.squares - self._centre - targets - raters
        return targets / (self.n - 1), raters / (self.k - 1), error / self._degrees

    @property
    def _centre(self) -> float:
        return self.total**2 / (self.n * self.k)

    @property
    def _degrees(self) -> int:
        return (self.n - 1) * (self.k - 1)


def sums(ratings: np.ndarray) -> Sums:
    """The sums of a target × rater table of whole ratings."""
    n, k = ratings.shape
    return Sums(
        n, k, int(ratings.sum()), int((ratings**2).sum()),
        int((ratings.sum(1) ** 2).sum()), int((ratings.sum(0) ** 2).sum()),
    )  # fmt: skip


def swapped(ratings: np.ndarray, cells: list[np.ndarray], icc: float, rng: np.random.Generator) -> np.ndarray:
    """A table with this ICC, made by swaps within cells: equal groups of targets that keep their frequencies.

    Raises
    ------
    StudyError : if swaps cannot bring the ICC about
    """
    table, rows = ratings.copy(), ratings.sum(1)
    away = sums(table).rows_for(icc) - sums(table).rows
    for cell, rater, first, second in _draws(rng, len(cells), table.shape[1], len(cells[0]), len(cells[0])):
        if abs(away) <= _NEAR_ROWS:
            return table
        a, b = cells[cell][first], cells[cell][second]
        step = int(table[a, rater] - table[b, rater])
        change = 2 * step * int(rows[b] - rows[a] + step)
        if a != b and abs(away - change) < abs(away):
            table[[a, b], rater] = table[[b, a], rater]
            rows[a] -= step
            rows[b] += step
            away -= change
    raise StudyError(f"twin: no swap brings the encounters' ICC to {icc:g}")


def spread(ratings: np.ndarray, icc: float, rng: np.random.Generator, low: int = 1, high: int = 5) -> np.ndarray:
    """A table with this ICC, made by spreading the ratings of each target on the scale.

    Raises
    ------
    StudyError : if spreading cannot bring the ICC about
    """
    table = ratings.copy()
    away = sums(table).squares_for(icc) - sums(table).squares
    n, k = table.shape
    for p, q, up, down in _draws(rng, n, n, k, k):
        if abs(away) <= _NEAR_SQUARES:
            return table
        if p == q or up == down:
            continue
        rise, fall, sink, lift = table[p, up], table[p, down], table[q, up], table[q, down]
        if max(rise, lift) == high or min(fall, sink) == low:
            continue
        change = int(2 * (rise - fall - sink + lift) + 4)
        if abs(away - change) < abs(away):
            table[[p, q], up] += (1, -1)
            table[[p, q], down] += (-1, 1)
            away -= change
    raise StudyError(f"twin: no spreading brings an ICC to {icc:g}")


def _draws(rng: np.random.Generator, *ends: int) -> Iterator[list[int]]:
    """Random moves: a whole number below each end."""
    for _ in range(_BATCHES):
        yield from (rng.random((_BATCH, len(ends))) * ends).astype(int).tolist()
