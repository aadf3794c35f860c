"""Answers that the panel rates low: how many, whose, to which questions, and what the rules say of them."""

import pandas as pd

from analysis import display, figures, lowscores
from analysis.lowscores import Low
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.section import Figure, Fold, Section, opening_capital, spaced
from analysis.tables import Table
from study.records import Metric

_MOST_LISTED = 20
_MOST_LETTERS = 90


def lows(made: Analysed) -> Section | None:
    """Low answers on every metric of single answers: those below the middle of the scale."""
    fits = [f for f in made.of("utterance") if f.selected.frame["label"].nunique() > 1]
    if not fits or "source" not in fits[0].selected.frame.columns:
        return None
    texts = lowscores.tagged(made.loaded)
    found = [
        lowscores.low(made.loaded, f.metric_id, below=_middle(f.selected.metric), raters=made.raters, known=texts)
        for f in fits
    ]
    most = max(found, key=lambda low: len(low.answers))
    points = tuple(_sentence(made, low) for low in found)
    if not len(most.answers):
        return Section("low-scores", "Low scores", points=points)
    name = metric_name(most.metric)
    counts = tuple(_shares(most, term) for term in pd.unique(most.shares["term"]))
    folds = [Fold(f"The lowest answers on {name}", tables=(_listed(most),)),
             Fold(f"The same for {name} in numbers", tables=counts)]  # fmt: skip
    folds += [_fold(made, low) for low in found if low is not most and len(low.answers)]
    tags = _tags(most)
    shown = () if tags is None else (tags,)
    return Section("low-scores", "Low scores", (), points, (_bars(made, most),), shown, tuple(folds))


def _middle(metric: Metric) -> float:
    return (metric.low + metric.high) / 2


def _sentence(made: Analysed, low: Low) -> str:
    found = low.answers
    share = display.share(len(found), low.n)
    noun = f"{made.noun('utterance')}s"
    text = f"{opening_capital(metric_name(low.metric))}: {share} {noun} have a panel mean below {low.below:g}"
    for term in ("source", "category"):
        own = low.shares[low.shares["term"] == term]
        if len(found) and len(own) > 1:
            top = own.sort_values("estimate", ascending=False).iloc[0]
            level = _read(term, top["level"])
            text += f"; {'most often' if term == 'source' else 'and on'} {level}: "
            text += display.share(int(top["k"]), int(top["n"]))
    return f"{text}."


def _bars(made: Analysed, low: Low) -> Figure:
    parts = {
        term: own.assign(level=[_read(term, level) for level in own["level"]])
        for term, own in low.shares.groupby("term", sort=False)
        if own["k"].sum()
    }
    name = metric_name(low.metric)
    drawn = figures.shares(
        parts,
        made.look,
        name=f"low-{low.metric.metric_id}",
        title=f"{opening_capital(name)}: {made.noun('utterance')}s rated below {low.below:g}",
        axis="share with a low panel mean",
        simulated=made.loaded.simulated,
    )
    caption = "Low answers with exact (Clopper–Pearson) 95% intervals; the counts stand beside the bars."
    return Figure(f"low-{low.metric.metric_id}", caption, drawn)


def _shares(low: Low, term: str) -> Table:
    own = low.shares[low.shares["term"] == term]
    rows = tuple(
        (
            _read(term, r.level),
            display.share(r.k, r.n),
            f"{display.percent(r.low)} to {display.percent(r.high)}",
        )
        for r in own.itertuples()
    )
    caption = f"{opening_capital(metric_name(low.metric))}: answers below {low.below:g}, by {term}"
    columns = (term, "low answers", "95% interval, exact")
    note = f"Panel means of {low.n:,} answers; Clopper–Pearson intervals, answers taken as independent."
    return Table(f"low-{term}-{low.metric.metric_id}", caption, columns, rows, note, numbers=own)


def _tags(low: Low) -> Table | None:
    if low.tags is None:
        return None
    rows = tuple(
        (r.tag, display.share(r.low, r.low_n), display.share(r.other, r.other_n)) for r in low.tags.itertuples()
    )
    caption = f"{opening_capital(metric_name(low.metric))}: what the rules say of low answers and of the others"
    note = "Tags are given by rules, without the ratings."
    columns = ("tag", "of low answers", "of the others")
    return Table(f"low-tags-{low.metric.metric_id}", caption, columns, rows, note, numbers=low.tags)


def _listed(low: Low) -> Table:
    """The lowest answers with their texts, where the study has them."""
    kept = [
        c for c in ("source", "prompt", "category", "form") if c in low.answers and low.answers[c].notna().any()
    ]
    texts = "text" in low.answers and low.answers["text"].fillna("").str.strip().any()
    tagged = "tags" in low.answers
    rows = tuple(
        (
            display.number(r["mean"]),
            *(_read(c, r[c]) for c in kept),
            *([", ".join(r["tags"]) or display.MISSING] if tagged else []),
            *([_short(r["text"])] if texts else []),
        )
        for _, r in low.answers.head(_MOST_LISTED).iterrows()
    )
    columns = ("mean", *kept, *(["tags"] if tagged else []), *(["answer"] if texts else []))
    more = len(low.answers) - len(rows)
    note = f"{more} more stand in the CSV file of this table." if more > 0 else ""
    caption = f"{opening_capital(metric_name(low.metric))}: the lowest answers"
    name = f"low-answers-{low.metric.metric_id}"
    return Table(
        name, caption, columns, rows, note, text_columns=tuple(range(1, len(columns))), numbers=low.answers
    )


def _fold(made: Analysed, low: Low) -> Fold:
    parts = [_shares(low, term) for term in pd.unique(low.shares["term"])]
    tags = _tags(low)
    shown = (*parts, *([tags] if tags else []), _listed(low))
    return Fold(opening_capital(metric_name(low.metric)), figures=(_bars(made, low),), tables=shown)


def _read(term: str, level: object) -> str:
    """A level as a reader writes it; a source and a prompt keep their names."""
    return spaced(level) if term in ("category", "form") else str(level)


def _short(text: object) -> str:
    said = " ".join(str(text).split()) if isinstance(text, str) else display.MISSING
    return said if len(said) <= _MOST_LETTERS else said[: _MOST_LETTERS - 1].rstrip() + "…"
