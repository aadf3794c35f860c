"""A study → its data package: what may leave, under new names and without personal data.

The same study gives the same bytes.

Nothing is decided here that a person must decide: what is doubtful is refused, and [release] settles it.
"""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd

from study import croissant, data_card, pseudonyms, releasable, release_sample, release_tables, sharing, tables
from study.config import Study
from study.errors import StudyError, joined
from study.records import Content
from study.release_check import CROISSANT, SUMS, digest, problems_of, unsummed
from study.release_tables import Inputs
from study.released import ALL, Released
from study.scrub import Scrubber

CARD = "README.md"


@dataclass(frozen=True)
class Package:
    """What a release holds, and what was done to make it fit to leave.

    left_out : rater → why their rows stay; the names are the study's own and do not go into the package
    replaced : how many stretches of text were replaced, by kind
    dropped : how many reasons in people's own words were emptied
    origin : where people's ratings come from
    """

    study: Study
    frames: Mapping[str, pd.DataFrame]
    simulated: int
    left_out: Mapping[str, str]
    replaced: Mapping[str, int]
    dropped: int
    origin: Literal["app", "import", "simulation"]
    cleared: tuple[str, ...] = ()
    attribute: str | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def tables(self) -> tuple[Released, ...]:
        return tuple(t for t in ALL if t.name in self.frames)


def package(study: Study, *, label_simulated: bool = False) -> Package:
    """The package of a study, not yet written.

    Parameters
    ----------
    label_simulated : let simulated ratings out, with the label on them; else study.toml decides

    Raises
    ------
    StudyError : with everything that keeps the study from being released, one sentence each
    """
    given = _inputs(study)
    allowed = sharing.sharing(study, given.ratings)
    problems = releasable.unsaid(study) + allowed.problems + _refusals(study, given, set(allowed.left_out))
    simulated = int(given.ratings["simulated"].sum())
    labelled = label_simulated or (study.release is not None and study.release.simulated == "labelled")
    if simulated and not labelled:
        problems.append(
            f"{study.ratings}: {simulated} of {len(given.ratings)} ratings are simulated; "
            'release them labelled with --label-simulated or simulated = "labelled" under [release]'
        )
    if problems:
        raise StudyError(joined(problems))
    cleared = tuple(sorted(set(study.release.cleared) | _fictional(given.content)))
    scrubber = Scrubber(cleared, study.release.redact)
    key = pseudonyms.secret(study.path(pseudonyms.SECRET))
    made = release_tables.frames(study, given, allowed, scrubber, key)
    if scrubber.doubts:
        raise StudyError(joined([f"{study.folder}: {doubt}" for doubt in scrubber.doubts]))
    return Package(
        study,
        made.frames,
        int(made.frames["ratings"]["simulated"].sum()),
        dict(allowed.left_out),
        dict(scrubber.counts),
        made.dropped,
        _origin(study, given.ratings),
        cleared,
        made.attribute,
        made.notes,
    )


def write(made: Package, folder: Path) -> dict[str, str]:
    """Write a package whole or not at all, and check it as a stranger would before it stands there.

    Returns
    -------
    each file with its SHA-256

    Raises
    ------
    StudyError : if the folder holds something else than an untouched release, or the package fails its own check
    """
    folder = folder.resolve()
    _check_replaceable(folder)
    half = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    try:
        sums = _written(made, half)
        if found := problems_of(half):
            raise StudyError(joined([f"{folder}: {p}" for p in found]))
        _swapped(half, folder)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return sums


def write_sample(made: Package, path: Path) -> int:
    """Write the texts for a person to read as CSV; returns how many."""
    frame = release_sample.sample(made.frames, pseudonyms.secret(made.study.path(pseudonyms.SECRET)))
    tables.replaced(path, lambda half: frame.to_csv(half, index=False, lineterminator="\n"))
    return len(frame)


def counts(made: Package) -> dict[str, object]:
    """The package in numbers: rows of each table, replaced stretches, raters left out."""
    return {
        "rows": {t.file: len(made.frames[t.name]) for t in made.tables},
        "replaced": dict(made.replaced),
        "reasons_emptied": made.dropped,
        "raters_left_out": dict(Counter(made.left_out.values())),
        "simulated": made.simulated,
        "notes": list(made.notes),
    }


def _inputs(study: Study) -> Inputs:
    def frame(path: Path, table: tables.Table) -> pd.DataFrame | None:
        return tables.read(path, table) if path.exists() else None

    ratings = tables.read(study.ratings, tables.RATINGS)
    return Inputs(
        content=study.content() if study.content_files else None,
        responses=frame(study.responses, tables.RESPONSES),
        items=tables.read(study.items, tables.ITEMS),
        key=tables.read(study.key, tables.KEY),
        assignment=frame(study.assignment, tables.ASSIGNMENT),
        ratings=tables.check_ratings(ratings, study.metrics, str(study.ratings)),
        encounters=frame(study.path("encounters.parquet"), tables.ENCOUNTERS),
    )


def _refusals(study: Study, given: Inputs, out: set[str]) -> list[str]:
    found = releasable.gaps(study, given.content, given.responses)
    if given.responses is not None:
        generation = study.generation
        unfit = releasable.problems(given.responses, generation.window_days, generation.waiver)
        found += [f"{study.responses}: {p}" for p in unfit]
    if given.encounters is not None and given.encounters["demo"].any():
        n = int(given.encounters["demo"].sum())
        where = study.path("encounters.parquet")
        found.append(f"{where}: {n} dialogues are for demonstration only; take them out")
    found += releasable.trial_judges(study, given.ratings)
    if lacking := sorted(set(given.items["label"]) - set(given.key["label"])):
        found.append(f"{study.key}: names no source for {lacking[0]}; `study assign` writes it")
    if strange := sorted(set(given.ratings["label"]) - set(given.items["label"])):
        found.append(f"{study.ratings}: {strange[0]} is not among the items")
    if not found and "crossed.chain" not in tables.metadata(study.ratings):
        found += releasable.unrated(study, given.items, given.assignment, given.ratings, out)
    return found


def _origin(study: Study, ratings: pd.DataFrame) -> Literal["app", "import", "simulation"]:
    if "crossed.chain" in tables.metadata(study.ratings):
        return "app"
    return "simulation" if ratings.loc[ratings["rater_kind"] == "human", "simulated"].all() else "import"


def _fictional(content: Content | None) -> set[str]:
    """The names of the patients that the cases invent."""
    cases = content.cases.values() if content else ()
    return {str(v) for c in cases for k, v in c.patient.items() if k.startswith("name") and v}


def _written(made: Package, folder: Path) -> dict[str, str]:
    notes = {
        "crossed.study": made.study.study_id,
        "crossed.release": made.study.release.version,
        "crossed.simulated": str(bool(made.simulated)).lower(),
        "crossed.cleared": json.dumps(made.cleared, ensure_ascii=False),
    }
    for table in made.tables:
        tables.write(made.frames[table.name], folder / table.file, table.table, notes)
    sums = {t.file: (digest(folder / t.file), (folder / t.file).stat().st_size) for t in made.tables}
    text = json.dumps(croissant.document(made, sums), ensure_ascii=False, indent=1) + "\n"
    (folder / CROISSANT).write_text(text, encoding="utf-8")
    (folder / CARD).write_text(data_card.card(made), encoding="utf-8")
    hashes = {name: digest(folder / name) for name in sorted([*sums, CROISSANT, CARD])}
    (folder / SUMS).write_text("".join(f"{h}  {name}\n" for name, h in hashes.items()), encoding="utf-8")
    return hashes


def _check_replaceable(folder: Path) -> None:
    """Only a release that nobody has touched since makes room for a new one."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / CROISSANT).is_file():
        raise StudyError(f"{folder}: is there already and holds no release; name another folder")
    if touched := next(unsummed(folder), None):
        raise StudyError(f"{folder}: was changed after its release ({touched}); move it away")


def _swapped(half: Path, folder: Path) -> None:
    """Put a finished folder in the place of an earlier one."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    half.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
