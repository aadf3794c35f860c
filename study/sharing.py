"""Whose ratings may be shared: what the rating app's database, or study.toml, says of consent and withdrawal."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from study import tables
from study.config import FILE, Study
from study.errors import StudyError

_SHOWN = 5
_CELL = ["rater_id", "label", "metric_id", "occasion"]


@dataclass(frozen=True)
class Sharing:
    """What keeps people's ratings from being shared, whose stay out and why, and what people wrote beside them."""

    problems: list[str]
    left_out: Mapping[str, str] = field(default_factory=dict)  # rater → why
    comments: pd.DataFrame | None = None


def sharing(study: Study, ratings: pd.DataFrame) -> Sharing:
    """Hold the ratings that people gave against what they agreed to; simulated ratings need nobody's leave.

    Ratings given in the rating app are compared with its database cell by cell, so that a file from before a
    withdrawal or a correction does not get out.
    """
    people = ratings[(ratings["rater_kind"] == "human") & ~ratings["simulated"]]
    named = sorted(set(study.release.withdrawn if study.release else ()))
    if strangers := [n for n in named if not (ratings["rater_id"] == n).any()]:
        return Sharing([
            f"{study.folder / FILE}: [release] withdrawn names {_several(strangers)}, of whom there is no rating"
        ])  # fmt: skip
    out = dict.fromkeys(named, "withdrew")
    if people.empty:
        return Sharing([], out)
    from study.store import address

    from_app = "crossed.chain" in tables.metadata(study.ratings)
    if study.path("ratings.db").is_file() or (from_app and address.stands(study)):
        return _by_database(study, people, out)
    if from_app:
        return Sharing([
            f"{study.ratings}: was exported from a ratings database that is not here; "
            f"put ratings.db back, or say where it is in {address.VARIABLE}"
        ])  # fmt: skip
    if study.release is None or not study.release.consent:
        n = people["rater_id"].nunique()
        return Sharing([
            f"{study.folder / FILE}: [release] lacks consent: say how the {n} raters consented to "
            "sharing their ratings"
        ])  # fmt: skip
    return Sharing([], out)


def _by_database(study: Study, people: pd.DataFrame, out: dict[str, str]) -> Sharing:
    from study.store import export, permissions
    from study.store.address import database_url
    from study.store.database import open_database

    database = open_database(database_url(study))
    try:
        allowed = permissions.permissions(database)
        exported = export.export(database)
    finally:
        database.close()
    if allowed.study_id != study.study_id:
        owner = f"belongs to the study {allowed.study_id}" if allowed.study_id else "holds no study"
        raise StudyError(f"{study.folder}: the ratings database {owner}; say where this one's is")
    if not allowed.locked:
        return Sharing([f"{study.folder}: the study is not locked; `annotation_app lock` closes it for good"])
    gave = sorted(set(people["rater_id"]))
    out |= {r: "withdrew" for r in gave if r in allowed.withdrawn}
    silent = [r for r in gave if r not in out and r not in allowed.consented]
    problems = []
    if silent:
        problems.append(
            f"{study.ratings}: no consent of {_several(silent)} is on record; "
            "without it their ratings stay here: name them under [release] as withdrawn"
        )
    out |= {r: "did not agree to sharing" for r in gave if r not in out and r not in allowed.sharing}
    out = {r: why for r, why in out.items() if r not in silent}
    if _differ(people, exported.ratings, out):
        problems.append(
            f"{study.ratings}: is not what the locked database holds; `annotation_app export` writes it anew"
        )
    notes = exported.notes[~exported.notes["rater_id"].isin(out)] if len(exported.notes) else None
    if notes is not None:
        notes = notes.sort_values("version").drop_duplicates(["rater_id", "position"], keep="last")
    return Sharing(problems, out, notes)


def _differ(given: pd.DataFrame, held: pd.DataFrame, out: Mapping[str, str]) -> bool:
    """Whether ratings differ from those of the database, but for raters that stay out."""
    sides = [
        f[~f["rater_id"].isin(out)].set_index(_CELL)[["value", "status"]].sort_index() for f in (given, held)
    ]
    if not sides[0].index.equals(sides[1].index):
        return True
    one, two = sides
    same = (one["value"] == two["value"]) | (one["value"].isna() & two["value"].isna())
    return not (same & (one["status"] == two["status"])).all()


def _several(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
