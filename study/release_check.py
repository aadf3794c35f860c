"""A data package as a stranger finds it: does it hold what it says, all of it, and nothing that may not be there?

`mlcroissant validate` passes a package without any Responsible-AI field, with a wrong hash, a missing file or a
column that does not exist. So every file is hashed here, every record of every record set read, every type and
reference compared, and every text searched for personal data.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from study import croissant, croissant_file, pseudonyms, tables
from study.croissant_file import Description, File, RecordSet
from study.errors import StudyError
from study.released import ALL, Released
from study.scrub import certain, doubtful

CROISSANT = "croissant.json"
SUMS = "SHA256SUMS"
_SAID = ("name", "description", "version", "datePublished", "license", "url", "creator")
_SHOWN = 3
_TABLES = {t.name: t for t in ALL}


def problems_of(folder: Path) -> list[str]:
    """What is wrong with a package, each as one sentence; empty if nothing is.

    Raises
    ------
    StudyError : if the folder holds no package at all
    """
    path = folder / CROISSANT
    if not path.is_file():
        raise StudyError(f"{folder}: holds no {CROISSANT}; `study release` writes a package")
    try:
        told = croissant_file.document(path)
        described = croissant_file.description(told, CROISSANT)
    except StudyError as error:
        return str(error).splitlines()
    found = [*_unsaid(told), *unsummed(folder)]
    sound = {}
    for file in described.distribution:
        wrong = list(_file(folder, file))
        found += wrong
        if not wrong:
            sound[file.id] = folder / file.local
    for record_set in described.recordSet:
        found += _record_set(record_set, {f.id for f in described.distribution}, sound)
    if found:
        return found
    frames = {r.id: _read(r, sound) for r in described.recordSet}
    found = [p for r in described.recordSet for p in _keyed(r, frames, described)]
    found += _labelled(str(told["description"]), frames["ratings"], sound) if "ratings" in frames else []
    found += _people(frames["raters"]) if "raters" in frames else []
    return found + [p for r in described.recordSet for p in _private(r, frames[r.id], sound)]


def unsummed(folder: Path) -> Iterator[str]:
    """Files of a package that are not those of its SHA256SUMS: added, gone or changed, each as one sentence."""
    path = folder / SUMS
    if not path.is_file():
        yield f"{SUMS}: not found"
        return
    lines = [line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    if any(len(line) != 2 for line in lines):
        yield f"{SUMS}: has a line that is not a hash, two spaces and a name"
        return
    sums = {name: told for told, name in lines}
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {SUMS}
    for name in sorted(there - set(sums)):
        yield f"{name}: is not in {SUMS}; nothing may lie in a package that it does not name"
    for name, told in sorted(sums.items()):
        if name not in there:
            yield f"{name}: not found, though {SUMS} names it"
        elif digest(folder / name) != told:
            yield f"{name}: is not the file that {SUMS} names; its hash differs"


def digest(path: Path) -> str:
    """A file's SHA-256."""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _unsaid(told: dict[str, object]) -> Iterator[str]:
    conforms = told.get("conformsTo")
    for version in croissant.CONFORMS:
        if version not in (conforms if isinstance(conforms, list) else [conforms]):
            yield f"{CROISSANT}: does not say that it conforms to {version}"
    for name in _SAID:
        if _blank(told.get(name)):
            yield f"{CROISSANT}: lacks {name}"
    for name in (*(f"rai:{n}" for n in croissant.REQUIRED), *croissant.PROVENANCE):
        if _blank(told.get(name)):
            yield f"{CROISSANT}: lacks {name}, which every data set must say of itself"
    for name in told:
        if name.startswith("rai:") and name.removeprefix("rai:") not in croissant.RAI:
            yield f"{CROISSANT}: {name} is no word of the Responsible-AI vocabulary"
    for name in sorted({i for i in _ids(told) if any(c.isspace() for c in i)}):
        yield f"{CROISSANT}: the @id {name!r} holds a space, which readers refuse"


def _blank(value: object) -> bool:
    if isinstance(value, list):
        return all(_blank(v) for v in value)
    return value is None or value == {} or (isinstance(value, str) and not value.strip())


def _ids(told: object) -> Iterator[str]:
    if isinstance(told, dict):
        if isinstance(told.get("@id"), str):
            yield told["@id"]
        for value in told.values():
            yield from _ids(value)
    elif isinstance(told, list):
        for value in told:
            yield from _ids(value)


def _file(folder: Path, file: File) -> Iterator[str]:
    path = folder / file.local
    if file.encodingFormat != croissant.PARQUET:
        yield (
            f"{CROISSANT}: {file.id} has encodingFormat {file.encodingFormat}; readers want {croissant.PARQUET}"
        )
    if not path.is_file():
        yield f"{file.id}: not found, though {CROISSANT} names it"
    elif digest(path) != file.sha256:
        yield f"{file.id}: is not the file that {CROISSANT} describes; its hash differs"


def _record_set(told: RecordSet, files: set[str], sound: Mapping[str, Path]) -> Iterator[str]:
    """Whether a record set is one that a release has, and its columns are there, of their types, all described."""
    names = {f.name for f in told.field}
    known = _TABLES.get(told.id)
    if known is None:
        yield f"{CROISSANT}: {told.id} is no record set that a release has; it has {', '.join(_TABLES)}"
        return
    for name in sorted({c.name for c in known.columns} - names):
        yield f"{CROISSANT}: {told.id} lacks the field {name}"
    for name in sorted(names - {c.name for c in known.columns}):
        yield f"{CROISSANT}: {told.id} has a field {name}, which no release has"
    if lost := [k.id for k in told.key if k.id not in told.names]:
        yield f"{CROISSANT}: the key {lost[0]} of {told.id} is none of its fields"
    if len(came := {f.file for f in told.field}) != 1:
        yield f"{CROISSANT}: {told.id} takes its fields from {len(came)} files; it must be one"
        return
    (file,) = came
    if file not in files:
        yield f"{CROISSANT}: {told.id} comes from {file}, which is not in the distribution"
    if file not in sound:
        return
    types = tables.types(sound[file])
    for field in told.field:
        if field.column not in types:
            yield f"{file}: has no column {field.column}, though {CROISSANT} describes it"
        elif croissant.TYPES.get(types[field.column]) != field.dataType:
            held = types[field.column]
            yield f"{file}: column {field.column} holds {held}, and {CROISSANT} says {field.dataType}"
    for column in sorted(set(types) - {f.column for f in told.field}):
        yield f"{CROISSANT}: does not describe column {column} of {file}"


def _read(told: RecordSet, sound: Mapping[str, Path]) -> pd.DataFrame:
    """Every record of a record set, under the names of its fields."""
    frame = pd.concat(tables.batches(sound[told.field[0].file]), ignore_index=True)
    return frame[[f.column for f in told.field]].set_axis([f.name for f in told.field], axis=1)


def _keyed(told: RecordSet, frames: Mapping[str, pd.DataFrame], described: Description) -> Iterator[str]:
    """Whether the key names the rows, and every reference leads somewhere."""
    frame = frames[told.id]
    key = [told.names[k.id] for k in told.key]
    if frame[key].isna().any(axis=None) or frame.duplicated(key).any():
        yield f"{told.id}: {', '.join(key)} do not name its rows: a name is empty or stands twice"
    places = {i: (r.id, name) for r in described.recordSet for i, name in r.names.items()}
    for field in told.field:
        if field.references is None:
            continue
        if field.references.field.id not in places:
            yield f"{CROISSANT}: {field.id} refers to {field.references.field.id}, which is no field"
            continue
        other, column = places[field.references.field.id]
        if strange := sorted(map(str, set(frame[field.name].dropna()) - set(frames[other][column]))):
            yield f"{told.id}: {field.name} {strange[0]} is not among the {other}"


def _labelled(about: str, ratings: pd.DataFrame, sound: Mapping[str, Path]) -> Iterator[str]:
    if not ratings["simulated"].any():
        return
    if croissant.SIMULATED not in about:
        yield f"ratings: {int(ratings['simulated'].sum())} rows are simulated, and {CROISSANT} does not say so"
    for name, path in sound.items():
        if tables.metadata(path).get("crossed.simulated") != "true":
            yield f"{name}: does not say in its metadata that ratings are simulated"


def _people(raters: pd.DataFrame) -> Iterator[str]:
    people = raters[raters["rater_kind"] == "human"]
    for name in people.loc[~people["rater_id"].str.fullmatch(r"R\d+"), "rater_id"][:_SHOWN]:
        yield f"raters: {name} is no name that a release gives; people have new ones"
    for value, n in people["attribute"].value_counts().items():
        if n < pseudonyms.SMALLEST:
            yield f"raters: only {n} people share the attribute {value}; at least {pseudonyms.SMALLEST} must"


def _private(told: RecordSet, frame: pd.DataFrame, sound: Mapping[str, Path]) -> Iterator[str]:
    """Personal data in the free texts, and what is certain in any other column of text."""
    table: Released = _TABLES[told.id]
    cleared = _cleared(sound[told.field[0].file])
    for column in (c for c in table.columns if c.type == "text"):
        for text in frame[column.name].dropna().unique():
            found = certain(text, cleared) + (doubtful(text, cleared) if column.free else [])
            if found:
                row = int((frame[column.name] == text).to_numpy().argmax()) + 1
                yield (
                    f"{table.name}: {column.name} in row {row} holds what tells who somebody is ({found[0].kind})"
                )


def _cleared(path: Path) -> list[str]:
    """The words that the release cleared, as its tables' metadata say; none if they do not."""
    try:
        words = json.loads(tables.metadata(path).get("crossed.cleared", "[]"))
    except json.JSONDecodeError:
        return []
    return [w for w in words if isinstance(w, str)] if isinstance(words, list) else []
