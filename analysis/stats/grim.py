"""Whether a printed mean, and a printed SD, can come from so many whole ratings at all.

n ratings on a scale of steps have a total on the scale's grid; few means are such a total divided by n. All is
done in fractions, so that no rounding of ours enters. A printed value stands for everything that rounds to it, a
half either way, since authors round halves up, down or to even.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from study.errors import StudyError

Verdict = Literal["possible", "impossible", "cannot tell"]
_MOST_STATES = 1500  # n × points up to which every sum of squares is enumerated


@dataclass(frozen=True)
class Printed:
    """A number as it was printed: what it says, and to how many decimals."""

    value: Fraction
    decimals: int

    @property
    def half(self) -> Fraction:
        """Half a unit of the last decimal."""
        return Fraction(1, 2 * 10**self.decimals)

    @property
    def low(self) -> Fraction:
        return self.value - self.half

    @property
    def high(self) -> Fraction:
        return self.value + self.half


@dataclass(frozen=True)
class Scale:
    """What one rating may be: from `low` in steps to `high`; without bounds, any multiple of the step."""

    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise StudyError(f"step {float(self.step):g}: a scale's step is above zero")
        if None not in (self.low, self.high) and self.high <= self.low:
            raise StudyError(f"scale {float(self.low):g} to {float(self.high):g}: the lowest rating comes first")
        if None not in (self.low, self.high) and (self.high - self.low) % self.step:
            raise StudyError(
                f"scale {float(self.low):g} to {float(self.high):g}: is no whole number of steps of "
                f"{float(self.step):g}"
            )


@dataclass(frozen=True)
class Check:
    """What is possible.

    passing : share of all means of so many decimals that would be called possible; at one nothing is tested
    nearest : the possible means on either side of an impossible one, to the printed decimals
    """

    mean: Verdict
    sd: Verdict | None
    passing: float
    nearest: tuple[str, ...] = ()
    reason: str = ""

    @property
    def impossible(self) -> bool:
        return "impossible" in (self.mean, self.sd)


def printed(text: str, decimals: int | None = None) -> Printed:
    """A number as printed; a decimal comma is read as a point.

    Parameters
    ----------
    decimals : for numbers that lost their last zeros, as in a spreadsheet

    Raises
    ------
    StudyError : if it is no number, or has more decimals than it was said to have

    Examples
    --------
    >>> printed("4.80").decimals, printed("4,8", decimals=2).decimals
    (2, 2)
    """
    try:
        number = Decimal(text.strip().replace(",", ".").replace("−", "-"))
    except InvalidOperation:
        raise StudyError(f"{text.strip()!r} is not a number") from None
    if not number.is_finite():
        raise StudyError(f"{text.strip()!r} is not a number")
    own = max(0, -number.as_tuple().exponent)
    if decimals is not None and own > decimals:
        raise StudyError(f"{text.strip()} has {own} decimals, not {decimals}")
    return Printed(Fraction(number), own if decimals is None else decimals)


def grim(mean: Printed, n: int, scale: Scale | None = None, *, items: int = 1, sd: Printed | None = None) -> Check:
    """Whether `n` raters (each a mean of `items` ratings) can have this mean, and this SD.

    The SD has n − 1 in its denominator. Where the scale has bounds and n is small, every sum of squares that such
    ratings can have is enumerated; else the SD is held to the smallest possible and to parity.

    Raises
    ------
    StudyError : if n or items is below one, or the mean lies outside the scale

    References
    ----------
    Brown & Heathers (2017), Social Psychological and Personality Science 8(4), 363–369 (the mean). Anaya (2016),
    PeerJ Preprints 4:e2400v1 (the SD).

    Examples
    --------
    >>> grim(printed("4.75"), 51).mean, grim(printed("4.74"), 51).mean
    ('possible', 'impossible')
    """
    scale = scale or Scale()
    if n < 1 or items < 1:
        raise StudyError(f"n {n}, items {items}: both are one or more")
    _within(mean, scale)
    grid = _Grid(n, items, scale)
    totals = list(grid.totals(mean))
    passing = grid.passing(mean.decimals)
    if not totals:
        return Check("impossible", None if sd is None else "cannot tell", passing, grid.nearest(mean))
    verdict: Verdict = "possible" if passing < 1 else "cannot tell"
    if sd is None:
        return Check(verdict, None, passing)
    spread, reason = _spread(grid, totals, sd)
    return Check(verdict, spread, passing, reason=reason)


@dataclass(frozen=True)
class _Grid:
    """Totals of n × items ratings, counted in steps above the scale's lowest rating (or above zero)."""

    n: int
    items: int
    scale: Scale

    @property
    def zero(self) -> Fraction:
        return self.scale.low if self.scale.low is not None else Fraction(0)

    @property
    def unit(self) -> Fraction:
        """The distance of neighbouring means."""
        return self.scale.step / (self.n * self.items)

    @property
    def points(self) -> int | None:
        """Steps from the lowest score of a rater to the highest."""
        if None in (self.scale.low, self.scale.high):
            return None
        return int((self.scale.high - self.scale.low) / self.scale.step) * self.items

    def totals(self, mean: Printed) -> Iterator[int]:
        first = math.ceil((mean.low - self.zero) / self.unit)
        last = math.floor((mean.high - self.zero) / self.unit)
        if self.points is not None:
            first, last = max(first, 0), min(last, self.n * self.points)
        return iter(range(first, last + 1))

    def passing(self, decimals: int) -> float:
        """The share of printed means that some total rounds to; totals recur after one step of the scale."""
        ticks = self.scale.step * 10**decimals
        if ticks.denominator != 1 or ticks * self.unit.denominator > 10**7:
            return min(1.0, float(1 / (self.unit * 10**decimals)))
        reached = set()
        for total in range(self.n * self.items):
            at = total * self.unit * 10**decimals
            reached |= {math.ceil(at - Fraction(1, 2)), math.floor(at + Fraction(1, 2))}
        return min(1.0, len({r % int(ticks) for r in reached}) / int(ticks))

    def nearest(self, mean: Printed) -> tuple[str, ...]:
        below = math.floor((mean.value - self.zero) / self.unit)
        near = (self.zero + at * self.unit for at in (below, below + 1))
        return tuple(f"{float(value):.{mean.decimals}f}" for value in near)


def _within(mean: Printed, scale: Scale) -> None:
    below = scale.low is not None and mean.high < scale.low
    if below or (scale.high is not None and mean.low > scale.high):
        bounds = " to ".join("…" if b is None else f"{float(b):g}" for b in (scale.low, scale.high))
        raise StudyError(f"mean {float(mean.value):g}: lies outside the scale, {bounds}")


def _spread(grid: _Grid, totals: list[int], sd: Printed) -> tuple[Verdict, str]:
    """Whether some total has a sum of squares that gives the SD, and where not, why."""
    if grid.n < 2:
        return "cannot tell", "one rating has no SD"
    unit = grid.scale.step / grid.items
    low, high = max(sd.low, Fraction(0)) / unit, sd.high / unit
    if sd.high < 0:
        return "impossible", "an SD is not below zero"
    exact = grid.points is not None and grid.n * grid.points <= _MOST_STATES
    for total in totals:
        centre = Fraction(total**2, grid.n)
        first = math.ceil((grid.n - 1) * low**2 + centre)
        last = math.floor((grid.n - 1) * high**2 + centre)
        if any(_reached(total, squares, grid, exact) for squares in range(first, last + 1)):
            return "possible", "" if exact else "the SD is held to parity and its smallest size only"
    return "impossible", "no ratings with this mean have this SD (n − 1)"


def _reached(total: int, squares: int, grid: _Grid, exact: bool) -> bool:
    """Whether n whole numbers have this sum and this sum of squares; parity and the least only, if not exact."""
    if exact:
        return bool(_sums_of_squares(grid.n, grid.points)[total] >> squares & 1)
    each, more = divmod(total, grid.n)
    least = (grid.n - more) * each**2 + more * (each + 1) ** 2
    return squares >= least and (squares - total) % 2 == 0


@lru_cache(maxsize=64)
def _sums_of_squares(n: int, points: int) -> tuple[int, ...]:
    """For every total of n numbers from 0 to `points`, the sums of squares they can have, as bits of a number."""
    reached = [1] + [0] * (n * points)
    for filled in range(1, n + 1):
        top = filled * points
        # From the largest total down: what is read has not been written in this round.
        for total in range(top, -1, -1):
            bits = 0
            for value in range(min(points, total) + 1):
                bits |= reached[total - value] << value * value
            reached[total] = bits
    return tuple(reached)
