"""The frames of a data package, made from a study's tables: joined with the key, renamed, scrubbed, and sorted so
that no row's place tells anything."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from study import pseudonyms, released
from study.config import Study
from study.errors import StudyError
from study.generated import sent_settings
from study.records import RULE_METRICS, Content
from study.scrub import Scrubber
from study.sharing import Sharing

RATERS_FILE = "raters.csv"


@dataclass(frozen=True)
class Inputs:
    """A study's tables as they lie in its folder; None for one that it does not have."""

    content: Content | None
    responses: pd.DataFrame | None
    items: pd.DataFrame
    key: pd.DataFrame
    assignment: pd.DataFrame | None
    ratings: pd.DataFrame
    encounters: pd.DataFrame | None


@dataclass(frozen=True)
class Frames:
    """The frames by table name, how many reasons were emptied, which attribute of people is in, and remarks."""

    frames: dict[str, pd.DataFrame]
    dropped: int
    attribute: str | None
    notes: tuple[str, ...]


def frames(study: Study, given: Inputs, allowed: Sharing, scrubber: Scrubber, key: bytes) -> Frames:
    """All tables of the package. What the scrubber doubts is left to the caller.

    Raises
    ------
    StudyError : if raters.csv does not say what study.toml takes from it
    """
    kept = given.ratings[~given.ratings["rater_id"].isin(allowed.left_out)]
    people = kept.loc[kept["rater_kind"] == "human", "rater_id"]
    names = pseudonyms.renamed(people, key)
    made = {"metrics": _metrics(study, set(kept["metric_id"])), "sources": _sources(study)}
    if given.content is not None:
        made["prompts"] = _prompts(given.content, scrubber)
    if given.responses is not None:
        made["responses"] = _responses(given.responses, scrubber)
    # An answer stands in the responses and among the items: it is counted once.
    counting = scrubber if given.responses is None else Scrubber(scrubber.cleared, scrubber.redact)
    made["items"] = _items(given.items.merge(given.key, on="label"), counting)
    ratings, dropped = _ratings(kept, names, scrubber)
    attribute, notes = _attribute(study, names)
    made |= {"raters": _raters(ratings, attribute), "ratings": ratings}
    comments = allowed.comments
    if comments is not None and len(comments):
        notes += _flagged(comments)
        if study.release.comments:
            made["comments"] = _comments(comments, scrubber, key)
        else:
            n = len(comments)
            notes += (f"{n} comments of raters stay here; comments = true under [release] lets them out",)
    if given.encounters is not None and len(given.encounters):
        made["encounters"], made["dialogues"] = _dialogues(given.encounters, scrubber)
    return Frames(made, dropped, study.release.rater_attribute if attribute is not None else None, notes)


def _metrics(study: Study, rated: set[str]) -> pd.DataFrame:
    """The study's metrics, and those of the rules that rated."""
    asked = [*study.metrics, *(m for m in RULE_METRICS if m.metric_id in rated)]
    rows = [
        (m.metric_id, m.item, float(m.low), float(m.high), m.level, m.question or None, anchors or None)
        for m in asked
        for anchors in [" | ".join(m.anchors)]
    ]
    return _framed(rows, released.METRICS)


def _sources(study: Study) -> pd.DataFrame:
    rows = []
    for s in study.sources:
        model, settings = sent_settings(study, s)
        told = json.dumps(settings, sort_keys=True) if settings else None
        rows.append((s.source_id, s.kind, s.title, model, told))
    return _framed(rows, released.SOURCES)


def _prompts(content: Content, scrubber: Scrubber) -> pd.DataFrame:
    rows = [
        (p.prompt_id, p.case_id, p.turn, p.category, p.form, p.text)
        for case_id in content.cases for p in content.prompts_of(case_id)
    ]  # fmt: skip
    frame = _framed(rows, released.PROMPTS)
    return frame.assign(text=scrubber.column(frame["text"], frame["prompt_id"], "prompts")["text"])


def _responses(responses: pd.DataFrame, scrubber: Scrubber) -> pd.DataFrame:
    where = responses["prompt_id"] + " by " + responses["source_id"]
    clean = scrubber.column(responses["text"], where, "responses")
    frame = responses.assign(text=clean["text"], replaced=clean["replaced"])
    if "answered_at" in frame:
        frame["answered_on"] = frame["answered_at"].dt.strftime("%Y-%m-%d")
    return _laid(frame, released.RESPONSES)


def _items(items: pd.DataFrame, scrubber: Scrubber) -> pd.DataFrame:
    text = scrubber.column(items["text"], items["label"], "items")["text"]
    return _laid(items.assign(text=text), released.ITEMS)


def _ratings(kept: pd.DataFrame, names: Mapping[str, str], scrubber: Scrubber) -> tuple[pd.DataFrame, int]:
    """Ratings under the new names. A person's reason leaves only if it is one of the list that all were given."""
    from study.store.ratings import REASONS

    person = kept["rater_kind"] == "human"
    listed = kept["reason"].isin(REASONS) | kept["simulated"]
    emptied = person & ~listed & kept["reason"].notna()
    words = kept["reason"].where(~emptied, None)
    where = kept["label"] + " by " + kept["rater_id"]
    frame = kept.assign(
        reason=scrubber.column(words, where, "ratings")["text"],
        rater_id=kept["rater_id"].map(names).where(person, kept["rater_id"]),
    )
    return _laid(frame, released.RATINGS), int(emptied.sum())


def _raters(ratings: pd.DataFrame, attribute: Mapping[str, str] | None) -> pd.DataFrame:
    frame = ratings.groupby("rater_id", as_index=False).agg(
        rater_kind=("rater_kind", "first"), simulated=("simulated", "any"), ratings=("rater_id", "size")
    )
    frame["attribute"] = [(attribute or {}).get(r) for r in frame["rater_id"]]
    return _laid(frame, released.RATERS)


def _attribute(study: Study, names: Mapping[str, str]) -> tuple[dict[str, str] | None, tuple[str, ...]]:
    """New name → the coarse attribute, or nothing and why."""
    column, path = study.release.rater_attribute, study.path(RATERS_FILE)
    if column is None:
        return None, ()
    if not path.is_file():
        raise StudyError(f"{path}: not found; [release] takes rater_attribute {column} from it")
    table = pd.read_csv(path, dtype=str)
    if lacking := {"rater_id", column} - set(table.columns):
        raise StudyError(f"{path}: column {min(lacking)} is missing; it has {', '.join(table.columns)}")
    values = table.drop_duplicates("rater_id").set_index("rater_id")[column].reindex(list(names))
    if values.isna().any():
        raise StudyError(f"{path}: says no {column} of {values.index[values.isna()][0]}")
    found = pseudonyms.coarse(values)
    if found is None:
        return None, (f"{column} of raters stays here: no two of its values are shared by "
                      f"{pseudonyms.SMALLEST} people each",)  # fmt: skip
    return {names[r]: v for r, v in found.items()}, ()


def _comments(comments: pd.DataFrame, scrubber: Scrubber, key: bytes) -> pd.DataFrame:
    """Comments without their rater, in the order of a keyed hash."""
    clean = scrubber.column(comments["text"].replace("", None), comments["label"], "comments")["text"]
    frame = pd.DataFrame({"label": comments["label"], "flag": comments["flag"].replace("", None), "text": clean})
    places = zip(comments["rater_id"], comments["position"], strict=True)
    place = [pseudonyms.mark(f"{rater}:{position}", key) for rater, position in places]
    frame = frame.assign(place=place).sort_values("place").dropna(subset=["flag", "text"], how="all")
    return _laid(frame.assign(comment_id=range(1, len(frame) + 1)), released.COMMENTS)


def _flagged(comments: pd.DataFrame) -> tuple[str, ...]:
    labels = sorted(set(comments.loc[comments["flag"] == "identifies_somebody", "label"]))
    if not labels:
        return ()
    return (f"raters flagged {', '.join(labels[:5])} as identifying somebody: read {len(labels)} items once more",)


def _dialogues(encounters: pd.DataFrame, scrubber: Scrubber) -> tuple[pd.DataFrame, pd.DataFrame]:
    turns = pd.DataFrame(
        (e.encounter_id, n, t["round"], t["speaker"], t["text"], ",".join(t.get("flags", ())) or None)
        for e in encounters.itertuples() for n, t in enumerate(json.loads(e.turns), 1)
    )  # fmt: skip
    turns = turns.reindex(columns=range(6)).set_axis([c.name for c in released.DIALOGUES.columns], axis=1)
    where = turns["encounter_id"].astype(str) + " turn " + turns["turn"].astype(str)
    turns["text"] = scrubber.column(turns["text"], where, "dialogues")["text"]
    said = scrubber.column(encounters["diagnosis"], encounters["encounter_id"], "encounters")["text"]
    frame = encounters.assign(doctor_id=encounters["source_id"], diagnosis=said)
    return _laid(frame, released.ENCOUNTERS), _laid(turns, released.DIALOGUES)


def _framed(rows: list[tuple], table: released.Released) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[c.name for c in table.columns])


def _laid(frame: pd.DataFrame, table: released.Released) -> pd.DataFrame:
    """A frame's released columns in their types, absent ones empty, its rows in the order of the key."""
    made = pd.DataFrame(index=frame.index)
    for c in table.columns:
        values = frame[c.name] if c.name in frame else pd.Series(None, index=frame.index, dtype=object)
        if c.type == "real":
            made[c.name] = values.astype("float64")
        elif c.type == "text":
            made[c.name] = values.astype(object).where(values.notna(), None)
        else:
            made[c.name] = values.astype({"integer": "int64", "boolean": "bool"}[c.type])
    return made.sort_values(list(table.key), ignore_index=True)
