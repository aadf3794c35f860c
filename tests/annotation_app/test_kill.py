"""Ratings shown as saved survive a kill of the server, however often and whenever it comes."""

import asyncio
import random

import pytest
import sqlalchemy as sa

from annotation_app import rehearsal
from annotation_app.founding import open_study
from annotation_app.rehearsal import Visitor, enter
from study.store import chain, people, schema


async def rate_until_killed(url, cookie, acknowledged, rng):
    """Choose and step until the connection goes; remember what was acknowledged."""
    try:
        async with Visitor(url, cookie) as visitor:
            while visitor.page.radios:
                name = visitor.page.state("item")
                for number, radio in enumerate(list(visitor.page.radios)):
                    chosen = rng.choice([o for o in radio.options if o.startswith("**")])
                    page = await visitor.choose(radio, chosen)
                    if "cr-saved" in page.text:
                        acknowledged[cookie, name, number] = float(chosen.split("**")[1])
                await visitor.press("다음")
    except (TimeoutError, OSError, rehearsal.websockets.WebSocketException):
        return


def killed_again_and_again(study, server_for, kills, raters, seed=5):
    database = open_study(study)
    tokens = {}
    for _ in range(raters):
        name = people.preview(database, "test").person_id
        tokens[name] = rehearsal.ready_rater(database, name)
    server = server_for(f"sqlite:///{study.folder / 'ratings.db'}")
    cookies = {name: enter(server.url, token) for name, token in tokens.items()}
    rng, acknowledged = random.Random(seed), {}

    async def one_life():
        tasks = [
            asyncio.create_task(rate_until_killed(server.url, c, acknowledged, random.Random(rng.random())))
            for c in cookies.values()
        ]
        await asyncio.sleep(rng.uniform(0.5, 2.5))
        server.kill()
        await asyncio.wait_for(asyncio.gather(*tasks), 30)

    for _ in range(kills):
        asyncio.run(one_life())
        server.start()
    lost = _lost(database, cookies, acknowledged)
    twice = _twice(database)
    sound = chain.problems(database)
    database.close()
    return acknowledged, lost, twice, sound


def _lost(database, cookies, acknowledged):
    """Acknowledged ratings that no event of the rater holds."""
    from study.store import ratings

    person_of = {cookie: person for person, cookie in cookies.items()}
    lost = []
    with database.reading() as connection:
        places = {
            (person, ratings.opaque(connection, person, p)): p for person in cookies for p in range(1, 366)
        }
        e = schema.rating_event
        held = {
            (r.person_id, r.position, r.metric_id, r.value)
            for r in connection.execute(sa.select(e.c.person_id, e.c.position, e.c.metric_id, e.c.value))
        }
        metrics = ratings.metrics(connection)
        for (cookie, name, number), value in acknowledged.items():
            person = person_of[cookie]
            position = places[person, name]
            kind = ratings.item_at(connection, person, position).kind
            metric = [m for m in metrics if m.item == kind][number].metric_id
            if (person, position, metric, value) not in held:
                lost.append((person, position, metric, value))
    return lost


def _twice(database):
    e = schema.rating_event
    with database.reading() as connection:
        return connection.execute(
            sa.select(e.c.person_id).group_by(e.c.person_id, e.c.position, e.c.metric_id, e.c.version)
            .having(sa.func.count() > 1)
        ).all()  # fmt: skip


def test_three_kills_lose_and_double_nothing(small_study, server_for):
    acknowledged, lost, twice, sound = killed_again_and_again(small_study, server_for, kills=3, raters=5)
    assert acknowledged
    assert (lost, twice, sound) == ([], [], [])


@pytest.mark.slow
def test_two_hundred_kills_under_twenty_raters_lose_and_double_nothing(tmp_path, study_maker, server_for):
    study = study_maker(tmp_path / "soak", raters=2, sources=5, prompts=None)
    acknowledged, lost, twice, sound = killed_again_and_again(study, server_for, kills=200, raters=20)
    print(f"\n200 kills: {len(acknowledged)} acknowledged, {len(lost)} lost, {len(twice)} twice")
    assert len(acknowledged) > 1000
    assert (lost, twice, sound) == ([], [], [])
