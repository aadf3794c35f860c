"""A whole study of seventeen raters and five sources in its database: orders, export, and what reads it."""

import json
import random
import subprocess
import sys

import pandas as pd
import pytest
import sqlalchemy as sa

from annotation_app.founding import open_study
from study import design, tables
from study.store import chain, export, schema, seals


@pytest.fixture(scope="module")
def full(tmp_path_factory, study_maker):
    """The study, locked and exported, with its open database."""
    study = study_maker(tmp_path_factory.mktemp("full") / "full", raters=17, sources=5, prompts=None)
    database = open_study(study)
    rate_by_chance(database)
    seals.lock(database, "test")
    export.write(database, study.ratings)
    yield study, database
    database.close()


def rate_by_chance(database):
    rng = random.Random(4)
    with database.writing() as connection:
        a, i, m = schema.assignment, schema.item, schema.metric
        cells = connection.execute(
            sa.select(a.c.person_id, a.c.position, m.c.metric_id, m.c.low, m.c.high)
            .select_from(a.join(i).join(m, m.c.item == i.c.kind))
        ).all()  # fmt: skip
        rows = [
            {"nonce": f"n{n}", "person_id": c.person_id, "position": c.position, "version": 1,
             "metric_id": c.metric_id, "status": "ok", "value": float(rng.randint(int(c.low), int(c.high))),
             "reason": None, "tab": "", "at": database.now()}
            for n, c in enumerate(cells)
        ]  # fmt: skip
        chain.append(connection, "rating", *rows)


def test_seventeen_raters_fully_crossed_give_19380_rows(full):
    """17 raters × (350 utterances × 3 metrics + 15 encounters × 6 metrics)."""
    study, _ = full
    ratings = tables.read(study.ratings, tables.RATINGS)
    assert 17 * (350 * 3 + 15 * 6) == 19_380 == len(ratings)
    assert not ratings.duplicated(["rater_id", "label", "metric_id"]).any()


def test_an_export_of_the_whole_again_is_the_same_to_the_byte(full, tmp_path):
    study, database = full
    export.write(database, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == study.ratings.read_bytes()


def test_the_export_goes_into_a_fit_as_it_is(full):
    study, _ = full
    line = [sys.executable, "-m", "analysis", "fit", str(study.folder), "--metric", "fluency", "--json"]
    found = subprocess.run(line, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    n = json.loads(found.stdout)["provenance"]["n"]
    assert (5950, 17, 350, 5) == (n["rows_used"], n["raters"], n["items"], n["sources"])


def orders(database):
    """What the database has each rater rate, one row per block."""
    a, i = schema.assignment, schema.item
    with database.reading() as connection:
        rows = connection.execute(
            sa.select(a.c.person_id, a.c.block, a.c.label, i.c.case_id).select_from(a.join(i))
            .where(i.c.kind == "encounter").order_by(a.c.person_id, a.c.block)
        ).all()  # fmt: skip
    return pd.DataFrame(rows, columns=["rater", "block", "label", "case"])


def test_orders_in_the_database_are_balanced(full):
    """Independent shuffles put some encounter five times in one place, and some pair five times in one order."""
    _, database = full
    walk = orders(database)
    assert pd.crosstab(walk["label"], walk["block"]).max(axis=None) <= 2
    follows = walk.assign(then=walk.groupby("rater")["label"].shift(-1)).dropna()
    assert follows.groupby(["label", "then"]).size().max() <= 3
    assert (walk["case"] != walk.groupby("rater")["case"].shift(1)).all()
    assert (walk["case"] != walk.groupby("rater")["case"].shift(2)).all()


def test_the_seed_rebuilds_the_orders_that_the_database_holds(full):
    study, database = full
    items, key = tables.read(study.items, tables.ITEMS), tables.read(study.key, tables.KEY)
    again, _ = design.assignment(items, key, study.raters, study.seed)
    a = schema.assignment
    with database.reading() as connection:
        held = connection.execute(
            sa.select(a.c.person_id, a.c.position, a.c.label, a.c.block).order_by(a.c.person_id, a.c.position)
        ).all()
    expected = again.sort_values(["rater_id", "position"])[["rater_id", "position", "label", "block"]]
    assert [tuple(row) for row in expected.itertuples(index=False)] == [tuple(row) for row in held]
