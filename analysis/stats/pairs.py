"""Pairs of items in the same or the opposite order: pairwise accuracy with ties, Kendall's tau and the like."""

from dataclasses import dataclass

import numpy as np

from study.errors import StudyError

CLOSE = 1e-9  # panel means are k/17 and the like: values that differ by less are tied
_CELLS = 4_000_000  # cells of a cross table, or of a block of comparisons, held at once

Count = int | np.ndarray


@dataclass(frozen=True)
class PairCounts:
    """Unordered pairs of items by what gold and metric say of them; arrays are by group."""

    concordant: Count
    discordant: Count
    tied_gold: Count
    tied_metric: Count
    tied_both: Count

    @property
    def total(self) -> Count:
        return self.concordant + self.discordant + self.tied_gold + self.tied_metric + self.tied_both

    def summed(self) -> "PairCounts":
        """All groups together."""
        return PairCounts(
            *(int(np.sum(part)) for part in (
                self.concordant, self.discordant, self.tied_gold, self.tied_metric, self.tied_both
            ))
        )  # fmt: skip


def pair_counts(gold: np.ndarray, metric: np.ndarray, epsilon: float = 0.0) -> PairCounts:
    """Counts over all pairs of the items; the metric ties where it differs by `epsilon` or less.

    Examples
    --------
    >>> pair_counts(np.array([1, 2, 2, 3, 4]), np.array([2, 1, 1.5, 5, 3])).concordant
    6
    """
    gold, metric = _pair_of_arrays(gold, metric)
    if epsilon == 0:
        rows, columns = _codes(gold), _codes(metric)
        shape = rows.max() + 1, columns.max() + 1
        if shape[0] * shape[1] <= _CELLS:
            return _of_table(np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape))
    return _of_blocks(gold, metric, epsilon)


def counts_within(gold: np.ndarray, metric: np.ndarray, group: np.ndarray, epsilon: float = 0.0) -> PairCounts:
    """Counts over the pairs inside each group, as arrays in the order of the sorted groups."""
    codes = np.unique(group, return_inverse=True)[1]
    sizes = np.bincount(codes)
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(sizes) - sizes
    found = np.zeros((5, len(sizes)), np.int64)
    for size in np.unique(sizes[sizes > 1]):
        where = np.flatnonzero(sizes == size)
        if size > 200:
            for g in where:
                rows = order[starts[g] : starts[g] + size]
                counts = pair_counts(gold[rows], metric[rows], epsilon)
                found[:, g] = [getattr(counts, name) for name in PairCounts.__dataclass_fields__]
            continue
        rows = order[starts[where][:, None] + np.arange(size)]
        first, second = np.triu_indices(size, 1)
        up = _signs(gold[rows[:, first]] - gold[rows[:, second]], CLOSE)
        also = _signs(metric[rows[:, first]] - metric[rows[:, second]], max(epsilon + CLOSE, CLOSE))
        found[:, where] = _tally(up, also)
    return PairCounts(*found)


def accuracy(counts: PairCounts) -> float:
    """Pairwise accuracy with ties: the share of pairs that are ordered, or tied, alike (Deutsch et al. 2023)."""
    return float((counts.concordant + counts.tied_both) / counts.total)


def always_tie(counts: PairCounts) -> float:
    """Accuracy of a metric that ties every pair: what ties alone give away."""
    return float((counts.tied_gold + counts.tied_both) / counts.total)


def permuted(counts: PairCounts, metric_ties: float) -> float:
    """Expected accuracy of the metric with its values dealt out at random; `metric_ties` is their tie rate."""
    gold_ties = always_tie(counts)
    return gold_ties * metric_ties + (1 - gold_ties) * (1 - metric_ties) / 2


def tie_rate(values: np.ndarray) -> float:
    """Share of tied pairs among all pairs of the values."""
    counts = np.bincount(_codes(np.asarray(values, float))).astype(float)
    n = counts.sum()
    return float((counts * (counts - 1)).sum() / (n * (n - 1)))


def tau_eq(counts: PairCounts) -> float:
    """Kendall's tau that credits ties that both make and charges the others (Deutsch et al. 2023)."""
    c = counts
    return float((c.concordant + c.tied_both - c.discordant - c.tied_gold - c.tied_metric) / c.total)


def tau_b(counts: PairCounts) -> float:
    """Kendall's tau-b; nan where gold or metric ties every pair."""
    c = counts
    untied = c.concordant + c.discordant
    size = np.sqrt(float(untied + c.tied_metric) * float(untied + c.tied_gold))
    return float((c.concordant - c.discordant) / size) if size > 0 else np.nan


def tau_b_by_group(counts: PairCounts) -> np.ndarray:
    """Kendall's tau-b of each group; nan where gold or metric ties every pair of it."""
    c = counts
    untied = (c.concordant + c.discordant).astype(float)
    size = np.sqrt((untied + c.tied_metric) * (untied + c.tied_gold))
    return np.divide(c.concordant - c.discordant, size, out=np.full(len(size), np.nan), where=size > 0)


def tau_c(counts: PairCounts, gold_values: int, metric_values: int) -> float:
    """Stuart's tau-c for so many distinct values of gold and metric."""
    n = (1 + np.sqrt(1 + 8 * float(counts.total))) / 2
    least = min(gold_values, metric_values)
    if least < 2:
        return np.nan
    return float(2 * (counts.concordant - counts.discordant) * least / (n**2 * (least - 1)))


def gamma(counts: PairCounts) -> float:
    """Goodman and Kruskal's gamma: ties left out."""
    untied = counts.concordant + counts.discordant
    return float((counts.concordant - counts.discordant) / untied) if untied else np.nan


def somers_d(counts: PairCounts) -> float:
    """Somers' d of the metric given gold: pairs that gold ties are left out."""
    c = counts
    decided = c.concordant + c.discordant + c.tied_metric
    return float((c.concordant - c.discordant) / decided) if decided else np.nan


def tie_thresholds(
    gold: np.ndarray, metric: np.ndarray, group: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Every epsilon that matters, and the accuracy if metric differences up to it are ties.

    Choose the best on other items than those it is used on: `cross_fitted_accuracy` does.

    References
    ----------
    Deutsch, Foster & Freitag (2023), EMNLP, arXiv 2305.14324.
    """
    gold, metric = _pair_of_arrays(gold, metric)
    group = np.zeros(len(gold), int) if group is None else np.asarray(group)
    difference, up, also, _ = _differences(gold, metric, group)
    return _thresholds(difference, up, also)


def cross_fitted_accuracy(
    gold: np.ndarray, metric: np.ndarray, group: np.ndarray, fold: np.ndarray
) -> tuple[float, np.ndarray]:
    """Accuracy with the tie threshold chosen on the other folds, and the threshold of each fold.

    Raises
    ------
    StudyError : if all pairs are of one fold
    """
    difference, up, also, of = _differences(np.asarray(gold, float), np.asarray(metric, float), np.asarray(group))
    fold_of = dict(zip(group.tolist(), fold.tolist(), strict=True))
    tested = np.array([fold_of[g] for g in of.tolist()])
    right, chosen = 0, []
    if len(np.unique(tested)) < 2:
        raise StudyError("the pairs of one cluster alone leave no others to choose a tie threshold on")
    for f in np.unique(tested):
        here = tested == f
        thresholds, accuracies = _thresholds(difference[~here], up[~here], also[~here])
        epsilon = float(thresholds[int(np.argmax(accuracies))])
        read = np.where(difference[here] <= epsilon + CLOSE, 0, also[here])
        right += int((read == up[here]).sum())
        chosen.append(epsilon)
    return right / len(difference), np.array(chosen)


def _thresholds(difference: np.ndarray, up: np.ndarray, also: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every threshold that matters and its accuracy, from pairs."""
    order = np.argsort(difference, kind="stable")
    difference, right_as_tie, right_as_order = difference[order], (up == 0)[order], (up == also)[order]
    right_as_order &= ~right_as_tie
    # With threshold e, pairs up to e are ties: right where gold ties; the others are right where ordered alike.
    ties = np.cumsum(right_as_tie)
    ordered = right_as_order.sum() - np.cumsum(right_as_order)
    last = np.concatenate([np.flatnonzero(np.diff(difference) > CLOSE), [len(difference) - 1]])
    thresholds, right = difference[last], (ties + ordered)[last]
    if thresholds[0] > CLOSE:
        thresholds = np.concatenate([[0.0], thresholds])
        right = np.concatenate([[right_as_order.sum()], right])
    return thresholds, right / len(difference)


def _differences(
    gold: np.ndarray, metric: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """|metric difference|, gold's sign, metric's sign and the group of every pair inside a group."""
    parts = []
    for g in np.unique(group):
        rows = np.flatnonzero(group == g)
        first, second = np.triu_indices(len(rows), 1)
        up, also = gold[rows[first]] - gold[rows[second]], metric[rows[first]] - metric[rows[second]]
        parts.append((np.abs(also), _signs(up, CLOSE), _signs(also, CLOSE), np.full(len(up), g)))
    joined = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
    if not len(joined[0]):
        raise StudyError("no group has two items: there is no pair to order")
    return joined


def _pair_of_arrays(gold: np.ndarray, metric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gold, metric = np.asarray(gold, float), np.asarray(metric, float)
    if gold.shape != metric.shape or gold.ndim != 1:
        raise StudyError(f"gold has {gold.size} values and metric {metric.size}: give one of each per item")
    if len(gold) < 2:
        raise StudyError("fewer than two items: there is no pair to order")
    if not (np.isfinite(gold).all() and np.isfinite(metric).all()):
        raise StudyError("a value is missing: keep the items that have both before ordering them")
    return gold, metric


def _codes(values: np.ndarray) -> np.ndarray:
    """Ranks of the values, equal within tolerance."""
    order = np.argsort(values, kind="stable")
    steps = np.concatenate([[0], np.cumsum(np.diff(values[order]) > CLOSE)])
    codes = np.empty(len(values), int)
    codes[order] = steps
    return codes


def _signs(difference: np.ndarray, tolerance: float) -> np.ndarray:
    return np.where(np.abs(difference) <= tolerance, 0, np.sign(difference)).astype(np.int8)


def _tally(up: np.ndarray, also: np.ndarray) -> np.ndarray:
    """The five counts over the last axis."""
    same, free = up == also, up != 0
    return np.stack(
        [
            (same & free).sum(-1),
            ((up * also) < 0).sum(-1),
            (~free & (also != 0)).sum(-1),
            (free & (also == 0)).sum(-1),
            (same & ~free).sum(-1),
        ]
    )


def _of_table(table: np.ndarray) -> PairCounts:
    """Counts from gold × metric frequencies, values in order."""
    above = table[::-1, ::-1].cumsum(0).cumsum(1)[::-1, ::-1]
    beyond = np.zeros_like(table)
    beyond[:-1, :-1] = above[1:, 1:]
    pairs = _choose_two(table.sum())
    both = int(_choose_two(table).sum())
    gold = int(_choose_two(table.sum(1)).sum()) - both
    metric = int(_choose_two(table.sum(0)).sum()) - both
    concordant = int((table * beyond).sum())
    return PairCounts(concordant, int(pairs) - concordant - gold - metric - both, gold, metric, both)


def _choose_two(counts: np.ndarray) -> np.ndarray:
    return counts * (counts - 1) // 2


def _of_blocks(gold: np.ndarray, metric: np.ndarray, epsilon: float) -> PairCounts:
    """Counts by comparing blocks of items with all later ones."""
    found = np.zeros(5, np.int64)
    step = max(1, _CELLS // len(gold))
    for start in range(0, len(gold), step):
        rows = np.arange(start, min(start + step, len(gold)))
        later = np.arange(len(gold))[None, :] > rows[:, None]
        up = _signs(gold[rows, None] - gold[None, :], CLOSE)[later]
        also = _signs(metric[rows, None] - metric[None, :], max(epsilon + CLOSE, CLOSE))[later]
        found += _tally(up, also)
    return PairCounts(*(int(n) for n in found))
