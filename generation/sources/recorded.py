"""Answers that were given elsewhere: a CSV or Parquet file with columns prompt_id and text."""

from pathlib import Path

from generation.sources.speaker import Answer, Request, check_settings, said
from study.errors import StudyError, joined
from study.records import Content, Source


def open_source(source: Source, content: Content, folder: Path) -> "Recorded":
    """The answers of a file, each to a prompt of the study.

    Raises
    ------
    StudyError : if the file is absent or no table, lacks a column, or answers a prompt twice or an unknown one
    """
    check_settings(source, ("file",))
    name = source.settings.get("file")
    if not isinstance(name, str) or not name:
        raise StudyError(f"study.toml: source {source.source_id} is recorded and needs file = \"answers.csv\"")
    return Recorded(_texts(folder / name, {p.prompt_id for p in content.prompts}))


class Recorded:
    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def answer(self, request: Request) -> Answer:
        if request.prompt is None or request.prompt.prompt_id not in self._texts:
            return Answer("missing", detail="the recorded file has no answer to this prompt")
        return said(self._texts[request.prompt.prompt_id])


def _texts(path: Path, prompts: set[str]) -> dict[str, str]:
    import pandas as pd

    from study.tables import read_parquet

    if not path.is_file():
        raise StudyError(f"{path}: no such file; it should hold the columns prompt_id and text")
    try:
        frame = read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError):
        raise StudyError(f"{path}: is not a CSV table in UTF-8 with columns prompt_id and text") from None
    missing = [c for c in ("prompt_id", "text") if c not in frame.columns]
    if missing:
        raise StudyError(f"{path}: lacks the column {missing[0]}; it has {', '.join(map(str, frame.columns))}")
    answered = frame.dropna(subset=["text"])
    problems = [f"{path}: prompt {i} is answered twice" for i in _again(answered["prompt_id"])]
    problems += [f"{path}: {i} is not a prompt of this study" for i in sorted(set(frame["prompt_id"]) - prompts)]
    if problems:
        raise StudyError(joined(problems))
    return dict(zip(answered["prompt_id"], answered["text"], strict=True))


def _again(ids: "object") -> list[str]:
    listed = list(ids)  # type: ignore[call-overload]
    return sorted({str(i) for i in listed if listed.count(i) > 1})
