"""The commands: each answers in words and in JSON, and refuses in one sentence."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from annotation_app import rehearsal
from annotation_app.cli import _shown


def command(*arguments):
    line = [sys.executable, "-m", "annotation_app", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True)


def test_an_invitation_is_a_link(small_study):
    found = command("invite", small_study.folder, "--person", "rater-02", "--json")
    assert json.loads(found.stdout)["rater-02"].startswith("http://127.0.0.1:8501/enter/")


def test_a_stranger_is_not_invited(small_study):
    found = command("invite", small_study.folder, "--person", "nobody")
    assert (found.returncode, "panel" in found.stderr, found.stderr.count("\n")) == (1, True, 1)


def test_the_lock_lists_the_gaps_and_exits_with_1(small_study):
    found = command("lock", small_study.folder)
    assert found.returncode == 1
    assert found.stderr.count("90 ratings missing") == 3


def test_status_by_code_names_no_source(small_study):
    found = command("status", small_study.folder, "--by-code")
    assert found.returncode == 0
    assert not [s.source_id for s in small_study.sources if s.source_id in found.stdout]


def test_unblinding_comes_after_the_lock_and_names_the_sources(small_study):
    refused = command("unblind", small_study.folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    for rater in small_study.raters:
        command("excuse", small_study.folder, "--person", rater, "--reason", "test")
    assert command("lock", small_study.folder).returncode == 0
    codes = json.loads(command("unblind", small_study.folder, "--json").stdout)["codes"]
    assert set(codes.values()) == {s.source_id for s in small_study.sources}


def test_withdraw_backup_verify_and_export_work_together(small_study, tmp_path):
    assert command("backup", small_study.folder, "--to", tmp_path / "copy.db").returncode == 0
    receipt = command("withdraw", small_study.folder, "--person", "rater-03", "--yes")
    assert "copy.db" in receipt.stdout
    assert "the chain holds" in command("verify", small_study.folder).stdout
    rows = json.loads(command("export", small_study.folder, "--json").stdout)
    assert rows["ratings.parquet"] == 180


@pytest.mark.parametrize("name", ["serve", "invite", "status", "lock", "export", "unblind", "withdraw"])
def test_help_has_an_example(name):
    assert "Example: annotation_app" in command(name, "--help").stdout


def test_serve_prints_a_link_per_role_and_a_rehearsal_rates_on_it(small_study):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words = ("serve", str(small_study.folder), "--port", str(port), "--links")
    line = [sys.executable, "-m", "annotation_app", *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            links = dict(server.stdout.readline().split() for _ in range(3))
            assert {"rater", "expert", "coordinator"} == set(links)
            wait_for(f"{url}/readyz")
            assert all(rehearsal.enter(url, link.rsplit("/", 1)[1]) for link in links.values())
            load = ("--url", url, "--raters", "2", "--seconds", "4", "--think", "0.2", "--json")
            found = command("rehearse", small_study.folder, *load)
        finally:
            server.kill()
    figures = json.loads(found.stdout)
    assert (figures["errors"], figures["raters"]) == (0, 2)
    assert figures["saves"] > 0


def test_a_rehearsal_without_a_server_is_one_sentence_and_makes_no_rater(small_study):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        found = command("rehearse", small_study.folder, "--url", url, "--raters", "1")
    assert (found.returncode, found.stderr.count("\n")) == (1, 1)
    assert f"{url}: no rating pages answer there" in found.stderr
    assert "preview" not in command("status", small_study.folder).stdout


@pytest.mark.parametrize(
    "words", [("invite", "--days", "0"), ("rehearse", "--raters", "0"), ("rehearse", "--seconds", "-2")]
)
def test_no_link_that_has_run_out_and_no_rehearsal_of_nothing(small_study, words):
    assert command(words[0], small_study.folder, *words[1:]).returncode == 2


def test_status_prints_no_negative_zero():
    assert _shown(-0.001) == "0.00"


def wait_for(address):
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError(f"{address} never answered")
