"""How fast the rating pages answer under load, and what they cost; driver and server share the machine."""

import asyncio
import os
from pathlib import Path

import pytest

from annotation_app import rehearsal
from annotation_app.founding import open_study

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def resident_mb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@pytest.mark.benchmark_only
@pytest.mark.parametrize("raters", [1, 20, 50])
def test_a_save_takes_50_ms_and_hardly_ever_150(tmp_path, study_maker, server_for, raters):
    study = study_maker(tmp_path / "load", raters=17, sources=5, prompts=None)
    database = open_study(study)
    tokens = [rehearsal.ready_rater(database) for _ in range(raters)]
    server = server_for(f"sqlite:///{study.folder / 'ratings.db'}")
    before = cpu_seconds(server.process.pid)
    found = asyncio.run(rehearsal.rehearse(server.url, tokens, seconds=60, think=3.0))
    runs = max(1, int(found["saves"] * 4 / 3))
    cpu = 1000 * (cpu_seconds(server.process.pid) - before) / runs
    print(f"\n{raters} raters: {found}, {cpu:.1f} CPU-ms per run, {resident_mb(server.process.pid):.0f} MB")
    database.close()
    assert found["errors"] == 0
    assert resident_mb(server.process.pid) <= 150
    assert found["save_p50_ms"] <= 50
    assert found["save_p95_ms"] <= 150
