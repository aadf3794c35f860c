"""How far can a judge's score be trusted? Every answer this package has, for one judge and one metric."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from analysis.stats.agreement import Level
from analysis.stats.alternative_test import EPSILON, AlternativeTest, Score, alternative_test
from analysis.stats.ceiling import Ceiling, InPanel, in_panel, leave_one_rater_out
from analysis.stats.clusters import FEWEST, enough
from analysis.stats.comparison import Comparison
from analysis.stats.judge_bias import Bias, Flips, ModelBias, conditional, flips, unconditional
from analysis.stats.limits_of_agreement import Limits, limits_of_agreement
from analysis.stats.map_report import MapReport, map_report
from analysis.stats.panel_said import LowRate, PanelSaid, low_rate, panel_said
from analysis.stats.prmse import Prmse, prmse
from analysis.stats.rank_report import RankReport, rank_report
from study.errors import StudyError

Result = TypeVar("Result")

_MOST_DRAWS = 500  # for ICC and alpha, whose change says little
_LITTLE = 0.1  # share of the true score below which passing a test means that the scale is at its ceiling


@dataclass(frozen=True)
class Refused:
    """A question that these ratings cannot answer, and why."""

    reason: str


@dataclass(frozen=True)
class Options:
    """What may be chosen; `level` is the intervals' coverage, `alpha_level` the scale's level of measurement."""

    epsilon: float = EPSILON["expert"]
    score: Score = "neg_rmse"
    q: float = 0.05
    threshold: float | None = None
    width: float | None = None
    own_family: tuple[str, ...] = ()
    alpha_level: Level = "ordinal"
    n_boot: int = 1000
    seed: int = 0
    level: float = 0.95


@dataclass(frozen=True)
class Calibration:
    """One judge on one metric. A part is its result, or `Refused` with the reason.

    `alternative` has the test over all items ("pooled") and for each source; `bias` a part per factor.
    """

    judge: str
    kind: str
    metric: str
    n_items: int
    n_labelled: int
    n_judged_only: int
    n_panel_only: int
    raters: tuple[str, ...]
    unit: str
    n_clusters: int
    not_ok: dict[str, int]
    alternative: dict[str, AlternativeTest | Refused]
    ceiling: Ceiling | Refused
    prmse: dict[str, Prmse | Refused]
    in_panel: InPanel | Refused
    bias: dict[str, Bias | Refused]
    model_bias: ModelBias | Refused
    flips: Flips | Refused
    limits: Limits | Refused
    maps: MapReport | Refused
    panel_said: PanelSaid | Refused
    low_rate: LowRate | Refused
    ranking: RankReport | Refused
    options: Options
    notes: tuple[str, ...] = ()

    @property
    def readable_prmse(self) -> Prmse | Refused:
        """The version to read: severity taken out where every rater rated every item."""
        return self.prmse["consistency" if "consistency" in self.prmse else "absolute"]


def calibrate(comparison: Comparison, options: Options | None = None) -> Calibration:
    """Everything that can be said of one judge beside a panel on one metric.

    Raises
    ------
    StudyError : if judge and panel share no item, or either gave the same score to all: nothing can be said then
    """
    chosen = options or Options()
    data = comparison.labelled()
    _check_varies(data)
    boot = {"n_boot": chosen.n_boot, "seed": chosen.seed, "level": chosen.level}
    tested = {"epsilon": chosen.epsilon, "score": chosen.score, "q": chosen.q, "level": chosen.level}
    alternative = {"pooled": _attempt(alternative_test, data, **tested)}
    if len(data.sources) > 1:
        alternative |= {s: _attempt(alternative_test, data.of_source(s), **tested) for s in data.sources}
    maps = _attempt(map_report, data, **boot)
    return Calibration(
        judge=data.name, kind=data.kind, metric=data.metric, n_items=comparison.n, n_labelled=data.n,
        n_judged_only=int((np.isfinite(comparison.score) & (comparison.counts == 0)).sum()),
        n_panel_only=int((~np.isfinite(comparison.score) & (comparison.counts > 0)).sum()),
        raters=data.raters, unit=data.unit, n_clusters=data.n_clusters, not_ok=dict(comparison.not_ok),
        alternative=alternative,
        ceiling=_attempt(leave_one_rater_out, data, **boot),
        prmse=_prmses(data, maps, chosen.level),
        in_panel=_attempt(in_panel, data, alpha_level=chosen.alpha_level, seed=chosen.seed, level=chosen.level,
                          n_boot=min(chosen.n_boot, _MOST_DRAWS)),
        bias=_biases(data, chosen.own_family, chosen.level),
        model_bias=_attempt(unconditional, data, level=chosen.level),
        flips=_flips(data, chosen.level),
        limits=_attempt(_limits, data, level=chosen.level),
        maps=maps,
        panel_said=_attempt(panel_said, comparison, width=chosen.width, level=chosen.level),
        low_rate=_attempt(low_rate, comparison, chosen.threshold, level=chosen.level),
        ranking=_attempt(rank_report, data, **boot),
        options=chosen, notes=(*comparison.notes, *_few(data)),
    )  # fmt: skip


def verdict(calibration: Calibration) -> str:
    """One line: is it as good as a rater, how much does it know, where is it biased, what to do."""
    parts = [_as_good(calibration), _explained(calibration), _biased(calibration)]
    return f"{calibration.judge} on {calibration.metric}: {'; '.join(p for p in parts if p)}."


def _check_varies(data: Comparison) -> None:
    for who, values in ((data.name, data.score), ("the panel", data.panel_mean)):
        if np.ptp(values) < 1e-12:
            raise StudyError(
                f"{who} gave {values[0]:g} to all {data.n} items of {data.metric}: without any variation nothing "
                "can be said about how the two agree"
            )


def _few(data: Comparison) -> tuple[str, ...]:
    if data.n_clusters >= FEWEST:
        return ()
    return (f"{data.n_clusters} {data.unit}s support no interval: the figures below describe these items only",)


def _attempt(part: Callable[..., Result], *args: object, **options: object) -> Result | Refused:
    """A part's result, or its refusal: one question without an answer does not silence the others."""
    try:
        return part(*args, **options)
    except StudyError as error:
        return Refused(str(error))


def _prmses(data: Comparison, maps: MapReport | Refused, level: float) -> dict[str, Prmse | Refused]:
    """As it is, absolute and with severity taken out, and after the best map on unseen items."""
    found = {"absolute": _attempt(prmse, data, level=level)}
    if np.isfinite(data.panel).all() and data.panel.shape[1] > 1:
        found["consistency"] = _attempt(prmse, data, consistency=True, level=level)
    if not isinstance(maps, Refused):
        read = replace(data, score=maps.read_as)
        found["calibrated"] = _attempt(prmse, read, consistency="consistency" in found, level=level)
    return found


def _biases(data: Comparison, own_family: Sequence[str], level: float) -> dict[str, Bias | Refused]:
    """A fit per factor that items have; source always beside category and form, length with source."""
    has_source = len(data.sources) > 1
    with_source = ("source",) if has_source else ()
    found: dict[str, Bias | Refused] = {}
    if has_source:
        found["source"] = _attempt(conditional, data, ("source",), own_family=own_family, level=level)
    for factor in ("category", "form"):
        if factor in data.items and data.items[factor].nunique() > 1:
            found[factor] = _attempt(conditional, data, (*with_source, factor), level=level)
    if "length" in data.items:
        found["length"] = _attempt(conditional, data, with_source, length=True, own_family=own_family, level=level)
        if has_source:
            found["length by source"] = _attempt(
                conditional, data, with_source, length=True, by_source=True, level=level
            )
    else:
        found["length"] = Refused("the ratings come without the answers' texts, so bias by length is not testable")
    return found


def _flips(data: Comparison, level: float) -> Flips | Refused:
    found = flips(data, level=level)
    if found is None:
        return Refused(
            f"{data.name} judged every item once: judge some again to know how often it changes its mind"
        )
    return found


def _limits(data: Comparison, level: float) -> Limits:
    enough(data.cluster, data.unit, "limits of agreement")
    return limits_of_agreement(data.score, data.panel_mean, data.cluster, level=level)


def _as_good(calibration: Calibration) -> str:
    pooled = calibration.alternative["pooled"]
    if isinstance(pooled, Refused):
        return "whether it is as good as a rater cannot be tested"
    beaten = f"beats {int(pooled.beaten.sum())} of {len(pooled.raters)} raters, granted {pooled.epsilon:g}"
    if pooled.passed and _knows_little(calibration):
        return f"passes as a rater ({beaten}), but by ties ({100 * pooled.tie:.0f}%) and not by knowledge"
    if not pooled.passed:
        return f"no substitute for a rater ({beaten})"
    unsure = [s for s, t in calibration.alternative.items() if isinstance(t, Refused) or not t.passed]
    if unsure:
        shown = ", ".join(unsure[:3]) + (f" and {len(unsure) - 3} more" if len(unsure) > 3 else "")
        return f"as good as a rater overall ({beaten}), which is not shown for {shown}"
    return f"as good as a rater ({beaten})"


def _knows_little(calibration: Calibration) -> bool:
    """Whether even the calibrated judge surely explains less than a tenth of the true score."""
    found = calibration.prmse.get("calibrated")
    return (
        found is not None and not isinstance(found, Refused) and found.estimable and found.estimate.high < _LITTLE
    )


def _explained(calibration: Calibration) -> str:
    raw, mapped = calibration.readable_prmse, calibration.prmse.get("calibrated")
    if isinstance(raw, Refused):
        return ""
    if not raw.estimable and raw.true_variance <= 0:
        return "the panel's raters agree too little to say what it knows"
    as_it_is = raw.estimate.estimate
    if mapped is None or isinstance(mapped, Refused) or not mapped.readable:
        return f"explains {_share(raw)} of the true score" if raw.readable else ""
    text = f"explains {_share(mapped)} of the true score once calibrated"
    if not raw.estimable:
        return text
    return text + (f", {100 * as_it_is:.0f}% as it is" if as_it_is >= 0 else ", nothing as it is")


def _share(found: Prmse) -> str:
    value = found.estimate
    if np.isnan(value.low):
        return f"{100 * value.estimate:.0f}%"
    return f"{100 * value.estimate:.0f}% [{100 * value.low:.0f}, {100 * value.high:.0f}]"


def _biased(calibration: Calibration) -> str:
    found = calibration.bias.get("source")
    if found is None or isinstance(found, Refused):
        return ""
    sources = found.table[found.table["factor"] == "source"]
    sure = sources[sources["p_holm"] < 0.05]
    if sure.empty:
        return "no bias between sources found"
    worst = sure.loc[sure["estimate"].abs().idxmax()]
    verb = "favours" if worst["estimate"] > 0 else "marks down"
    own = ", its own family," if worst["own_family"] else ""
    more = f" (and is biased for {len(sure) - 1} more)" if len(sure) > 1 else ""
    size = f"{abs(worst['estimate']):.2f} at the same true score"
    return f"{verb} {worst['level']}{own} by {size}{more}: compare sources by the panel"
