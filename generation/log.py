"""What sources answered, a line each, appended and on disk before the next is asked.

A journal only grows. The last line on a question to a source counts; a half-written last line, left by a machine
that stopped, is passed over and closed off before anything is added.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

from study.errors import StudyError
from study.records import Response

_FIELDS = ("prompt_id", "case_id", "source_id", "status", "text", "detail")


class Journal:
    """The journal of one study's responses, open for adding."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        half = self._path.is_file() and self._path.stat().st_size > 0 and not _ends_whole(self._path)
        self._file = open(self._path, "ab")
        if half:
            self._file.write(b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, response: Response, question: str) -> None:
        """Write one response, and have it on disk on return. `question` names what was asked of whom."""
        if self._file is None:
            raise ValueError("the journal is not open")
        row = {"question": question} | {name: getattr(response, name) for name in _FIELDS}
        self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read(path: Path) -> dict[tuple[str, str], tuple[str, Response]]:
    """The last response to each prompt by each source, with its question's name.

    Raises
    ------
    StudyError : if a line other than the last cannot be read
    """
    found: dict[tuple[str, str], tuple[str, Response]] = {}
    for question, response in _lines(path):
        found[response.prompt_id, response.source_id] = (question, response)
    return found


def _lines(path: Path) -> Iterator[tuple[str, Response]]:
    if not path.is_file():
        return
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield row["question"], Response(**{name: row[name] for name in _FIELDS})
        except (ValueError, KeyError, TypeError):
            if not _cut_short(line):
                raise StudyError(f"{path}:{number}: is not a line of a response journal; "
                                 "move the file away to begin a new one") from None


def _cut_short(line: bytes) -> bool:
    """Whether a line is the beginning of one of ours."""
    return line.startswith(b'{"question"'[: len(line)]) and not line.rstrip().endswith(b"}")


def _ends_whole(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
