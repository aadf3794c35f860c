"""How raters rate and how far they agree, without knowing any source: plain sums over the ratings given so far."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from study.store.overview import Given

_SECONDS_LEAST = 2.0  # nobody reads and rates an item in less
_CHARACTERS_PER_SECOND = 12.0  # a fast reader of Korean; a quarter of that time is the least believable


@dataclass(frozen=True)
class Manner:
    """One rater's manner.

    fast : items rated in less than 2 seconds or a quarter of the reading time
    run : the longest row of equal scores · spread : their standard deviation
    severity : mean difference from the others' mean on the same cells; negative is severe
    drift : severity in the last third of what they rated minus that in the first
    """

    person_id: str
    rated: int
    median_seconds: float | None
    fast: int
    run: int
    spread: float | None
    severity: float | None
    drift: float | None
    last_at: str


@dataclass(frozen=True)
class Agreement:
    """Agreement on one metric; ICCs over the items that all raters rated, alpha over all."""

    metric_id: str
    items: int
    raters: int
    icc_single: float | None
    icc_mean: float | None
    alpha: float | None


def manners(given: Sequence[Given], seen_ms: Mapping[tuple[str, int], int]) -> list[Manner]:
    """The manner of each rater; `seen_ms` is how long an item was on the screen, where that is known."""
    values = [g for g in given if g.value is not None]
    by_cell = defaultdict(list)
    for g in values:
        by_cell[g.item, g.metric_id].append(g.value)
    found = []
    for person_id in sorted({g.person_id for g in given}):
        mine = [g for g in values if g.person_id == person_id]
        spans = _spans([g for g in given if g.person_id == person_id], seen_ms)
        apart = [d for g in mine if (d := _apart(g, by_cell[g.item, g.metric_id])) is not None]
        third = len(apart) // 3
        found.append(
            Manner(
                person_id=person_id,
                rated=sum(g.person_id == person_id for g in given),
                median_seconds=statistics.median(s for s, _ in spans) if spans else None,
                fast=sum(s < max(_SECONDS_LEAST, 0.25 * c / _CHARACTERS_PER_SECOND) for s, c in spans),
                run=_longest_run([g.value for g in mine]),
                spread=statistics.pstdev(g.value for g in mine) if mine else None,
                severity=statistics.fmean(apart) if apart else None,
                drift=statistics.fmean(apart[-third:]) - statistics.fmean(apart[:third]) if third else None,
                last_at=max(g.first_at for g in given if g.person_id == person_id),
            )
        )
    return found


def agreements(given: Iterable[Given], metrics: Iterable[str]) -> list[Agreement]:
    """Agreement on each metric so far."""
    tables: dict[str, dict[int, dict[str, float]]] = {m: defaultdict(dict) for m in metrics}
    raters = set()
    for g in given:
        if g.value is not None and g.role == "main":
            tables[g.metric_id][g.item][g.person_id] = g.value
            raters.add(g.person_id)
    found = []
    for metric_id, items in tables.items():
        whole = [[row[r] for r in sorted(raters)] for row in items.values() if len(row) == len(raters)]
        single, mean = icc(whole)
        rows = [list(row.values()) for row in items.values()]
        found.append(Agreement(metric_id, len(whole), len(raters), single, mean, alpha(rows)))
    return found


def icc(table: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    """ICC(2,1) and ICC(2,k) of an items × raters table; None where they are not defined.

    References
    ----------
    Shrout & Fleiss (1979), Psychological Bulletin 86:420
    """
    n, k = len(table), len(table[0]) if table else 0
    if n < 2 or k < 2:
        return None, None
    grand = sum(map(sum, table)) / (n * k)
    rows = k * sum((sum(r) / k - grand) ** 2 for r in table) / (n - 1)
    columns = n * sum((sum(c) / n - grand) ** 2 for c in zip(*table, strict=True)) / (k - 1)
    total = sum((x - grand) ** 2 for r in table for x in r)
    error = (total - rows * (n - 1) - columns * (k - 1)) / ((n - 1) * (k - 1))
    below = rows + (k - 1) * error + k * (columns - error) / n, rows + (columns - error) / n
    return tuple((rows - error) / b if abs(b) > 1e-12 else None for b in below)


def alpha(rows: Iterable[Sequence[float]]) -> float | None:
    """Krippendorff's alpha for interval scores: one row of scores per item; None where it is not defined.

    References
    ----------
    Krippendorff (2011), repository.upenn.edu/asc_papers/43
    """
    paired = [r for r in rows if len(r) > 1]
    values = [v for r in paired for v in r]
    if not values:
        return None
    within = sum(_squares(r) * len(r) / (len(r) - 1) for r in paired) / len(values)
    overall = _squares(values) / (len(values) - 1)
    return 1 - within / overall if overall > 1e-12 else None


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((v - mean) ** 2 for v in values)


def _apart(mine: Given, everybody: list[float]) -> float | None:
    if len(everybody) < 2:
        return None
    return mine.value - (sum(everybody) - mine.value) / (len(everybody) - 1)


def _longest_run(values: Sequence[float]) -> int:
    longest = run = 0
    before = None
    for value in values:
        run = run + 1 if value == before else 1
        longest, before = max(longest, run), value
    return longest


def _spans(mine: list[Given], seen_ms: Mapping[tuple[str, int], int]) -> list[tuple[float, int]]:
    """Seconds and characters per item: time on the screen where known, else since the item rated before."""
    ends: dict[int, tuple[str, int]] = {}
    for g in mine:
        ends[g.position] = (max(g.first_at, ends.get(g.position, ("", 0))[0]), g.characters)
    order = sorted((at, position, characters) for position, (at, characters) in ends.items())
    spans = []
    for (before, _, _), (at, position, characters) in zip(order, order[1:], strict=False):
        seen = seen_ms.get((mine[0].person_id, position))
        gap = (datetime.fromisoformat(at) - datetime.fromisoformat(before)).total_seconds()
        spans.append((seen / 1000 if seen else gap, characters))
    return spans
