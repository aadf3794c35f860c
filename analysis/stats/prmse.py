"""How much of the true score the judge explains: the proportional reduction in mean squared error (PRMSE)."""

from dataclasses import dataclass, replace

import numpy as np

from analysis.stats.clusters import FEWEST, Estimate, jackknife, sums_by_cluster
from analysis.stats.comparison import Comparison
from study.errors import StudyError

_WIDTH = 8


@dataclass(frozen=True)
class Prmse:
    """PRMSE with its parts: variance of rater error, of true scores, and the judge's error about the true score.

    `status` is "ok", or says why `estimate` may not be read as a share: it then lies outside [0, 1].
    """

    estimate: Estimate
    error_variance: float
    true_variance: float
    true_mse: float
    status: str
    version: str

    @property
    def readable(self) -> bool:
        """Whether the estimate is a share."""
        return self.status == "ok"

    @property
    def estimable(self) -> bool:
        """Whether the estimate means anything; below 0 it does."""
        return not self.status.startswith("not estimable")


def prmse(
    comparison: Comparison,
    *,
    error_variance: float | None = None,
    consistency: bool = False,
    level: float = 0.95,
) -> Prmse:
    """1 − (judge's mean squared error about the true score) / (variance of the true score).

    The interval leaves out one cluster at a time; there is none below ten clusters.

    1 is a judge that knows the true score, 0 one that knows its mean only; a judge with a bias can be below 0.

    Parameters
    ----------
    error_variance : of one rating about the true score, where it is known from elsewhere; else the pooled
        variance of raters within items
    consistency : take each rater's own mean out of the panel first, so that severity does not count as error

    Raises
    ------
    StudyError : if no item has two ratings and no error variance is given; if scores do not vary

    References
    ----------
    Loukina et al. (2020), BEA workshop, on PRMSE; the formulas are those of the rsmtool documentation.
    """
    data = comparison.labelled()
    panel = centred_by_rater(data.panel) if consistency else data.panel
    if error_variance is None and (data.counts < 2).all():
        raise StudyError("no item was rated by two raters: the error of a rating cannot be estimated; "
                         "give error_variance, or have some items rated twice")  # fmt: skip
    sums = sums_by_cluster(_columns(panel, data.score), data.cluster)
    lost = _lost_df(panel) if consistency else 0
    parts = _parts(sums.sum(0)[None, :], error_variance, lost)[0]
    if not np.isfinite(parts[3]):
        raise StudyError(f"{data.metric}: panel means do not vary, so there is no true variance to explain")
    estimate = jackknife(sums, lambda s: _parts(s, error_variance, lost)[:, 3:], ["prmse"], data.n, level)[0]
    if len(sums) < FEWEST:
        estimate = replace(estimate, std_error=np.nan, low=np.nan, high=np.nan, statistic=np.nan, p_value=np.nan)
    return Prmse(
        estimate, float(parts[0]), float(parts[1]), float(parts[2]), _status(*parts[1:], consistency),
        "consistency" if consistency else "absolute",
    )  # fmt: skip


def centred_by_rater(panel: np.ndarray) -> np.ndarray:
    """The panel with each rater's mean moved to the mean of all ratings."""
    found = np.isfinite(panel)
    counts = found.sum(0)
    means = np.where(found, panel, 0).sum(0) / np.maximum(counts, 1)
    return panel - means + panel[found].mean()


def _lost_df(panel: np.ndarray) -> int:
    return int(np.isfinite(panel).any(0).sum()) - 1


def _columns(panel: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Per item: 1, n, n², Σ(y−m)², n·m, n·m², n·(m−J)², n−1."""
    found = np.isfinite(panel)
    n = found.sum(1)
    m = np.where(found, panel, 0).sum(1) / n
    within = (np.where(found, panel - m[:, None], 0) ** 2).sum(1)
    return np.column_stack([np.ones_like(m), n, n**2, within, n * m, n * m**2, n * (m - score) ** 2, n - 1])


def _parts(sums: np.ndarray, error_variance: float | None, lost: int) -> np.ndarray:
    """… × (v_e, true variance, true MSE, PRMSE) from sums over items."""
    items, n, n_squared, within, nm, nm2, off, df = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        v_e = within / (df - lost) if error_variance is None else np.full_like(items, error_variance)
        spread = nm2 - nm**2 / n
        true = (spread - (items - 1) * v_e) / (n - n_squared / n)
        mse = (off - items * v_e) / n
        value = 1 - mse / np.where(spread > 1e-12 * n, true, np.nan)
    return np.stack([v_e, true, mse, value], axis=-1)


def _status(true: float, mse: float, value: float, consistency: bool) -> str:
    if true <= 0:
        return "not estimable: raters differ within items more than items differ from each other"
    if (mse < 0 or value > 1) and consistency:
        return "not estimable: above 1, the judge differs from the panel's means less than rater error allows"
    if mse < 0 or value > 1:
        return "not estimable: above 1, because differences between raters' severity count as error; " \
               "read the consistency version"  # fmt: skip
    if value < 0:
        return "below 0: the panel's overall mean would predict the true scores better than the judge does"
    return "ok"
