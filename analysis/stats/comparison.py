"""One rater beside a reference panel: the same items of one metric, laid out as arrays.

People, judges and rules go through the same door: `compare(frame, raters, reference)`. A person who stands in
the reference is compared with the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from study.errors import StudyError

UNITS = ("prompt", "case", "label")  # label: each item for itself
ITEM_COLUMNS = ("label", "source", "prompt", "case", "category", "form", "length")


@dataclass(frozen=True)
class Comparison:
    """What one rater and a panel say of the same n items.

    `score` (n,) is the compared rater's and `panel` (n, k) the reference's, nan where missing; `cluster` (n,)
    numbers the units that are drawn independently (`unit`: prompts, cases or the items themselves). `items` has
    one row per item, in the same order. `again` (n, r) holds the rater's later occasions.
    """

    name: str
    kind: str
    metric: str
    score: np.ndarray
    panel: np.ndarray
    raters: tuple[str, ...]
    items: pd.DataFrame
    cluster: np.ndarray
    unit: str
    scale: tuple[float, float]
    again: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    not_ok: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.score)

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.cluster))

    @property
    def counts(self) -> np.ndarray:
        """How many of the panel rated each item."""
        return np.isfinite(self.panel).sum(1)

    @property
    def panel_mean(self) -> np.ndarray:
        """The panel's mean of each item, nan where nobody rated it."""
        counts = self.counts
        total = np.where(np.isfinite(self.panel), self.panel, 0).sum(1)
        return np.divide(total, counts, out=np.full(self.n, np.nan), where=counts > 0)

    @cached_property
    def sources(self) -> list[str]:
        """The sources that occur, in the study's order."""
        return self.codes("source")[1] if "source" in self.items else []

    def keep(self, rows: np.ndarray) -> "Comparison":
        """The comparison on some of its items, by a mask or by their places."""
        again = self.again[rows] if self.again.size else self.again
        return replace(
            self, score=self.score[rows], panel=self.panel[rows], cluster=self.cluster[rows], again=again,
            items=self.items.iloc[rows].reset_index(drop=True),
        )  # fmt: skip

    def labelled(self) -> "Comparison":
        """The items that both the rater and the panel rated.

        Raises
        ------
        StudyError : if there is none
        """
        rows = np.isfinite(self.score) & (self.counts > 0)
        if not rows.any():
            raise StudyError(f"{self.name} and the panel rated no item of {self.metric} in common")
        return self.keep(rows)

    def of_source(self, source: str) -> "Comparison":
        return self.keep((self.items["source"] == source).to_numpy())

    def crossed(self, values: np.ndarray) -> np.ndarray:
        """Source × cluster means of item values; nan where a source has no item in a cluster."""
        codes, levels = self.codes("source")
        cluster = np.unique(self.cluster, return_inverse=True)[1]
        cells = codes * (cluster.max() + 1) + cluster
        size = len(levels) * (cluster.max() + 1)
        held, total = np.bincount(cells, minlength=size), np.bincount(cells, values, minlength=size)
        mean = np.divide(total, held, out=np.full(size, np.nan), where=held > 0)
        return mean.reshape(len(levels), -1)

    def codes(self, column: str) -> tuple[np.ndarray, list[str]]:
        """An item column as codes and its levels, in the study's order."""
        values = pd.Categorical(self.items[column])
        if len(np.unique(values.codes)) < len(values.categories):
            values = values.remove_unused_categories()
        return np.asarray(values.codes, int), [str(c) for c in values.categories]


def compare(
    frame: pd.DataFrame,
    raters: str | Sequence[str],
    reference: str | Sequence[str] = "human",
    *,
    metric: str | None = None,
    unit: str | None = None,
    scale: tuple[float, float] | None = None,
    alone: bool = False,
) -> list[Comparison]:
    """Each of `raters` beside the reference panel, on every item that the one or the other rated.

    Parameters
    ----------
    frame : tidy ratings, one row per rating
    raters : names of those compared, or a kind of rater (human, judge, rule) for all of that kind
    reference : names of the panel, or a kind; a rater that is compared leaves the panel
    metric : needed where the frame holds several
    unit : what is drawn independently: prompt, case or label; prompts where items have them, cases for encounters
    scale : lowest and highest possible score; the range found if not given
    alone : nobody to compare with: the panel stays empty

    Raises
    ------
    StudyError : for an unknown rater, a metric without ratings, an empty panel, a rating given twice
    """
    rows = _metric_rows(frame, metric)
    names = _names(rows, raters, "compare")
    panel_names = [] if alone else _names(rows, reference, "compare with")
    ok = (
        rows[(rows["status"] == "ok") & rows["score"].notna()] if "status" in rows else rows.dropna(subset="score")
    )
    first = ok[_occasion(ok) == _occasion(ok).min()] if len(ok) else ok
    items = _items(rows)
    wide = _wide(first, items)
    unit = unit or _unit(items, rows)
    if unit not in items:
        raise StudyError(f"items have no {unit} to cluster by; they have {', '.join(items.columns)}")
    if items[unit].isna().any():
        raise StudyError(
            f"{int(items[unit].isna().sum())} items have no {unit} to cluster by: give every item one"
        )
    cluster = pd.factorize(items[unit].astype(str))[0]
    low, high = scale or (float(ok["score"].min()), float(ok["score"].max()))
    return [
        _one(name, rows, ok, wide, _rest(panel_names, name, alone), items, cluster, unit, (low, high))
        for name in names
    ]


def of_arrays(
    score: np.ndarray | Sequence[float],
    panel: np.ndarray | Sequence[Sequence[float]],
    cluster: np.ndarray | Sequence[int] | None = None,
    items: pd.DataFrame | None = None,
    *,
    name: str = "judge",
    unit: str = "prompt",
    scale: tuple[float, float] | None = None,
) -> Comparison:
    """A comparison from plain arrays.

    Parameters
    ----------
    score : (n,) of the compared rater
    panel : (n, k), one column per rater of the reference
    cluster : (n,) units drawn independently; each item its own if not given
    items : what is known of the items: source, category, length …, in the same order

    Raises
    ------
    StudyError : if the arrays do not have the same number of items
    """
    score, panel = np.asarray(score, float), np.asarray(panel, float)
    if panel.ndim != 2 or len(panel) != len(score) or (items is not None and len(items) != len(score)):
        raise StudyError(
            f"{len(score)} scores beside a panel of {panel.shape}: give item × rater of the same items"
        )
    items = pd.DataFrame({"label": [str(i) for i in range(len(score))]}) if items is None else items
    found = np.concatenate([score, panel.ravel()])
    found = found[np.isfinite(found)]
    return Comparison(
        name=name, kind="judge", metric="score", score=score, panel=panel,
        raters=tuple(f"rater {j + 1}" for j in range(panel.shape[1])), items=items,
        cluster=np.arange(len(score)) if cluster is None else np.asarray(cluster), unit=unit,
        scale=scale or (float(found.min()), float(found.max())),
    )  # fmt: skip


def _one(
    name: str,
    rows: pd.DataFrame,
    ok: pd.DataFrame,
    wide: pd.DataFrame,
    panel: list[str],
    items: pd.DataFrame,
    cluster: np.ndarray,
    unit: str,
    scale: tuple[float, float],
) -> Comparison:
    metric = str(rows["metric"].iloc[0]) if "metric" in rows else "score"
    absent = [p for p in (name, *panel) if p not in wide.columns]
    if absent:
        raise StudyError(f"{', '.join(absent)} gave no usable rating of {metric}")
    mine = rows[rows["rater"] == name]
    score, table = wide[name].to_numpy(float), wide[panel].to_numpy(float)
    kept = np.isfinite(score) | np.isfinite(table).any(1)
    whole = Comparison(
        name=name, kind=str(mine["rater_kind"].iloc[0]) if "rater_kind" in mine else "human", metric=metric,
        score=score, panel=table, raters=tuple(panel), items=items, cluster=cluster, unit=unit, scale=scale,
        again=_again(ok[ok["rater"] == name], items), not_ok=_not_ok(mine),
        notes=_notes(unit),
    )  # fmt: skip
    return whole if kept.all() else whole.keep(kept)


def _rest(panel: list[str], name: str, alone: bool) -> list[str]:
    rest = [p for p in panel if p != name]
    if not rest and not alone:
        raise StudyError(f"{name} would be compared with nobody: name a reference panel without it")
    return rest


def _metric_rows(frame: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    for column in ("rater", "label", "score"):
        if column not in frame:
            raise StudyError(f"ratings have no column {column}; they have {', '.join(map(str, frame.columns))}")
    if metric is None:
        found = frame["metric"].dropna().unique() if "metric" in frame else ["score"]
        if len(found) > 1:
            raise StudyError(f"ratings are of several metrics ({', '.join(map(str, found))}): choose one")
        return frame
    rows = frame[frame["metric"] == metric]
    if rows.empty:
        found = ", ".join(map(str, frame["metric"].dropna().unique()))
        raise StudyError(f"no rating of metric {metric}; the metrics are {found}")
    return rows


def _names(rows: pd.DataFrame, wanted: str | Sequence[str], what: str) -> list[str]:
    """Names of raters; one word may be a kind of rater or a rater."""
    known = [str(r) for r in rows["rater"].dropna().unique()]
    if isinstance(wanted, str):
        kinds = rows["rater_kind"] if "rater_kind" in rows else pd.Series("human", index=rows.index)
        of_kind = [str(r) for r in rows.loc[kinds == wanted, "rater"].unique()]
        wanted = of_kind if wanted not in known and of_kind else [wanted]
    strangers = [name for name in wanted if name not in known]
    if strangers:
        raise StudyError(f"no rater {strangers[0]} to {what}; the raters are {', '.join(known)}")
    return list(wanted)


def _occasion(rows: pd.DataFrame) -> pd.Series:
    return rows["occasion"] if "occasion" in rows else pd.Series(1, index=rows.index)


def _items(rows: pd.DataFrame) -> pd.DataFrame:
    columns = [c for c in ITEM_COLUMNS if c in rows and (c == "label" or rows[c].notna().any())]
    return rows[columns].drop_duplicates("label").reset_index(drop=True)


def _wide(first: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Item × rater scores of the first occasion, items in the order of `items`."""
    twice = first.duplicated(["rater", "label"])
    if twice.any():
        row = first[twice].iloc[0]
        raise StudyError(f"{row['rater']} rated {row['label']} more than once on one occasion; keep one")
    plain = first[["label", "rater", "score"]].astype({"label": str, "rater": str})
    return plain.pivot(index="label", columns="rater", values="score").reindex(items["label"].astype(str))


def _again(mine: pd.DataFrame, items: pd.DataFrame) -> np.ndarray:
    """Item × occasion scores where the rater has more occasions than one, else empty."""
    if mine.empty or _occasion(mine).nunique() < 2:
        return np.empty((0, 0))
    plain = mine[["label", "occasion", "score"]].astype({"label": str})
    wide = plain.pivot(index="label", columns="occasion", values="score")
    return wide.reindex(items["label"].astype(str)).to_numpy(float)


def _unit(items: pd.DataFrame, rows: pd.DataFrame) -> str:
    if "kind" in rows and (rows["kind"] == "encounter").all() and "case" in items:
        return "case"
    return next(unit for unit in UNITS if unit in items and items[unit].notna().all())


def _not_ok(mine: pd.DataFrame) -> dict[str, int]:
    if "status" not in mine:
        return {}
    bad = mine.loc[mine["status"] != "ok", "status"]
    return {str(status): int(n) for status, n in bad.value_counts().items()}


def _notes(unit: str) -> tuple[str, ...]:
    if unit == "label":
        return ("items carry no prompt or case: each counts as independent, so intervals may be too narrow",)
    return ()
