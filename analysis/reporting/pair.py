"""The honest pair: the model of published studies of this design, beside the one that the design asks for.

Published: `(1 | rater) + (1 | case:prompt)`. Fuller: the same with `(1 | case:prompt:source)`, what an answer has
of its own, and `(1 | rater:source)`, a rater's liking of a source.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis import display, means, models
from analysis.fitting import Fitted
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.comparison import ALPHA
from analysis.reporting.section import Fold, Section, counted, opening_capital
from analysis.stats import plain_interval
from analysis.stats.formula import parse
from analysis.stats.mixed.fit import fit
from analysis.tables import Table


@dataclass(frozen=True)
class Pair:
    """One metric by both models.

    `differences` : source, and of each model (published, fuller) estimate, std_error, df, p_holm
    """

    published: Fitted
    fuller: Fitted
    differences: pd.DataFrame

    @property
    def ratio(self) -> float:
        """How many times as wide the fuller model's standard errors are: the median over differences."""
        return float((self.differences["std_error_fuller"] / self.differences["std_error_published"]).median())

    def found(self, which: str) -> int:
        """How many differences a model calls so, after Holm."""
        return int((self.differences[f"p_holm_{which}"] < ALPHA).sum())

    def interactions(self, which: str) -> tuple[int, int]:
        """How many interactions stand out by a model, of how many."""
        own = means.interactions(getattr(self, which))
        return int((own["p_holm"] < ALPHA).sum()), int(own["p_value"].count())

    def own_share(self) -> float:
        """The share of the variance that the published model leaves to the residual or elsewhere."""
        names = {g.term.name for g in self.published.fit.design.groupings}
        shares = self.fuller.fit.components().set_index("group")["share"]
        return float(shares[[g for g in shares.index if g != "residual" and g not in names]].sum())


def pair(found: Fitted) -> Pair | None:
    """A metric's fit beside the published model's; None where the two are the same or sources are not compared."""
    if len(means.factors(found).get("source", ())) < 2:
        return None
    model = models.model(found.selected, found.loaded.study, "published")
    if str(parse(model.formula)) == str(found.fit.formula):
        return None
    published = replace(found, model=model, fit=fit(found.selected.frame, model.formula, method=found.fit.method))
    kept = ["source", "estimate", "std_error", "df", "p_value", "p_holm"]
    sides = [means.versus_reference(f)[kept].astype({"source": str}) for f in (published, found)]
    return Pair(published, found, sides[0].merge(sides[1], on="source", suffixes=("_published", "_fuller")))


def honest_pair(made: Analysed) -> Section | None:
    """What changes from one model to the other, and why."""
    pairs = [p for f in made.fits if (p := pair(f)) is not None]
    if not pairs:
        return None
    ratios = [p.ratio for p in pairs]
    before, after = (sum(p.found(w) for p in pairs) for w in ("published", "fuller"))
    total = sum(len(p.differences) for p in pairs)
    many = [p for p in pairs if p.interactions("fuller")[1]]
    most = max(_moved(p) for p in pairs)
    moved = "stay as they are" if most < 0.0005 else f"move by at most {display.number(most, 3)} points"
    published, fuller = _formulas(pairs)
    lead = [
        f"Studies of this design have been published with the random terms {published}. They take all ratings of "
        "one answer as independent once rater and prompt are known. They are not: raters agree about an answer "
        "because of what it says. What an answer has of its own then counts once for every rater, and intervals "
        "become too narrow.",
        f"The models of this report have {fuller} besides: what an answer has of its own, and what a rater thinks "
        "of a source beyond severity. With them a result is meant to hold for other prompts and other raters.",
    ]
    points = [
        f"Standard errors of differences are {_range(ratios)} times as large in the fuller model; estimates "
        f"{moved}.",
        f"Of {counted(total, 'difference')} from the reference, {before} have p (Holm) below {ALPHA} by the "
        f"published model and {after} by the fuller one.",
    ]
    if many:
        out = [sum(p.interactions(w)[0] for p in many) for w in ("published", "fuller")]
        of = sum(p.interactions("fuller")[1] for p in many)
        points.append(
            f"Of {of} interactions, {out[0]} stand out by the published model and {out[1]} by the fuller one."
        )
    folds = [Fold("Difference by difference", tables=tuple(_differences(p) for p in pairs))]
    if customary := _customary(made):
        text = (
            "Means are often printed with the percentile bootstrap of single ratings. Such an interval ignores "
            "that ratings of one item, and of one rater, belong together."
        )
        folds.append(Fold("Raw means with the intervals that are usually printed", (text,), tables=customary))
    return Section("two-models", "Two models, side by side", tuple(lead), tuple(points), tables=(_table(pairs),),
                   folds=tuple(folds))  # fmt: skip


def _table(pairs: list[Pair]) -> Table:
    cells = [_cells(p) for p in pairs]
    # Without interactions there is nothing to count.
    columns = [c for c in cells[0] if any(own[c] != display.MISSING for own in cells)]
    note = (
        "SE: of a difference from the reference, the median. Differ, interactions: p (Holm) below "
        f"{ALPHA}. Variance left out: share of the components that only the fuller model has."
    )
    numbers = pd.concat([p.differences.assign(metric=p.fuller.metric_id) for p in pairs], ignore_index=True)
    caption = "The published model beside the fuller one"
    rows = tuple(tuple(own[c] for c in columns) for own in cells)
    return Table("two-models", caption, tuple(columns), rows, note, numbers=numbers)


def _cells(p: Pair) -> dict[str, str]:
    n = len(p.differences)
    found: dict[str, str] = {"metric": metric_name(p.fuller)}
    for which in ("published", "fuller"):
        found[f"SE, {which}"] = display.number(p.differences[f"std_error_{which}"].median(), 3)
    found["times"] = display.number(p.ratio)
    found |= {f"differ, {which}": f"{p.found(which)}/{n}" for which in ("published", "fuller")}
    for which in ("published", "fuller"):
        out, of = p.interactions(which)
        found[f"interactions, {which}"] = f"{out}/{of}" if of else display.MISSING
    return found | {"variance left out": display.percent(p.own_share())}


def _differences(p: Pair) -> Table:
    rows = tuple(
        (
            r.source,
            display.number(r.estimate_published, 3), display.number(r.std_error_published, 3),
            display.df(r.df_published), display.p_value(r.p_holm_published),
            display.number(r.estimate_fuller, 3), display.number(r.std_error_fuller, 3),
            display.df(r.df_fuller), display.p_value(r.p_holm_fuller),
        )
        for r in p.differences.itertuples()
    )  # fmt: skip
    sides = [
        f"{what}, {which}" for which in ("published", "fuller") for what in ("estimate", "SE", "df", "p (Holm)")
    ]
    caption = f"{opening_capital(metric_name(p.fuller))}: differences by both models"
    return Table(
        f"two-models-{p.fuller.metric_id}", caption, ("source", *sides), rows,
        f"Published: {p.published.fit.formula}. Fuller: {p.fuller.fit.formula}.", numbers=p.differences,
    )  # fmt: skip


def _customary(made: Analysed) -> tuple[Table, ...]:
    """Raw means with independent-ratings intervals beside the model's, per kind of item."""
    made_tables = []
    for item in ("encounter", "utterance"):
        fits = made.of(item, compared=True)
        if not fits:
            continue
        rows = [_raw(f) for f in fits]
        table = pd.concat(rows, ignore_index=True)
        cells = tuple(
            (r.metric, r.source, display.count(r.n), display.estimate(r.mean, r.low, r.high),
             display.estimate(r.estimate, r.low_model, r.high_model), display.number(r.times))
            for r in table.itertuples()
        )  # fmt: skip
        columns = ("metric", "source", "n", "raw mean [as if independent]", "estimated mean [model]", "times")
        note = "Between-response dependence is ignored in the first interval. Times: width of the second to it."
        caption = f"{'Encounters' if item == 'encounter' else 'Answers'}: raw and estimated means"
        made_tables.append(
            Table(f"raw-means-{item}", caption, columns, cells, note, text_columns=(0, 1), numbers=table)
        )
    return tuple(made_tables)


def _raw(found: Fitted) -> pd.DataFrame:
    estimated = means.marginal(found, "source").astype({"source": str}).set_index("source")
    rated, rows = found.selected.metric, []
    for source, own in found.selected.frame.groupby("source", observed=True)["score"]:
        low, high = plain_interval.mean_interval(own.to_numpy(float), rated.step)
        row = estimated.loc[str(source)]
        wide = (row["high"] - row["low"]) / (high - low) if high > low else np.nan
        rows.append((metric_name(found), str(source), len(own), own.mean(), low, high,
                     row["estimate"], row["low"], row["high"], wide))  # fmt: skip
    columns = ["metric", "source", "n", "mean", "low", "high", "estimate", "low_model", "high_model", "times"]
    return pd.DataFrame(rows, columns=columns)


def _formulas(pairs: list[Pair]) -> tuple[str, str]:
    """Random terms of the published models, and what the fuller ones have besides."""
    kept, added = [], []
    for p in pairs:
        own = {g.term.name: None for g in p.published.fit.design.groupings}
        more = {g.term.name: None for g in p.fuller.fit.design.groupings if g.term.name not in own}
        kept.append(" + ".join(f"(1 | {name})" for name in own))
        added.append(" + ".join(f"(1 | {name})" for name in more))
    return tuple(listed_or(list(dict.fromkeys(texts))) for texts in (kept, added))


def listed_or(texts: list[str]) -> str:
    return " or ".join(texts)


def _moved(p: Pair) -> float:
    return float((p.differences["estimate_fuller"] - p.differences["estimate_published"]).abs().max())


def _range(values: list[float]) -> str:
    low, high = display.number(min(values)), display.number(max(values))
    return low if low == high else f"{low} to {high}"
