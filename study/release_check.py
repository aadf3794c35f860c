"""A data package as a stranger finds it: does it hold what it says, all of it, and nothing that may not be there?

`mlcroissant validate` passes a package without any Responsible-AI field, with a wrong hash, a missing file or a
column that does not exist. So every file is hashed here, every record of every record set read, every type and
reference compared, and every text searched for personal data.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from study import croissant, pseudonyms, tables
from study.errors import StudyError
from study.released import ALL
from study.scrub import certain, doubtful

CROISSANT = "croissant.json"
SUMS = "SHA256SUMS"
_SAID = (
    "name", "description", "version", "datePublished", "license", "url", "creator", "distribution", "recordSet",
)  # fmt: skip
_SHOWN = 3
_FREE = {(t.name, c.name) for t in ALL for c in t.columns if c.free}


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
        told = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        return [f"{CROISSANT}: is not JSON"]
    if not isinstance(told, dict):
        return [f"{CROISSANT}: is not a JSON object"]
    found = [*_unsaid(told), *unsummed(folder)]
    files = {f.get("@id"): f for f in _each(told, "distribution")}
    sound = {}
    for name, file in files.items():
        wrong = list(_file(folder, str(name), file))
        found += wrong
        if not wrong:
            sound[name] = folder / _local(file)
    frames: dict[str, pd.DataFrame] = {}
    for record_set in _each(told, "recordSet"):
        wrong = list(_record_set(record_set, files, sound))
        found += wrong
        if not wrong and {_place(f)[0] for f in _each(record_set, "field")} <= set(sound):
            frames[str(record_set["@id"])] = _read(record_set, sound)
    if found:
        return found
    found += _references(told, frames)
    found += _labelled(told, frames, sound)
    found += _people(frames)
    return found + [p for name, frame in frames.items() for p in _private(name, frame, _cleared(sound, name))]


def _unsaid(told: dict) -> Iterator[str]:
    conforms = told.get("conformsTo")
    for version in croissant.CONFORMS:
        if version not in (conforms if isinstance(conforms, list) else [conforms]):
            yield f"{CROISSANT}: does not say that it conforms to {version}"
    for name in _SAID:
        if not told.get(name):
            yield f"{CROISSANT}: lacks {name}"
    for name in (*(f"rai:{n}" for n in croissant.REQUIRED), *croissant.PROVENANCE):
        if _blank(told.get(name)):
            yield f"{CROISSANT}: lacks {name}, which every data set must say of itself"
    for name in sorted(set(_ids(told))):
        if any(c.isspace() for c in name):
            yield f"{CROISSANT}: the @id {name!r} holds a space, which readers refuse"
    for name in told:
        if name.startswith("rai:") and name.removeprefix("rai:") not in croissant.RAI:
            yield f"{CROISSANT}: {name} is no word of the Responsible-AI vocabulary"


def _ids(told: object) -> Iterator[str]:
    if isinstance(told, dict):
        if isinstance(told.get("@id"), str):
            yield told["@id"]
        for value in told.values():
            yield from _ids(value)
    elif isinstance(told, list):
        for value in told:
            yield from _ids(value)


def _blank(value: object) -> bool:
    if isinstance(value, list):
        return not value or all(_blank(v) for v in value)
    return value is None or (isinstance(value, str) and not value.strip())


def unsummed(folder: Path) -> Iterator[str]:
    """Files of a package that are not those of its SHA256SUMS: added, gone or changed, each as one sentence."""
    path = folder / SUMS
    if not path.is_file():
        yield f"{SUMS}: not found"
        return
    sums = dict(reversed(line.split("  ", 1)) for line in path.read_text(encoding="utf-8").splitlines() if line)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {SUMS}
    for name in sorted(there - set(sums)):
        yield f"{name}: is not in {SUMS}; nothing may lie in a package that it does not name"
    for name, told in sorted(sums.items()):
        if name not in there:
            yield f"{name}: not found, though {SUMS} names it"
        elif digest(folder / name) != told:
            yield f"{name}: is not the file that {SUMS} names; its hash differs"


def _file(folder: Path, name: str, file: dict) -> Iterator[str]:
    path = folder / _local(file)
    if file.get("encodingFormat") != croissant.PARQUET:
        said = file.get("encodingFormat")
        yield f"{CROISSANT}: {name} has encodingFormat {said}; readers want {croissant.PARQUET}"
    if not path.is_file():
        yield f"{name}: not found, though {CROISSANT} names it"
    elif digest(path) != file.get("sha256"):
        yield f"{name}: is not the file that {CROISSANT} describes; its hash differs"


def _local(file: dict) -> str:
    return str(file.get("contentUrl", "")).rsplit("/", 1)[-1]


def _record_set(told: dict, files: dict, sound: dict[str, Path]) -> Iterator[str]:
    """Whether a record set's columns are there, of the type said, and all described."""
    name = told.get("@id")
    described: dict[str, set[str]] = {}
    for field in _each(told, "field"):
        file, column = _place(field)
        if file not in files:
            yield f"{CROISSANT}: {field.get('@id')} comes from {file}, which is not in the distribution"
            continue
        described.setdefault(file, set()).add(column)
        if file in sound:
            types = tables.types(sound[file])
            if column not in types:
                yield f"{file}: has no column {column}, though {CROISSANT} describes it"
            elif croissant.TYPES.get(types[column]) != field.get("dataType"):
                said = field.get("dataType")
                yield f"{file}: column {column} holds {types[column]}, and {CROISSANT} says {said}"
    if len(described) != 1:
        yield f"{CROISSANT}: record set {name} takes its fields from {len(described)} files; it must be one"
    for file, columns in described.items():
        for column in sorted(set(tables.types(sound[file])) - columns if file in sound else ()):
            yield f"{CROISSANT}: does not describe column {column} of {file}"


def _read(told: dict, sound: dict[str, Path]) -> pd.DataFrame:
    """Every record of a record set, under the names of its fields."""
    fields = _each(told, "field")
    file = _place(fields[0])[0]
    frame = pd.concat(tables.batches(sound[file]), ignore_index=True)
    return frame[[_place(f)[1] for f in fields]].set_axis([f["name"] for f in fields], axis=1)


def _references(told: dict, frames: dict[str, pd.DataFrame]) -> Iterator[str]:
    for record_set in _each(told, "recordSet"):
        name = record_set["@id"]
        frame = frames[name]
        key = [k["@id"].split("/")[1] for k in _each(record_set, "key")]
        if key and (frame[key].isna().any(axis=None) or frame.duplicated(key).any()):
            yield f"{name}: {', '.join(key)} do not name its rows: a name is empty or stands twice"
        for field in _each(record_set, "field"):
            if "references" in field:
                other, column = field["references"]["field"]["@id"].split("/")
                values = set(frame[field["name"]].dropna())
                if strange := sorted(values - set(frames.get(other, pd.DataFrame({column: []}))[column])):
                    yield f"{name}: {field['name']} {strange[0]} is not among the {other}"


def _labelled(told: dict, frames: dict[str, pd.DataFrame], sound: dict[str, Path]) -> Iterator[str]:
    ratings = frames.get("ratings")
    if ratings is None or not ratings["simulated"].any():
        return
    n = int(ratings["simulated"].sum())
    if croissant.SIMULATED not in str(told["description"]):
        yield f"ratings: {n} rows are simulated, and {CROISSANT} does not say so"
    for name, path in sound.items():
        if tables.metadata(path).get("crossed.simulated") != "true":
            yield f"{name}: does not say in its metadata that ratings are simulated"


def _people(frames: dict[str, pd.DataFrame]) -> Iterator[str]:
    raters = frames.get("raters")
    if raters is None:
        return
    people = raters[raters["rater_kind"] == "human"]
    for name in people.loc[~people["rater_id"].str.fullmatch(r"R\d+"), "rater_id"][:_SHOWN]:
        yield f"raters: {name} is no name that a release gives; people have new ones"
    for value, n in people["attribute"].value_counts().items():
        if n < pseudonyms.SMALLEST:
            yield f"raters: only {n} people share the attribute {value}; at least {pseudonyms.SMALLEST} must"


def _private(name: str, frame: pd.DataFrame, cleared: list[str]) -> Iterator[str]:
    """Personal data in free text, and in any other column of text."""
    for column in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[column]) or pd.api.types.is_bool_dtype(frame[column]):
            continue
        free = (name, column) in _FREE or all(t.name != name for t in ALL)
        for text in frame[column].dropna().unique():
            found = certain(text, cleared) + (doubtful(text, cleared) if free else [])
            if found:
                row = int((frame[column] == text).to_numpy().argmax()) + 1
                yield f"{name}: {column} in row {row} holds what tells who somebody is ({found[0].kind})"


def _cleared(sound: dict[str, Path], name: str) -> list[str]:
    path = sound.get(f"{name}.parquet")
    return json.loads(tables.metadata(path).get("crossed.cleared", "[]")) if path else []


def _place(field: dict) -> tuple[str, str]:
    """The file and the column that a field is taken from."""
    source = field.get("source", {})
    return str(source.get("fileObject", {}).get("@id")), str(source.get("extract", {}).get("column"))


def _each(told: dict, name: str) -> list[dict]:
    value = told.get(name, [])
    return [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, dict)]


def digest(path: Path) -> str:
    """A file's SHA-256."""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
