"""One metric in full: what was asked, its model, every test and every component."""

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from analysis import display, figures, fitting, means, reliability
from analysis.fitting import Fitted
from analysis.reliability import Agreement
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.comparison import ALPHA, readable
from analysis.reporting.pictures import drawing_of, ends_told
from analysis.reporting.section import (
    Figure,
    Fold,
    Section,
    model_of,
    noted,
    opening_capital,
    spaced,
)
from analysis.stats import anova
from analysis.tables import Table


def details(made: Analysed) -> Section:
    """Every metric, folded."""
    folds = tuple(_metric(made, f, a) for f, a in zip(made.fits, made.agreements, strict=True))
    lead = "What was asked, the model, and all that it says; one metric in each fold."
    return Section("details", "Every metric in full", (lead,), folds=folds)


def models(made: Analysed) -> Section:
    """Every model with its size, convergence, what was left out, and what a reader must know about it."""
    fits = made.fits
    rows = tuple(
        (
            metric_name(f),
            display.count(f.fit.n_rows),
            f"{f.fit.criterion:.2f}",
            "yes" if f.fit.optimum.converged else "NO",
            "; ".join(f.left_out()) or "nothing",
            ", ".join(t.replace(" ", "") for t in f.fit.singular_terms) or "none",
        )
        for f in fits
    )
    columns = ("metric", "ratings", "REML criterion", "converged", "left out", "variance of zero")
    table = Table("models", "Models and their convergence", columns, rows, text_columns=(0, 3, 4, 5))
    used = _gathered((str(f.fit.formula), f) for f in fits)
    formulas = Table(
        "formulas",
        "Formulas in lme4 notation",
        ("formula", "metrics"),
        tuple((formula, ", ".join(names)) for formula, names in used.items()),
        text_columns=(0, 1),
    )
    said = _gathered((note, f) for f in fits for note in f.notes())
    points = tuple(
        note if len(names) == len(fits) else f"{', '.join(names)}: {note}" for note, names in said.items()
    )
    return Section("models", "Models", points=(*_refused(made), *points), tables=(table, formulas))


def _refused(made: Analysed) -> list[str]:
    return [f"Not in this report: {reason}." for reason in made.refused]


def _gathered(pairs: Iterable[tuple[str, Fitted]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text, fitted in pairs:
        found.setdefault(text, []).append(metric_name(fitted))
    return found


def _metric(made: Analysed, found: Fitted, agreement: Agreement) -> Fold:
    held = means.factors(found)
    shown: list[Table] = []
    drawn: list[Figure] = []
    if len(held.get("source", ())) > 1:
        drawn.append(_forest(made, found))
        shown.append(_contrasts(found))
        shown += [_within(found, factor) for factor in ("form", "category") if factor in held]
    if means.has_forms(found):
        shown.append(_penalties(found))
    if len(means.interactions(found)):
        shown.append(_standing_out(found))
    if len(found.fit.fixed) > 1:
        shown.append(_terms(found))
    shown += [_titled(fitting.components_table(found), found, "variance components"), _fixed(found)]
    shown.append(
        replace(reliability.table(agreement), note=reliability.pooling(agreement), numbers=agreement.estimates)
    )
    rated = found.selected.metric
    asked = [f"Asked: {rated.question}"] if rated.question else []
    lead = (*asked, _scale(found), f"Model: {model_of(found)}")
    title = opening_capital(metric_name(found))
    anchor = f"metric-{rated.metric_id}"
    return Fold(title, lead, figures=tuple(drawn), tables=tuple(shown), anchor=anchor)


def _scale(found: Fitted) -> str:
    rated = found.selected.metric
    scale = f"{rated.low:g} to {rated.high:g}"
    if rated.anchors:
        scale += f" ({rated.low:g} = {rated.anchors[0]}, {rated.high:g} = {rated.anchors[-1]})"
    return f"Rated for each {rated.item} from {scale}."


def _forest(made: Analysed, found: Fitted) -> Figure:
    points = found.selected.frame.groupby(["source", "rater"], observed=True)["score"].mean().reset_index()
    estimates = means.marginal(found, "source").assign(term=lambda t: t["source"].astype(str))
    drawn = figures.forest(estimates, made.look, points=points, **drawing_of(found, "forest", "means of sources"))
    rated = found.selected.metric
    text = "Estimated means of sources with 95% intervals; small dots are the raters' own means."
    return Figure(f"forest-{found.metric_id}", ends_told(text, estimates, (rated.low, rated.high)), drawn)


def _contrasts(found: Fitted) -> Table:
    table = means.versus_reference(found).assign(term=lambda t: t["source"].astype(str))
    caption = f"{_name(found)}: sources minus {_reference(found)}"
    return _differences(f"contrasts-{found.metric_id}", caption, table, found, "Holm over all rows")


def _within(found: Fitted, factor: str) -> Table:
    table = means.versus_reference(found, factor)
    terms = [f"{spaced(row[factor])}: {row['source']}" for _, row in table.iterrows()]
    caption = f"{_name(found)}: sources minus {_reference(found)} in each {factor}"
    family = f"Holm over all {len(terms)} rows"
    return _differences(f"contrasts-{factor}-{found.metric_id}", caption, table.assign(term=terms), found, family)


def _penalties(found: Fitted) -> Table:
    table = means.negation_penalty(found)
    reference = table["source"].iloc[0]
    terms = [
        f"{row.source} beyond {reference}" if row.kind == "beyond" else str(row.source)
        for row in table.itertuples()
    ]
    caption = f"{_name(found)}: negation penalty (affirmative − negative questions)"
    family = "Holm within the penalties and within the differences of penalties"
    return _differences(f"negation-{found.metric_id}", caption, table.assign(term=terms), found, family)


def _differences(name: str, caption: str, estimates: pd.DataFrame, found: Fitted, family: str) -> Table:
    rows = tuple(
        (
            row.term,
            display.estimate(row.estimate, row.low, row.high),
            display.number(row.std_error, 3),
            display.df(row.df),
            display.number(row.statistic),
            display.p_value(row.p_value),
            display.p_value(row.p_holm),
        )
        for row in estimates.itertuples(index=False)
    )
    columns = ("difference", "estimate [95% interval]", "SE", "df", "t", "p", "p (Holm)")
    note = f"{family}; intervals are not adjusted."
    return noted(Table(name, caption, columns, rows, note, numbers=estimates), found)


def _standing_out(found: Fitted) -> Table:
    """Interaction coefficients that stay after Holm's adjustment over all of them, and how many there are."""
    own, levels = means.interactions(found), means.factors(found)
    out = own[own["p_holm"] < ALPHA]
    rows = tuple(
        (
            readable(row.term, levels),
            display.estimate(row.estimate, row.low, row.high),
            display.p_value(row.p_value),
            display.p_value(row.p_holm),
        )
        for row in out.itertuples(index=False)
    ) or (("none", *[display.MISSING] * 3),)
    base = ", ".join(spaced(own_levels[0]) for own_levels in levels.values())
    note = (
        f"{len(out)} of {own['p_value'].count()} interactions have p (Holm) below {ALPHA}. Each says how much "
        f"further a source is from the reference there than at the baseline ({base})."
    )
    columns = ("source × where", "estimate [95% interval]", "p", "p (Holm)")
    caption = f"{_name(found)}: interactions that stand out"
    return noted(Table(f"interactions-{found.metric_id}", caption, columns, rows, note, numbers=own), found)


def _terms(found: Fitted) -> Table:
    tests = anova.anova(found.fit, ddf=found.ddf)
    rows = tuple(
        (
            row.term,
            display.count(row.ndf),
            display.df(row.df),
            display.number(row.statistic),
            display.p_value(row.p_value),
        )
        for row in tests.itertuples(index=False)
    )
    caption = f"{_name(found)}: F tests of terms (type III)"
    columns = ("term", "df", "error df", "F", "p")
    return noted(Table(f"terms-{found.metric_id}", caption, columns, rows, numbers=tests), found)


def _fixed(found: Fitted) -> Table:
    coefficients = found.coefficients()
    table = replace(fitting.coefficients_table(coefficients), numbers=coefficients)
    return _titled(replace(table, name=f"coefficients-{found.metric_id}"), found, "fixed effects")


def _titled(table: Table, found: Fitted, what: str) -> Table:
    return noted(replace(table, caption=f"{_name(found)}: {what}"), found)


def _name(found: Fitted) -> str:
    return opening_capital(metric_name(found))


def _reference(found: Fitted) -> str:
    return means.factors(found)["source"][0]
