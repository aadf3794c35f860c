"""Sources compared: on whole encounters, on single answers, by category and by form of question."""

from collections.abc import Sequence

import pandas as pd

from analysis import display, means
from analysis.fitting import Fitted
from analysis.reporting import pictures
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.section import (
    Fold,
    Section,
    counted,
    estimates,
    grid,
    listed,
    noted,
    opening_capital,
    spaced,
)
from analysis.tables import Table

ALPHA = 0.05
_PICTURES = {"category": pictures.by_category, "form": pictures.by_form}


def sources(made: Analysed) -> Section:
    """Who answered, and how much of it there is."""
    rows = [(made.names[s.source_id], s.title, s.source_id, s.kind) for s in made.study.sources]
    every = dict(zip(("source", "title", "id", "kind"), zip(*rows, strict=True), strict=True))
    # What only repeats the source's name needs no column.
    kept = {name: own for name, own in every.items() if name in ("source", "kind") or own != every["source"]}
    cells, columns = tuple(zip(*kept.values(), strict=True)), tuple(kept)
    text = tuple(range(len(columns)))
    table = Table("sources", "Sources in the study's order", columns, cells, text_columns=text)
    lead = f"The first source, {rows[0][0]}, is the reference that the others are compared with." if rows else ""
    return Section("sources", "Who answered", (lead,) if len(rows) > 1 else (), tables=(table,))


def compared(made: Analysed, item: str) -> Section | None:
    """Means of the sources on every metric of a kind of item, and their differences from the reference."""
    fits = made.of(item, compared=True)
    if not fits:
        return None
    names = [metric_name(f) for f in fits]
    order = list(dict.fromkeys(s for f in fits for s in means.factors(f)["source"]))
    marginal = {metric_name(f): means.marginal(f, "source").astype({"source": str}) for f in fits}
    against = {metric_name(f): means.versus_reference(f).astype({"source": str}) for f in fits}
    table = grid(
        "encounters" if item == "encounter" else "answers",
        f"{'Table 1. ' if item == 'encounter' else ''}Estimated means of sources, with 95% intervals",
        _turned(marginal, order),
        names,
        corner="source",
        note=_from_models(fits),
        numbers=_stacked(marginal),
    )
    differences = grid(
        f"differences-{item}",
        f"Differences from {order[0]}, with 95% intervals",
        _turned(against, order[1:]),
        names,
        corner="source",
        note="Intervals are not adjusted; p values are adjusted by Holm's method within each metric.",
        numbers=_stacked(against),
    )
    p_values = grid(
        f"p-values-{item}",
        f"p values (Holm) of the differences from {order[0]}",
        [(s, {m: display.p_value(t.set_index("source")["p_holm"].get(s)) for m, t in against.items()})
         for s in order[1:]],
        names,
        corner="source",
        numbers=_stacked(against),
    )  # fmt: skip
    drawn = tuple(pictures.of_means(made, item, own) for own in pictures.by_scale(fits))
    shown, lead = [table, differences], [_asked(made, fits, item)]
    if len(written := {cell for _, *cells in p_values.rows for cell in cells}) == 1:
        lead.append(f"Every difference from {order[0]} has {_p_written(written.pop())} (Holm).")
    else:
        shown.append(p_values)
    title = made.title(item)
    return Section(f"{item}s", title, tuple(lead), figures=drawn, tables=tuple(shown))


def by_category_and_form(made: Analysed) -> Section | None:
    """Table 2: sources by category and by form of question, for every metric of single answers."""
    factors = {
        "category": [f for f in made.of("utterance", compared=True) if "category" in means.factors(f)],
        "form": [f for f in made.of("utterance", compared=True) if "form" in means.factors(f)],
    }
    fits = [f for f in made.of("utterance", compared=True) if any(f in own for own in factors.values())]
    if not fits:
        return None
    drawn, shown, folds = [], [], []
    for place, found in enumerate(fits):
        own_figures, own_tables = [], []
        for factor, own in factors.items():
            if found in own:
                own_figures.append(_PICTURES[factor](made, found))
                own_tables.append(_cells(found, factor))
        if place == 0:
            drawn, shown = own_figures, own_tables
        else:
            title = opening_capital(metric_name(found))
            folds.append(Fold(title, figures=tuple(own_figures), tables=tuple(own_tables)))
    lead = [
        f"Means of the sources in each {listed([f for f in factors if factors[f]])} of question; the levels of "
        "the other factor count the same."
    ]
    points = tuple(s for f in fits if (s := _stand_out(f)))
    if folds:
        lead[0] += f" {opening_capital(metric_name(fits[0]))} stands first; the other metrics are folded below."
    return Section("categories", "By category and form of question", tuple(lead), points, tuple(drawn),
                   tuple(shown), tuple(folds))  # fmt: skip


def penalties(made: Analysed) -> Section | None:
    """What a negative question costs each source, and whether it costs more than the reference."""
    fits = [f for f in made.of("utterance", compared=True) if means.has_forms(f)]
    if not fits:
        return None
    found = {metric_name(f): means.negation_penalty(f).astype({"source": str}) for f in fits}
    order = means.factors(fits[0])["source"]
    own = {m: t[t["kind"] == "penalty"] for m, t in found.items()}
    beyond = {m: t[t["kind"] == "beyond"] for m, t in found.items()}
    shown = grid(
        "negation", "Negation penalty (affirmative − negative questions), with 95% intervals", _turned(own, order),
        list(found), corner="source", note=_from_models(fits), numbers=_stacked(found),
    )  # fmt: skip
    more = grid(
        "negation-beyond",
        f"Penalty beyond {order[0]}'s, with 95% intervals and p (Holm)",
        [(s, {m: _with_p(t.set_index("source").loc[s]) for m, t in beyond.items() if s in set(t["source"])})
         for s in order[1:]],
        list(found), corner="source", note="Contrasts of contrasts; Holm within each metric.",
        numbers=_stacked(beyond),
    )  # fmt: skip
    lead = "A positive penalty says that negative questions are answered worse than affirmative ones."
    points = []
    for name, table in beyond.items():
        worse = [f"{r.source} {display.estimate(r.estimate, r.low, r.high)}"
                 for r in table.itertuples() if r.p_holm < ALPHA]  # fmt: skip
        points.append(
            f"{opening_capital(name)}: "
            + (f"beyond {order[0]}'s penalty stands {listed(worse)}." if worse
               else f"no source's penalty is shown to differ from {order[0]}'s.")
        )  # fmt: skip
    return Section("negation", "Negative questions", (lead,), tuple(points), tables=(shown, more))


def differing(found: Fitted) -> bool:
    """Whether some source is shown to differ from the reference."""
    return bool((means.versus_reference(found)["p_holm"] < ALPHA).any())


def standing(found: Fitted) -> str:
    """Where a metric's sources stand against the reference, in a sentence."""
    table = means.versus_reference(found).astype({"source": str})
    reference = means.marginal(found, "source").iloc[0]
    below = table[(table["p_holm"] < ALPHA) & (table["estimate"] < 0)].sort_values("estimate")
    above = table[(table["p_holm"] < ALPHA) & (table["estimate"] > 0)].sort_values("estimate", ascending=False)
    others = table[~(table["p_holm"] < ALPHA)]
    name = str(reference["source"])
    first = f"{opening_capital(metric_name(found))}: {name} "
    first += display.estimate(reference["estimate"], reference["low"], reference["high"])
    parts = [_which("below it", below), _which("above it", above)]
    if len(others):
        names = display.several([s for s in others["source"]], 4)
        parts.append(f"not shown to differ from it: {names}")
    return f"{first}; {'; '.join(p for p in parts if p)}."


def _which(where: str, table: pd.DataFrame) -> str:
    """Few sources by name, many by their number and range."""
    if table.empty:
        return ""
    told = [f"{r.source} {display.estimate(r.estimate, r.low, r.high)}" for r in table.itertuples()]
    if len(told) <= 3:
        return f"{where} {listed(told)}"
    return f"{where} {counted(len(told), 'source')}, from {told[-1]} to {told[0]}"


def _asked(made: Analysed, fits: Sequence[Fitted], item: str) -> str:
    rated = [f.selected.metric for f in fits]
    scales = {f"{m.low:g} to {m.high:g}" for m in rated}
    scale = f" from {scales.pop()}" if len(scales) == 1 else ""
    return (
        f"Each {made.noun(item)} was rated{scale} on {listed([metric_name(m) for m in rated])}. Means are those "
        "of the model of each metric; a difference is called one where p (Holm) is below 0.05."
    )


def _stand_out(found: Fitted) -> str:
    """Which interactions stay after Holm's adjustment, in a sentence."""
    own = means.interactions(found)
    if own.empty:
        return ""
    out = own[own["p_holm"] < ALPHA].sort_values("estimate")
    name, total = opening_capital(metric_name(found)), int(own["p_value"].count())
    if out.empty:
        return f"{name}: none of {total} interactions stands out (Holm)."
    told = [f"{readable(r.term, means.factors(found))} {display.estimate(r.estimate, r.low, r.high)}"
            for r in out.itertuples()]  # fmt: skip
    shown = listed(told[:4]) + (f", and {len(told) - 4} more" if len(told) > 4 else "")
    return f"{name}: {len(told)} of {total} interactions {'stand' if len(told) > 1 else 'stands'} out: {shown}."


def readable(term: str, levels: dict[str, list[str]]) -> str:
    """`sourceA:formnegative` as `A × negative`."""
    named = {
        f"{factor}{level}": level if factor == "source" else spaced(level)
        for factor, own in levels.items()
        for level in own
    }
    return " × ".join(named.get(part, part) for part in term.split(":"))


def _cells(found: Fitted, factor: str) -> Table:
    estimated = means.marginal(found, "source", factor).astype({"source": str, factor: str})
    rows = [(spaced(level), estimates(own, "source")) for level, own in estimated.groupby(factor, sort=False)]
    table = grid(
        f"{factor}-{found.metric_id}",
        f"Table 2. {opening_capital(metric_name(found))} by {factor} of question, with 95% intervals",
        rows, means.factors(found)["source"], corner=factor, numbers=estimated,
    )  # fmt: skip
    return noted(table, found)


def _turned(by_metric: dict[str, pd.DataFrame], order: list[str]) -> list[tuple[str, dict[str, str]]]:
    """Estimates by metric and source as rows of sources."""
    cells = {metric: estimates(table, "source") for metric, table in by_metric.items()}
    return [(s, {m: own[s] for m, own in cells.items() if s in own}) for s in order]


def _stacked(by_metric: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([t.assign(metric=m) for m, t in by_metric.items()], ignore_index=True)


def _from_models(fits: Sequence[Fitted]) -> str:
    """The formula if all have the same, the ratings behind all of them, and whether all converged."""
    formulas = list(dict.fromkeys(str(f.fit.formula) for f in fits))
    model = formulas[0] if len(formulas) == 1 else "the model of each metric (see Models)"
    lost = [metric_name(f) for f in fits if not f.fit.optimum.converged]
    state = f"NOT converged: {listed(lost)}" if lost else "converged"
    return f"Points of the scale; {model}; {counted(sum(f.fit.n_rows for f in fits), 'rating')}; {state}."


def _with_p(row: pd.Series) -> str:
    return f"{display.estimate(row['estimate'], row['low'], row['high'])}, {_p(row['p_holm'])}"


def _p(value: float) -> str:
    return _p_written(display.p_value(value))


def _p_written(written: str) -> str:
    return f"p {written}" if written.startswith("<") else f"p = {written}"
