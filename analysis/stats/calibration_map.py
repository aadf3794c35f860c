"""From a judge's score to the panel's: linear, isotonic and cumulative-logit maps, and their cross-fitting.

A map read from all sources together shrinks the gaps between them: it is for reading one score, never for
comparing sources.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy import special

from study.errors import StudyError

Kind = Literal["linear", "isotonic", "cumulative_logit"]
KINDS: tuple[Kind, ...] = ("linear", "isotonic", "cumulative_logit")
MOST_CATEGORIES = 30  # distinct panel ratings up to which they are taken as ordered categories
_MOST_STEPS = 100
_RIDGE = 1e-3  # on the slope of the cumulative logit: a judge that separates the categories has no finite slope


class Map(Protocol):
    """A fitted map; `outside` tells which scores lie beyond those it was fitted on."""

    def __call__(self, score: np.ndarray) -> np.ndarray: ...

    def outside(self, score: np.ndarray) -> np.ndarray: ...

    def parameters(self) -> dict[str, list[float]]: ...


@dataclass(frozen=True)
class Linear:
    """panel = intercept + slope × judge, by least squares."""

    intercept: float
    slope: float
    low: float
    high: float

    def __call__(self, score: np.ndarray) -> np.ndarray:
        return self.intercept + self.slope * np.asarray(score, float)

    def outside(self, score: np.ndarray) -> np.ndarray:
        return (score < self.low) | (score > self.high)

    def parameters(self) -> dict[str, list[float]]:
        return {"intercept": [self.intercept], "slope": [self.slope], "range": [self.low, self.high]}


@dataclass(frozen=True)
class Isotonic:
    """The best non-decreasing map; between levels it is a straight line, beyond the ends their value."""

    levels: np.ndarray
    values: np.ndarray

    def __call__(self, score: np.ndarray) -> np.ndarray:
        return np.interp(score, self.levels, self.values)

    def outside(self, score: np.ndarray) -> np.ndarray:
        return (score < self.levels[0]) | (score > self.levels[-1])

    def parameters(self) -> dict[str, list[float]]:
        return {"levels": self.levels.tolist(), "values": self.values.tolist()}


@dataclass(frozen=True)
class CumulativeLogit:
    """Expected panel rating where logit P(rating ≤ c) = threshold_c − slope × judge."""

    categories: np.ndarray
    thresholds: np.ndarray
    slope: float
    low: float
    high: float

    def __call__(self, score: np.ndarray) -> np.ndarray:
        return self.probabilities(score) @ self.categories

    def probabilities(self, score: np.ndarray) -> np.ndarray:
        """Score × category probabilities of a panel rating."""
        below = special.expit(self.thresholds - self.slope * np.asarray(score, float)[:, None])
        edges = np.pad(below, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        return np.diff(edges, axis=1)

    def outside(self, score: np.ndarray) -> np.ndarray:
        return (score < self.low) | (score > self.high)

    def parameters(self) -> dict[str, list[float]]:
        return {"categories": self.categories.tolist(), "thresholds": self.thresholds.tolist(),
                "slope": [self.slope], "range": [self.low, self.high]}  # fmt: skip


def fit_map(kind: Kind, score: np.ndarray, panel: np.ndarray) -> Map:
    """A map of one kind.

    Parameters
    ----------
    score : (n,) the judge's
    panel : (n,) means, or (n, k) ratings with nan where missing; the cumulative logit uses single ratings

    Raises
    ------
    StudyError : if the judge gave one score only, or the kind is unknown
    """
    score, panel = np.asarray(score, float), np.asarray(panel, float)
    if len(np.unique(score)) < 2:
        raise StudyError(f"the judge gave {score[0]:g} to every item: there is nothing to calibrate"
                         if len(score) else "no item has both ratings: there is nothing to calibrate")  # fmt: skip
    if kind not in _FITTED:
        raise StudyError(f"map {kind!r} is unknown; choose one of {', '.join(KINDS)}")
    return _FITTED[kind](score, panel)


def of_parameters(kind: Kind, parameters: dict[str, list[float]]) -> Map:
    """The map that `parameters()` described."""
    p = parameters
    if kind == "linear":
        return Linear(p["intercept"][0], p["slope"][0], *p["range"])
    if kind == "isotonic":
        return Isotonic(np.array(p["levels"]), np.array(p["values"]))
    if kind == "cumulative_logit":
        return CumulativeLogit(np.array(p["categories"]), np.array(p["thresholds"]), p["slope"][0], *p["range"])
    raise StudyError(f"map {kind!r} is unknown; choose one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class CrossFit:
    """Values of items from maps that were fitted on the other folds; `clipped` lay beyond those maps' range."""

    values: np.ndarray
    clipped: np.ndarray
    n_folds: int


def cross_fit(kind: Kind, score: np.ndarray, panel: np.ndarray, fold: np.ndarray) -> CrossFit:
    """Each fold's items mapped by what the others teach.

    Raises
    ------
    StudyError : with one fold only, or as `fit_map` says
    """
    folds = np.unique(fold)
    if len(folds) < 2:
        raise StudyError("cross-fitting needs two folds or more")
    values, clipped = np.empty(len(score)), np.zeros(len(score), bool)
    for f in folds:
        here = fold == f
        mapped = fit_map(kind, score[~here], panel[~here])
        values[here], clipped[here] = mapped(score[here]), mapped.outside(score[here])
    return CrossFit(values, clipped, len(folds))


def folds_of(cluster: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """Folds of about equal size that keep each cluster whole."""
    codes = np.unique(cluster, return_inverse=True)[1]
    groups = codes.max() + 1
    return rng.permutation(np.arange(groups) % min(n_folds, groups))[codes]


def pooled_adjacent_violators(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The closest non-decreasing sequence in weighted least squares.

    Examples
    --------
    >>> pooled_adjacent_violators(np.array([1.0, 3.0, 2.0]), np.ones(3)).tolist()
    [1.0, 2.5, 2.5]
    """
    blocks: list[list[float]] = []
    for value, weight in zip(values, weights, strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            v, w, size = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + v * w) / (last[1] + w)
            last[1] += w
            last[2] += size
    return np.repeat([b[0] for b in blocks], [int(b[2]) for b in blocks])


def _linear(score: np.ndarray, panel: np.ndarray) -> Linear:
    mean = _mean(panel)
    centred = score - score.mean()
    slope = float((centred * mean).sum() / (centred**2).sum())
    return Linear(float(mean.mean() - slope * score.mean()), slope, float(score.min()), float(score.max()))


def _isotonic(score: np.ndarray, panel: np.ndarray) -> Isotonic:
    levels, codes = np.unique(score, return_inverse=True)
    weights = np.bincount(codes).astype(float)
    return Isotonic(levels, pooled_adjacent_violators(np.bincount(codes, _mean(panel)) / weights, weights))


def _cumulative_logit(score: np.ndarray, panel: np.ndarray) -> CumulativeLogit:
    """Maximum likelihood on the table of judge level × panel rating."""
    ratings = panel if panel.ndim == 2 else panel[:, None]
    found = np.isfinite(ratings)
    categories, rated = np.unique(ratings[found], return_inverse=True)
    if len(categories) < 2:
        raise StudyError(f"the panel rated every item {categories[0]:g}: there is nothing to calibrate")
    if len(categories) > MOST_CATEGORIES:
        raise StudyError(f"{len(categories)} distinct panel ratings are no ordered categories: "
                         "a cumulative-logit map is for rating scales")  # fmt: skip
    levels, codes = np.unique(np.broadcast_to(score[:, None], ratings.shape)[found], return_inverse=True)
    table = np.zeros((len(levels), len(categories)))
    np.add.at(table, (codes, rated), 1)
    centre, spread = float(score.mean()), float(score.std())
    standard = (levels - centre) / spread
    share = np.clip(np.cumsum(table.sum(0))[:-1] / table.sum(), 1e-6, 1 - 1e-6)
    start = np.concatenate([special.logit(share), [0.0]])
    best = _scored(start, standard, table)
    slope = best[-1] / spread
    return CumulativeLogit(categories, best[:-1] + slope * centre, float(slope), float(score.min()),
                           float(score.max()))  # fmt: skip


def _scored(x: np.ndarray, level: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Thresholds and slope of the highest likelihood, by Fisher scoring with halved steps."""
    loss, gradient, information = _logit_loss(x, level, table)
    for _ in range(_MOST_STEPS):
        step = np.linalg.solve(information, gradient)
        while True:
            tried = x - step
            ordered = (np.diff(tried[:-1]) > 0).all()
            found = _logit_loss(tried, level, table) if ordered else (np.inf,)
            if found[0] <= loss or np.abs(step).max() < 1e-8:
                break
            step = step / 2
        if not found[0] <= loss or np.abs(step).max() < 1e-8:
            return x
        x, (loss, gradient, information) = tried, found
    raise StudyError("the cumulative-logit map did not converge: too few ratings of some category")


def _logit_loss(x: np.ndarray, level: np.ndarray, table: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Minus the log likelihood, its gradient and the expected information; a slight ridge on the slope."""
    n, size = len(level), len(x) - 1
    edges = np.zeros((n, size + 2))
    edges[:, 1:-1] = below = special.expit(x[:-1] - x[-1] * level[:, None])
    edges[:, -1] = 1
    p = np.maximum(np.diff(edges, axis=1), 1e-300)
    density = below * (1 - below)
    slopes = np.zeros((n, size + 1, size + 1))
    at = np.arange(size)
    slopes[:, at, at], slopes[:, at + 1, at] = density, -density
    slopes[:, :, -1] = -level[:, None] * slopes[:, :, :-1].sum(2)
    flat = slopes.reshape(-1, size + 1)
    gradient = -(table / p).ravel() @ flat
    information = flat.T @ (flat * (table.sum(1)[:, None] / p).reshape(-1, 1))
    loss = float(-(table * np.log(p)).sum() + _RIDGE * x[-1] ** 2 / 2)
    gradient[-1] += _RIDGE * x[-1]
    information[-1, -1] += _RIDGE
    return loss, gradient, information


def _mean(panel: np.ndarray) -> np.ndarray:
    if panel.ndim == 1:
        return panel
    found = np.isfinite(panel)
    return np.where(found, panel, 0).sum(1) / found.sum(1)


_FITTED: dict[str, Callable[[np.ndarray, np.ndarray], Map]] = {
    "linear": _linear,
    "isotonic": _isotonic,
    "cumulative_logit": _cumulative_logit,
}
