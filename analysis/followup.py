"""What is asked of a fit: contrasts, tests of terms, marginal means and effect sizes."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from analysis import display, fitting, models, results, tables
from analysis.fitting import Fitted
from analysis.results import Answer, Result
from analysis.stats import anova as tests
from analysis.stats import contrasts as comparisons
from analysis.stats import diagnostics
from analysis.stats import effects as sizes
from study.errors import StudyError

_DF = {"satterthwaite": "Satterthwaite", "kenward-roger": "Kenward–Roger", "z": "none (z)"}
_ADJUSTED = {
    "none": "not adjusted",
    "holm": "Holm",
    "tukey": "Tukey",
    "BY": "Benjamini–Yekutieli",
    "BH": "Benjamini–Hochberg",
    "bonferroni": "Bonferroni",
    "sidak": "Šidák",
    "scheffe": "Scheffé",
}


@dataclass(frozen=True)
class Contrast:
    """Which means are compared with which.

    weights : LEVEL=WEIGHT,… in place of a method; across : a factor between whose levels the contrasts are
    compared in turn, each level with the first; by : factors within whose levels everything is done apart
    """

    of: str = "source"
    method: str = "reference"
    weights: str | None = None
    across: str | None = None
    by: tuple[str, ...] = ()
    adjust: str = "holm"

    def of_method(self) -> comparisons.Method:
        """The method as the statistics take it.

        Raises
        ------
        StudyError : if the weights cannot be read
        """
        if self.weights is None:
            return self.method
        parts = [part.rpartition("=") for part in self.weights.split(",")]
        try:
            weights = {level.strip(): float(weight) for level, _, weight in parts}
        except ValueError:
            raise StudyError(f"--weights {self.weights}: write each level with its weight, as a=1,b=-1") from None
        return {" ".join(f"{w:+g} {level}" for level, w in weights.items()): weights}


def contrasts(found: Fitted, asked: Contrast) -> Answer:
    """Contrasts of estimated marginal means, adjusted within each family."""
    how = {"by": asked.by, "adjust": asked.adjust, "ddf": found.ddf, "level": found.level}
    if asked.across == asked.of:
        raise StudyError(f"--across {asked.of}: is what is compared already; name another factor, or leave it out")
    if asked.across:
        methods = {asked.of: asked.of_method(), asked.across: "reference"}
        table = _named(found, lambda: comparisons.interaction(found.fit, methods, **how))
    else:
        table = _named(found, lambda: comparisons.contrasts(found.fit, asked.of, asked.of_method(), **how))
    family = f"{_ADJUSTED[asked.adjust]}{', within each group' if asked.by and asked.adjust != 'none' else ''}"
    head = f"Contrasts of {asked.of}{f' across {asked.across}' if asked.across else ''} (p: {family})"
    values = {"of": asked.of, "across": asked.across, "by": list(asked.by), "adjust": asked.adjust}
    tail = _about_intervals(asked, len(table))
    return _answer(found, "contrasts", table, head, _estimates(table, asked.by), values, tail)


def _about_intervals(asked: Contrast, n: int) -> list[str]:
    """How the intervals are adjusted, where the head of p values does not tell."""
    if n == 1 or asked.adjust not in ("holm", "BY", "BH"):
        return []
    return [f"Intervals hold together, by Bonferroni: {_ADJUSTED[asked.adjust]} adjusts p values alone."]


def effects(found: Fitted, of: str, by: tuple[str, ...]) -> Answer:
    """Marginal means, differences from the first level in points and in total SDs, and shares of variance."""
    how = {"by": by, "ddf": found.ddf, "level": found.level}
    means = _named(found, lambda: comparisons.means(found.fit, of, **how))
    differences = comparisons.contrasts(found.fit, of, "reference", adjust="none", **how)
    differences = sizes.standardized(found.fit, differences)
    shares, spread = sizes.r_squared(found.fit), sizes.total_sd(found.fit)
    shown = _estimates(differences, by)
    in_sd = tuple(display.estimate(r.d, r.d_low, r.d_high) for r in differences.itertuples())
    shown = tables.Table(
        "differences", "", (*shown.columns, "in SDs"),
        tuple((*row, d) for row, d in zip(shown.rows, in_sd, strict=True)), text_columns=shown.text_columns,
    )  # fmt: skip
    explained = ", ".join(f"{name} {display.percent(value)}" for name, value in shares.items())
    tail = [
        "",
        f"Differences from the first level (not adjusted; 1 SD = {display.number(spread, 3)}, of all components)",
        tables.as_text(shown, "  "),
        "",
        f"Variance explained: {explained}",
    ]
    values = {"of": of, "by": list(by), "differences": differences, "total_sd": spread, "r_squared": shares}
    plain = _estimates(means, by)
    return _answer(found, "effects", means, f"Estimated marginal means of {of}", plain, values, tail)


def anova(found: Fitted, type: int) -> Answer:
    """F tests of the fixed terms."""
    table = tests.anova(found.fit, type, found.ddf)
    rows = tuple(
        (r.term, display.number(r.sum_sq), display.count(r.ndf), display.df(r.df), display.number(r.statistic),
         display.p_value(r.p_value))
        for r in table.itertuples()
    )  # fmt: skip
    shown = tables.Table("anova", "", ("term", "sum of squares", "df", "error df", "F", "p"), rows)
    return _answer(found, "anova", table, f"F tests of terms, type {'I' * type}", shown, {"type": type})


def ranova(found: Fitted) -> Answer:
    """Likelihood-ratio tests of the random terms."""
    table = tests.ranova(found.fit)
    rows = tuple(
        (r.term, display.count(r.n_parameters), display.number(r.log_likelihood), display.number(r.aic),
         display.number(r.statistic), display.count(r.df), display.p_value(r.p_value),
         display.p_value(r.p_boundary))
        for r in table.itertuples()
    )  # fmt: skip
    columns = ("left out", "parameters", "log likelihood", "AIC", "LRT", "df", "p", "p (boundary)")
    head = "Random terms, one left out at a time (p of chi-squared is conservative; p (boundary) is not)"
    return _answer(found, "ranova", table, head, tables.Table("ranova", "", columns, rows), {})


def influence(found: Fitted, by: tuple[str, ...], refit: bool = False) -> Answer:
    """What leaving out each level of a group does to the fixed effects: each rater and each prompt if not said.

    Raises
    ------
    StudyError : if the model knows no such group, or names neither raters nor prompts
    """
    frame = found.selected.frame
    unit = ":".join(models.response_columns(frame)) or "label"
    groups = by or tuple(g for g in ("rater", unit) if set(g.split(":")) <= set(found.fit.design.columns))
    if not groups:
        raise StudyError(f"{found.metric_id}: the model names no raters and no prompts; say --by GROUP")
    parts = []
    for group in groups:
        made = _named(found, lambda g=group: diagnostics.influence(found.fit, g, refit).table)
        made = made.sort_values("cooks_distance", ascending=False, na_position="first")
        parts.append(made.assign(group=group, limit=4 / len(made)))
    table = pd.concat(parts, ignore_index=True)
    table = table[["group", *[c for c in table.columns if c != "group"]]]
    shown = [part for group in groups for part in ("", *_influential(table[table["group"] == group], group))]
    head = f"Left out one at a time; the variances {'are found anew' if refit else 'stay'}"
    values = {"by": list(groups), "refit": refit}
    return _answer(found, "influence", table, head, None, values, shown)


def _influential(table: pd.DataFrame, group: str) -> list[str]:
    """The levels that move the fixed effects most, and those without which they cannot be estimated."""
    limit, lost = table["limit"].iloc[0], table["cooks_distance"].isna()
    beyond = int((table["cooks_distance"] > limit).sum())
    rows = tuple(
        (str(r.level), display.count(r.n_rows), display.number(r.cooks_distance, 3),
         str(r.term or display.MISSING), display.number(r.change))
        for r in table.head(max(5, min(beyond, 10))).itertuples()
    )  # fmt: skip
    columns = (group, "ratings", "Cook's distance", "moves most", "by SEs")
    text = [
        f"{group}: {display.share(beyond, len(table))} beyond 4/n = {display.number(limit, 3)}",
        tables.as_text(tables.Table(f"influence-{group}", "", columns, rows, text_columns=(0, 3)), "  "),
    ]
    if lost.any():
        names = display.several(list(table.loc[lost, "level"]))
        text.append(f"note: without {names} some coefficient cannot be estimated")
    return text


def _answer(
    found: Fitted,
    kind: str,
    table: pd.DataFrame,
    head: str,
    shown: tables.Table | None,
    values: dict[str, object],
    tail: list[str] | None = None,
) -> Answer:
    fit = found.fit
    source = results.provenance(found.loaded, found.selected, formula=str(fit.formula))
    about = {"metric": found.metric_id, "df_method": found.ddf, "level": found.level,
             "converged": fit.optimum.converged, "notes": found.notes()}  # fmt: skip
    lines = [
        f"{found.metric_id}: {fit.formula}",
        f"{fitting.sizes(found)}; {fitting.convergence(fit)}; df: {_DF[found.ddf]}",
        "",
        head,
        *([tables.as_text(shown, "  ")] if shown else []),
        *(tail or []),
    ]
    if notes := found.notes():
        lines += ["", *(f"note: {note}" for note in notes)]
    return Answer(Result(kind, source, about | values | {"estimates": table}), "\n".join(lines), found.loaded)


def _estimates(table: pd.DataFrame, by: tuple[str, ...]) -> tables.Table:
    """Broom columns, written, behind the columns of the groups."""
    plain = fitting.coefficients_table(table)
    groups = [tuple(str(v) for v in row) for row in table[list(by)].itertuples(index=False)]
    rows = tuple((*group, *row) for group, row in zip(groups, plain.rows, strict=True)) if by else plain.rows
    columns = (*by, *plain.columns)
    return tables.Table("estimates", "", columns, rows, text_columns=tuple(range(len(by) + 1)))


def _named(found: Fitted, asked: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The table, or the metric's name before the reason why there is none."""
    try:
        return asked()
    except StudyError as error:
        raise StudyError(f"{found.metric_id}: {error}") from None
