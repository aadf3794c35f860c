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
_SAFE = 0.0015  # in probability: an end so far inside its grid step survives 10,000 random resamples
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

    Of the ways that come nearest to the printed ends, the smoothest of those whose ends random resamples keep.
    """
    ways = _ways(total(printed.value, n), n)
    ways = ways[_about_as_wide(ways, printed, n)]
    low, high, margin = _ends(ways, n)
    miss = np.maximum(np.abs(low - printed.low), np.abs(high - printed.high))
    miss = np.round(np.maximum(miss - _ROUNDING, 0), 6)
    kept = np.minimum(np.round(margin, 6), _SAFE)
    return ways[np.lexsort((_roughness(ways), -kept, miss))[0]]


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


def _ends(ways: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The percentile interval's ends, and by how much probability the nearer one clears its grid step."""
    reached, row = distribution(ways), np.arange(len(ways))
    places, margins = [], []
    for tail in _TAILS:
        place = (reached < tail).sum(1)
        places.append(place)
        margins += [tail - reached[row, np.maximum(place - 1, 0)], reached[row, place] - tail]
    low, high = ((place + n) / n for place in places)
    return low, high, np.minimum.reduce(margins)


def _roughness(ways: np.ndarray) -> np.ndarray:
    """Sum of squared second differences."""
    return (np.diff(ways, n=2, axis=1) ** 2).sum(1)
