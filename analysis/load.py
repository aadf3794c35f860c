"""Ratings, items and key → one tidy frame. The only reader of the key.

One row per rating: `rater, rater_kind, label, kind, case, prompt, source, category, form, turn, metric, occasion,
score, status, simulated`. Names of things are Categoricals in the study's order, so that the first source is the
reference everywhere. `score` is nan where status is not ok; such rows stay and are counted.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis import bare
from study import config, tables
from study.errors import StudyError, TableError, joined
from study.records import FORMS, RULE_METRICS, Metric

_MADE_BY = {
    "ratings.parquet": "`study export` or `study import` writes it",
    "items.parquet": "`study assign` writes it",
    "key.parquet": "`study assign` writes it",
}
_SET_APART = ("probe", "train")  # roles of assigned items that measure raters, not sources


@dataclass(frozen=True)
class LeftOut:
    """Why rows of the ratings do not enter an analysis, and how many."""

    reason: str
    rows: int


@dataclass(frozen=True)
class Loaded:
    """The tidy frame with where it came from.

    `inputs` maps each file read to its SHA-256; `study` is None for a bare ratings file; `responses` counts the
    study's responses by status.
    """

    frame: pd.DataFrame
    metrics: tuple[Metric, ...]
    inputs: dict[str, str]
    name: str
    study: config.Study | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    responses: dict[str, int] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        return bool(self.frame["simulated"].any())

    def metric(self, metric_id: str) -> Metric:
        """The metric of that name.

        Raises
        ------
        StudyError : if nothing was rated on it, naming the metrics there are
        """
        for metric in self.metrics:
            if metric.metric_id == metric_id:
                return metric
        known = ", ".join(m.metric_id for m in self.metrics)
        raise StudyError(f"{self.name}: no metric {metric_id}; its metrics are {known}")


@dataclass(frozen=True)
class Selected:
    """The ratings of one metric that an analysis uses, and what it leaves out."""

    metric: Metric
    frame: pd.DataFrame
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def simulated(self) -> bool:
        return bool(self.frame["simulated"].any())


def load(target: Path, columns: bare.Columns | None = None, without: Iterable[str] = ()) -> Loaded:
    """The tidy frame of a study folder, or of a bare CSV or Parquet file.

    Parameters
    ----------
    columns : which column of a bare file means what
    without : raters to leave out, counted in `left_out`

    Raises
    ------
    StudyError : for anything that would make an analysis wrong; all problems of a file in one message
    """
    if target.is_dir():
        if columns is not None and columns.named():
            raise StudyError(
                f"{target}: is a study folder, whose columns have their names; "
                f"--{columns.named()[0].replace('_', '-')} is for a bare ratings file"
            )
        return _from_study(config.load(target), tuple(without))
    return _from_file(target, columns or bare.Columns(), tuple(without))


def select(loaded: Loaded, metric_id: str, raters: str = "auto") -> Selected:
    """The ok ratings of one metric by one kind of rater, first occasion.

    Parameters
    ----------
    raters : "human", "judge", "rule", "all"; "auto" takes the humans where there are any, else all

    Raises
    ------
    StudyError : if no rating is left
    """
    metric = loaded.metric(metric_id)
    frame = loaded.frame[loaded.frame["metric"] == metric_id]
    kinds = set(frame["rater_kind"])
    wanted = ("human" if "human" in kinds else "all") if raters == "auto" else raters
    rules = [("by raters that are not " + wanted, frame["rater_kind"] != wanted)] if wanted != "all" else []
    rules += [("a repeat (occasion 2 or later)", frame["occasion"] > 1)]
    not_ok = frame["status"] != "ok"
    rules += [(f"status {s}", frame["status"] == s) for s in frame.loc[not_ok, "status"].unique()]
    left_out, kept = list(loaded.left_out), pd.Series(True, index=frame.index)
    for reason, applies in rules:
        hit = kept & applies
        if hit.any():
            left_out.append(LeftOut(reason, int(hit.sum())))
        kept &= ~applies
    if not kept.any():
        why = "; ".join(f"{part.rows} {part.reason}" for part in left_out) or "it has no row"
        raise StudyError(f"{loaded.name}: no rating of {metric_id} can be used ({why})")
    rated = _unused_dropped(frame[kept])
    return Selected(metric, rated, tuple(left_out), _silent_raters(loaded, frame, rated))


def rated_metrics(loaded: Loaded) -> list[str]:
    """The metrics that have a row, in the study's order."""
    found = set(loaded.frame["metric"].unique())
    return [m.metric_id for m in loaded.metrics if m.metric_id in found]


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _from_study(study: config.Study, without: tuple[str, ...]) -> Loaded:
    paths = {"ratings": study.ratings, "items": study.items, "key": study.key}
    for path in paths.values():
        if not path.is_file():
            raise StudyError(f"{path}: not found; {_MADE_BY[path.name]}")
    ratings = tables.check_ratings(tables.read_parquet(study.ratings), study.metrics, str(study.ratings))
    if ratings.empty:
        raise StudyError(f"{study.ratings}: holds no rating; collect some, or import them with `study import`")
    items, key = tables.read(study.items, tables.ITEMS), tables.read(study.key, tables.KEY)
    assigned = tables.read(study.assignment, tables.ASSIGNMENT) if study.assignment.is_file() else None
    _check_links(study, ratings, items, key)
    ratings, tags = _without_tags(ratings, study)
    expected = set(study.raters)
    if assigned is not None:
        paths["assignment"] = study.assignment
        expected |= set(assigned["rater_id"])
    ratings, left_out = _set_apart(ratings, assigned)
    frame, gone = _without(_ordered(_tidy(ratings, items, key), study), without, expected, study.ratings)
    metrics = tuple(m for m in study.metrics if m.metric_id in set(frame["metric"].unique()))
    unrated = [m.metric_id for m in study.metrics if m not in metrics]
    notes = (f"no rating of {', '.join(unrated)}",) if unrated else ()
    inputs = {config.FILE: study.digest} | {p.name: digest(p) for p in paths.values()}
    left_out = tags + left_out + gone
    return Loaded(frame, metrics, inputs, str(study.folder), study, notes, left_out, _responses(study))


def _without_tags(ratings: pd.DataFrame, study: config.Study) -> tuple[pd.DataFrame, tuple[LeftOut, ...]]:
    """Ratings without the rules' own yes and no, which measure no metric of the study."""
    own = {m.metric_id for m in RULE_METRICS} - {m.metric_id for m in study.metrics}
    tag = ratings["metric_id"].isin(own)
    if not tag.any():
        return ratings, ()
    if tag.all():
        raise StudyError(f"{study.ratings}: holds only the tags of rules; collect some ratings, or import them")
    return ratings[~tag], (LeftOut("tags by rules", int(tag.sum())),)


def _responses(study: config.Study) -> dict[str, int]:
    """How many responses have which status; none if the study was imported."""
    if not study.responses.is_file():
        return {}
    return tables.read(study.responses, tables.RESPONSES)["status"].value_counts().to_dict()


def _from_file(path: Path, columns: bare.Columns, without: tuple[str, ...]) -> Loaded:
    read = bare.read(path, columns)
    frame, gone = read.frame, ()
    if "rater" in frame.columns:
        frame, gone = _without(frame, without, set(), path)
    return Loaded(frame, read.metrics, {path.name: digest(path)}, str(path), None, read.notes, gone)


def _tidy(ratings: pd.DataFrame, items: pd.DataFrame, key: pd.DataFrame) -> pd.DataFrame:
    known = items.drop(columns="text", errors="ignore").merge(key, on="label", how="left")
    frame = ratings.merge(known, on="label", how="left").rename(
        columns={
            "rater_id": "rater",
            "metric_id": "metric",
            "case_id": "case",
            "prompt_id": "prompt",
            "source_id": "source",
            "value": "score",
        }
    )
    return frame[list(bare.TIDY)]


def _ordered(frame: pd.DataFrame, study: config.Study) -> pd.DataFrame:
    """The frame with its factors in the study's order."""
    categories: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    if study.content_files is not None:
        content = study.content()
        categories, cases = content.categories, tuple(content.cases)
    orders = {
        "source": tuple(s.source_id for s in study.sources),
        "metric": tuple(m.metric_id for m in study.metrics),
        "category": categories,
        "form": FORMS,
        "case": cases,
        "rater": study.raters,
    }
    factors = {name: bare.factor(frame[name], orders.get(name, ())) for name in bare.FACTORS}
    return frame.assign(score=frame["score"].astype(float), **factors)


def _check_links(study: config.Study, ratings: pd.DataFrame, items: pd.DataFrame, key: pd.DataFrame) -> None:
    """Every rated label is an item, every item has its source, every prompt its case."""
    problems = []
    for label in _first(set(ratings["label"]) - set(items["label"])):
        problems.append(
            f"{study.ratings}: {label} is rated and is not in items.parquet; "
            "the two come from different assignments"
        )
    for label in _first(set(items["label"]) - set(key["label"])):
        problems.append(f"{study.key}: has no source for {label}; `study assign` writes items and key together")
    sources = [s.source_id for s in study.sources]
    for source in _first(set(key["source_id"]) - set(sources)):
        problems.append(f"{study.key}: source {source} is not in study.toml; its sources are {', '.join(sources)}")
    spoken = items[items["kind"] == "utterance"]
    homeless = spoken[spoken["case_id"].isna() & spoken["prompt_id"].notna()]
    if len(homeless) < len(spoken):
        for row in homeless.head(5).itertuples():
            problems.append(
                f"{study.items}: prompt {row.prompt_id} (item {row.label}) has no case; "
                "give every prompt its case_id, or none"
            )
    rated = items[items["label"].isin(ratings["label"].unique())].merge(key, on="label")
    if len(sources) > 1 and rated["source_id"].nunique() == 1:
        only = rated["source_id"].iloc[0]
        problems.append(
            f"{study.ratings}: source has one level ({only}); "
            f"rate items of the other sources too: {', '.join(s for s in sources if s != only)}"
        )
    if problems:
        raise TableError(joined(problems))


def _set_apart(ratings: pd.DataFrame, assigned: pd.DataFrame | None) -> tuple[pd.DataFrame, tuple[LeftOut, ...]]:
    if assigned is None:
        return ratings, ()
    special = assigned[assigned["role"].isin(_SET_APART)]
    roles = special.drop_duplicates(["rater_id", "label"]).set_index(["rater_id", "label"])["role"]
    role = pd.MultiIndex.from_frame(ratings[["rater_id", "label"]]).map(roles.to_dict().get)
    role = pd.Series(role, index=ratings.index)
    left_out = tuple(
        LeftOut(f"items for {r}ing raters" if r == "train" else "probe items", int(n))
        for r, n in role.value_counts().items()
    )
    return ratings[role.isna()], left_out


def _without(
    frame: pd.DataFrame, raters: tuple[str, ...], expected: set[str], path: Path
) -> tuple[pd.DataFrame, tuple[LeftOut, ...]]:
    """The frame without some raters; every rater then left has at least one ok rating."""
    known = expected | set(frame["rater"])
    if strangers := [r for r in raters if r not in known]:
        raise StudyError(
            f"{path}: no rater {strangers[0]} to leave out; the raters are {', '.join(sorted(known))}"
        )
    silent = sorted(known - set(raters) - set(frame.loc[frame["status"] == "ok", "rater"]))
    if silent:
        raise StudyError(
            f"{path}: no rating by {', '.join(silent)}; wait for them, or leave them out with "
            f"{' '.join('--without ' + r for r in silent[:3])}{' …' if len(silent) > 3 else ''}"
        )
    gone = frame["rater"].isin(raters)
    if not raters:
        return frame, ()
    left_out = LeftOut(f"by {', '.join(raters)}, left out on request", int(gone.sum()))
    return _unused_dropped(frame[~gone]), (left_out,)


def _silent_raters(loaded: Loaded, frame: pd.DataFrame, rated: pd.DataFrame) -> tuple[str, ...]:
    if "rater" not in frame.columns:
        return ()
    same_kind = frame[frame["rater_kind"].isin(rated["rater_kind"].unique())]
    silent = sorted(set(same_kind["rater"].dropna()) - set(rated["rater"].dropna()))
    return (f"no usable rating of this metric by {', '.join(silent)}",) if silent else ()


def _unused_dropped(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy whose Categoricals hold only the levels that occur."""
    factors = [c for c in frame.columns if isinstance(frame[c].dtype, pd.CategoricalDtype)]
    return frame.assign(**{c: frame[c].cat.remove_unused_categories() for c in factors})


def _first(names: set[str], shown: int = 5) -> list[str]:
    return sorted(names)[:shown]
