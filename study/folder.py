"""Making a study folder: from the template, or around imported ratings."""

import json
import shutil
from pathlib import Path

import pandas as pd

from study import tables
from study.config import FILE, Study, load
from study.content import shipped
from study.errors import StudyError
from study.importers.long import Imported

_TEMPLATE = Path(__file__).parent / "template"
CONTENT = ("cases.json", "prompts.json", "checklists.json")
_SEED = 20261130


def new(folder: Path, *, title: str | None = None, seed: int = _SEED, simulated: bool = False) -> Study:
    """A study folder from the template, with the shipped cases and prompts to start from.

    Raises
    ------
    StudyError : if the folder holds something already
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StudyError(f"{folder}: is there already and not empty; name a new folder")
    study_id = _id(folder)
    text = toml(study_id, title or study_id, seed)
    if simulated:
        text += (_TEMPLATE / "demo.toml").read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    for name in CONTENT:
        shutil.copyfile(shipped(name), folder / name)
    _write_text(folder / FILE, text)
    return load(folder)


def toml(study_id: str, title: str, seed: int, *, sources: str = "sources.toml", content: str = "") -> str:
    """The text of a study.toml from the template.

    Parameters
    ----------
    sources : the template's file of sources
    content : what stands before the names of the content files, as `../`
    """
    parts = {
        "id": study_id, "seed": str(seed), "content": content,
        "sources": (_TEMPLATE / sources).read_text(encoding="utf-8"), "title": _toml_inner(title),
    }  # fmt: skip
    text = (_TEMPLATE / "study.toml").read_text(encoding="utf-8")
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def from_ratings(
    folder: Path,
    imported: Imported,
    origin: str,
    inferred: bool = False,
    *,
    made_by: str = "study import",
    title: str | None = None,
    raters: tuple[str, ...] = (),
    seed: int = _SEED,
    sections: str = "",
) -> Study:
    """A study folder around ratings collected elsewhere: study.toml, items, key and ratings.

    Parameters
    ----------
    inferred : the scales' ends are the lowest and highest scores found
    raters : people who are to rate; those who have rated where none are named
    sections : further sections of study.toml

    Raises
    ------
    StudyError : if the folder holds a study already
    """
    if (folder / FILE).exists():
        raise StudyError(f"{folder}: holds a study already; add to it with --add, or name a new folder")
    tables.check_ratings(imported.ratings, imported.metrics)
    tables.check(imported.items, tables.ITEMS, "items")
    folder.mkdir(parents=True, exist_ok=True)
    head = [
        f"# Made by `{made_by}` from {origin}.",
        "# The first source is the reference that the others are compared with: reorder them as you like.",
        "",
        "[study]",
        f"id = {_quoted(_id(folder))}",
        f"title = {_quoted(title or 'Ratings imported from ' + origin)}",
        f"seed = {seed}",
        "",
        "[panel]",
        f"raters = [{', '.join(_quoted(p) for p in raters or _people(imported))}]",
    ]
    _write_text(folder / FILE, "\n".join([*head, *_imported_rows(imported, inferred)]) + "\n" + sections)
    study = load(folder)
    tables.write(imported.items, study.items, tables.ITEMS)
    tables.write(imported.key, study.key, tables.KEY)
    if len(imported.ratings):
        tables.write(imported.ratings, study.ratings, tables.RATINGS)
    return study


def add_ratings(study: Study, ratings: pd.DataFrame) -> int:
    """Ratings joined to those that the study has; returns how many it has then.

    Raises
    ------
    TableError : for a rating that the study has already, or one off a metric's scale
    """
    both = pd.concat([tables.read(study.ratings, tables.RATINGS), ratings], ignore_index=True)
    tables.check_ratings(both, study.metrics)
    tables.write(both, study.ratings, tables.RATINGS, tables.metadata(study.ratings))
    return len(both)


def _people(imported: Imported) -> tuple[str, ...]:
    return tuple(imported.ratings.loc[imported.ratings["rater_kind"] == "human", "rater_id"].unique())


def _imported_rows(imported: Imported, inferred: bool) -> list[str]:
    """The sources and metrics as lines of study.toml."""
    lines: list[str] = []
    for source in imported.sources:
        lines += ["", "[[source]]", f"id = {_quoted(source)}", 'kind = "imported"']
    for m in imported.metrics:
        lines += ["", "[[metric]]", f"id = {_quoted(m.metric_id)}", f'item = "{m.item}"']
        lines += [f"low = {m.low:g}" + ("     # lowest score found; set the scale's own" if inferred else "")]
        lines += [f"high = {m.high:g}" + ("    # highest score found; set the scale's own" if inferred else "")]
        lines += [f'level = "{m.level}"']
        if m.step is None:
            lines += ["step = 0                # any value between low and high"]
        if m.question:
            lines += [f"question = {_quoted(m.question)}"]
        if m.anchors:
            lines += [f"anchors = [{', '.join(_quoted(a) for a in m.anchors)}]"]
    return lines


def _write_text(path: Path, text: str) -> None:
    tables.replaced(path, lambda half: half.write_text(text, encoding="utf-8"))


def _id(folder: Path) -> str:
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in folder.resolve().name)
    return name.strip("-._") or "study"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a TOML basic string


def _toml_inner(text: str) -> str:
    return _quoted(text)[1:-1]
