"""Encounters as the table encounters.parquet, and back."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from study import tables
from study.records import Encounter, Spent, Turn

FILE = "encounters.parquet"
_PLAIN = ("encounter_id", "case_id", "source_id", "patient_id", "replicate", "status", "detail", "rounds")
_ALSO = ("diagnosis", "cost", "started", "ended", "config", "demo")
_SPENT = tuple(f.name for f in dataclasses.fields(Spent))


def frame(encounters: Iterable[Encounter]) -> pd.DataFrame:
    """Encounters as rows of the table."""
    return tables.typed([_row(e) for e in encounters], tables.ENCOUNTERS)


def read(path: Path) -> Iterator[Encounter]:
    """The encounters of a file, or of a benchmark's folder, in its order.

    Raises
    ------
    TableError : if there is none, or it breaks the contract
    """
    table = tables.read(path / FILE if path.is_dir() else path, tables.ENCOUNTERS)
    for row in table.to_dict("records"):
        yield _encounter({k: None if pd.isna(v) else v for k, v in row.items()})


def _row(encounter: Encounter) -> dict[str, object]:
    row = {name: getattr(encounter, name) for name in (*_PLAIN, *_ALSO)}
    for role, spent in (("doctor", encounter.doctor), ("patient", encounter.patient)):
        row |= {f"{role}_{name}": getattr(spent, name) for name in _SPENT}
    turns = [{"round": t.round, "speaker": t.speaker, "text": t.text, "flags": t.flags} for t in encounter.turns]
    return row | {
        "turns": json.dumps(turns, ensure_ascii=False),
        "candidates": json.dumps(encounter.candidates, ensure_ascii=False) if encounter.candidates else None,
        "flags": ",".join(encounter.flags) or None,
    }


def _encounter(row: Mapping[str, object]) -> Encounter:
    turns = json.loads(str(row["turns"]))
    told = {name: row[name] for name in (*_PLAIN, *_ALSO) if name not in ("rounds", "cost", "started", "ended")}
    times = {n: row[n].isoformat(timespec="microseconds") if row[n] else None for n in ("started", "ended")}
    return Encounter(
        **told,
        **times,
        turns=tuple(Turn(t["round"], t["speaker"], t["text"], tuple(t["flags"])) for t in turns),
        candidates=tuple((name, weight) for name, weight in json.loads(str(row["candidates"] or "[]"))),
        flags=tuple(str(row["flags"]).split(",")) if row["flags"] else (),
        **{role: Spent(**{n: row[f"{role}_{n}"] for n in _SPENT}) for role in ("doctor", "patient")},
    )
