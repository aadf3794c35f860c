"""Answers that the panel rates low, with what the rules say of them: by category and by source."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy.stats import binomtest

from analysis import display, results
from analysis.load import Loaded, select
from analysis.results import Answer, Result
from analysis.rules import TAGS, Rules, tags
from analysis.tables import Table, as_text
from study import tables
from study.errors import StudyError
from study.records import Metric

BELOW = 3.0
_MOST_SHOWN = 12


@dataclass(frozen=True)
class Low:
    """The low answers of one metric.

    `answers` has a row for each low answer: label, source, prompt, category, form, mean, n (ratings), tags, text.
    `shares` has estimates with exact intervals: term, level, estimate, low, high, k, n.
    `tags` tells for each tag how many low and how many other answers have it.
    """

    metric: Metric
    below: float
    answers: pd.DataFrame
    shares: pd.DataFrame
    tags: pd.DataFrame | None
    n: int


def low(
    loaded: Loaded,
    metric_id: str,
    *,
    below: float = BELOW,
    raters: str = "auto",
    level: float = 0.95,
    known: pd.DataFrame | None = None,
) -> Low:
    """The answers whose panel mean is below a score, on one metric of utterances.

    Parameters
    ----------
    known : texts and tags as `tagged` gives them, where several metrics are looked at

    Raises
    ------
    StudyError : if the metric is not one of utterances, or nothing was rated on it
    """
    chosen = select(loaded, metric_id, raters)
    metric = chosen.metric
    if metric.item != "utterance":
        raise StudyError(f"{loaded.name}: {metric_id} is asked of whole encounters; answers have no score on it")
    if not metric.low < below <= metric.high:
        raise StudyError(f"--below {below:g}: must lie on {metric_id}'s scale, {metric.low:g} to {metric.high:g}")
    if "label" not in chosen.frame.columns:
        raise StudyError(f"{loaded.name}: has no column of items; name it with --item")
    columns = ["label", *(c for c in ("source", "prompt", "category", "form") if c in chosen.frame.columns)]
    terms = [c for c in ("source", "category", "form") if c in columns and chosen.frame[c].notna().any()]
    means = (
        chosen.frame.groupby(columns, observed=True, dropna=False)["score"]
        .agg(mean="mean", n="count")
        .reset_index()
        .assign(is_low=lambda f: f["mean"] < below)
    )
    texts = tagged(loaded) if known is None else known
    told = means if texts is None else means.merge(texts, on="label", how="left")
    if not terms:
        raise StudyError(
            f"{loaded.name}: names no source, category or form to count low answers by; give --source"
        )
    shares = pd.concat([_shares(means, term, level) for term in terms], ignore_index=True)
    answers = told[told["is_low"]].drop(columns="is_low").sort_values(["mean", "label"], ignore_index=True)
    return Low(metric, below, answers, shares, _tag_table(told) if "tags" in told else None, len(means))


def answered(loaded: Loaded, found: Low, raters: str = "auto", level: float = 0.95) -> Answer:
    """The low answers as a result and in words."""
    chosen = select(loaded, found.metric.metric_id, raters)
    values = {"metric": found.metric.metric_id, "below": found.below, "level": level, "estimates": found.shares}
    values |= {"answers": found.answers, "answers_rated": found.n}
    if found.tags is not None:
        values["tags"] = found.tags
    text = _words(found, level, chosen.simulated)
    return Answer(Result("lowscores", results.provenance(loaded, chosen), values), text, loaded)


def tagged(loaded: Loaded) -> pd.DataFrame | None:
    """The text of each item of a study and, where the rules read its language, its tags: label, text, tags."""
    study = loaded.study
    if study is None:
        return None
    items = tables.read(study.items, tables.ITEMS)
    items = items[items["kind"] == "utterance"]
    texts = items[["label", "text"]]
    if study.content_files is None or (content := study.content()).language != "ko":
        return texts
    rules, known = Rules(content), {p.prompt_id for p in content.prompts}
    given = [
        tuple(tags(rules.findings(str(row.prompt_id), row.text))) if row.prompt_id in known and row.text else ()
        for row in items.itertuples()
    ]
    return texts.assign(tags=given)


def _shares(means: pd.DataFrame, term: str, level: float) -> pd.DataFrame:
    """The share of low answers at each level of a factor, with Clopper and Pearson's exact interval (1934)."""
    rows = []
    for name, part in means.groupby(term, observed=True):
        k, n = int(part["is_low"].sum()), len(part)
        interval = binomtest(k, n).proportion_ci(level, method="exact")
        rows.append((term, str(name), k / n, interval.low, interval.high, k, n))
    return pd.DataFrame(rows, columns=["term", "level", "estimate", "low", "high", "k", "n"])


def _tag_table(tagged: pd.DataFrame) -> pd.DataFrame:
    is_low = tagged["is_low"]
    return pd.DataFrame(
        {
            "tag": tag,
            "low": int((has := tagged["tags"].map(lambda t, tag=tag: tag in t))[is_low].sum()),
            "low_n": int(is_low.sum()),
            "other": int(has[~is_low].sum()),
            "other_n": int((~is_low).sum()),
        }
        for tag in [*TAGS.values()]
    )


def _words(found: Low, level: float, simulated: bool) -> str:
    metric = found.metric.metric_id
    lines = [
        f"{metric}: {display.share(len(found.answers), found.n)} answers with a panel mean below {found.below:g}"
        f"{' (simulated ratings)' if simulated else ''}"
    ]
    for term, part in found.shares.groupby("term", sort=False):
        rows = (
            (row.level, display.share(row.k, row.n), f"{display.percent(row.low)} to {display.percent(row.high)}")
            for row in part.itertuples()
        )
        lines += ["", _table((f"by {term}", "low answers", f"{level:.0%} interval, exact"), rows)]
    if found.tags is not None:
        rows = (
            (row.tag, display.share(row.low, row.low_n), display.share(row.other, row.other_n))
            for row in found.tags.itertuples()
        )
        lines += ["", _table(("what the rules say", "of low answers", "of the others"), rows)]
    lines += ["", *_listed(found)] if len(found.answers) else []
    return "\n".join(lines)


def _table(head: tuple[str, str, str], rows: Iterable[tuple[str, str, str]]) -> str:
    indented = tuple((f"  {name}", *counts) for name, *counts in rows)
    return as_text(Table("low-answers", "", head, indented, text_columns=(0, 1, 2)))


def _listed(found: Low) -> Sequence[str]:
    shown = [
        f"  {display.number(row.mean)}  {_place(row)}{_said(getattr(row, 'text', None))}"
        f"{_bracketed(getattr(row, 'tags', ()))}"
        for row in found.answers.head(_MOST_SHOWN).itertuples()
    ]
    more = len(found.answers) - len(shown)
    return ["the lowest", *shown, *([f"  and {more} more; --json or --csv has all"] if more > 0 else [])]


def _place(row: object) -> str:
    source, prompt = (getattr(row, name, None) for name in ("source", "prompt"))
    named = [source, prompt if isinstance(prompt, str) else row.label]
    return ", ".join(str(n) for n in named if n is not None and n == n)


def _said(text: object) -> str:
    """An answer's text where there is one; imported ratings may have none."""
    return f": {text}" if isinstance(text, str) and text else ""


def _bracketed(found: Sequence[str]) -> str:
    return f"  [{', '.join(found)}]" if found else ""
