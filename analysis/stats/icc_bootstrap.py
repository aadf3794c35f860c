"""Bootstrap intervals of the intraclass correlations, over items or over clusters of items such as prompts."""

from functools import partial

import numpy as np
import pandas as pd

from analysis.stats.agreement import FORMS, NO_RELIABILITY, averaged, checked, mean_squares, stepped_up
from analysis.stats.agreement_intervals import cluster_codes, interval, multiplicity
from analysis.stats.chunks import Backend, in_chunks
from study.errors import StudyError


def icc_bootstrap(
    ratings: pd.DataFrame | np.ndarray,
    *,
    clusters: pd.Series | np.ndarray | None = None,
    n_boot: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
) -> pd.DataFrame:
    """The six forms of a complete table with percentile intervals that assume no distribution.

    Parameters
    ----------
    clusters : what each item belongs to, in the table's order; whole clusters are drawn. Five sources' answers
        to one prompt are not five independent items.

    Returns
    -------
    `term`, `also`, `estimate`, `std_error`, `low`, `high`, `n` (items), `k` (raters), `n_clusters`, `n_boot`,
    `n_failed`, `reason` (why there is no estimate). Intervals of a mean of k raters are those of one rater,
    stepped up; their standard error is nan where a draw has no reliability to step up.

    Raises
    ------
    StudyError : for missing cells; fewer than ten clusters; as `agreement.checked` says
    """
    table = checked(ratings)
    y = table.to_numpy(float)
    if np.isnan(y).any():
        raise StudyError(f"{int(np.isnan(y).sum())} cells are missing: use icc_incomplete for incomplete ratings")
    codes = np.arange(len(y)) if clusters is None else cluster_codes(clusters)
    if len(codes) != len(y):
        raise StudyError(f"{len(codes)} cluster names for {len(y)} items: give one for each item")
    task = partial(_replicates, y, codes)
    draws = np.concatenate(
        in_chunks(task, n_boot, seed=seed, size=1000, jobs=jobs, backend=backend, scheduler=scheduler)
    )
    squares = mean_squares(y)
    n, k = y.shape
    estimates = _singles(squares["items"], squares["raters"], squares["error"], n, k)
    about = {"n": n, "k": k, "n_clusters": int(codes.max()) + 1, "n_boot": n_boot}
    rows = []
    for i, (term, estimate) in enumerate(zip(list(FORMS)[:3], estimates, strict=True)):
        found = interval(draws[:, i], confidence, term)
        ends = float(estimate), found["low"], found["high"]
        for size, (value, low, high) in (("1", ends), ("k", stepped_up(ends, k))):
            drawn = draws[:, i] if size == "1" else averaged(draws[:, i], k)[np.isfinite(draws[:, i])]
            error = {"std_error": found["std_error"] if size == "1" else float(drawn.std(ddof=1))}
            name = term.replace(",1)", f",{size})")
            reason = NO_RELIABILITY if np.isnan(value) else None
            rows.append({"term": name, "also": FORMS[name], "estimate": value} | found | error
                        | {"low": low, "high": high} | about | {"reason": reason})  # fmt: skip
    return pd.DataFrame(sorted(rows, key=lambda row: list(FORMS).index(row["term"])))


def _replicates(y: np.ndarray, codes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n × the three forms of one rater, from moments weighted by how often each item is drawn."""
    weight = multiplicity(int(codes.max()) + 1, n, rng)[:, codes]
    items, k = weight.sum(1), y.shape[1]
    by_rater = weight @ y
    grand = by_rater.sum(1) ** 2 / (k * items)
    ss_items = weight @ (y.sum(1) ** 2 / k) - grand
    ss_raters = (by_rater**2).sum(1) / items - grand
    ss_error = np.maximum(weight @ (y**2).sum(1) - grand - ss_items - ss_raters, 0)
    per_item, per_rater, per_cell = items - 1, k - 1, (items - 1) * (k - 1)
    return np.column_stack(_singles(ss_items / per_item, ss_raters / per_rater, ss_error / per_cell, items, k))


def _singles(
    items: np.ndarray, raters: np.ndarray, error: np.ndarray, n: np.ndarray, k: int
) -> list[np.ndarray]:
    """The three forms of one rater in the order of FORMS, from mean squares; nan where nothing varies."""
    within = (raters + (n - 1) * error) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        return [
            (items - within) / (items + (k - 1) * within),
            (items - error) / (items + (k - 1) * error + k * (raters - error) / n),
            (items - error) / (items + (k - 1) * error),
        ]
