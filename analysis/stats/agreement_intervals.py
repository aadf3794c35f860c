"""Bootstrap intervals for alpha, percent agreement and AC2, over items, raters or both at once."""

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from analysis.stats.agreement import Level, alpha_of_counts, checked, scale_places, shared_items, value_counts
from analysis.stats.chunks import Backend, in_chunks
from analysis.stats.kappa import agreement_weights, gwet_of_counts, observed_agreement
from study.errors import StudyError

Over = Literal["items", "raters", "both"]
TERMS = ("alpha", "percent_agreement", "ac2")
# Replicate × item × value cells held at once: 2 million doubles are 16 MB.
CELLS_AT_ONCE = 2_000_000
# With fewer clusters percentiles are far too narrow: three cases cover 0.6 where 0.95 is promised.
FEWEST_CLUSTERS = 10


def agreement_intervals(
    ratings: pd.DataFrame | np.ndarray,
    level: Level = "ordinal",
    *,
    over: Over = "both",
    clusters: pd.Series | np.ndarray | None = None,
    categories: np.ndarray | list[float] | None = None,
    n_boot: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
) -> pd.DataFrame:
    """Alpha, percent agreement and Gwet's AC2 with percentile bootstrap intervals.

    `over="both"` draws items and raters anew, so that the interval speaks of new raters and new items;
    "items" keeps these raters, "raters" keeps these items. Rows and columns are drawn by index with their
    multiplicity; a rater drawn twice is never paired with itself, since that would count as agreement. With two
    or three raters there is little to draw from, and "both" says hardly more than "items".

    Parameters
    ----------
    clusters : what each item belongs to, such as its prompt, in the table's order; items of a cluster are drawn
        together
    categories : every value of the scale, for AC2; the values found if not given

    Returns
    -------
    One row per coefficient: `term`, `estimate`, `std_error`, `low`, `high`, `n` (items rated twice or more),
    `k` (raters), `n_ratings`, `level`, `over`, `n_boot`, `n_failed` (replicates without variation, left
    out of the interval).

    Raises
    ------
    StudyError : as `krippendorff_alpha` and `gwet_ac` say; if more than one replicate in twenty fails

    References
    ----------
    Owen (2007), Annals of Applied Statistics 1, 386–411, on drawing rows and columns.
    """
    whole = pd.DataFrame(ratings)
    table = shared_items(checked(whole))
    codes = _cluster_codes(whole, table, clusters)
    _, values = value_counts(table, categories)
    indicator = (table.to_numpy(float)[:, :, None] == values).astype(float)
    per_replicate = len(table) * (1 if over == "items" else len(values))
    size = max(1, min(1000, CELLS_AT_ONCE // per_replicate))
    task = partial(_replicates, indicator, codes, values, level, over)
    draws = np.concatenate(
        in_chunks(task, n_boot, seed=seed, size=size, jobs=jobs, backend=backend, scheduler=scheduler)
    )
    counts = indicator.sum(1)
    estimates = (
        alpha_of_counts(counts, values, level),
        observed_agreement(counts, np.eye(len(values))),
        gwet_of_counts(counts, agreement_weights(values, "ordinal")),
    )
    about = {
        "n": len(table), "k": table.shape[1], "n_ratings": int(table.count().sum()), "level": level,
        "over": over, "n_boot": n_boot,
    }  # fmt: skip
    return pd.DataFrame(
        [
            {"term": term, "estimate": float(estimate)} | interval(draws[:, i], confidence, term) | about
            for i, (term, estimate) in enumerate(zip(TERMS, estimates, strict=True))
        ]
    )


def _cluster_codes(
    whole: pd.DataFrame, table: pd.DataFrame, clusters: pd.Series | np.ndarray | None
) -> np.ndarray:
    """Numbers of the clusters of the items that are left."""
    if clusters is None:
        return np.arange(len(table))
    names = pd.Series(np.asarray(clusters))
    if len(names) != len(whole):
        raise StudyError(f"{len(names)} cluster names for {len(whole)} items: give one for each item")
    return cluster_codes(names[whole.index.get_indexer(table.index)])


def cluster_codes(names: pd.Series | np.ndarray) -> np.ndarray:
    """Numbers of the clusters by item; a missing name and too few clusters are refused."""
    codes, levels = pd.factorize(np.asarray(names))
    if codes.min() < 0:
        raise StudyError(f"{int((codes < 0).sum())} items have no cluster: give each item its prompt or case")
    if len(levels) < FEWEST_CLUSTERS:
        raise StudyError(
            f"{len(levels)} clusters are too few to resample: an interval needs at least {FEWEST_CLUSTERS}"
        )
    return codes


def interval(draws: np.ndarray, confidence: float, term: str) -> dict[str, float]:
    """Standard deviation and percentiles of the draws that could be estimated.

    Draws that are all the same leave the percentiles nan: an interval of no width would promise certainty.
    """
    kept = draws[np.isfinite(draws)]
    failed = len(draws) - len(kept)
    if failed > len(draws) / 20:
        raise StudyError(
            f"{term}: {failed} of {len(draws)} bootstrap samples had no variation, too many for an interval; "
            "there are too few items or raters, or nearly all ratings are equal"
        )
    tail = (1 - confidence) / 2
    low, high = np.quantile(kept, [tail, 1 - tail]) if np.ptp(kept) > 1e-12 else (np.nan, np.nan)
    return {"std_error": kept.std(ddof=1), "low": low, "high": high, "n_failed": failed}


def _replicates(
    indicator: np.ndarray,
    codes: np.ndarray,
    values: np.ndarray,
    level: Level,
    over: Over,
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """n × 3 table of alpha, percent agreement and AC2 in resampled items and raters; nan if undefined.

    Parameters
    ----------
    indicator : item × rater × value, 1 where that rater gave that item that value
    codes : cluster of each item
    """
    n_items, n_raters, n_values = indicator.shape
    n_clusters = int(codes.max()) + 1
    items = multiplicity(n_clusters, n, rng)[:, codes] if over != "raters" else np.ones((n, n_items))
    if over == "items":
        counts = indicator.sum(1)
        squared = counts.sum(-1)
    else:
        raters = _two_or_more(n_raters, n, rng)
        flat = indicator.transpose(1, 0, 2).reshape(n_raters, -1)
        counts = (raters @ flat).reshape(n, n_items, n_values)
        squared = raters**2 @ indicator.sum(2).T
    return coefficients(counts, squared, items, values, level)


def multiplicity(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of `size` things is drawn in each of n samples with replacement."""
    drawn = rng.integers(0, size, (n, size), dtype=np.int32)
    drawn += size * np.arange(n, dtype=np.int32)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * size).reshape(n, size).astype(float)


def _two_or_more(n_raters: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Multiplicities of raters; a sample of one rater only has no pairs, and is drawn again."""
    drawn = multiplicity(n_raters, n, rng)
    while (alone := (drawn > 0).sum(1) < 2).any():
        drawn[alone] = multiplicity(n_raters, int(alone.sum()), rng)
    return drawn


def coefficients(
    counts: np.ndarray, squared: np.ndarray, items: np.ndarray, values: np.ndarray, level: Level
) -> np.ndarray:
    """The three coefficients of each replicate.

    Parameters
    ----------
    counts : (replicate ×) item × value, raters counted with their multiplicity w
    squared : (replicate ×) item, sum of w²: the pairs of a rater with itself
    items : replicate × item multiplicity
    """
    total = counts.sum(-1)
    pairs = total**2 - squared
    usable = pairs > 0.5
    safe = np.where(usable, pairs, 1)
    weight = items if usable.all() else items * usable
    n_items = weight.sum(-1)
    marginal = _over_items(weight, counts)
    n_ratings = marginal.sum(-1)
    ordinal = agreement_weights(values, "ordinal")
    equal = ((counts**2).sum(-1) - squared) / safe
    near = (((counts @ ordinal) * counts).sum(-1) - squared) / safe
    q = len(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        place = scale_places(marginal, values, level)
        observed = _observed(weight, total / safe, counts, place, level, values)
        expected = _disagreement(marginal[:, None, :], n_ratings[:, None], place, level, values)[:, 0]
        alpha = 1 - observed * (n_ratings - 1) / np.where(expected > 0, expected, np.nan)
        share = _over_items(weight, counts / np.where(total > 0, total, 1)[..., None]) / n_items[:, None]
        chance = ordinal.sum() / (q * (q - 1)) * (share * (1 - share)).sum(-1)
        percent = _sum_over_items(weight, equal) / n_items
        ac2 = (_sum_over_items(weight, near) / n_items - chance) / (1 - chance)
    return np.column_stack([alpha, percent, ac2])


def _observed(
    weight: np.ndarray,
    scale: np.ndarray,
    counts: np.ndarray,
    place: np.ndarray,
    level: Level,
    values: np.ndarray,
) -> np.ndarray:
    """Replicate sums over items of scale × disagreement."""
    q = len(values)
    if counts.ndim == 3 or q > 30:
        disagreed = _disagreement(counts, counts.sum(-1), place, level, values)
        return _sum_over_items(weight, scale * disagreed)
    # The same raters in every replicate: one product with the items' coincidences instead of a pass each.
    coincidences = (scale[:, None, None] * counts[:, :, None] * counts[:, None, :]).reshape(len(counts), -1)
    joint = (weight @ coincidences).reshape(-1, q, q)
    return (joint * _differences(place, level, values)).sum((-2, -1))


def _differences(place: np.ndarray, level: Level, values: np.ndarray) -> np.ndarray:
    """(Replicate ×) value × value squared differences of the level of measurement."""
    if level == "nominal":
        return 1 - np.eye(len(values))
    squared = (place[..., :, None] - place[..., None, :]) ** 2
    if level == "ratio":
        sums = np.add.outer(values, values)
        return squared / np.where(sums == 0, 1, sums) ** 2
    return squared


def _over_items(weight: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Replicate × value sums over items; counts with or without a replicate axis."""
    return weight @ counts if counts.ndim == 2 else (weight[:, None, :] @ counts)[:, 0, :]


def _sum_over_items(weight: np.ndarray, statistic: np.ndarray) -> np.ndarray:
    """Replicate sums over items of a statistic with or without a replicate axis."""
    return weight @ statistic if statistic.ndim == 1 else np.einsum("bi,bi->b", weight, statistic)


def _disagreement(
    counts: np.ndarray, total: np.ndarray, place: np.ndarray, level: Level, values: np.ndarray
) -> np.ndarray:
    """Replicate × item sums of squared differences over ordered pairs; see `agreement.disagreement`."""
    if level == "nominal":
        return total**2 - (counts**2).sum(-1)
    if level == "ratio":
        return ((counts @ _differences(place, level, values)) * counts).sum(-1)
    return 2 * (total * _at_places(counts, place**2) - _at_places(counts, place) ** 2)


def _at_places(counts: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Sums of counts × place, where either may have a replicate axis."""
    if place.ndim == 1:
        return counts @ place
    return place @ counts.T if counts.ndim == 2 else (counts @ place[:, :, None])[..., 0]
