"""Does a judge order the sources as the panel does? Soft pairwise accuracy, and tests between two judges."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from scipy import special

from analysis.stats import pairs
from study.errors import StudyError

Grouping = Literal["none", "by source", "by prompt"]
_EXACT = 12  # units up to which every sign flip is tried: 4,096


@dataclass(frozen=True)
class SoftAccuracy:
    """1 − mean |p_panel − p_judge| over pairs of sources; the p matrices are source × source.

    p[a, b] is the chance, under swaps of whole prompts, of a difference a − b at least as large as was seen.
    """

    estimate: float
    p_panel: np.ndarray
    p_judge: np.ndarray
    n_units: int
    exact: bool


def soft_pairwise_accuracy(
    panel: np.ndarray,
    judge: np.ndarray,
    *,
    mid_p: bool = True,
    n_flips: int = 2000,
    rng: np.random.Generator | None = None,
) -> SoftAccuracy:
    """How far judge and panel agree on which source is better, and on how sure one can be.

    Parameters
    ----------
    panel, judge : source × prompt scores, none missing
    mid_p : count equal differences half, so that sources that are the same give p = 0.5 rather than 1
    n_flips : random flips where prompts are too many (above 12) to try them all

    Raises
    ------
    StudyError : fewer than two sources or two prompts, or different shapes

    References
    ----------
    Thompson, Mathur, Deutsch & Khayrallah (2024), WMT, arXiv 2409.09598.
    """
    panel, judge = np.asarray(panel, float), np.asarray(judge, float)
    if panel.shape != judge.shape or panel.ndim != 2 or min(panel.shape) < 2:
        raise StudyError(f"source × prompt scores of shapes {panel.shape} and {judge.shape}: "
                         "give the same two sources or more and two prompts or more")  # fmt: skip
    n_sources, n_units = panel.shape
    exact = n_units <= _EXACT
    if exact:
        signs = np.array(list(product((1.0, -1.0), repeat=n_units)))
    else:
        rng = rng or np.random.default_rng(0)
        signs = rng.choice([-1.0, 1.0], (n_flips, n_units))
    first, second = np.triu_indices(n_sources, 1)
    p = [_flip_p(t[first] - t[second], signs, mid_p, exact) for t in (panel, judge)]
    matrices = []
    for values in p:
        matrix = np.full((n_sources, n_sources), np.nan)
        matrix[first, second], matrix[second, first] = values, 1 - values
        matrices.append(matrix)
    return SoftAccuracy(float(1 - np.abs(p[0] - p[1]).mean()), *matrices, n_units, exact)


def soft_accuracy_of_sums(sums: np.ndarray, n_sources: int) -> np.ndarray:
    """Soft pairwise accuracy from sums over prompts, p by the normal limit of sign flips: for resampling.

    Parameters
    ----------
    sums : … × columns of `soft_columns`
    """
    n_pairs = n_sources * (n_sources - 1) // 2
    parts = sums.reshape(*sums.shape[:-1], 4, n_pairs)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = [parts[..., i, :] / np.sqrt(parts[..., i + 1, :]) for i in (0, 2)]
    p = [special.ndtr(-np.where(np.isfinite(each), each, 0.0)) for each in z]
    return 1 - np.abs(p[0] - p[1]).mean(-1, keepdims=True)


def soft_columns(panel: np.ndarray, judge: np.ndarray) -> np.ndarray:
    """Prompt × columns whose sums `soft_accuracy_of_sums` takes."""
    first, second = np.triu_indices(len(panel), 1)
    columns = []
    for table in (panel, judge):
        difference = (table[first] - table[second]).T
        columns += [difference, difference**2]
    return np.concatenate(columns, axis=1)


@dataclass(frozen=True)
class PermutationTest:
    """Is one judge's correlation with the panel higher than another's? One-sided, PERM-BOTH."""

    first: float
    second: float
    difference: float
    p_value: float
    n_permutations: int
    exact: bool


def perm_both(
    panel: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    *,
    by: Literal["item", "source"] = "item",
    whole_prompts: bool = False,
    n_permutations: int = 2000,
    rng: np.random.Generator | None = None,
) -> PermutationTest:
    """Whether `first` correlates better with the panel, by swapping the two judges' z-scores.

    Parameters
    ----------
    panel, first, second : source × prompt scores, none missing
    by : Pearson over all items, or over source means (hardly testable with five sources)
    whole_prompts : swap all sources of a prompt together, as prompts are what is drawn

    References
    ----------
    Deutsch, Dror & Roth (2021), TACL 9, 1132–1146.
    """
    gold, a, b = (np.asarray(t, float) for t in (panel, first, second))
    if not gold.shape == a.shape == b.shape or gold.ndim != 2:
        raise StudyError("panel and both judges must have scores of the same sources and prompts")
    a, b = _standard(a, "first judge"), _standard(b, "second judge")
    correlation = _CORRELATIONS[by]
    seen = float(correlation(gold, a) - correlation(gold, b))
    cells = gold.shape[1] if whole_prompts else gold.size
    exact = cells <= _EXACT
    if exact:
        swaps = np.array(list(product((False, True), repeat=cells)))
    else:
        swaps = (rng or np.random.default_rng(0)).random((n_permutations, cells)) < 0.5
    if whole_prompts and by == "item":
        differences = _swapped_prompts(gold, a, b, swaps.astype(float))
    else:
        swap = swaps.reshape((len(swaps), 1, cells) if whole_prompts else (len(swaps), *gold.shape))
        differences = correlation(gold, np.where(swap, b, a)) - correlation(gold, np.where(swap, a, b))
    count = int((differences >= seen - 1e-12).sum())
    p = count / len(swaps) if exact else (1 + count) / (1 + len(swaps))
    return PermutationTest(
        float(correlation(gold, a)), float(correlation(gold, b)), seen, float(p), len(swaps), exact
    )


def _swapped_prompts(gold: np.ndarray, a: np.ndarray, b: np.ndarray, swaps: np.ndarray) -> np.ndarray:
    """Differences of the two correlations over items, from sums by prompt."""
    centred = gold - gold.mean()
    size = np.sqrt((centred**2).sum())
    sums = [np.stack([x.sum(0), (x**2).sum(0), (centred * x).sum(0)], axis=1) for x in (a, b)]
    moved = swaps @ (sums[1] - sums[0])
    r = []
    for total in (sums[0].sum(0) + moved, sums[1].sum(0) - moved):
        spread = np.sqrt(np.maximum(total[:, 1] - total[:, 0] ** 2 / gold.size, 1e-300))
        r.append(total[:, 2] / (spread * size))
    return r[0] - r[1]


def williams_test(r_first: float, r_second: float, r_between: float, n: int) -> float:
    """One-sided p that `r_first` exceeds `r_second`, two correlations with the same third variable.

    For correlations over single items only, never of averages.

    References
    ----------
    Graham & Baldwin (2014), EMNLP, on Williams (1959).
    """
    if n < 4:
        raise StudyError(f"{n} items: Williams's test needs four or more")
    k = 1 - r_first**2 - r_second**2 - r_between**2 + 2 * r_first * r_second * r_between
    mean = (r_first + r_second) / 2
    below = 2 * k * (n - 1) / (n - 3) + mean**2 * (1 - r_between) ** 3
    t = (r_first - r_second) * np.sqrt((n - 1) * (1 + r_between)) / np.sqrt(below)
    return float(special.stdtr(n - 3, -t))


def grouped_correlation(
    panel: np.ndarray,
    judge: np.ndarray,
    grouping: Grouping,
    measure: Literal["pearson", "tau_b", "differences"] = "pearson",
) -> float:
    """Correlation over all items, or averaged over sources or over prompts; groups without variation are left out.

    Parameters
    ----------
    panel, judge : source × prompt scores, none missing
    measure : Pearson's r, Kendall's tau-b, or the correlation of differences within pairs (pooled over groups)

    Raises
    ------
    StudyError : if no group varies
    """
    gold, other = np.asarray(panel, float), np.asarray(judge, float)
    groups = {"none": [(gold.ravel(), other.ravel())], "by source": list(zip(gold, other, strict=True)),
              "by prompt": list(zip(gold.T, other.T, strict=True))}[grouping]  # fmt: skip
    if measure == "differences":
        found = np.array([_of_differences(groups)])
    elif measure == "tau_b" and grouping != "none":
        group = np.repeat(np.arange(len(groups)), len(groups[0][0]))
        counts = pairs.counts_within(*(np.concatenate(values) for values in zip(*groups, strict=True)), group)
        found = pairs.tau_b_by_group(counts)
    else:
        found = np.array([_MEASURES[measure](*group) for group in groups])
    found = found[np.isfinite(found)]
    if not len(found):
        raise StudyError(f"no correlation {grouping}: scores do not vary within any group")
    return float(found.mean())


def _flip_p(differences: np.ndarray, signs: np.ndarray, mid_p: bool, exact: bool) -> np.ndarray:
    """One-sided sign-flip p of each row's sum."""
    seen = differences.sum(1)
    drawn = signs @ differences.T
    close = 1e-9 * np.maximum(1.0, np.abs(differences).sum(1))
    above, equal = (drawn > seen + close).mean(0), (np.abs(drawn - seen) <= close).mean(0)
    if not exact:
        above, equal = (above * len(signs)) / (len(signs) + 1), (equal * len(signs) + 1) / (len(signs) + 1)
    return above + equal * (0.5 if mid_p else 1.0)


def _standard(scores: np.ndarray, who: str) -> np.ndarray:
    spread = scores.std()
    if spread < 1e-12:
        raise StudyError(f"the {who} gave {scores.ravel()[0]:g} to every item: it has no correlation")
    return (scores - scores.mean()) / spread


def _over_items(gold: np.ndarray, judge: np.ndarray) -> np.ndarray:
    return _pearson(gold.ravel(), judge.reshape(*judge.shape[:-2], -1))


def _over_sources(gold: np.ndarray, judge: np.ndarray) -> np.ndarray:
    return _pearson(gold.mean(-1), judge.mean(-1))


_CORRELATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "item": _over_items,
    "source": _over_sources,
}


def _pearson(gold: np.ndarray, judge: np.ndarray) -> np.ndarray:
    """Pearson's r over the last axis; nan where either does not vary."""
    x, y = gold - gold.mean(-1, keepdims=True), judge - judge.mean(-1, keepdims=True)
    size = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.divide((x * y).sum(-1), size, out=np.full(np.shape(size), np.nan), where=size > 1e-12)


def _of_differences(groups: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Correlation of differences; each pair counts in both directions, so that their mean is zero."""
    up, also = (np.concatenate([_differences(group[which]) for group in groups]) for which in (0, 1))
    size = np.sqrt((up**2).sum() * (also**2).sum())
    return float((up * also).sum() / size) if size > 1e-12 else np.nan


def _differences(values: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(len(values), 1)
    return values[first] - values[second]


_MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "pearson": lambda gold, judge: float(_pearson(gold, judge)),
    "tau_b": lambda gold, judge: pairs.tau_b(pairs.pair_counts(gold, judge)),
}
