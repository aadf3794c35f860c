"""The cumulative-link model of a metric, beside the linear one: would ordered categories say the same?"""

from typing import Literal

import pandas as pd

from analysis import display, fitting, results, tables
from analysis.fitting import Fitted
from analysis.results import Answer, Result
from analysis.stats import beside as pairing
from analysis.stats import contrasts
from analysis.stats.beside import Beside
from analysis.stats.ordinal import OrdinalFit, fit_ordinal
from study.errors import StudyError


def ordinal(found: Fitted, link: Literal["logit", "probit"] = "logit") -> Answer:
    """The linear fit's formula as a cumulative-link mixed model, and what differs.

    Raises
    ------
    StudyError : if the ratings are no ordered categories, or the model has a random slope; names the metric
    """
    try:
        made = fit_ordinal(found.selected.frame, found.model.formula, link=link)
    except StudyError as error:
        raise StudyError(f"{found.metric_id}: {error}") from None
    compared = pairing.beside(found.fit, made) if contrasts.fit_factor(found.fit, "source") else None
    source = results.provenance(found.loaded, found.selected, formula=made.formula)
    values = {
        "metric": found.metric_id,
        "link": link,
        "log_likelihood": made.log_likelihood,
        "aic": made.aic,
        "converged": made.optimum.converged,
        "singular_terms": made.singular_terms,
        "categories": made.categories,
        "thresholds": made.thresholds(found.level),
        "components": made.components(),
        "coefficients": made.coefficients(found.level),
        "notes": [*found.selected.notes, *made.notes, *(compared.notes if compared else [])],
    }
    if compared:
        values |= {"beside_linear": compared.contrasts, "ranks": compared.ranks}
    return Answer(Result("ordinal", source, values), _printed(found, made, compared, link), found.loaded)


def _printed(found: Fitted, made: OrdinalFit, compared: Beside | None, link: str) -> str:
    used = ", ".join(f"{row.category:g}: {row.n:,}" for row in made.categories.itertuples())
    state = "converged" if made.optimum.converged else "NOT converged"
    if made.singular_terms:
        state += f", singular: {', '.join(t.replace(' ', '') for t in made.singular_terms)}"
    parts = [
        f"Cumulative {link} mixed model of {found.metric_id}, by Laplace's approximation",
        f"Formula: {made.formula}",
        f"Ratings: {fitting.sizes(found)}; per category {used}",
        f"Left out: {'; '.join(found.left_out()) or 'nothing'}",
        f"Log likelihood: {made.log_likelihood:.4f}  AIC: {made.aic:.2f}",
        f"Convergence: {state}",
        "",
        "Variance components (latent scale)",
        tables.as_text(_components(made), "  "),
        "",
        "Thresholds",
        tables.as_text(_thresholds(made.thresholds(found.level)), "  "),
    ]
    if len(coefficients := made.coefficients(found.level)):
        scale = "log odds" if link == "logit" else "latent SDs"
        parts += ["", f"Fixed effects ({scale}; positive means higher ratings)",
                  tables.as_text(fitting.coefficients_table(coefficients), "  ")]  # fmt: skip
    if compared:
        parts += ["", "Linear beside ordinal model, averaged over the other factors",
                  tables.as_text(_beside(compared), "  ")]  # fmt: skip
    notes = [*found.selected.notes, *made.notes, *(compared.notes if compared else [])]
    return "\n".join(parts + ([""] if notes else []) + [f"note: {n}" for n in notes])


def _components(made: OrdinalFit) -> tables.Table:
    rows = tuple(
        (r.group if r.group != "Residual" else f"residual ({r.name})", display.number(r.variance, 4),
         display.number(r.sd, 3), display.percent(r.share), display.count(made.levels.get(r.group)))
        for r in made.components().itertuples(index=False)
    )  # fmt: skip
    return tables.Table("components", "", ("group", "variance", "SD", "share", "levels"), rows)


def _thresholds(estimates: pd.DataFrame) -> tables.Table:
    rows = tuple((r.term, display.number(r.estimate, 3), display.number(r.std_error, 3))
                 for r in estimates.itertuples())  # fmt: skip
    return tables.Table("thresholds", "", ("between", "estimate", "SE"), rows)


def _beside(compared: Beside) -> tables.Table:
    said = {True: "same", False: "differs"}
    rows = tuple(
        (r.term, display.number(r.linear_estimate), display.p_value(r.linear_p),
         display.number(r.ordinal_estimate), display.p_value(r.ordinal_p),
         said.get(r.same_direction, display.MISSING), said.get(r.same_significance, display.MISSING))
        for r in compared.contrasts.itertuples()
    )  # fmt: skip
    columns = ("difference", "linear", "p", "ordinal", "p", "direction", "significance")
    return tables.Table("beside", "", columns, rows, text_columns=(0, 5, 6))
