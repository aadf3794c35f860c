"""What an analysis found, in full precision, with where it came from."""

import json
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import pandas as pd

from analysis.load import Loaded, Selected
from study import tables
from study.errors import StudyError

_LIBRARIES = ("numpy", "scipy", "pandas", "formulaic", "statsmodels")


@dataclass(frozen=True)
class Result:
    """One analysis: its kind, its provenance, and its tables and numbers by name.

    `values` holds plain numbers, texts, lists, dicts and data frames.
    """

    kind: str
    provenance: dict[str, object]
    values: dict[str, object] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """The result as plain dicts and lists; nan and infinity as JSON has them (null, "inf")."""
        return _plain({"kind": self.kind, "provenance": self.provenance} | self.values)


@dataclass(frozen=True)
class Answer:
    """A result in full precision, and the words and tables that say it."""

    result: Result
    text: str
    loaded: Loaded | None = None


def provenance(
    loaded: Loaded,
    selected: Selected | None = None,
    *,
    formula: str | None = None,
    seed: int | None = None,
) -> dict[str, object]:
    """Where a result comes from. Holds no clock: the same input gives the same file."""
    study = loaded.study
    known: dict[str, object] = {
        "study": study.study_id if study else None,
        "study_sha256": study.digest if study else None,
        "inputs": loaded.inputs,
        "versions": versions(),
        "seed": seed,
        "simulated": selected.simulated if selected else loaded.simulated,
    }
    if formula is not None:
        known["formula"] = formula
    if selected is not None:
        known["n"] = sizes(selected.frame)
        known["left_out"] = [{"reason": part.reason, "rows": part.rows} for part in selected.left_out]
        known["notes"] = [*loaded.notes, *selected.notes]
    return known


def sizes(frame: pd.DataFrame) -> dict[str, int]:
    """Numbers of ratings, items, raters, sources, prompts and cases, as far as the frame names them."""
    counted = {"ratings": int(frame["score"].notna().sum())}
    columns = {
        "items": "label",
        "raters": "rater",
        "sources": "source",
        "prompts": "prompt",
        "cases": "case",
    }
    for name, column in columns.items():
        if column in frame.columns and frame[column].notna().any():
            counted[name] = int(frame[column].nunique())
    return counted


def versions() -> dict[str, str]:
    """Python and the libraries that numbers pass through."""
    found = {"python": platform.python_version()}
    for name in ("crossed-raters", *_LIBRARIES):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def write_json(result: Result, path: Path) -> None:
    """The result as JSON, whole or not at all."""
    text = json.dumps(result.plain(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    _written(path, text)


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """A table of estimates as CSV in full precision, whole or not at all."""
    _written(path, frame.to_csv(index=False, lineterminator="\n"))


def folder(loaded: Loaded | None) -> Path | None:
    """Where the results of a study lie; nowhere for a bare file."""
    return loaded.study.results if loaded is not None and loaded.study else None


def keep(found: Sequence[Result], folder: Path | None, csv: Path | None, *, table: str) -> None:
    """Write each result to the folder as KIND-METRIC.json, and one table of all of them to a CSV file."""
    if folder is not None and folder.is_file():
        raise StudyError(f"{folder}: is a file; results go into a folder")
    for result in found if folder is not None else ():
        write_json(result, folder / f"{_file_name(result)}.json")
    if csv is not None:
        several = len(found) > 1
        parts = [r.values[table].assign(metric=r.values["metric"]) if several else r.values[table] for r in found]
        write_csv(pd.concat(parts, ignore_index=True), csv)


def _file_name(result: Result) -> str:
    name = "-".join([result.kind, str(result.values.get("metric") or "")]).rstrip("-")
    return re.sub(r"[^\w.-]+", "_", name)


def _written(path: Path, text: str) -> None:
    if path.is_dir():
        raise StudyError(f"{path}: is a folder; name a file to write to")
    tables.replaced(path, lambda half: half.write_text(text, encoding="utf-8"))


def _plain(value: object) -> object:
    if isinstance(value, pd.DataFrame):
        return [_plain(row) for row in value.to_dict("records")]
    if isinstance(value, pd.Series):
        return _plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
