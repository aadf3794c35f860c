"""The parts of a report: for each question of a reader, its tables and figures."""

from dataclasses import dataclass, replace

import pandas as pd

from analysis import display, figures, fitting, means, reliability
from analysis.fitting import Fitted
from analysis.reliability import Agreement
from analysis.stats import anova
from analysis.tables import Table
from study.config import Study

_FEW = 12  # rows of a table that stay in sight; longer ones fold
_ALPHA = 0.05


@dataclass(frozen=True)
class Figure:
    """A drawn figure; `name` becomes its file's."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Section:
    """A part of the report: its tables and figures in sight, and the tables folded below them."""

    anchor: str
    title: str
    lead: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    folded: tuple[Table, ...] = ()
    asked: str = ""


def sources(study: Study, fits: list[Fitted]) -> Section:
    """Who answered, the means of all on every metric, and their differences from the reference."""
    named = [
        Table(
            "sources",
            "Sources in the study's order",
            ("source", "title", "kind"),
            tuple((s.source_id, s.title, s.kind) for s in study.sources),
            text_columns=(0, 1, 2),
        )
    ]
    compared = [f for f in fits if len(means.factors(f).get("source", ())) > 1]
    if not compared:
        return Section("sources", "Sources", tables=tuple(named))
    columns = list(dict.fromkeys(s for f in compared for s in means.factors(f)["source"]))
    note = f"From the model of each metric (see Models), in points of its scale.{simulated(compared)}"
    estimated = [(f.metric_id, _by_source(means.marginal(f, "source"))) for f in compared]
    differences = [(f.metric_id, _by_source(means.versus_reference(f))) for f in compared]
    named.append(_grid("means", "Estimated means of sources with 95% intervals", estimated, columns, note))
    caption = f"Differences from {columns[0]} with 95% intervals, not adjusted"
    named.append(_grid("differences", caption, differences, columns[1:], note))
    lead = f"The first source, {columns[0]}, is the reference that the others are compared with."
    return Section("sources", "Sources", (lead,), tables=tuple(named))


def metric(study: Study, found: Fitted, agreement: Agreement) -> Section:
    """One metric: what was asked, sources compared, where they depart, variance components, reliability."""
    rated, held = found.selected.metric, means.factors(found)
    shown: list[Table] = []
    drawn: list[Figure] = []
    folded: list[Table] = []
    if len(held.get("source", ())) > 1:
        drawn.append(_forest(study, found))
        shown.append(_contrasts(found))
        if "form" in held:
            drawn.append(_interaction(study, found))
            folded.append(_within(found, "form"))
        if "category" in held:
            drawn.append(_heat_map(study, found))
            folded.append(_within(found, "category"))
    if means.has_forms(found):
        shown.append(_penalties(found))
    if len(means.interactions(found)):
        shown.append(_standing_out(found))
    if len(found.fit.fixed) > 1:
        shown.append(_terms(found))
    shown.append(_noted(fitting.components_table(found), found))
    fixed = _fixed(found)
    (folded if len(fixed.rows) > _FEW else shown).append(fixed)
    folded += [_severity(found)] if "rater" in found.fit.levels else []
    folded.append(reliability.table(agreement))
    return Section(
        f"metric-{rated.metric_id}",
        _spaced(rated.metric_id),
        (_lead(found), f"Model: {_model(found)}"),
        tuple(drawn),
        tuple(shown),
        tuple(folded),
        rated.question,
    )


def agreements(found: list[Agreement]) -> Section:
    """The coefficients of all metrics, and why one is missing where it is."""
    estimates = pd.concat([a.estimates for a in found], ignore_index=True)
    pooled = estimates[estimates["source"] == reliability.POOLED]
    drawn = pooled[pooled["estimate"].notna()].assign(metric=lambda t: t["metric"].map(_spaced))
    any_simulated = any(a.selected.simulated for a in found)
    svg = figures.reliability(
        drawn, name="reliability", title="Agreement, all sources pooled", simulated=any_simulated
    )
    caption = "Coefficients of agreement with 95% intervals." + (" Simulated ratings." if any_simulated else "")
    whole = [(a.metric_id, reliability.table(a)) for a in found]
    rows = tuple((name, *table.rows[0][1:]) for name, table in whole)
    columns = ("metric", *whole[0][1].columns[1:])
    note = "Targets are the responses or encounters of all sources together. " + reliability.method(found[0])
    table = Table("reliability", "Agreement of raters, all sources pooled", columns, rows, note)
    refused = estimates[estimates["reason"].notna()].drop_duplicates(["metric", "source", "reason"])
    lead = tuple(f"{r.metric}, {r.source}: {r.reason}." for r in refused.itertuples())
    return Section("reliability", "Reliability", lead, (Figure("reliability", caption, svg),), (table,))


def models(fits: list[Fitted]) -> Section:
    """Every model with its size, convergence, what was left out, and what a reader must know about it."""
    rows = tuple(
        (
            f.metric_id,
            display.count(f.fit.n_rows),
            f"{f.fit.criterion:.2f}",
            "yes" if f.fit.optimum.converged else "NO",
            "; ".join(f.left_out()) or "nothing",
            ", ".join(t.replace(" ", "") for t in f.fit.singular_terms) or "none",
        )
        for f in fits
    )
    columns = ("metric", "ratings", "REML criterion", "converged", "left out", "variance of zero")
    table = Table(
        "models", "Models and their convergence", columns, rows, simulated(fits).strip(), text_columns=(0, 3, 4, 5)
    )
    used: dict[str, list[str]] = {}
    for f in fits:
        used.setdefault(str(f.fit.formula), []).append(f.metric_id)
    formulas = Table(
        "formulas",
        "Formulas in lme4 notation",
        ("formula", "metrics"),
        tuple((formula, ", ".join(names)) for formula, names in used.items()),
        text_columns=(0, 1),
    )
    said: dict[str, list[str]] = {}
    for f in fits:
        for note in f.notes():
            said.setdefault(note, []).append(f.metric_id)
    lead = [note if len(names) == len(fits) else f"{', '.join(names)}: {note}" for note, names in said.items()]
    return Section("models", "Models", tuple(lead), tables=(table, formulas))


def simulated(fits: list[Fitted]) -> str:
    return " Simulated ratings." if any(f.selected.simulated for f in fits) else ""


def _lead(found: Fitted) -> str:
    rated = found.selected.metric
    scale = f"{rated.low:g} to {rated.high:g}"
    if rated.anchors:
        scale += f" ({rated.low:g} = {rated.anchors[0]}, {rated.high:g} = {rated.anchors[-1]})"
    kind = " These ratings are simulated." if found.selected.simulated else ""
    return f"Rated for each {rated.item} from {scale}.{kind}"


def _forest(study: Study, found: Fitted) -> Figure:
    points = found.selected.frame.groupby(["source", "rater"], observed=True)["score"].mean().reset_index()
    estimates = means.marginal(found, "source").assign(term=lambda t: t["source"].astype(str))
    svg = figures.forest(estimates, _look(study), points=points, **_drawing(found, "forest", "means of sources"))
    caption = "Estimated means of sources with 95% intervals; small dots are the raters' own means."
    return Figure(f"forest-{found.metric_id}", _said(caption, found), svg)


def _interaction(study: Study, found: Fitted) -> Figure:
    estimates = means.marginal(found, "source", "form").astype({"source": str, "form": str})
    svg = figures.interaction(estimates, _look(study), **_drawing(found, "form", "sources by form of question"))
    held = "category" in means.factors(found)
    caption = f"Estimated means with 95% intervals{', averaged over categories' if held else ''}."
    return Figure(f"form-{found.metric_id}", _said(caption, found), svg)


def _heat_map(study: Study, found: Fitted) -> Figure:
    estimates = means.marginal(found, "source", "category").astype({"source": str, "category": str})
    svg = figures.heat_map(estimates, **_drawing(found, "category", "sources by category"))
    held = "form" in means.factors(found)
    caption = f"Estimated means by category of question{', averaged over forms' if held else ''}."
    return Figure(f"category-{found.metric_id}", _said(caption, found), svg)


def _drawing(found: Fitted, kind: str, title: str) -> dict[str, object]:
    """What every figure of a metric shares: its scale, its names, and whether it is simulated."""
    rated = found.selected.metric
    name = _spaced(rated.metric_id)
    return {
        "scale": (rated.low, rated.high),
        "name": f"{kind}-{rated.metric_id}",
        "title": f"{name[0].upper()}{name[1:]}: {title}",
        "axis": f"{name}, {rated.low:g} to {rated.high:g}",
        "simulated": found.selected.simulated,
    }


def _contrasts(found: Fitted) -> Table:
    return _differences(
        f"contrasts-{found.metric_id}",
        f"{found.metric_id}: sources minus {_reference(found)}",
        means.versus_reference(found).assign(term=lambda t: t["source"]),
        found,
        "Holm over all rows",
    )


def _penalties(found: Fitted) -> Table:
    return _differences(
        f"negation-{found.metric_id}",
        f"{found.metric_id}: negation penalty (affirmative − negative questions)",
        means.negation_penalty(found).assign(term=_penalty_names),
        found,
        "Holm within the penalties and within the differences of penalties",
    )


def _penalty_names(estimates: pd.DataFrame) -> list[str]:
    """A source for its penalty; a source beyond the reference for the difference of two penalties."""
    reference = estimates["source"].iloc[0]
    return [
        f"{row.source} beyond {reference}" if row.kind == "beyond" else str(row.source)
        for row in estimates.itertuples()
    ]


def _reference(found: Fitted) -> str:
    return means.factors(found)["source"][0]


def _within(found: Fitted, factor: str) -> Table:
    estimates = means.versus_reference(found, factor)
    terms = [f"{row[factor]}: {row['source']}" for _, row in estimates.iterrows()]
    return _differences(
        f"{factor}-{found.metric_id}",
        f"{found.metric_id}: sources minus {_reference(found)} in each {factor}",
        estimates.assign(term=terms),
        found,
        f"Holm over all {len(terms)} rows",
    )


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
    return _noted(Table(name, caption, columns, rows, f"{family}; intervals are not adjusted."), found)


def _standing_out(found: Fitted) -> Table:
    """Interaction coefficients that stay after Holm's adjustment over all of them, and how many there are."""
    own, levels = means.interactions(found), means.factors(found)
    out = own[own["p_holm"] < _ALPHA]
    rows = tuple(
        (
            _readable(row.term, levels),
            display.estimate(row.estimate, row.low, row.high),
            display.p_value(row.p_value),
            display.p_value(row.p_holm),
        )
        for row in out.itertuples(index=False)
    ) or (("none", *[display.MISSING] * 3),)
    base = ", ".join(own_levels[0] for own_levels in levels.values())
    note = (
        f"{len(out)} of {own['p_value'].count()} interactions have p (Holm) below {_ALPHA}. Each says how much "
        f"further a source is from the reference there than at the baseline ({base})."
    )
    columns = ("source × where", "estimate [95% interval]", "p", "p (Holm)")
    caption = f"{found.metric_id}: interactions that stand out"
    return _noted(Table(f"interactions-{found.metric_id}", caption, columns, rows, note), found)


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
    table = Table(
        f"terms-{found.metric_id}",
        f"{found.metric_id}: F tests of terms (type III)",
        ("term", "df", "error df", "F", "p"),
        rows,
    )
    return _noted(table, found)


def _fixed(found: Fitted) -> Table:
    plain = fitting.coefficients_table(found.coefficients())
    return _noted(
        Table(f"coefficients-{found.metric_id}", f"{found.metric_id}: fixed effects", plain.columns, plain.rows),
        found,
    )


def _severity(found: Fitted) -> Table:
    """How far each rater stands above or below the panel."""
    effects = found.fit.blups("rater").sort_values("estimate")
    rows = tuple(
        (str(row.level), display.number(row.estimate), display.number(row.std_error))
        for row in effects.itertuples(index=False)
    )
    note = "Predicted rater effects, the most severe first, in points of the scale, shrunken towards zero."
    return _noted(
        Table(
            f"severity-{found.metric_id}",
            f"{found.metric_id}: severity of raters",
            ("rater", "effect", "SE"),
            rows,
            note,
        ),
        found,
    )


def _noted(table: Table, found: Fitted) -> Table:
    """The table with its model, n and convergence, for where it stands alone."""
    return replace(table, model=_model(found))


def _model(found: Fitted) -> str:
    df = {"satterthwaite": "Satterthwaite df", "kenward-roger": "Kenward–Roger df", "z": "normal theory"}
    return f"{found.fit.formula}; {fitting.sizes(found)}; {fitting.convergence(found.fit)}; {df[found.ddf]}."


def _grid(name: str, caption: str, rows: list[tuple[str, dict[str, str]]], columns: list[str], note: str) -> Table:
    cells = tuple((metric_id, *(own.get(c, display.MISSING) for c in columns)) for metric_id, own in rows)
    return Table(name, caption, ("metric", *columns), cells, note)


def _by_source(estimates: pd.DataFrame) -> dict[str, str]:
    return {str(r.source): display.estimate(r.estimate, r.low, r.high) for r in estimates.itertuples()}


def _readable(term: str, levels: dict[str, list[str]]) -> str:
    """`sourceA:formnegative` as `A × negative`."""
    named = {f"{factor}{level}": level for factor, own in levels.items() for level in own}
    return " × ".join(named.get(part, part) for part in term.split(":"))


def _look(study: Study) -> figures.Look:
    return figures.look([s.source_id for s in study.sources])


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _said(text: str, found: Fitted) -> str:
    return text + (" Simulated ratings." if found.selected.simulated else "")
