"""The panel: how far raters agree, who is severe, and what is missing."""

import pandas as pd
from scipy.stats import binomtest

from analysis import display, figures, panel_figures, reliability
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.pictures import by_scale
from analysis.reporting.section import Figure, Fold, Section, listed, opening_capital, spaced
from analysis.stats import agreement, raters
from analysis.tables import Table
from study.errors import StudyError

_MOST_RATERS = 60  # rows of a figure; with more, a table tells them


def agreements(made: Analysed) -> Section:
    """The coefficients of all metrics, and why one is missing where it is."""
    found = made.agreements
    estimates = pd.concat([a.estimates for a in found], ignore_index=True)
    pooled = estimates[estimates["source"] == reliability.POOLED]
    drawn = pooled[pooled["estimate"].notna()].assign(metric=lambda t: t["metric"].map(spaced))
    picture = panel_figures.reliability(
        drawn,
        name="reliability",
        title="Agreement of raters, all sources pooled",
        simulated=made.loaded.simulated,
    )
    whole = [(metric_name(a.selected.metric), reliability.table(a)) for a in found]
    rows = tuple((name, *table.rows[0][1:]) for name, table in whole)
    note = "Targets are the answers or encounters of all sources together. " + reliability.method(found[0])
    columns = ("metric", *whole[0][1].columns[1:])
    table = Table("reliability", "Agreement of raters, all sources pooled", columns, rows, note, numbers=estimates)
    lead = [
        "ICC(2,1) tells how far a single rater's score can be trusted, ICC(2,k) the mean of the whole panel; "
        "alpha counts agreement beyond chance.",
    ]
    points = (*_ceilings(made), *_refusals(pooled))
    caption = "Coefficients of agreement with 95% intervals."
    drawn = (Figure("reliability", caption, picture),)
    return Section("reliability", "Agreement of raters", tuple(lead), points, drawn, (table,))


def severity(made: Analysed) -> Section | None:
    """How far each rater lies from the panel's mean on the same items."""
    drawn, folds, points = [], [], []
    for item in ("utterance", "encounter"):
        parts = {}
        for found in made.of(item):
            try:
                own = raters.severity(agreement.rating_matrix(found.selected.frame))
            except StudyError as error:
                points.append(f"{opening_capital(metric_name(found))}: no severity of raters ({error}).")
                continue
            parts[metric_name(found)] = own
            points.append(_extremes(metric_name(found), own))
            folds.append(_severity_table(found.metric_id, metric_name(found), own))
        if parts:
            drawn += _severity_figure(made, item, parts)
    if not folds:
        return Section("severity", "Severity of raters", points=tuple(points)) if points else None
    lead = "Difference of each rater from the panel's mean on the same items, in points of the scale."
    fold = Fold("Every rater in numbers", tables=tuple(folds))
    return Section("severity", "Severity of raters", (lead,), tuple(points), tuple(drawn), folds=(fold,))


def missing(made: Analysed) -> Section | None:
    """What was not rated, and by whom; none if everything was."""
    frame = made.loaded.frame
    lost = frame["status"] != "ok"
    if not lost.any():
        return None
    reasons = frame.loc[lost, "status"].value_counts()
    parts = {}
    for factor in ("rater", "source", "metric"):
        if factor in frame.columns and frame[factor].notna().any():
            names = frame[factor].astype(str)
            names = names.map(spaced) if factor == "metric" else names
            parts[factor] = _with_intervals(lost.groupby(names, sort=False).agg(["sum", "count"]))
    drawn = figures.shares(
        parts, made.look, name="missing", title="Ratings without a value", axis="share of ratings without a value",
        simulated=made.loaded.simulated,
    )  # fmt: skip
    kinds = listed([f"{n:,} {status}" for status, n in reasons.items()])
    lead = (
        f"{display.share(int(lost.sum()), len(frame))} ratings have no value ({kinds}). They are left out, "
        "and nothing is put in their place."
    )
    shown = tuple(
        Table(
            f"missing-{factor}", f"Ratings without a value, by {factor}",
            (factor, "without a value", "95% interval, exact"),
            tuple(
                (r.level, display.share(r.k, r.n),
                 f"{display.percent(r.low)} to {display.percent(r.high)}")
                for r in own.itertuples()
            ),
            numbers=own,
        )
        for factor, own in parts.items()
    )  # fmt: skip
    caption = "Shares without a value, with exact (Clopper–Pearson) 95% intervals."
    fold = Fold("By whom, of whom and on what", figures=(Figure("missing", caption, drawn),), tables=shown)
    return Section("missing", "What is missing", (lead,), folds=(fold,))


def _refusals(pooled: pd.DataFrame) -> list[str]:
    """Why a coefficient or its interval is missing, each reason with its metrics."""
    refused = pooled[pooled["reason"].notna()].drop_duplicates(["metric", "reason"])
    return [
        f"{opening_capital(listed([spaced(m) for m in own['metric']]))}: {reason}."
        for reason, own in refused.groupby("reason", sort=False)
    ]


def _ceilings(made: Analysed) -> list[str]:
    """Why alpha is low although raters agree, where that is so."""
    notes = []
    for found in made.agreements:
        try:
            note = raters.ceiling_note(agreement.rating_matrix(found.selected.frame))
        except StudyError:  # what cannot be estimated has its reason among the coefficients
            continue
        if note:
            notes.append(f"{opening_capital(metric_name(found.selected.metric))}: {note}")
    return notes


def _with_intervals(counts: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for level, (k, n) in zip(counts.index, counts.to_numpy(), strict=True):
        interval = binomtest(int(k), int(n)).proportion_ci(0.95, method="exact")
        rows.append((str(level), k / n, interval.low, interval.high, int(k), int(n)))
    return pd.DataFrame(rows, columns=["level", "estimate", "low", "high", "k", "n"])


def _extremes(name: str, own: pd.DataFrame) -> str:
    severe, lenient = (
        f"{display.estimate(row['estimate'], row['low'], row['high'])} ({row['term']})"
        for row in (own.iloc[0], own.iloc[-1])
    )
    return f"{opening_capital(name)}: from {severe} to {lenient}."


def _severity_table(metric_id: str, name: str, own: pd.DataFrame) -> Table:
    rows = tuple(
        (
            str(r.term),
            display.estimate(r.estimate, r.low, r.high),
            display.number(r.mean),
            display.number(r.sd),
            display.percent(r.at_top),
            display.percent(r.at_bottom),
            display.count(r.n),
        )
        for r in own.itertuples()
    )
    columns = ("rater", "from the panel's mean [95% interval]", "mean", "SD", "at top", "at bottom", "ratings")
    note = "The most severe first; raters fixed, items random, so that nobody is called lenient for better items."
    return Table(
        f"severity-{metric_id}", f"{opening_capital(name)}: severity of raters", columns, rows, note, numbers=own
    )


def _severity_figure(made: Analysed, item: str, parts: dict[str, pd.DataFrame]) -> list[Figure]:
    table = pd.concat([own.assign(metric=m, rater=own["term"].astype(str)) for m, own in parts.items()])
    order = table.groupby("rater")["estimate"].mean().sort_values().index
    if len(order) > _MOST_RATERS:
        return []
    table = table.assign(place=table["rater"].map({r: i for i, r in enumerate(order)})).sort_values(
        ["place"], kind="stable"
    )
    table = pd.concat([table[table["metric"] == m] for m in parts])
    what = made.title(item).lower()
    drawn = panel_figures.severity(
        table, name=f"severity-{item}", title=f"Severity of raters: {what}",
        axis="points above (+) or below (−) the panel", simulated=made.loaded.simulated,
        one_scale=1 == len(by_scale(made.of(item))),
    )  # fmt: skip
    caption = "Each rater's difference from the panel's mean on the same items, with 95% intervals; severe on top."
    return [Figure(f"severity-{item}", caption, drawn)]
