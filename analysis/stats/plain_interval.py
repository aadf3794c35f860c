"""The interval of a mean that takes every rating as independent, as it is usually printed."""

import numpy as np

from study.errors import StudyError

_DRAWS = 10_000


def mean_interval(
    values: np.ndarray, step: float | None = 1.0, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap of a mean, exact where ratings lie on a grid.

    The mean of n draws with replacement has a distribution that can be written down: the n-fold convolution of the
    ratings' own. Its percentiles are those of infinitely many bootstrap draws. Ratings off a grid are drawn.

    Parameters
    ----------
    step : the distance of two neighbouring ratings; None for a continuous scale

    Raises
    ------
    StudyError : without a rating

    Examples
    --------
    >>> mean_interval(np.array([4, 5, 5, 5, 4, 5, 5, 5, 5, 5]))
    (4.5, 5.0)
    """
    n = len(values)
    if n == 0:
        raise StudyError("no rating: there is no mean")
    tail = (1 - level) / 2
    start = values.min()
    places = (values - start) / step if step else None
    if places is None or np.abs(places - np.round(places)).max() > 1e-9:
        drawn = np.random.default_rng(seed).choice(values, (_DRAWS, n)).mean(axis=1)
        return tuple(float(v) for v in np.quantile(drawn, [tail, 1 - tail]))
    counts = np.bincount(np.round(places).astype(int))
    totals = _convolved(counts / n, n).cumsum()
    found = np.searchsorted(totals, [tail - 1e-12, 1 - tail - 1e-12])
    return tuple(float(start + step * at / n) for at in found)


def _convolved(chance: np.ndarray, n: int) -> np.ndarray:
    """Chances of every total of n draws."""
    size = (len(chance) - 1) * n + 1
    found = np.fft.irfft(np.fft.rfft(chance, 2 * size) ** n, 2 * size)[:size]
    return np.clip(found, 0, None)
