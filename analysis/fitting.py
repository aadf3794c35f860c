"""A mixed model of one metric, from what was loaded to what is printed and kept."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from analysis import display, models, results, tables
from analysis.load import Loaded, Selected, select
from analysis.stats import design_terms
from analysis.stats.design_terms import Comparison
from analysis.stats.inference import Ddf
from analysis.stats.mixed.fit import MixedFit, fit
from study.errors import StudyError

Engine = Literal["crossed", "statsmodels"]
_DF_NAMES = {"satterthwaite": "Satterthwaite", "kenward-roger": "Kenward–Roger", "z": "none (z)"}


@dataclass(frozen=True)
class Intervals:
    """Intervals that are not the fit's own: coefficients by term, and standard deviations (term, low, high)."""

    kind: str
    coefficients: pd.DataFrame
    components: pd.DataFrame
    note: str
    n_failed: int = 0


@dataclass(frozen=True)
class Fitted:
    """A fit with the ratings and the model it came from.

    `omitted` sets it beside the fit with the design's terms that its formula leaves out, where it leaves one out.
    """

    selected: Selected
    model: models.Model
    fit: MixedFit
    loaded: Loaded
    engine: Engine = "crossed"
    ddf: Ddf = "satterthwaite"
    level: float = 0.95
    omitted: Comparison | None = None
    intervals: Intervals | None = None

    @property
    def metric_id(self) -> str:
        return self.selected.metric.metric_id

    def coefficients(self) -> pd.DataFrame:
        table = self.fit.coefficients(self.ddf, self.level)
        if self.intervals is None:
            return table
        ends = self.intervals.coefficients.loc[table["term"]]
        return table.assign(low=ends["low"].to_numpy(), high=ends["high"].to_numpy())

    def components(self) -> pd.DataFrame:
        """The fit's components, with `low` and `high` of the SD where there are intervals of it."""
        table = self.fit.components()
        if self.intervals is None:
            return table
        plain = table["name"].isin(["", "(Intercept)"])
        terms = table["group"].where(plain, table["group"] + " " + table["name"])
        ends = self.intervals.components.set_index("term")[["low", "high"]].reindex(terms)
        return table.assign(low=ends["low"].to_numpy(), high=ends["high"].to_numpy())

    def left_out(self) -> list[str]:
        """Every reason for which a rating is not in the fit, with its number."""
        reasons = [f"{part.rows:,} {part.reason}" for part in self.selected.left_out]
        return reasons + [f"{rows:,} {reason}" for reason, rows in self.fit.n_missing.items()]

    def notes(self) -> list[str]:
        omitted = [self.omitted.sentence] if self.omitted else []
        ends = [self.intervals.note] if self.intervals else []
        return [*self.loaded.notes, *self.selected.notes, *self.model.notes, *self.fit.notes, *ends, *omitted]


def fitted(
    loaded: Loaded,
    metric_id: str,
    *,
    formula: str | None = None,
    kind: models.Kind = "design",
    raters: str = "auto",
    method: Literal["REML", "ML"] = "REML",
    engine: Engine = "crossed",
    ddf: Ddf = "satterthwaite",
    level: float = 0.95,
) -> Fitted:
    """Fit a metric with the given formula, or the study's or the design's own.

    Raises
    ------
    StudyError : if the ratings do not vary, or the engine refuses the model or the data; names the metric
    """
    selected = select(loaded, metric_id, raters)
    model = models.Model(formula, "given") if formula else models.model(selected, loaded.study, kind)
    if "(" not in model.formula and model.origin == "design":
        why = "; ".join(model.notes) or "no column of raters or items varies"
        raise StudyError(f"{loaded.name}: {metric_id} allows no random term, so there is no mixed model ({why})")
    frame = selected.frame
    if formula and (outcome := formula.partition("~")[0].strip()) not in frame.columns:
        raise StudyError(f"--formula: the outcome {outcome} is not a column; the rating is called score")
    score = frame["score"]
    if score.min() == score.max():
        raise StudyError(
            f"{loaded.name}: every rating of {metric_id} is {score.iloc[0]:g}, so there is nothing to model"
        )
    try:
        made = _route(engine)(frame, model.formula, method=method)
    except StudyError as error:
        raise StudyError(f"{metric_id}: {error}") from None
    return Fitted(selected, model, made, loaded, engine, ddf, level, _omitted(selected, model, made, ddf))


def _omitted(selected: Selected, model: models.Model, made: MixedFit, ddf: Ddf) -> Comparison | None:
    """What the design implies and a formula of someone's own, or the published one, leaves out."""
    frame, unit = selected.frame, models.response_columns(selected.frame)
    if model.origin == "design" or not unit or not {"rater", "source"} <= set(frame.columns):
        return None
    terms = design_terms.implied(frame, item=unit)
    beside = design_terms.compare(frame, model.formula, terms, ddf=ddf, given=made)
    return beside if beside.missing else None


def _route(engine: Engine) -> Callable[..., MixedFit]:
    if engine == "crossed":
        return fit
    from analysis.stats import second_route

    return second_route.fit


def result(found: Fitted) -> results.Result:
    """The fit in full precision, with its provenance."""
    fit = found.fit
    source = results.provenance(found.loaded, found.selected, formula=str(fit.formula))
    source["n"] = source["n"] | {"rows_used": fit.n_rows}
    source["left_out"] += [{"reason": reason, "rows": rows} for reason, rows in fit.n_missing.items()]
    return results.Result(
        "fit",
        source,
        {
            "metric": found.metric_id,
            "formula": str(fit.formula),
            "formula_origin": found.model.origin,
            "engine": found.engine,
            "method": fit.method,
            "df_method": found.ddf,
            "level": found.level,
            "criterion": fit.criterion,
            "log_likelihood": fit.log_likelihood,
            "aic": fit.aic,
            "bic": fit.bic,
            "sigma": fit.sigma,
            "converged": fit.optimum.converged,
            "evaluations": fit.optimum.evaluations,
            "singular_terms": fit.singular_terms,
            "dropped_columns": fit.dropped_columns,
            "levels": fit.levels,
            "intervals": found.intervals.kind if found.intervals else "wald",
            "components": found.components(),
            "coefficients": found.coefficients(),
            "omitted_terms": list(found.omitted.missing) if found.omitted else [],
            "omitted_contrasts": found.omitted.table if found.omitted else [],
            "notes": found.notes(),
        },
    )


def printed(found: Fitted) -> str:
    """What an lmerTest user expects of a fit, and what was left out."""
    fit = found.fit
    interval = f"{100 * found.level:g}% interval"
    parts = [
        f"Linear mixed model of {found.metric_id}, fit by {fit.method}"
        + (" with statsmodels" if found.engine == "statsmodels" else ""),
        f"Formula: {fit.formula}",
        f"Ratings: {sizes(found)}",
        f"Left out: {'; '.join(found.left_out()) or 'nothing'}",
        f"{criterion_name(fit)}: {fit.criterion:.4f}",
        f"Convergence: {convergence(fit)}",
        "",
        "Variance components",
        tables.as_text(components_table(found), "  "),
        "",
        f"Fixed effects (df: {_DF_NAMES[found.ddf]})",
        tables.as_text(coefficients_table(found.coefficients(), interval), "  "),
    ]
    if notes := found.notes():
        parts += ["", *(f"note: {note}" for note in notes)]
    return "\n".join(parts)


def summary(fits: list[Fitted]) -> str:
    """One line per metric: size, criterion, variance components."""
    rows = []
    for found in fits:
        shares = found.fit.components().set_index("group")["share"]
        rows.append((
            found.metric_id, display.count(found.fit.n_rows), f"{found.fit.criterion:.2f}",
            display.number(found.fit.sigma), display.percent(1 - shares["residual"]),
            convergence(found.fit),
        ))  # fmt: skip
    columns = ("metric", "ratings", "REML criterion", "residual SD", "not residual", "convergence")
    return tables.as_text(tables.Table("summary", "", columns, tuple(rows), text_columns=(0, 5)))


def criterion_name(fit: MixedFit) -> str:
    return "REML criterion at convergence" if fit.method == "REML" else "Deviance (−2 log likelihood)"


def convergence(fit: MixedFit) -> str:
    """Whether the search settled, and at which boundary."""
    state = "converged" if fit.optimum.converged else "NOT converged"
    if fit.singular_terms:
        state += f", singular: {', '.join(t.replace(' ', '') for t in fit.singular_terms)}"
    return state


def sizes(found: Fitted) -> str:
    """n of ratings, items and raters in one sentence; says simulated where they are."""
    n = results.sizes(found.selected.frame)
    kind = "simulated " if found.selected.simulated else ""
    named = [f"{n[what]:,} {what if n[what] != 1 else what[:-1]}"
             for what in ("items", "raters", "sources", "prompts", "cases") if what in n]  # fmt: skip
    return f"{found.fit.n_rows:,} {kind}ratings" + (f" ({', '.join(named)})" if named else "")


def components_table(found: Fitted) -> tables.Table:
    levels, ends = found.fit.levels, found.intervals is not None
    rows = tuple(
        (
            row.group + (f" {row.name}" if row.name not in ("", "(Intercept)") else ""),
            display.number(row.variance, 4),
            display.estimate(row.sd, row.low, row.high, 3) if ends else display.number(row.sd, 3),
            display.percent(row.share), display.count(levels.get(row.group)),
        )
        for row in found.components().itertuples(index=False)
    )  # fmt: skip
    return tables.Table(
        f"components-{found.metric_id}",
        f"Variance components of {found.metric_id}",
        ("group", "variance", "SD", "share", "levels"),
        rows,
    )


def coefficients_table(estimates: pd.DataFrame, interval: str = "95% interval") -> tables.Table:
    """Estimates in the broom columns, written."""
    rows = tuple(
        (
            str(row.term), display.number(row.estimate, 3), display.number(row.std_error, 3), display.df(row.df),
            display.number(row.statistic), display.p_value(row.p_value),
            f"[{display.number(row.low, 3)}, {display.number(row.high, 3)}]",
        )
        for row in estimates.itertuples(index=False)
    )  # fmt: skip
    return tables.Table(
        "coefficients", "Fixed effects", ("term", "estimate", "SE", "df", "t", "p", interval), rows
    )
