"""How fast models are asked, and that memory does not grow with the answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from study import config, folder

pytestmark = pytest.mark.benchmark_only
HERE = Path(__file__)

SERVER = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("loopback", sys.argv[1])
loopback = importlib.util.module_from_spec(spec)
sys.modules["loopback"] = loopback
spec.loader.exec_module(loopback)
print(loopback.Loopback(delay=float(sys.argv[2])).url, flush=True)
time.sleep(600)
"""
ASK = """
import json, sys, time
from pathlib import Path
import openai, pandas, pyarrow.parquet
from generation.run import run
from study import config
study = config.load(Path(sys.argv[1]))
begun = time.perf_counter()
outcome = run(study)
print(json.dumps({"seconds": time.perf_counter() - begun, "open": outcome.open, "cells": outcome.cells}))
"""
REMEMBER = """
import json, resource, sys
from pathlib import Path
from generation.answers import Answers
from generation.journal import Journal
from generation.run import JOURNAL, grid, opened, write_responses
from study import config
study = config.load(Path(sys.argv[1]))
content = study.content()
cells = list(grid(study, content, opened(study, content)))
with Journal(study.path(JOURNAL)) as journal:
    answers = Answers.read(journal.path)
    def grown():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    marks = [grown()]
    for n, cell in enumerate(cells, 1):
        record = {"event": "answered", "key": cell.key, "prompt_id": cell.prompt.prompt_id, "case_id": "HEM",
                  "source_id": cell.source.source_id, "status": "ok", "text": "네, 없어요. " * 20, "detail": None,
                  "attempts": 1, "model": "m", "asked_at": "2026-11-30T00:00:00.000000+00:00",
                  "answered_at": "2026-11-30T00:00:00.000000+00:00", "by_attempt": True}
        answers.add(record, journal.append(record, durable=False))
        if n in (len(cells) // 10, len(cells)):
            marks.append(grown())
    write_responses(study, content, answers, cells, {})
    marks.append(grown())
print(json.dumps({"rows": len(cells), "mb": marks}))
"""


def study_of(path, prompts, url="http://127.0.0.1:9/v1", sources=1):
    """A study of so many prompts, copies of the shipped ones under other names."""
    folder.new(path)
    file = path / "prompts.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    shipped = document["prompts"]
    document["prompts"] = [
        shipped[n % len(shipped)] | {"prompt_id": f"{shipped[n % len(shipped)]['prompt_id']}-{n}", "turn": n}
        for n in range(prompts)
    ]
    file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    toml = path / "study.toml"
    text = toml.read_text(encoding="utf-8")
    rows = "".join(
        f'[[source]]\nid = "m{n}"\nkind = "openai_chat"\nmodel = "m"\nbase_url = "{url}"\nconcurrency = 16\n\n'
        for n in range(sources)
    )
    toml.write_text(text[: text.index("[[source]]")] + rows + text[text.index("[panel]") :], encoding="utf-8")
    return config.load(path)


def told(code, *args):
    command = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_thousand_calls_take_little_more_than_the_server_does(tmp_path):
    loopback = HERE.parents[1] / "loopback.py"
    command = [sys.executable, "-c", SERVER, str(loopback), "0.05"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        study = study_of(tmp_path / "s", 1000, server.stdout.readline().strip())
        found = told(ASK, study.folder)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    print(f"\n1,000 calls at concurrency 16 and 50 ms: {found['seconds']:.2f} s; the server alone 3.13 s")
    assert (0, 1000) == (found["open"], found["cells"])
    assert found["seconds"] <= 1.15 * (1000 / 16 * 0.05) + 1


def test_memory_stays_flat_over_a_hundred_thousand_rows(tmp_path):
    study = study_of(tmp_path / "s", 25_000, sources=4)
    found = told(REMEMBER, study.folder)
    start, tenth, end, written = found["mb"]
    asked, last = end - start, written - end
    print(f"\n{found['rows']:,} rows: {start:.0f} MB at the start, {asked:+.0f} MB asked, {last:+.0f} MB written")
    assert 100_000 == found["rows"]
    assert end - tenth < 30  # a name and a place for each answer, and no text
    assert written - end < 150  # Arrow and pandas themselves, and one part of the table


@pytest.mark.parametrize("command", [["run"], ["status"], ["verify"], ["export-batch"], ["expert", "export"]])
def test_help_answers_at_once(command):
    # CPU seconds: a busy machine stretches the clock on the wall and not the work.
    times = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, "-m", "generation", *command, "--help"], capture_output=True, check=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    print(f"\ngeneration {' '.join(command)} --help: {min(times):.2f} s")
    assert min(times) < 0.3
