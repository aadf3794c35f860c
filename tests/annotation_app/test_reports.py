"""What users of other rating tools reported, acted out here: lost, skipped, shared or miscounted answers."""

import asyncio
import contextlib
import re

import pytest
import sqlalchemy as sa

from annotation_app import rehearsal
from annotation_app.founding import open_study
from annotation_app.rehearsal import Visitor, enter
from study import config
from study.store import chain, people, ratings, schema, traces

RATER = "rater-01"
NEXT, BACK, UNRATED = "다음", "이전", "안 한 곳으로"


@contextlib.contextmanager
def opened(study, server_for, url=None):
    database = open_study(study, url)
    server = server_for(url or f"sqlite:///{study.folder / 'ratings.db'}")
    yield database, server
    database.close()


@pytest.fixture
def live(small_study, server_for):
    with opened(small_study, server_for) as (database, server):
        yield database, server


def cookie_of(database, server, rater=RATER):
    return enter(server.url, rehearsal.ready_rater(database, rater))


def option(radio, value):
    return next(o for o in radio.options if o.startswith(f"**{value}**"))


async def rate_here(visitor, value=4):
    for number in range(len(visitor.page.radios)):
        await visitor.choose(visitor.page.radios[number], option(visitor.page.radios[number], value))


def marks(database, position=1, rater=RATER):
    with database.reading() as connection:
        return {k: m.value for k, m in ratings.marks(connection, rater, position).items()}


def standing(database, rater=RATER):
    with database.reading() as connection:
        return ratings.standing(connection, rater)


def test_the_page_does_not_go_on_while_a_save_fails(small_study, server_for, fresh_postgres):
    """The database can be read and not written: said at once, Next stays closed, and it is saved later."""
    with opened(small_study, server_for, fresh_postgres) as (database, server):
        cookie = cookie_of(database, server)

        async def act():
            async with Visitor(server.url, cookie) as visitor:
                await rate_here(visitor)
                read_only(database, "on")
                radio = visitor.page.radios[0]
                page = await visitor.choose(radio, option(radio, 2))
                assert "cr-unsaved" in page.text
                assert NEXT in page.disabled
                assert "저장" in page.text
                read_only(database, "off")
                page = await visitor.send()
                assert "cr-saved" in page.text

        asyncio.run(act())
        assert marks(database)["fluency"] == 2


def read_only(database, state):
    with database.engine.connect() as connection:
        connection.exec_driver_sql("set default_transaction_read_only = off")
        connection.commit()
        name = connection.exec_driver_sql("select current_database()").scalar_one()
        connection.exec_driver_sql(f"alter database {name} set default_transaction_read_only = {state}")
        connection.exec_driver_sql(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        connection.commit()


def test_a_refresh_after_consent_neither_repeats_nor_skips_a_page(live):
    database, server = live
    cookie = enter(server.url, people.invite(database, RATER, who="test"))

    async def act():
        pages = []
        async with Visitor(server.url, cookie) as visitor:
            await visitor.tick("위 내용을 읽었고, 평가에 참여하는 데 동의합니다. (필수)")
            await visitor.press("동의하고 시작")
            for _ in range(3):
                await visitor.socket.send(visitor.frames[-1])
                pages.append((await visitor._read()).state("page"))
            await visitor.look()
            pages.append(visitor.page.state("page"))
        return pages

    assert asyncio.run(act()) == ["instructions"] * 4
    with database.reading() as connection:
        count = sa.select(sa.func.count()).select_from(schema.consent)
        assert connection.execute(count).scalar_one() == 1


def test_the_next_login_counts_what_was_given_before(live):
    database, server = live
    cookie = cookie_of(database, server)

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await rate_here(visitor)
        again = enter(server.url, people.invite(database, RATER, who="test"))
        async with Visitor(server.url, again) as visitor:
            assert f"value='{standing(database)[1]}'" in visitor.page.text
            assert [r.value[:5] for r in visitor.page.radios] == ["**4**"] * 3

    asyncio.run(act())
    assert standing(database) == (1, 3)


def test_everybody_rates_what_somebody_else_finished(database):
    """No item is used up, locked or hidden by another's rating of it: the crossing is full."""
    label = marked_first(database, RATER)
    for rater in ("rater-02", "rater-03"):
        with database.reading() as connection:
            a = schema.assignment
            mine = sa.select(a.c.position).where(a.c.person_id == rater, a.c.label == label)
            position = connection.execute(mine).scalar_one()
        ratings.save(database, rater, position, "fluency", value=2, base_version=0, nonce=rater)
        assert marks(database, position, rater) == {"fluency": 2}


def marked_first(database, rater):
    ratings.save(database, rater, 1, "fluency", value=4, base_version=0, nonce="first")
    with database.reading() as connection:
        return ratings.item_at(connection, rater, 1).label


def test_the_end_is_shown_only_when_every_cell_is_in_the_database(live):
    """A cursor behind the last item does not make a study complete: the page leads back to what is open."""
    database, server = live
    cookie = cookie_of(database, server)
    with database.writing() as connection:
        connection.execute(sa.update(schema.cursor).where(schema.cursor.c.person_id == RATER).values(position=25))

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            assert visitor.page.state("page") == "rate"
            assert visitor.page.state("position") == "1"
            fill(database)
            await visitor.look()
            await visitor.press(UNRATED)
            assert visitor.page.state("page") == "done"
            assert "90" in visitor.page.text

    asyncio.run(act())


def fill(database):
    a, i, m = schema.assignment, schema.item, schema.metric
    with database.writing() as connection:
        cells = connection.execute(
            sa.select(a.c.position, m.c.metric_id).select_from(a.join(i).join(m, m.c.item == i.c.kind))
            .where(a.c.person_id == RATER)
        ).all()  # fmt: skip
        rows = [
            {"nonce": f"f{n}", "person_id": RATER, "position": p, "version": 1, "metric_id": k, "status": "ok",
             "value": 3.0, "reason": None, "tab": "", "at": database.now()}
            for n, (p, k) in enumerate(cells)
        ]  # fmt: skip
        chain.append(connection, "rating", *rows)


def test_back_from_the_end_and_forth_again_breaks_nothing(live):
    database, server = live
    cookie = cookie_of(database, server)
    fill(database)

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await visitor.press(UNRATED)
            await visitor.press("돌아가서 보기")
            for _ in range(5):
                await visitor.press(BACK)
            for _ in range(6):
                await visitor.press(NEXT)
            assert visitor.page.state("page") == "done"
            assert not visitor.page.exceptions

    asyncio.run(act())


@pytest.mark.parametrize("points", [7, 11])
def test_a_point_is_stored_as_its_value_and_not_as_its_key(tmp_path, study_maker, server_for, points):
    """The tenth point must not become a 0 because a key has one digit only."""
    study = study_maker(tmp_path / "wide", raters=1, cases=1)
    path = study.folder / "study.toml"
    wide = path.read_text(encoding="utf-8").replace("high = 5", f"high = {points}", 1)
    path.write_text(without_words(wide), encoding="utf-8")
    with opened(config.load(study.folder), server_for) as (database, server):
        cookie = cookie_of(database, server)
        with database.reading() as connection:
            name = next(m.metric_id for m in ratings.metrics(connection) if m.high == points)

        async def act():
            async with Visitor(server.url, cookie) as visitor:
                radio = next(r for r in visitor.page.radios if len(r.options) == points + 1)
                for value in range(1, points + 1):
                    await visitor.choose(radio, option(radio, value))
                    assert marks(database)[name] == value

        asyncio.run(act())


def without_words(text):
    return "\n".join(line for line in text.splitlines() if not line.startswith("anchors"))


def test_one_raters_saving_leaves_anothers_draft_alone(database):
    traces.keep_draft(database, RATER, "note 1", "mine", "a")
    traces.keep_draft(database, "rater-02", "note 1", "theirs", "a")
    ratings.save(database, "rater-02", 1, "fluency", value=3, base_version=0, nonce="other")
    traces.write_note(database, "rater-02", 1, "", "theirs", base_version=0, tab="a")
    with database.reading() as connection:
        assert traces.draft_at(connection, RATER, "note 1") == "mine"


def test_only_the_shown_item_and_its_dialogue_travel(live):
    """No twenty items ahead: what has not come yet is not in the browser."""
    database, server = live
    cookie = cookie_of(database, server)
    with database.reading() as connection:
        i = schema.item
        texts = dict(connection.execute(sa.select(i.c.label, i.c.text).where(i.c.kind == "utterance")).all())
        mine = ratings.item_at(connection, RATER, 1)
        shown = {t.answer for t in ratings.dialogue(connection, mine)}

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            return visitor.page.text

    text = asyncio.run(act())
    assert {t for t in texts.values() if re.search(rf"(?<!\d){re.escape(t)}", text)} == shown
