"""Who rates what, in what order, under which label. Pure and seeded: the same study gives the same design.

A block is an encounter: one source's answers to one case's prompts in dialogue order, then the encounter as a
whole. Each rater meets the blocks in an order of their own, balanced as in a Williams square: every block about
equally often in every place and after every other block.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from study.errors import StudyError
from study.records import Content

_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # without 0 O 1 I
_LABELS, _ORDERS, _BLOCKS = range(3)  # independent streams of the study's seed
_LONGEST_RUN = 2  # blocks of one source in a row
_MOVES_PER_BLOCK = 100  # length of the search; at 17 × 15 longer ones gain nothing measurable
_EXCHANGE_EVERY = 8  # every so many moves exchange the places of two cases


@dataclass(frozen=True)
class Balance:
    """How even an order is: least and most often any block stands in a place, and follows another block.

    Only pairs of blocks that may stand side by side are counted (`apart` keeps blocks of one case asunder).
    """

    place_low: int
    place_high: int
    pair_low: int
    pair_high: int
    apart: int


def items(content: Content, responses: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Items under meaningless labels, and the key from label to source.

    Only responses with status ok become items. Rows stand in the labels' order, which knows nothing of sources.

    Returns
    -------
    items : columns of the table `items`; no source in it
    key : label, source_id

    Raises
    ------
    StudyError : if no response is ok, or a response is to a prompt that the study does not have
    """
    usable = responses[responses["status"] == "ok"]
    if usable.empty:
        raise StudyError("responses: none has status ok, so there is nothing to rate; `generation run` first")
    prompts = {p.prompt_id: p for p in content.prompts}
    strangers = sorted(set(usable["prompt_id"]) - set(prompts))
    if strangers:
        raise StudyError(f"responses: prompt {strangers[0]} is not among the study's prompts")
    encounters = usable[["source_id", "case_id"]].drop_duplicates().itertuples(index=False)
    rng = _rng(seed, _LABELS)
    names = _labels(len(usable) + usable.groupby(["source_id", "case_id"]).ngroups, rng)
    encounter_label = {(e.source_id, e.case_id): f"E{names.pop()}" for e in encounters}
    rows, key = [], []
    for (source_id, case_id), label in encounter_label.items():
        rows.append({"label": label, "kind": "encounter", "case_id": case_id})
        key.append((label, source_id))
    for r in usable.itertuples(index=False):
        label, prompt = f"U{names.pop()}", prompts[r.prompt_id]
        rows.append(
            {
                "label": label,
                "kind": "utterance",
                "case_id": r.case_id,
                "prompt_id": r.prompt_id,
                "encounter": encounter_label[r.source_id, r.case_id],
                "turn": prompt.turn,
                "category": prompt.category,
                "form": prompt.form,
                "text": r.text,
            }
        )
        key.append((label, r.source_id))
    table = pd.DataFrame(rows).astype({"turn": "Int64"}).sort_values("label", ignore_index=True)
    return table, pd.DataFrame(key, columns=["label", "source_id"]).sort_values("label", ignore_index=True)


def assignment(
    items: pd.DataFrame,
    key: pd.DataFrame,
    raters: tuple[str, ...],
    seed: int,
    *,
    raters_per_encounter: int | None = None,
    apart: int = 3,
) -> tuple[pd.DataFrame, Balance]:
    """Which rater rates which items, in which order.

    Fully crossed, or in balanced incomplete blocks where `raters_per_encounter` is given. Blocks of one case
    stand at least `apart` places from each other (less where the cases are too few for it; `Balance` says what
    was kept), and never more than two blocks of one source follow each other.

    Raises
    ------
    StudyError : without raters, or with fewer raters than an encounter needs
    """
    if not raters:
        raise StudyError("study.toml: [panel] names no rater; set raters to a number or a list of names")
    blocks = items[items["kind"] == "encounter"].merge(key, on="label").sort_values("label")
    labels, case, source = (blocks[c].to_numpy() for c in ("label", "case_id", "source_id"))
    n = len(labels)
    if raters_per_encounter is None:
        chosen = [np.arange(n)] * len(raters)
    else:
        chosen = _incomplete(case, source, len(raters), raters_per_encounter, _rng(seed, _BLOCKS))
    orders, balance = balanced_orders(case, source, chosen, apart, _rng(seed, _ORDERS))
    within = _block_items(items)
    rows = []
    for rater_id, order in zip(raters, orders, strict=True):
        walk = [(b + 1, label) for b, block in enumerate(order) for label in within[labels[block]]]
        rows += [(rater_id, position, label, b, "main") for position, (b, label) in enumerate(walk, 1)]
    return pd.DataFrame(rows, columns=["rater_id", "position", "label", "block", "role"]), balance


def williams(n: int) -> np.ndarray:
    """A Williams design of n treatments: rows in which each follows each other equally often.

    Returns
    -------
    n × n for even n, 2n × n for odd n (each ordered pair twice)

    References
    ----------
    Williams (1949), Australian Journal of Scientific Research A 2:149, sections 3 and 4
    """
    first = np.zeros(n, int)
    first[1::2] = np.arange(1, n // 2 + 1)
    first[2::2] = n - np.arange(1, (n - 1) // 2 + 1)
    square = (first + np.arange(n)[:, None]) % n
    return square if n % 2 == 0 else np.vstack([square, square[:, ::-1]])


def balanced_orders(
    case: np.ndarray, source: np.ndarray, chosen: list[np.ndarray], apart: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], Balance]:
    """One order of blocks per rater, from rows of a Williams square, spaced by case, then evened by search.

    Parameters
    ----------
    case, source : of each block
    chosen : per rater, the blocks that they rate
    """
    n = len(case)
    numbering, rows = rng.permutation(n), williams(n)
    rows = rows[rng.permutation(len(rows))]
    apart = min([apart] + [_widest(case[blocks]) for blocks in chosen])
    orders = []
    for i, blocks in enumerate(chosen):
        row = numbering[rows[i % len(rows)]]
        orders.append(_spaced(row[np.isin(row, blocks)], case, source, apart))
    _even_out(orders, case, source, apart, rng)
    return orders, _balance(orders, case, apart)


def _rng(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))


def _labels(n: int, rng: np.random.Generator) -> list[str]:
    """n different words without meaning or order."""
    length = max(4, int(np.ceil(np.log(50 * n) / np.log(len(_ALPHABET)))))
    found: dict[str, None] = {}
    while len(found) < n:
        found["".join(_ALPHABET[i] for i in rng.integers(len(_ALPHABET), size=length))] = None
    return list(found)


def _block_items(items: pd.DataFrame) -> dict[str, list[str]]:
    """Per encounter: its utterances in dialogue order, then the encounter itself."""
    utterances = items[items["kind"] == "utterance"].sort_values(["encounter", "turn"])
    walk = {e: list(rows["label"]) for e, rows in utterances.groupby("encounter", sort=False)}
    return {e: walk.get(e, []) + [e] for e in items.loc[items["kind"] == "encounter", "label"]}


def _widest(case: np.ndarray) -> int:
    """The widest spacing of like cases for which an order exists.

    The fullest case of m blocks needs (m − 1) × spacing + (how many cases are as full) places.
    """
    counts = np.unique(case, return_counts=True)[1]
    fullest = counts.max()
    if fullest == 1:
        return len(case)
    return max(1, (len(case) - int((counts == fullest).sum())) // (fullest - 1))


def _spaced(row: np.ndarray, case: np.ndarray, source: np.ndarray, apart: int) -> np.ndarray:
    """A row's blocks, as near to its order as the spacing of cases and the runs of sources allow."""
    waiting, order = list(row), []
    while waiting:
        recent = {case[b] for b in order[max(0, len(order) - apart + 1) :]}
        run = {source[b] for b in order[-_LONGEST_RUN:]}
        free = [b for b in waiting if case[b] not in recent] or waiting
        if len(order) >= _LONGEST_RUN and len(run) == 1:
            free = [b for b in free if source[b] not in run] or free
        left = Counter(case[b] for b in waiting)
        most = max(left[case[b]] for b in free)
        order.append(next(b for b in free if left[case[b]] == most))
        waiting.remove(order[-1])
    return np.array(order, int)


def _even_out(
    orders: list[np.ndarray], case: np.ndarray, source: np.ndarray, apart: int, rng: np.random.Generator
) -> None:
    """Swap blocks within raters as long as places and neighbours become more even; in place."""
    n = len(case)
    place, pair = _counts(orders, n)
    moves = _MOVES_PER_BLOCK * sum(map(len, orders))
    whose, first, second = rng.integers(len(orders), size=moves), rng.random(moves), rng.random(moves)
    for k in range(moves):
        order = orders[whose[k]]
        i, j = int(first[k] * len(order)), int(second[k] * len(order))
        trial = _cases_exchanged(order, case, i, j) if k % _EXCHANGE_EVERY == 0 else _swapped(order, i, j)
        if not _admissible(trial, case, source, apart):
            continue
        removed = _count(order, place, pair, -1)
        added = _count(trial, place, pair, +1)
        if removed + added > 0 and _admissible(order, case, source, apart):
            _count(trial, place, pair, -1)
            _count(order, place, pair, +1)
        else:
            order[:] = trial


def _swapped(order: np.ndarray, i: int, j: int) -> np.ndarray:
    trial = order.copy()
    trial[[i, j]] = trial[[j, i]]
    return trial


def _cases_exchanged(order: np.ndarray, case: np.ndarray, i: int, j: int) -> np.ndarray:
    """All blocks of one case in the places of another's, which no row of single swaps could reach."""
    cases, trial = case[order], order.copy()
    a, b = np.flatnonzero(cases == cases[i]), np.flatnonzero(cases == cases[j])
    if len(a) == len(b):
        trial[a], trial[b] = order[b], order[a]
    return trial


def _admissible(order: np.ndarray, case: np.ndarray, source: np.ndarray, apart: int) -> bool:
    cases, sources = case[order], source[order]
    if any((cases[d:] == cases[:-d]).any() for d in range(1, min(apart, len(order)))):
        return False
    return _longest_run(sources) <= _LONGEST_RUN


def _longest_run(values: np.ndarray) -> int:
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    return int(np.diff(np.concatenate([[0], changes, [len(values)]])).max())


def _counts(orders: list[np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
    place, pair = np.zeros((n, n), int), np.zeros((n, n), int)
    for order in orders:
        _count(order, place, pair, +1)
    return place, pair


def _count(order: np.ndarray, place: np.ndarray, pair: np.ndarray, by: int) -> int:
    """Add an order to the counts, or take it out; returns by how much the sum of their cubes grows.

    Cubes, for a block three times in one place is worse than three blocks twice.
    """
    cells = (place, order, np.arange(len(order))), (pair, order[:-1], order[1:])
    growth = 0
    for table, row, column in cells:
        before = table[row, column]
        growth += int(((before + by) ** 3 - before**3).sum())
        table[row, column] = before + by
    return growth


def _balance(orders: list[np.ndarray], case: np.ndarray, apart: int) -> Balance:
    n = len(case)
    place, pair = _counts(orders, n)
    places = place[:, : max(map(len, orders))]
    may_follow = ~np.eye(n, dtype=bool)
    if apart > 1:
        may_follow &= case[:, None] != case[None, :]
    pairs = pair[may_follow] if may_follow.any() else np.zeros(1, int)
    return Balance(int(places.min()), int(places.max()), int(pairs.min()), int(pairs.max()), apart)


def _incomplete(
    case: np.ndarray, source: np.ndarray, n_raters: int, per_encounter: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Blocks per rater: each block equally often, raters equally loaded, sources, cases and pairs evened."""
    n = len(case)
    if per_encounter > n_raters:
        raise StudyError(
            f"study.toml: [design] wants {per_encounter} raters for each encounter, but [panel] has {n_raters}"
        )
    rates = np.zeros((n_raters, n), int)
    for block in rng.permutation(n):
        load = rates.sum(1) + rng.random(n_raters) * 0.5
        rates[np.argsort(load)[:per_encounter], block] = 1
    groups = np.hstack([case[:, None] == np.unique(case), source[:, None] == np.unique(source)]).astype(int)
    cost = _concurrence(rates, groups)
    for _ in range(_MOVES_PER_BLOCK * n):
        a, b = rng.choice(n_raters, 2, replace=False)
        give, take = np.flatnonzero(rates[a] > rates[b]), np.flatnonzero(rates[b] > rates[a])
        if not len(give) or not len(take):
            continue
        g, t = rng.choice(give), rng.choice(take)
        trial = rates.copy()
        trial[[a, b, a, b], [g, g, t, t]] = 0, 1, 1, 0
        if (after := _concurrence(trial, groups)) <= cost:
            rates, cost = trial, after
    return [np.flatnonzero(row) for row in rates]


def _concurrence(rates: np.ndarray, groups: np.ndarray) -> int:
    """Sum of squares of how often two blocks share a rater, and of a rater's blocks per case and source."""
    return int(((rates.T @ rates) ** 2).sum() + ((rates @ groups) ** 2).sum())
