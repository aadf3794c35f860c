"""An append-only file of JSON lines that survives being killed: what was asked, and what came back.

A line is durable before it counts. A line that a kill left half written stays where it is and is passed over; any
other line that cannot be read is an error, since then something is lost that was paid for.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from study.errors import StudyError

Record = dict[str, object]
_MENDED = "mended"


class Journal:
    """A journal open for appending; one process at a time.

    Raises
    ------
    StudyError : if another process has it open
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed with the journal
        self._lock = threading.Lock()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise StudyError(f"{path}: another run is writing to it; wait for it, or stop it") from None
        self._mend()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def append(self, record: Mapping[str, object], *, durable: bool = True) -> int:
        """Write one record; returns where it stands. A durable one is on the disk when this returns."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        with self._lock:
            place = os.fstat(self._file.fileno()).st_size
            self._file.write(line)
        if durable:
            os.fsync(self._file.fileno())  # outside the lock: the kernel joins what several threads wait for
        return place

    def _mend(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        if not size:
            return
        with open(self.path, "rb") as written:
            written.seek(size - 1)
            if written.read() == b"\n":
                return
        self._file.write(b"\n")
        self.append({"event": _MENDED})


def records(path: Path) -> Iterator[tuple[int, Record]]:
    """Every record of a journal with its place; one at a time, so that memory does not grow with the file.

    Raises
    ------
    StudyError : for a line that cannot be read and is not one that a kill cut short
    """
    if not path.exists():
        return
    broken: int | None = None
    place = number = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            record = _parsed(line)
            if broken is not None and (record or {}).get("event") != _MENDED:
                raise StudyError(f"{path}:{broken}: cannot be read; restore this line from a copy of the file")
            if record is None:
                broken = number
            else:
                broken = None
                yield place, record
            place += len(line)
        if broken is not None and line.endswith(b"\n"):
            raise StudyError(f"{path}:{broken}: cannot be read; restore this line from a copy of the file")


def read_at(path: Path, places: Iterator[int]) -> Iterator[Record]:
    """The records that stand at these places, in the order given."""
    with open(path, "rb") as file:
        for place in places:
            file.seek(place)
            yield json.loads(file.readline())


def _parsed(line: bytes) -> Record | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return record if isinstance(record, dict) else None
