"""Does a judge's 4 mean the panel's 4? Ordinal calibration error, with what chance alone would show."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.stats.clusters import Estimate, clustered_se, percentiles, sums_by_cluster, t_interval, weight_blocks
from study.errors import StudyError

MOST_LEVELS = 20  # distinct scores beyond which they are put into ten bins of equal count
_BINS = 10
FEWEST_IN_BIN = 10  # items of one score below which its mean is noise


@dataclass(frozen=True)
class CalibrationError:
    """ECE = Σ (n_j/n) |panel mean where the judge says j − j|, its relatives, and the reliability table.

    `expected` is the ECE that a perfectly calibrated judge would show on this many items, and `p_value` the chance
    that it would show as much as was seen. `table` has one row per judge score (or bin): `score`, `panel`,
    `std_error`, `low`, `high`, `n`.
    """

    ece: Estimate
    rms: float
    largest: float
    expected: float
    p_value: float
    table: pd.DataFrame
    notes: tuple[str, ...] = ()


def calibration_error(
    score: np.ndarray,
    panel_mean: np.ndarray,
    cluster: np.ndarray,
    *,
    predicted: np.ndarray | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> CalibrationError:
    """Ordinal calibration error of a judge, clusters resampled for its interval and its chance level.

    The interval is the basic bootstrap's, which takes off the upward bias that ECE has in a finite sample; it is
    widened to hold the estimate.

    Parameters
    ----------
    score, panel_mean : (n,) the judge's scores and the panel's means
    predicted : what the judge's score is read as, if not as itself: calibrated values

    Raises
    ------
    StudyError : if no item has both
    """
    if len(score) == 0:
        raise StudyError("no item has both ratings: there is no calibration error")
    codes, names = bins_of(score)
    predicted = score if predicted is None else predicted
    gap = panel_mean - predicted
    sums = sums_by_cluster(_indicator(codes, gap), cluster)
    total = sums.sum(0)
    weight, gaps = total[0::2] / len(score), total[1::2] / total[0::2]
    draws = np.concatenate([_draws(weights @ sums, gaps) for weights in weight_blocks(len(sums), n_boot, seed)])
    ece = float(weight @ np.abs(gaps))
    error, low, high = percentiles(draws[:, 0], "ECE", level, groups=len(sums))
    ends = (np.nan, np.nan) if np.isnan(error) else (max(0.0, min(2 * ece - high, ece)), max(2 * ece - low, ece))
    groups = len(sums)
    table = _table(codes, names, score, panel_mean, predicted, cluster, level)
    thin = table.loc[table["n"] < FEWEST_IN_BIN, "score"]
    notes = ()
    if len(thin):
        shown = ", ".join(f"{s:g}" for s in thin)
        notes = (f"fewer than {FEWEST_IN_BIN} items where the judge says {shown}: their gap is mostly noise",)
    return CalibrationError(
        Estimate("ece", ece, error, np.inf, *ends, len(score), groups),
        rms=float(np.sqrt(weight @ gaps**2)), largest=float(np.abs(gaps).max()),
        expected=float(np.nanmean(draws[:, 1])),
        p_value=float((1 + (draws[:, 1] >= ece).sum()) / (1 + n_boot)), table=table, notes=notes,
    )  # fmt: skip


def bins_of(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the distinct scores, or of ten bins of equal count where they are many, and their mean scores."""
    levels, codes = np.unique(score, return_inverse=True)
    if len(levels) > MOST_LEVELS:
        edges = np.unique(np.quantile(score, np.linspace(0, 1, _BINS + 1)[1:-1]))
        codes = np.unique(np.searchsorted(edges, score, side="left"), return_inverse=True)[1]
    return codes, np.bincount(codes, score) / np.bincount(codes)


def _indicator(codes: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Item × (count, gap) of each bin."""
    columns = np.zeros((len(codes), 2 * (codes.max() + 1)))
    rows = np.arange(len(codes))
    columns[rows, 2 * codes], columns[rows, 2 * codes + 1] = 1.0, gap
    return columns


def _draws(drawn: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Replicate × (ECE of a resample, ECE of a resample whose true gaps are zero)."""
    counts, shift = drawn[:, 0::2], drawn[:, 1::2]
    size = counts.sum(1)
    return np.column_stack([np.abs(shift).sum(1) / size, np.abs(shift - counts * gaps).sum(1) / size])


def _table(
    codes: np.ndarray,
    names: np.ndarray,
    score: np.ndarray,
    panel_mean: np.ndarray,
    predicted: np.ndarray,
    cluster: np.ndarray,
    level: float,
) -> pd.DataFrame:
    rows = []
    for code, name in enumerate(names):
        here = codes == code
        mean, error = float(panel_mean[here].mean()), clustered_se(panel_mean[here], cluster[here])
        low, high = t_interval(mean, error, len(np.unique(cluster[here])) - 1.0, level)
        rows.append({"score": float(name), "panel": mean, "read_as": float(predicted[here].mean()),
                     "std_error": error, "low": low, "high": high, "n": int(here.sum())})  # fmt: skip
    return pd.DataFrame(rows)
