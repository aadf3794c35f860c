"""How far raters agree on a metric: over all sources and source by source, always saying on what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis import display, models, results, tables
from analysis.load import Loaded, Selected, select
from analysis.stats import agreement, agreement_intervals, chunks, icc_incomplete, kappa
from study.errors import StudyError

POOLED = "all sources"
_ICC_FORMS = ("ICC(2,1)", "ICC(2,k)")
_ALPHA_LEVELS = ("ordinal", "interval")
COLUMNS = ["metric", "source", "term", "also", "estimate", "low", "high", "n", "k", "n_ratings", "cells",
           "cluster", "n_clusters", "reason"]  # fmt: skip


@dataclass(frozen=True)
class Bootstrap:
    """How intervals without a closed form are made."""

    n: int = 1000
    seed: int = 0
    jobs: int = 1
    level: float = 0.95
    backend: Literal["loky", "dask"] = "loky"
    scheduler: str | None = None


@dataclass(frozen=True)
class Agreement:
    """The agreement on one metric.

    `estimates` : metric, source, term, also (the other name), estimate, low, high, n (targets), k (raters),
    n_ratings, cells (targets × raters), cluster (what is drawn whole for alpha's interval: prompt, case or item),
    n_clusters, reason (why there is no estimate, or no interval)
    """

    selected: Selected
    loaded: Loaded
    estimates: pd.DataFrame
    bootstrap: Bootstrap

    @property
    def metric_id(self) -> str:
        return self.selected.metric.metric_id


def reliability(
    loaded: Loaded, metric_id: str, raters: str = "auto", bootstrap: Bootstrap | None = None
) -> Agreement:
    """ICC(2,1), ICC(2,k) and Krippendorff's alpha of a metric, over all sources and for each.

    Raises
    ------
    StudyError : if the ratings as a whole allow none of them (one rater, one item, no variation)
    """
    how = bootstrap or Bootstrap()
    selected = select(loaded, metric_id, raters)
    check_columns(loaded, selected)
    _check_workers(how)
    parts = [_of(rows, metric_id, pool, selected, how) for pool, rows in pools(selected.frame)]
    if parts[0]["estimate"].isna().all():
        raise StudyError(f"{metric_id}: {parts[0]['reason'].iloc[0]}")
    return Agreement(selected, loaded, pd.concat(parts, ignore_index=True), how)


def check_columns(loaded: Loaded, selected: Selected) -> None:
    """Refuse ratings that do not say who rated what."""
    for column, option in (("rater", "rater"), ("label", "item")):
        if column not in selected.frame.columns:
            raise StudyError(f"{loaded.name}: has no column of {option}s; name it with --{option}")


def pools(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The ratings of all sources together, then of each source where there are several."""
    found = [(POOLED, frame)]
    if "source" in frame.columns and frame["source"].nunique() > 1:
        found += [(str(source), rows) for source, rows in frame.groupby("source", observed=True)]
    return found


def clusters(frame: pd.DataFrame, matrix: pd.DataFrame) -> tuple[str, pd.Series]:
    """What the targets belong to, in the matrix's order: their prompt, else their case, else each its own.

    Five sources' answers to one prompt are not five independent targets, nor are their encounters of one case.
    """
    unit = [c for c in models.response_columns(frame) if frame[c].notna().all()]
    if not unit:
        return "item", pd.Series(np.arange(len(matrix)), index=matrix.index)
    names = frame.drop_duplicates("label").set_index("label")[unit].astype(str).agg(":".join, axis=1)
    names.index = names.index.astype(object)
    return unit[-1], names.reindex(matrix.index.astype(object))


def beyond_chance(
    matrix: pd.DataFrame, belonging: tuple[str, pd.Series], level: agreement.Level, how: Bootstrap
) -> pd.DataFrame:
    """Alpha, percent agreement and AC2 with intervals over raters and whole clusters of targets.

    Without intervals, and with the `reason`, where there are too few clusters to draw from.
    """
    unit, owners = belonging
    n, least = owners.nunique(), agreement_intervals.FEWEST_CLUSTERS
    if n < least and unit != "item":
        several = f"{n} {unit}{'s' if n > 1 else ''}"
        return _without_ends(matrix, level, f"alpha: {several}, too few to draw from (at least {least})")
    try:
        found = agreement_intervals.agreement_intervals(
            matrix, level, clusters=owners if n < len(matrix) else None, n_boot=how.n, confidence=how.level,
            seed=how.seed, jobs=how.jobs, backend=how.backend, scheduler=how.scheduler,
        )  # fmt: skip
    except StudyError as error:
        return _without_ends(matrix, level, str(error))
    names = found["term"].str.replace("_", " ")
    same = "no interval for " + names + ": every bootstrap sample gives the same value"
    return found.assign(reason=same.where(found["low"].isna(), None))


def _without_ends(matrix: pd.DataFrame, level: agreement.Level, reason: str) -> pd.DataFrame:
    """The coefficients without intervals, with the reason; what has no estimate either is refused."""
    estimates = {
        "alpha": agreement.krippendorff_alpha(matrix, level),
        "percent_agreement": kappa.percent_agreement(matrix),
        "ac2": kappa.gwet_ac(matrix, "ordinal"),
    }
    found = pd.DataFrame({"term": list(estimates), "estimate": list(estimates.values()), "level": level})
    return found.assign(std_error=np.nan, low=np.nan, high=np.nan, reason=f"no interval for {reason}")


def _check_workers(how: Bootstrap) -> None:
    """Refuse a cluster that does not answer at once: it is no property of the ratings."""
    if how.backend == "dask":
        if how.scheduler is None:
            raise StudyError("--backend dask needs its scheduler's address: --scheduler tcp://host:8786")
        chunks.in_chunks(_nothing, 1, seed=0, size=1, backend=how.backend, scheduler=how.scheduler)


def _nothing(n: int, rng: np.random.Generator) -> int:
    return n


def result(found: Agreement, more: Mapping[str, object] | None = None) -> results.Result:
    """The coefficients in full precision, with their provenance; `more` goes in beside them."""
    source = results.provenance(found.loaded, found.selected, seed=found.bootstrap.seed)
    return results.Result(
        "reliability",
        source,
        {
            "metric": found.metric_id,
            "level": found.bootstrap.level,
            "bootstrap": found.bootstrap.n,
            "missing_cells": "variance components",
            "estimates": found.estimates,
        }
        | dict(more or {}),
    )


def printed(found: Sequence[Agreement], below: Sequence[str] = ()) -> str:
    """The coefficients of each metric, with targets, raters and cells; `below` has what goes under each."""
    under = below or [""] * len(found)
    parts = [f"{_printed(one)}\n{more}".rstrip() for one, more in zip(found, under, strict=True)]
    return "\n\n".join([*parts, method(found[0])])


def table(found: Agreement) -> tables.Table:
    """One row per pool: targets, raters, cells, and the four coefficients."""
    rows = []
    for source, own in found.estimates.groupby("source", sort=False):
        first = own.iloc[0]
        by_term = own.set_index("term")
        cells = [display.estimate(*by_term.loc[t, ["estimate", "low", "high"]]) for t in by_term.index]
        rows.append((
            str(source), display.count(first["n"]), display.count(first["k"]),
            display.share(int(first["n_ratings"]), int(first["cells"])), *cells,
        ))  # fmt: skip
    terms = tuple(pd.unique(found.estimates["term"]))
    return tables.Table(
        f"reliability-{found.metric_id}",
        f"Agreement of raters on {found.metric_id}",
        ("pooled over", "targets", "raters", "cells rated", *terms),
        tuple(rows),
        note=statement(found),
    )


def statement(found: Agreement) -> str:
    """What was pooled, how missing cells were treated, where the intervals come from."""
    return f"{pooling(found)} {method(found)}"


def pooling(found: Agreement) -> str:
    """What the targets are, and which of them stand together."""
    frame = found.selected.frame
    targets = "responses" if found.selected.metric.item == "utterance" else "encounters"
    several = "source" in frame.columns and frame["source"].nunique() > 1
    pooled = f", of {frame['source'].nunique()} sources together in the first row" if several else ""
    return f"Targets are {targets}{pooled}."


def method(found: Agreement) -> str:
    """The coefficients by both their names, and where their intervals come from."""
    simulated = " Ratings are simulated." if found.selected.simulated else ""
    return (
        "ICC(2,1) = ICC(A,1): one rater; ICC(2,k) = ICC(A,k): the mean of k; absolute agreement. Complete "
        "tables: McGraw–Wong intervals. Tables with missing cells: variance components, no item dropped, k the "
        "harmonic mean of ratings per target, generalized intervals. Intervals of ICCs take the targets as "
        "independent. Alpha: bootstrap over raters and over whole prompts (cases, for encounters), "
        f"{found.bootstrap.n:,} draws.{simulated}"
    )


def _printed(found: Agreement) -> str:
    simulated = " (simulated ratings)" if found.selected.simulated else ""
    left_out = "; ".join(f"{part.rows:,} {part.reason}" for part in found.selected.left_out)
    lines = [
        f"Agreement on {found.metric_id}{simulated}",
        tables.as_text(table(found), "  "),
        f"Left out: {left_out or 'nothing'}",
        pooling(found),
    ]
    refused = found.estimates.dropna(subset="reason").drop_duplicates(["source", "reason"])
    for reason, rows in refused.groupby("reason", sort=False):
        everywhere = rows["source"].nunique() == found.estimates["source"].nunique() > 1
        where = "all sources and each of them" if everywhere else display.several(list(rows["source"]))
        lines.append(f"note: {where}: {reason}")
    lines += [f"note: {text}" for text in found.selected.notes]
    return "\n".join(lines)


def _of(frame: pd.DataFrame, metric_id: str, pool: str, selected: Selected, how: Bootstrap) -> pd.DataFrame:
    """The coefficients of one pool of targets; a refusal keeps its row and its reason."""
    matrix = agreement.rating_matrix(frame)
    unit, owners = clusters(frame, matrix)
    counts = {
        "n": matrix.shape[0], "k": matrix.shape[1],
        "n_ratings": int(matrix.notna().to_numpy().sum()), "cells": matrix.size,
        "cluster": unit, "n_clusters": owners.nunique(),
    }  # fmt: skip
    rows = _iccs(matrix, how) + _alphas(matrix, owners, unit, how)
    return pd.DataFrame([{"metric": metric_id, "source": pool, "reason": None} | counts | r for r in rows])[
        COLUMNS
    ]


def _iccs(matrix: pd.DataFrame, how: Bootstrap) -> list[dict[str, object]]:
    try:
        if matrix.notna().to_numpy().all():
            found = agreement.icc(matrix, how.level)
        else:
            found = icc_incomplete.icc_incomplete(matrix, how.level, seed=how.seed)
    except StudyError as error:
        return [_refused(term, agreement.FORMS[term], error) for term in _ICC_FORMS]
    found = found[found["term"].isin(_ICC_FORMS)]
    return found[["term", "also", "estimate", "low", "high", "reason"]].to_dict("records")


def _alphas(matrix: pd.DataFrame, owners: pd.Series, unit: str, how: Bootstrap) -> list[dict[str, object]]:
    rows = []
    for level in _ALPHA_LEVELS:
        term = f"alpha, {level}"
        try:
            found = beyond_chance(matrix, (unit, owners), level, how).iloc[0]
            kept = found[["estimate", "low", "high", "reason"]].to_dict()
            rows.append({"term": term, "also": "Krippendorff"} | kept)
        except StudyError as error:
            rows.append(_refused(term, "Krippendorff", error))
    return rows


def _refused(term: str, also: str, error: StudyError) -> dict[str, object]:
    nothing = dict.fromkeys(("estimate", "low", "high"), float("nan"))
    return {"term": term, "also": also, "reason": str(error)} | nothing
