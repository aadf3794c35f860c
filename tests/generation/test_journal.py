import json
import subprocess
import sys
import tracemalloc

import pytest

from generation.journal import Journal, read_at, records
from study.errors import StudyError


def test_what_is_appended_is_read_again(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        places = [journal.append({"n": n, "text": "네, 없어요."}) for n in range(3)]
    assert [(p, n) for p, n in zip(places, range(3), strict=True)] == [(p, r["n"]) for p, r in records(path)]
    assert [r["n"] for r in read_at(path, iter([places[2], places[0]]))] == [2, 0]


def test_no_journal_has_no_record(tmp_path):
    assert list(records(tmp_path / "none.jsonl")) == []


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_half_written_last_line_is_passed_over_and_writing_goes_on(tmp_path, cut):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append({"n": 1})
        journal.append({"text": "가나다라"})
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [r["n"] for _, r in records(path)] == [1]
    with Journal(path) as journal:
        journal.append({"n": 3})
    assert [r["n"] for _, r in records(path) if "n" in r] == [1, 3]
    assert path.read_bytes().startswith(whole[:-cut])


def test_a_line_that_a_kill_does_not_explain_is_named(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"n":1}\n{"n":\n{"n":3}\n')
    with pytest.raises(StudyError, match=r"journal.jsonl:2: cannot be read"):
        list(records(path))
    path.write_text('{"n":1}\nnonsense\n')
    with pytest.raises(StudyError, match=r"journal.jsonl:2: cannot be read"):
        list(records(path))


def test_two_runs_cannot_write_at_once(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(StudyError, match="another run is writing"):
        Journal(path)
    Journal(path).close()


def test_a_killed_run_leaves_no_lock(tmp_path):
    path = tmp_path / "journal.jsonl"
    code = (
        "import os, signal, sys; from pathlib import Path; from generation.journal import Journal\n"
        "Journal(Path(sys.argv[1])).append({'n': 1}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    with Journal(path) as journal:
        journal.append({"n": 2})
    assert [r["n"] for _, r in records(path)] == [1, 2]


def test_reading_needs_no_memory_for_the_rows(tmp_path):
    path = tmp_path / "journal.jsonl"
    line = json.dumps({"text": "네, 없어요. " * 30}, ensure_ascii=False) + "\n"
    path.write_text(line * 20_000, encoding="utf-8")
    tracemalloc.start()
    try:
        assert sum(1 for _ in records(path)) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
