"""Ratings as they are given: kept once, on the scale, in their cell, never overwritten unseen."""

import contextlib
import itertools
import random
import threading

import pytest
import sqlalchemy as sa

from study.store import ratings, schema
from study.store.database import Conflict, Refused, StoreError, open_database

RATER = "rater-01"
NONCE = (f"nonce-{n}" for n in itertools.count())


def save(
    database, value=None, *, position=1, metric="fluency", base=0, nonce=None, rater=RATER, tab="", reason=None
):
    return ratings.save(
        database, rater, position, metric, value=value, reason=reason, base_version=base,
        nonce=nonce or next(NONCE), tab=tab,
    )  # fmt: skip


def events(database) -> int:
    with database.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(schema.rating_event)).scalar_one()


def held(database, position=1, metric="fluency", rater=RATER):
    with database.reading() as connection:
        return ratings.mark(connection, rater, position, metric)


def test_a_saved_rating_is_held(database):
    save(database, 4)
    assert held(database).value == 4


@pytest.mark.parametrize("value", [0, 6, 99, -3, 2.5, float("nan"), float("inf"), "3; DROP TABLE", "4", True])
def test_a_value_off_the_scale_is_refused(database, value):
    with pytest.raises(Refused):
        save(database, value)
    assert events(database) == 0


@pytest.mark.parametrize("value", [0, 6, 2.5])
def test_the_database_itself_refuses_a_value_off_the_scale(database, value):
    row = dict(seq=10_000, nonce="n", person_id=RATER, position=1, metric_id="fluency", version=1, status="ok",
               value=value, tab="", at="now", salt="")  # fmt: skip
    with pytest.raises(Refused), database.writing() as connection:
        connection.execute(sa.insert(schema.chain), dict(seq=10_000, kind="rating", digest="", hash=""))
        connection.execute(sa.insert(schema.rating_event), row)


def test_the_database_itself_refuses_an_ok_without_a_value(database):
    row = dict(seq=10_000, nonce="n", person_id=RATER, position=1, metric_id="fluency", version=1, status="ok",
               value=None, tab="", at="now", salt="")  # fmt: skip
    with pytest.raises(Refused), database.writing() as connection:
        connection.execute(sa.insert(schema.chain), dict(seq=10_000, kind="rating", digest="", hash=""))
        connection.execute(sa.insert(schema.rating_event), row)


def test_a_metric_of_another_kind_of_item_is_refused(database):
    with pytest.raises(Refused):
        save(database, 3, metric="coherence")


def test_an_unassigned_position_is_refused(database):
    with pytest.raises(Refused, match="not assigned"):
        save(database, 3, position=999)


def test_a_stranger_cannot_rate(database):
    with pytest.raises(Refused, match="not assigned"):
        save(database, 3, rater="rater-99")


def test_cannot_judge_needs_one_of_the_reasons(database):
    with pytest.raises(Refused):
        save(database, reason="bored")
    assert save(database, reason="unclear").content == (None, "unclear")


def test_a_value_and_a_reason_together_are_refused(database):
    with pytest.raises(Refused):
        save(database, 3, reason="unclear")


def test_the_same_click_twice_is_one_event(database):
    assert save(database, 4, nonce="once") == save(database, 4, nonce="once")
    assert events(database) == 1


def test_a_nonce_cannot_be_used_for_another_cell(database):
    save(database, 4, nonce="once")
    with pytest.raises(Refused, match="nonce"):
        save(database, 4, nonce="once", metric="accuracy")


def test_two_parallel_identical_saves_are_one_event(database):
    failures = []

    def click():
        try:
            save(database, 4, nonce="both")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=click) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert events(database) == 1


def test_a_changed_rating_keeps_its_history_and_holds_the_latest(database):
    save(database, 3)
    save(database, 5, base=1)
    assert (held(database).value, held(database).version, events(database)) == (5, 2, 2)


def test_a_write_on_a_stale_view_is_a_conflict(database):
    save(database, 3)
    with pytest.raises(Conflict):
        save(database, 5, base=0)
    assert held(database).value == 3


def test_a_thousand_interleavings_of_two_windows_overwrite_nothing_unseen(database):
    """Each window writes on what it saw last; every accepted write is on the version that held."""
    rng = random.Random(7)
    seen, version, value = {"a": 0, "b": 0}, 0, None
    for _ in range(1000 if database.engine.dialect.name == "sqlite" else 200):
        tab, act = rng.choice("ab"), rng.random()
        if act < 0.3:
            seen[tab] = held(database).version
            continue
        new = rng.randint(1, 5)
        try:
            save(database, new, base=seen[tab], tab=tab)
        except Conflict:
            assert seen[tab] != version
            continue
        assert seen[tab] == version
        seen[tab] = version = version + 1
        value = new
    assert (held(database).value, held(database).version) == (value, version)


def test_many_writers_at_once_lose_nothing(database):
    def write(rater):
        for position in (1, 2, 3):
            for metric in ("fluency", "accuracy", "contextual_relevance"):
                save(database, 3, position=position, metric=metric, rater=rater)

    threads = [threading.Thread(target=write, args=(f"rater-0{n}",)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert events(database) == 27


def test_a_rating_cannot_be_updated_or_deleted_in_the_database(database):
    save(database, 3)
    with pytest.raises(Refused, match="append-only"), database.writing() as connection:
        connection.execute(sa.update(schema.rating_event).values(value=5))
    with pytest.raises(Refused, match="append-only"), database.writing() as connection:
        connection.execute(sa.delete(schema.rating_event))
    assert held(database).value == 3


def rate_all(database, position, rater=RATER):
    with database.reading() as connection:
        missing = ratings.missing_at(connection, rater, position)
    for metric in missing:
        save(database, 3, position=position, metric=metric, rater=rater)


def position(database):
    with database.reading() as connection:
        return ratings.position_of(connection, RATER)


def test_next_waits_until_everything_here_is_rated(database):
    save(database, 3)
    with pytest.raises(Refused, match="accuracy"):
        ratings.advance(database, RATER, 1)
    assert position(database) == 1


def test_a_double_click_on_next_is_one_step(database):
    rate_all(database, 1)
    rate_all(database, 2)
    assert [ratings.advance(database, RATER, 1), ratings.advance(database, RATER, 1)] == [True, False]
    assert position(database) == 2


def test_five_hundred_random_steps_never_skip_an_unrated_item(database):
    """Next, Back, jump, with stale positions among them, as from reloads and other windows."""
    rng = random.Random(3)
    for _ in range(500 if database.engine.dialect.name == "sqlite" else 100):
        seen = max(1, position(database) + rng.choice([0, 0, 0, -1, 1]))
        act = rng.random()
        if act < 0.4:
            rate_all(database, seen)
        elif act < 0.7:
            with contextlib.suppress(Refused):
                ratings.advance(database, RATER, seen)
        elif act < 0.95:
            ratings.retreat(database, RATER, seen)
        else:
            ratings.jump(database, RATER, seen)
        with database.reading() as connection:
            first = ratings.first_open(connection, RATER)
        assert first is None or position(database) <= first


def test_jump_leads_to_the_first_unrated_item(database):
    rate_all(database, 1)
    ratings.advance(database, RATER, 1)
    ratings.retreat(database, RATER, 2)
    ratings.jump(database, RATER, 1)
    assert position(database) == 2


def test_progress_counts_what_the_database_holds(database):
    rate_all(database, 1)
    save(database, 5, base=1)
    with database.reading() as connection:
        progress = ratings.progress(connection, RATER)
    assert (progress.rated, progress.cells, progress.positions) == (3, 18 * 3 + 6 * 6, 24)


def test_the_same_position_has_another_name_for_every_rater(database):
    with database.reading() as connection:
        names = {ratings.opaque(connection, r, p) for r in ("rater-01", "rater-02") for p in (1, 2)}
    assert len(names) == 4


def test_a_dialogue_shows_nothing_after_the_item_itself(database):
    with database.reading() as connection:
        item = ratings.item_at(connection, RATER, 2)
        turns = [t.turn for t in ratings.dialogue(connection, item)]
    assert turns == [1, 2]


def test_a_full_disk_loses_nothing_and_says_so(small_study):
    from annotation_app.founding import open_study

    database = open_study(small_study)
    save(database, 3)
    with database.engine.connect() as connection:  # the file may not grow: the disk is full
        pages = connection.exec_driver_sql("pragma page_count").scalar_one()
    sa.event.listen(database.engine, "connect", lambda c, _: c.execute(f"pragma max_page_count = {pages}"))
    database.engine.dispose()
    with pytest.raises(StoreError, match="try again"):
        for n in range(500):
            save(database, 4 if n % 2 else 5, base=1 + n)
    kept = events(database)
    assert held(database).version == kept
    database.close()


def test_an_unreachable_database_is_one_sentence():
    with pytest.raises(StoreError, match="nothing is half written"):
        open_database("postgresql://nobody@127.0.0.1:9/none?connect_timeout=1")


def test_a_lost_connection_is_made_again(fresh_postgres, small_study):
    from annotation_app.founding import open_study

    database = open_study(small_study, fresh_postgres)
    with database.engine.connect() as connection:
        connection.exec_driver_sql(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
    save(database, 4)
    assert held(database).value == 4
    database.close()


def test_a_read_only_database_is_a_reason_to_try_again(fresh_postgres, small_study):
    """As after a failover to a standby: everything can be read, nothing written."""
    from annotation_app.founding import open_study

    database = open_study(small_study, fresh_postgres)
    with database.engine.connect() as connection:
        name = connection.exec_driver_sql("select current_database()").scalar_one()
        connection.exec_driver_sql(f"alter database {name} set default_transaction_read_only = on")
        connection.commit()
    database.engine.dispose()
    with pytest.raises(StoreError, match="try again"):
        save(database, 4)
    assert not held(database).given
    database.close()
