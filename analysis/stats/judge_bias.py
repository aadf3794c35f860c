"""Where is a judge biased? By source, category, form and length, at the same true score.

Judge minus panel by source is confounded with regression to the mean: any noisy judge seems to favour the poor
and to wrong the good. `conditional` therefore compares items that the panel's *true* score makes equal; the
panel's mean is corrected for its own unreliability.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.stats import anova, inference
from analysis.stats.adjust import adjusted
from analysis.stats.clusters import (
    Estimate,
    cluster_mean,
    enough,
    jackknife_covariance,
    sums_by_cluster,
    t_interval,
    t_test,
)
from analysis.stats.comparison import Comparison
from analysis.stats.estimates import f_tail
from analysis.stats.mixed.fit import fit
from study.errors import StudyError

FEWEST_CLUSTERS = 3  # that a level of a factor must occur in


@dataclass(frozen=True)
class Bias:
    """Judge's excess at the same true score.

    `table` has a row per level (broom columns, `factor`, `level`, `p_holm` within the factor, `own_family`);
    `slope` is how the judge's score moves with the true score, `reliability` that of the panel's mean within
    sources; `joint` tests each factor as a whole: factor, statistic (F), df1, df2, p_value.
    """

    table: pd.DataFrame
    joint: pd.DataFrame
    slope: Estimate
    reliability: float
    factors: tuple[str, ...]
    notes: tuple[str, ...] = ()


def conditional(
    comparison: Comparison,
    factors: Sequence[str] = ("source",),
    *,
    length: bool = False,
    by_source: bool = False,
    own_family: Sequence[str] = (),
    level: float = 0.95,
) -> Bias:
    """The judge's score regressed on the true score and factors, error in the panel's mean taken out.

    Effects are deviations from the average level (sum to zero). Standard errors leave out one cluster at a time;
    where every rater rated every item, they add what another panel's tastes for the levels would change.

    Parameters
    ----------
    factors : columns of the items: source, category, form
    length : also the judge's excess per doubling of the answer's length (items need a column `length`)
    by_source : also how that differs from source to source
    own_family : sources of the judge's own model family; their mean excess over the others is added

    Raises
    ------
    StudyError : fewer than ten clusters; a constant judge; panel means too unreliable to condition on

    References
    ----------
    Fuller (1987), Measurement Error Models, section 2.2: moments corrected for a known error variance.
    """
    data = comparison.labelled()
    notes = enough(data.cluster, data.unit, "bias at the same true score")
    _check_varies(data)
    if (data.counts < 2).all():
        raise StudyError("no item was rated by two raters: the panel's own error is unknown, so scores cannot be "
                         "compared at the same true score")  # fmt: skip
    design = _Design(data, tuple(factors), length, by_source)
    solved = _Solve(design.width, design.lost, design.weights(own_family))
    sums = sums_by_cluster(design.columns(), data.cluster)
    estimates, covariance = jackknife_covariance(sums, solved)
    if not np.isfinite(estimates).all():
        raise StudyError(f"{data.metric}: the panel's means are too unreliable to compare {data.name} with them "
                         "at the same true score; more raters per item are needed")  # fmt: skip
    taste, taste_df = design.taste(estimates[0], solved.weights)
    if not (np.diagonal(covariance + taste)[1:] > 1e-20).all():
        raise StudyError(f"{data.metric}: {data.name} gives every item the panel's own mean, up to a constant: "
                         "there is no error to test a bias by")  # fmt: skip
    table = _table(estimates, covariance, taste, taste_df, design.terms(own_family), data, level)
    joint = _joint(table, estimates, covariance + taste, design.blocks(), data.n_clusters)
    first = _estimate("true score", estimates[0], covariance[0, 0], data.n_clusters - 1.0, data, level)
    return Bias(table, joint, first, float(solved.reliability(sums.sum(0))), tuple(factors), notes + design.notes)


@dataclass(frozen=True)
class ModelBias:
    """Source × judge in a mixed model: excess by source without regard to the true score.

    `table` has a row per source, `test` is the F test of the interaction, `formula` in lme4's notation.
    """

    table: pd.DataFrame
    test: pd.DataFrame
    formula: str
    notes: tuple[str, ...] = ()


def unconditional(comparison: Comparison, *, level: float = 0.95) -> ModelBias:
    """Source × judge beside random raters, prompts, responses and raters' own tastes for sources.

    The judge's excess is held against how far one rater's taste differs from another's. It mixes bias with
    regression to the mean, so read it beside `conditional`.

    Raises
    ------
    StudyError : one source only, or as `fit` says
    """
    data = comparison.labelled()
    _check_varies(data)
    if len(data.sources) < 2:
        raise StudyError("one source only: bias between sources needs two or more")
    formula = "score ~ source*judge + " + " + ".join(f"(1|{g})" for g in _groups(data))
    found = fit(_long(data), formula, contrasts={"source": "sum"})
    names = list(found.design.fixed.names)
    at = [i for i, name in enumerate(names) if name.startswith("source") and ":judge" in name]
    rows = np.zeros((len(at) + 1, len(names)))
    rows[np.arange(len(at)), at] = 1
    rows[-1, at] = -1
    table = inference.contrast_table(found, rows, data.sources, level=level)
    table["p_holm"] = adjusted(table["p_value"].to_numpy(), "holm")
    tests = anova.anova(found)
    return ModelBias(table, tests[tests["term"] == "source:judge"].reset_index(drop=True), str(found.formula),
                     tuple(found.notes))  # fmt: skip


@dataclass(frozen=True)
class Flips:
    """How a judge's score changes when the same item is judged again."""

    rate: Estimate
    size: Estimate
    n_pairs: int


def flips(comparison: Comparison, *, level: float = 0.95) -> Flips | None:
    """Share of successive judgements of an item that differ, and by how much; None without repeats."""
    again = comparison.again
    if again.size == 0 or again.shape[1] < 2:
        return None
    before, after = again[:, :-1], again[:, 1:]
    both = np.isfinite(before) & np.isfinite(after)
    if not both.any():
        return None
    cluster = np.broadcast_to(comparison.cluster[:, None], both.shape)[both]
    change = np.abs(after - before)[both]
    return Flips(
        cluster_mean((change > 1e-9).astype(float), cluster, "flip rate", level=level),
        cluster_mean(change, cluster, "mean change", level=level), int(both.sum()),
    )  # fmt: skip


def _check_varies(data: Comparison) -> None:
    if np.ptp(data.score) < 1e-12:
        raise StudyError(f"{data.name} gave {data.score[0]:g} to all {data.n} items of {data.metric}: a constant "
                         "judge knows nothing of the panel's scores and cannot be calibrated")  # fmt: skip


def _groups(data: Comparison) -> list[str]:
    groups = ["rater", "rater:source"]
    if data.unit in data.items and data.n_clusters < data.n:
        groups = ["unit", "label", *groups]
    else:
        groups = ["label", *groups]
    return groups


def _long(data: Comparison) -> pd.DataFrame:
    """One row per rating, the panel's first and then the judge's."""
    table = np.column_stack([data.panel, data.score])
    names = [*data.raters, data.name]
    item, rater = np.nonzero(np.isfinite(table))
    order = np.lexsort((item, rater))
    item, rater = item[order], rater[order]
    source = pd.Categorical(data.items["source"].astype(str), categories=data.sources)
    return pd.DataFrame(
        {
            "score": table[item, rater],
            "source": source[item],
            "judge": pd.Categorical.from_codes((rater == len(data.raters)).astype(int), ["panel", "judge"]),
            "rater": pd.Categorical.from_codes(rater, [f"{n}" for n in names]),
            "label": data.items["label"].astype(str).to_numpy()[item],
            "unit": data.cluster[item].astype(str),
        }
    )


class _Design:
    """Columns of the regression: true score, constant, sum-coded factors, log₂ length and its slopes by source."""

    def __init__(self, data: Comparison, factors: tuple[str, ...], length: bool, by_source: bool):
        self.data = data
        self.notes: tuple[str, ...] = ()
        complete = bool(np.isfinite(data.panel).all())
        self.panel, self.lost = _without_taste(data) if complete else (data.panel, 0)
        if not complete:
            self.notes += ("some panel ratings are missing: intervals speak of these raters, not of others",)
        self.mean = data.panel_mean
        parts, self.labels = [], []
        for factor in factors:
            if factor not in data.items:
                raise StudyError(f"items have no {factor}; they have {', '.join(data.items.columns)}")
            codes, levels = data.codes(factor)
            self._check_levels(factor, codes, levels)
            parts.append(_sum_coded(codes, len(levels)))
            self.labels.append((factor, levels))
        if length:
            size = self._log_length()
            parts.append(size[:, None])
            self.labels.append(("length", ["per doubling"]))
            if by_source:
                codes, levels = data.codes("source")
                parts.append(_sum_coded(codes, len(levels)) * size[:, None])
                self.labels.append(("length × source", levels))
        self.x = np.column_stack([self.mean, np.ones(data.n), *parts])
        self.sizes = [part.shape[1] for part in parts]
        if np.linalg.matrix_rank(self.x - self.x.mean(0)) < self.x.shape[1] - 1:
            raise StudyError(f"{' and '.join(f for f, _ in self.labels)} cannot be told apart: some levels occur "
                             "only together; ask for one factor at a time")  # fmt: skip

    @property
    def width(self) -> int:
        return self.x.shape[1]

    def columns(self) -> np.ndarray:
        """Per item: x ⊗ x, x × judge, Σ(y − m)², n − 1, 1/n, 1."""
        found = np.isfinite(self.panel)
        n = found.sum(1)
        m = np.where(found, self.panel, 0).sum(1) / n
        within = (np.where(found, self.panel - m[:, None], 0) ** 2).sum(1)
        outer = (self.x[:, :, None] * self.x[:, None, :]).reshape(len(self.x), -1)
        return np.column_stack(
            [outer, self.x * self.data.score[:, None], within, n - 1, 1 / n, np.ones(len(self.x))]
        )

    def weights(self, own_family: Sequence[str]) -> np.ndarray:
        """Terms × coefficients: the slope, every level of every factor, own family less the others."""
        rows = [np.eye(1, self.width)]
        start = 2
        for (factor, levels), size in zip(self.labels, self.sizes, strict=True):
            block = np.zeros((len(levels), self.width))
            block[:size, start : start + size] = np.eye(size)
            if len(levels) > size:
                block[-1, start : start + size] = -1
            rows.append(block)
            if factor == "source" and self._split(own_family, levels):
                own = np.isin(levels, list(own_family))
                rows.append((block[own].mean(0) - block[~own].mean(0))[None, :])
            start += size
        return np.concatenate(rows)

    def taste(self, slope: float, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Covariance of the terms from raters' tastes for levels, and the fewest degrees of freedom behind it."""
        covariance, fewest, start = np.zeros((self.width, self.width)), np.inf, 2
        for (factor, levels), size in zip(self.labels, self.sizes, strict=True):
            if not self.lost or len(levels) == size or factor not in self.data.items:
                start += size
                continue
            variance, df = _taste_variance(self.data.panel, self.data.codes(factor)[0])
            span = slice(start, start + size)
            covariance[span, span] = slope**2 * variance * (np.eye(size) - 1 / len(levels))
            fewest, start = min(fewest, df), start + size
        return weights @ covariance @ weights.T, fewest

    def terms(self, own_family: Sequence[str]) -> list[tuple[str, str, bool]]:
        """Factor, level and whether it is of the judge's family, in the order of `weights` after the slope."""
        found = []
        for factor, levels in self.labels:
            found += [(factor, level, factor == "source" and level in own_family) for level in levels]
            if factor == "source" and self._split(own_family, levels):
                found.append(("own family", "own − others", True))
        return found

    def blocks(self) -> dict[str, int]:
        """Columns of each factor."""
        return {factor: size for (factor, _), size in zip(self.labels, self.sizes, strict=True)}

    @staticmethod
    def _split(own_family: Sequence[str], levels: list[str]) -> bool:
        return 0 < len(set(own_family) & set(levels)) < len(levels)

    def _check_levels(self, factor: str, codes: np.ndarray, levels: list[str]) -> None:
        if len(levels) < 2 or (codes < 0).any():
            raise StudyError(f"{factor} has one level only, or none for some items: bias by {factor} needs two")
        thin = [
            name
            for i, name in enumerate(levels)
            if len(np.unique(self.data.cluster[codes == i])) < FEWEST_CLUSTERS
        ]
        if thin:
            raise StudyError(f"{factor} {', '.join(thin)} occurs in fewer than {FEWEST_CLUSTERS} "
                             f"{self.data.unit}s: bias by {factor} cannot be estimated for it")  # fmt: skip

    def _log_length(self) -> np.ndarray:
        if "length" not in self.data.items:
            raise StudyError("items have no length: bias by length needs the answers' texts")
        size = self.data.items["length"].to_numpy(float)
        if not (np.isfinite(size) & (size > 0)).all():
            raise StudyError(f"{int((~(size > 0)).sum())} items have an empty text: bias by length needs all")
        logarithm = np.log2(size)
        if np.ptp(logarithm) < 1e-12:
            raise StudyError("every answer has the same length: bias by length cannot be estimated")
        return logarithm - logarithm.mean()


class _Solve:
    """Sums → terms, by the normal equations less the error of the panel's mean."""

    def __init__(self, width: int, lost: int, weights: np.ndarray):
        self.width, self.lost, self.weights = width, lost, weights

    def __call__(self, sums: np.ndarray) -> np.ndarray:
        p = self.width
        left = sums[..., : p * p].reshape(*sums.shape[:-1], p, p).copy()
        right = sums[..., p * p : p * p + p]
        spread = self._spread(left)
        left[..., 0, 0] -= self._noise(sums)
        # With less than a tenth of its spread true, the panel's mean is too poor a stand-in for the true score.
        usable = (spread > 1e-9) & (spread - self._noise(sums) > 0.1 * spread)
        solved = np.full((*sums.shape[:-1], p), np.nan)
        if usable.any():
            solved[usable] = np.linalg.solve(left[usable], right[usable][..., None])[..., 0]
        return solved @ self.weights.T

    def reliability(self, total: np.ndarray) -> float:
        p = self.width
        spread = self._spread(total[: p * p].reshape(p, p))
        return 1 - self._noise(total) / spread

    def _spread(self, left: np.ndarray) -> np.ndarray:
        """Spread of the panel's mean that the other columns leave."""
        others = left[..., 1:, 1:]
        cross = left[..., 0, 1:]
        explained = np.einsum("...i,...ij,...j->...", cross, np.linalg.pinv(others, hermitian=True), cross)
        return left[..., 0, 0] - explained

    def _noise(self, sums: np.ndarray) -> np.ndarray:
        within, df, inverse = (sums[..., self.width * (self.width + 1) + i] for i in range(3))
        return within / (df - self.lost) * inverse


def _without_taste(data: Comparison) -> tuple[np.ndarray, int]:
    """The panel less each rater's own mean of each source, and the degrees of freedom that costs.

    Severity and taste shift all items of a source alike: they are no error of one item's mean.
    """
    codes = data.codes("source")[0] if "source" in data.items else np.zeros(data.n, int)
    panel = data.panel.copy()
    for code in np.unique(codes):
        here = codes == code
        panel[here] -= panel[here].mean(0) - panel[here].mean()
    return panel, len(np.unique(codes)) * (data.panel.shape[1] - 1)


def _taste_variance(panel: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Variance of a level's panel mean from rater × level effects, by mean squares; its degrees of freedom."""
    levels, k = codes.max() + 1, panel.shape[1]
    sizes = np.bincount(codes).astype(float)
    double = panel - panel.mean(1, keepdims=True)
    means = np.stack([np.bincount(codes, double[:, j]) for j in range(k)], axis=1) / sizes[:, None]
    taste = means - np.average(means, axis=0, weights=sizes)
    df = (levels - 1) * (k - 1)
    between = (sizes[:, None] * taste**2).sum() / df
    within = ((double - means[codes]) ** 2).sum() / ((len(codes) - levels) * (k - 1))
    usual = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (levels - 1)
    return max((between - within) / usual, 0.0) / k, float(df)


def _sum_coded(codes: np.ndarray, levels: int) -> np.ndarray:
    coded = np.concatenate([np.eye(levels - 1), -np.ones((1, levels - 1))])
    return coded[codes]


def _estimate(term: str, value: float, variance: float, df: float, data: Comparison, level: float) -> Estimate:
    error = float(np.sqrt(variance))
    return Estimate(term, float(value), error, df, *t_interval(value, error, df, level), data.n, data.n_clusters,
                    *t_test(value, error, df))  # fmt: skip


def _table(
    estimates: np.ndarray,
    covariance: np.ndarray,
    taste: np.ndarray,
    taste_df: float,
    terms: list[tuple[str, str, bool]],
    data: Comparison,
    level: float,
) -> pd.DataFrame:
    rows = []
    for i, (factor, name, own) in enumerate(terms, 1):
        prompts, raters = covariance[i, i], taste[i, i]
        df = (prompts + raters) ** 2 / (prompts**2 / (data.n_clusters - 1) + raters**2 / taste_df)
        found = _estimate(f"{factor}: {name}", estimates[i], prompts + raters, float(df), data, level).record()
        rows.append({"factor": factor, "level": name, **found, "own_family": own})
    table = pd.DataFrame(rows)
    table["p_holm"] = np.nan
    for factor in table["factor"].unique():
        here = table["factor"] == factor
        table.loc[here, "p_holm"] = adjusted(table.loc[here, "p_value"].to_numpy(), "holm")
    return table


def _joint(
    table: pd.DataFrame, estimates: np.ndarray, covariance: np.ndarray, blocks: dict[str, int], groups: int
) -> pd.DataFrame:
    """Hotelling's test that no level of a factor differs."""
    rows = []
    for factor, size in blocks.items():
        if size >= groups - 1:
            continue
        at = 1 + np.flatnonzero((table["factor"] == factor).to_numpy())[:size]
        squared = float(estimates[at] @ np.linalg.solve(covariance[np.ix_(at, at)], estimates[at]))
        df2 = groups - size
        statistic = squared * df2 / (size * (groups - 1))
        rows.append({"factor": factor, "statistic": statistic, "df1": size, "df2": df2,
                     "p_value": f_tail(statistic, size, df2)})  # fmt: skip
    return pd.DataFrame(rows, columns=["factor", "statistic", "df1", "df2", "p_value"])
