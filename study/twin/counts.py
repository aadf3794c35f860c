"""How often each rating was given, read off a printed mean and its printed bootstrap interval.

The mean of n whole ratings names their total. The percentile bootstrap of n ratings has an exact distribution, the
n-fold convolution of how often each rating was given; so every way to reach the total can be asked which interval
it would print. Few print the published one.
"""

import numpy as np

from study.errors import StudyError
from study.twin.published import Printed

RATINGS = np.arange(1, 6)
_TAILS = (0.025, 0.975)
_ROUNDING = 0.005  # of two decimals
_TOLERANCE = 0.02  # within which an interval's end counts as the printed one
_SAFE = 0.0025  # in probability: one and a half standard errors of a tail of 10,000 resamples
_Z = 1.96


def total(mean: float, n: int) -> int:
    """The total of n whole ratings whose mean prints as this, to two decimals.

    Raises
    ------
    StudyError : if none does (GRIM; Brown and Heathers 2017), or more than one does

    Examples
    --------
    >>> total(4.84, 51)
    247
    """
    near = np.arange(np.floor((mean - _ROUNDING) * n), np.ceil((mean + _ROUNDING) * n) + 1)
    found = [int(t) for t in near if f"{t / n:.2f}" == f"{mean:.2f}"]
    if len(found) != 1:
        raise StudyError(f"mean {mean:.2f} of {n} ratings: {len(found)} totals print so; one must")
    return found[0]


def counts(printed: Printed, n: int) -> np.ndarray:
    """How often each of the ratings 1 to 5 was given, so that mean and interval print as published.

    Of the ways that come nearest to the printed ends, the smoothest of those whose ends stay within 0.02 when the
    bootstrap is drawn at random.
    """
    ways = _ways(total(printed.value, n), n)
    ways = ways[_about_as_wide(ways, printed, n)]
    reached = distribution(ways)
    (low, low_margin), (high, high_margin) = (
        _end(reached, tail, end, n) for tail, end in zip(_TAILS, (printed.low, printed.high), strict=True)
    )
    miss = np.maximum(np.abs(low - printed.low), np.abs(high - printed.high))
    miss = np.round(np.maximum(miss - _ROUNDING, 0), 6)
    margin = np.minimum(np.round(np.minimum(low_margin, high_margin), 6), _SAFE)
    return ways[np.lexsort((_roughness(ways), -margin, miss))[0]]


def distribution(counts: np.ndarray) -> np.ndarray:
    """The exact bootstrap distribution function of the total, from n to 5n, for each row of counts."""
    n = int(counts[0].sum())
    spectrum = np.fft.rfft(counts / n, (len(RATINGS) - 1) * n + 1, axis=1) ** n
    return np.cumsum(np.fft.irfft(spectrum, (len(RATINGS) - 1) * n + 1, axis=1), axis=1)


def _ways(total: int, n: int) -> np.ndarray:
    """Every way to give n ratings with this total."""
    ones, twos, threes = (grid.ravel() for grid in np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij"))
    left = n - ones - twos - threes
    fives = total - ones - 2 * twos - 3 * threes - 4 * left
    fours = left - fives
    possible = (left >= 0) & (fours >= 0) & (fives >= 0)
    return np.stack([ones, twos, threes, fours, fives], axis=1)[possible]


def _about_as_wide(ways: np.ndarray, printed: Printed, n: int) -> np.ndarray:
    """Ways whose normal interval is within a quarter of the printed one's width; no other can print it."""
    error = np.sqrt((ways * (RATINGS - printed.value) ** 2).sum(1)) / n
    width = (printed.high - printed.low) / (2 * _Z)
    return (0.8 * width < error) & (error < 1.25 * width)


def _end(reached: np.ndarray, tail: float, printed: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """An end of the percentile interval, and by how much probability it clears the steps that would be too far."""
    row = np.arange(len(reached))
    place = (reached < tail).sum(1)
    end = (place + n) / n
    below = np.where(np.abs(end - 1 / n - printed) > _TOLERANCE, tail - reached[row, np.maximum(place - 1, 0)], 1)
    above = np.where(np.abs(end + 1 / n - printed) > _TOLERANCE, reached[row, place] - tail, 1)
    return end, np.minimum(below, above)


def _roughness(ways: np.ndarray) -> np.ndarray:
    """Sum of squared second differences."""
    return (np.diff(ways, n=2, axis=1) ** 2).sum(1)
