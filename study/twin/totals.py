"""Whole totals of a source's answers that print as published: its mean, and its penalty of negative questions.

Both are wanted twice, as plain means and as the marginal means of `source*category + source*form`, which give each
category and each form the same weight. Every rater rates every answer, so the model's estimates are those of least
squares on the answers, and all four numbers are linear in the totals.

The plain ones fix the sum of each form's totals; few sums of two forms give a difference to three decimals. For
the model's, points go from one answer to another of the same form, which leaves the sums as they are.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from study.errors import StudyError
from study.records import FORMS

_NEAR_MEAN, _NEAR_PENALTY = 0.003, 0.0003  # inside what rounds to two and to three decimals
_PENALTY = {"affirmative": 1.0, "negative": -1.0}
_REACH = 150  # how far from their start the sums of forms are looked for
_ROUNDS, _BATCH = 1000, 200


@dataclass(frozen=True)
class Start:
    """Where the totals start, and between which bounds they stay."""

    totals: np.ndarray
    least: np.ndarray
    most: np.ndarray


def totals(
    start: Start, prompts: pd.DataFrame, raters: int, mean: float, penalty: float | None, rng: np.random.Generator
) -> np.ndarray:
    """Totals near a start with this mean and, if one is given, this penalty, plainly and by the model.

    Parameters
    ----------
    prompts : category, form, in the totals' order

    Raises
    ------
    StudyError : if no totals between the bounds come near
    """
    total = round(mean * raters * len(prompts))
    found = np.clip(start.totals, start.least, start.most)
    groups = _groups(found, prompts["form"].to_numpy(), raters, total, penalty)
    for members, wanted in groups:
        _sum_to(found, start, members, wanted, rng)
    weights, wanted, near = _aim(prompts, raters, mean, penalty)
    for _ in range(_ROUNDS):
        off = (weights @ found - wanted) / near
        if np.abs(off).max() <= 1:
            return found
        trials = found + _exchanges([members for members, _ in groups], len(found), rng)
        trials = trials[((trials >= start.least) & (trials <= start.most)).all(1)]
        costs = (((trials @ weights.T - wanted) / near) ** 2).sum(1)
        if len(trials) and costs.min() < (off**2).sum():
            found = trials[costs.argmin()]
    raise StudyError("twin: no totals of a source's answers come near its published mean and penalty")


def model_weights(prompts: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """What each answer's mean counts for in a source's marginal mean, and in its penalty, under the model."""
    factors = {"category": sorted(prompts["category"].unique()), "form": sorted(prompts["form"].unique())}
    columns = [(prompts[name] == level).to_numpy(float) for name, levels in factors.items() for level in levels]
    solution = np.linalg.pinv(np.stack(columns, axis=1))
    n = [len(levels) for levels in factors.values()]
    marginal = np.repeat(1 / np.array(n), n) @ solution
    return marginal, np.array([_PENALTY.get(form, 0.0) for form in factors["form"]]) @ solution[n[0] :]


def _aim(
    prompts: pd.DataFrame, raters: int, mean: float, penalty: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is left to meet once the sums are right: weights of the totals, values, and how near is near enough."""
    marginal, contrast = model_weights(prompts)
    if penalty is None:
        return marginal[None] / raters, np.array([mean]), np.array([_NEAR_MEAN])
    return (
        np.stack([marginal, contrast]) / raters,
        np.array([mean, penalty]),
        np.array([_NEAR_MEAN, _NEAR_PENALTY]),
    )


def _groups(
    found: np.ndarray, form: np.ndarray, raters: int, total: int, penalty: float | None
) -> list[tuple[np.ndarray, int]]:
    """Answers whose totals are to have a sum, with the sum: all, or form by form where there is a penalty."""
    if penalty is None:
        return [(np.arange(len(found)), total)]
    members = [np.flatnonzero(form == name) for name in FORMS]
    return list(zip(members, _sums(found, members, raters, total, penalty), strict=True))


def _sums(
    found: np.ndarray, members: list[np.ndarray], raters: int, total: int, penalty: float
) -> tuple[int, int, int]:
    """The sums of the three forms nearest to a start that have this total and this plain penalty."""
    begun = [int(found[own].sum()) for own in members]
    shift = np.arange(-_REACH, _REACH + 1)
    affirmative, negative = (begun[0] + shift)[:, None], (begun[1] + shift)[None, :]
    rest = total - affirmative - negative
    given = affirmative / (raters * len(members[0])) - negative / (raters * len(members[1]))
    away = np.abs(shift)[:, None] + np.abs(shift)[None, :] + np.abs(rest - begun[2])
    away = np.where(np.abs(given - penalty) <= _NEAR_PENALTY, away, np.iinfo(away.dtype).max)
    a, b = np.unravel_index(away.argmin(), away.shape)
    return int(affirmative[a, 0]), int(negative[0, b]), int(rest[a, b])


def _sum_to(found: np.ndarray, start: Start, own: np.ndarray, total: int, rng: np.random.Generator) -> None:
    """Give points to answers, or take them, one by one until they sum to a total; in place."""
    while short := total - int(found[own].sum()):
        room = own[found[own] < start.most[own]] if short > 0 else own[found[own] > start.least[own]]
        if not len(room):
            raise StudyError(f"twin: {len(own)} answers cannot have {total} points together")
        found[room[int(rng.random() * len(room))]] += 1 if short > 0 else -1


def _exchanges(members: list[np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
    """A batch of moves of two points, each from one answer to another of its group."""
    steps, row = np.zeros((_BATCH, n), int), np.arange(_BATCH)
    sizes = np.array([len(own) for own in members])
    padded = np.stack([np.resize(own, sizes.max()) for own in members])
    for _ in range(2):
        group = (rng.random(_BATCH) * len(members)).astype(int)
        for change in (1, -1):
            place = padded[group, (rng.random(_BATCH) * sizes[group]).astype(int)]
            steps[row, place] += change
    return steps
