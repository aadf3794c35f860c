"""The pages on a running server, spoken to as browsers speak: restarts, two windows, replays, strangers."""

import asyncio
import urllib.error
import urllib.request

import pytest
import sqlalchemy as sa

from annotation_app import rehearsal
from annotation_app.founding import open_study
from annotation_app.rehearsal import Visitor, enter
from study.store import people, ratings, schema, seals, traces, withdrawal

RATER = "rater-01"
NEXT, BACK = "다음", "이전"


@pytest.fixture
def live(small_study, server_for):
    """A database, a server on it, and a cookie of rater-01, who may rate at once."""
    database = open_study(small_study)
    token = rehearsal.ready_rater(database, RATER)
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}")
    yield database, server, enter(server.url, token)
    database.close()


@pytest.fixture(scope="module")
def still(tmp_path_factory, study_maker, module_server_for):
    """As `live`, once for all the tests that write nothing."""
    study = study_maker(tmp_path_factory.mktemp("still") / "still", raters=1, cases=1)
    database = open_study(study)
    token = rehearsal.ready_rater(database, RATER)
    server = module_server_for(f"sqlite:///{study.folder / 'ratings.db'}")
    yield database, server, enter(server.url, token)
    database.close()


def option(radio, value):
    return next(o for o in radio.options if o.startswith(f"**{value}**"))


def values(database, position=1, rater=RATER):
    with database.reading() as connection:
        return {k: m.value for k, m in ratings.marks(connection, rater, position).items()}


def position(database):
    with database.reading() as connection:
        return ratings.position_of(connection, RATER)


def events(database):
    with database.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(schema.rating_event)).scalar_one()


def run(coroutine):
    return asyncio.run(coroutine)


async def rate_here(visitor, value=4):
    for number in range(len(visitor.page.radios)):
        radio = visitor.page.radios[number]
        await visitor.choose(radio, option(radio, value))


def test_nothing_is_chosen_beforehand_and_next_is_closed(still):
    _, server, cookie = still

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            return visitor.page

    page = run(act())
    assert [r.value for r in page.radios] == [None] * 3
    assert NEXT in page.disabled


def test_every_point_has_its_words(still):
    _, server, cookie = still

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            return visitor.page.radios

    for radio in run(act()):
        assert len(radio.options) == 6
        assert all(len(o.split("**")[2].strip()) > 1 for o in radio.options[:5])


def test_a_click_is_saved_before_it_is_acknowledged(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            page = await visitor.choose(visitor.page.radios[0], option(visitor.page.radios[0], 4))
            assert "cr-saved" in page.text
            assert values(database) == {"fluency": 4}

    run(act())


def test_next_and_back_keep_what_was_given(live):
    """Choose, go on, come back: the choice still stands."""
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await rate_here(visitor)
            await visitor.press(NEXT)
            assert position(database) == 2
            page = await visitor.press(BACK)
            return [r.value for r in page.radios]

    assert [v.startswith("**4**") for v in run(act())] == [True] * 3


def test_a_double_click_on_next_is_one_step(live):
    """Two presses of the same button, the second sent before the page of the first was read."""
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await rate_here(visitor)
            message = rehearsal.BackMsg()
            state = message.rerun_script.widget_states.widgets.add()
            state.id, state.trigger_value = visitor.page.buttons[NEXT], True
            await visitor.socket.send(message.SerializeToString())
            await visitor.press(NEXT)
            await asyncio.sleep(0.5)

    run(act())
    assert position(database) == 2


def test_a_replayed_frame_is_one_event(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await visitor.choose(visitor.page.radios[0], option(visitor.page.radios[0], 4))
            for _ in range(3):
                await visitor.socket.send(visitor.frames[-1])
                await visitor._read()

    run(act())
    assert events(database) == 1


def test_a_click_on_next_right_after_a_changed_answer_saves_it(live):
    """The change and the step arrive together, as from a quick hand."""
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await rate_here(visitor)
            first = visitor.page.radios[0]
            visitor.values[first.widget] = ("string_value", option(first, 2))
            await visitor.press(NEXT)

    run(act())
    assert (values(database)["fluency"], position(database)) == (2, 2)


def test_a_reload_resumes_at_the_same_item_with_its_answers(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await rate_here(visitor)
            await visitor.press(NEXT)
            name = visitor.page.state("item")
            await visitor.choose(visitor.page.radios[0], option(visitor.page.radios[0], 3))
        async with Visitor(server.url, cookie) as again:
            assert again.page.state("item") == name
            assert again.page.radios[0].value.startswith("**3**")

    run(act())


@pytest.mark.parametrize("changed", [False, True])
def test_the_first_click_after_a_restart_is_saved(live, changed):
    """The page stays open while the server is killed; the browser comes back with what its widgets hold."""
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            radio = visitor.page.radios[0]
            await visitor.choose(radio, option(radio, 3))
            server.kill()
            server.start()
            await visitor.connect(look=False)
            target = radio if changed else visitor.page.radios[1]
            page = await visitor.choose(target, option(target, 5))
            assert "cr-saved" in page.text

    run(act())
    assert values(database) == ({"fluency": 5} if changed else {"fluency": 3, "accuracy": 5})


def test_next_as_the_first_click_after_a_restart_steps(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await rate_here(visitor)
            server.kill()
            server.start()
            await visitor.connect(look=False)
            await visitor.press(NEXT)

    run(act())
    assert position(database) == 2


def test_a_restart_does_not_let_a_stale_window_overwrite_another(live):
    """Window a shows 2, window b saves 5, the server restarts, a clicks elsewhere: 5 stays."""
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as a, Visitor(server.url, cookie) as b:
            await a.choose(a.page.radios[0], option(a.page.radios[0], 2))
            await b.look()
            await b.choose(b.page.radios[0], option(b.page.radios[0], 5))
            server.kill()
            server.start()
            await a.connect(look=False)
            page = await a.choose(a.page.radios[1], option(a.page.radios[1], 3))
            assert "5" in page.text

    run(act())
    assert values(database) == {"fluency": 5, "accuracy": 3}


def test_two_windows_never_overwrite_silently(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as a, Visitor(server.url, cookie) as b:
            await a.choose(a.page.radios[0], option(a.page.radios[0], 2))
            page = await b.choose(b.page.radios[0], option(b.page.radios[0], 5))
            assert "다른 창에서" in page.text
            assert values(database) == {"fluency": 2}
            page = await b.choose(b.page.radios[0], option(b.page.radios[0], 5))
            assert values(database) == {"fluency": 5}
            page = await a.choose(a.page.radios[1], option(a.page.radios[1], 4))
            assert "다른 창에서" in page.text

    run(act())
    assert values(database) == {"fluency": 5, "accuracy": 4}


def test_cannot_judge_waits_for_its_reason(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            radio = visitor.page.radios[0]
            page = await visitor.choose(radio, radio.options[-1])
            assert "cr-unsaved" in page.text
            reasons = page.radios[1]
            page = await visitor.choose(reasons, reasons.options[0])
            assert "cr-saved" in page.text

    run(act())
    with database.reading() as connection:
        assert ratings.mark(connection, RATER, 1, "fluency").reason == "unclear"


def test_a_comment_is_kept_and_comes_back(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            await visitor.write("의견 (선택)", "이상해요")
        async with Visitor(server.url, cookie) as again:
            return again.page.areas["의견 (선택)"][1]

    assert run(act()) == "이상해요"
    with database.reading() as connection:
        assert traces.note_at(connection, RATER, 1).text == "이상해요"


def post(server, cookie, path, body, **headers):
    request = urllib.request.Request(
        f"{server.url}/{path}", data=body.encode(),
        headers={"Cookie": f"crossed_visit={cookie}", "X-Crossed": "1", **headers},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def status_of(request) -> int:
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_half_typed_text_survives_a_killed_server(live):
    database, server, cookie = live

    async def name():
        async with Visitor(server.url, cookie) as visitor:
            return visitor.page.state("item")

    item = run(name())
    assert post(server, cookie, "draft", f'{{"item": "{item}", "window": "w", "text": "half a sen"}}') == 204
    server.kill()
    server.start()

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            return visitor.page.areas["의견 (선택)"][1]

    assert run(act()) == "half a sen"


@pytest.mark.parametrize(
    ("body", "status"),
    [('{"item": "0000", "text": "x"}', 403), ("nonsense", 400), ('{"text": "x"}', 400), ("[]", 400)],
)
def test_a_forged_report_is_refused(still, body, status):
    _, server, cookie = still
    assert post(server, cookie, "draft", body) == status


def test_a_report_from_another_site_or_without_a_cookie_is_refused(still):
    _, server, cookie = still
    assert post(server, cookie, "draft", "{}", **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert post(server, "forged", "draft", '{"item": "0", "text": ""}') == 403
    assert post(server, cookie, "draft", "x" * 200_000) == 413


@pytest.mark.parametrize("cookie", ["", "forged", "' or 1=1"])
def test_a_stranger_sees_no_page_of_the_study(still, cookie):
    _, server, _ = still

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            return visitor.page

    page = run(act())
    assert page.state("page") == "sign_in"
    assert not page.radios


def test_a_withdrawn_rater_is_shown_out_at_the_next_click(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            withdrawal.withdraw(database, RATER, "test")
            page = await visitor.choose(visitor.page.radios[0], option(visitor.page.radios[0], 4))
            assert page.state("page") == "sign_in"

    run(act())
    assert events(database) == 0


def test_a_click_after_the_lock_saves_nothing_and_says_so(live):
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            for rater in ("rater-01", "rater-02", "rater-03"):
                seals.excuse(database, rater, "test", "test")
            seals.lock(database, "test")
            page = await visitor.choose(visitor.page.radios[0], option(visitor.page.radios[0], 4))
            assert page.state("page") == "closed"

    run(act())
    assert events(database) == 0


def test_an_option_that_the_scale_does_not_have_is_not_saved(still):
    database, server, cookie = still

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            for forged in ("**0** x", "**6** x", "99", "3; DROP TABLE", "nan"):
                visitor.values[visitor.page.radios[0].widget] = ("string_value", forged)
                await visitor.send()

    run(act())
    assert events(database) == 0


def test_one_rater_sees_nothing_of_another(live):
    """Same items, other names on the wire, and no trace of the other's answers."""
    database, server, cookie = live
    other = enter(server.url, rehearsal.ready_rater(database, "rater-02"))

    async def act():
        async with Visitor(server.url, cookie) as one, Visitor(server.url, other) as two:
            await rate_here(one, 5)
            await two.look()
            assert one.page.state("item") != two.page.state("item")
            assert [r.value for r in two.page.radios] == [None] * 3

    run(act())
    assert values(database, rater="rater-02") == {}


def test_a_cleared_cache_loses_nothing(live):
    """Any client may ask Streamlit to clear its caches, for everybody."""
    database, server, cookie = live

    async def act():
        async with Visitor(server.url, cookie) as visitor:
            message = rehearsal.BackMsg()
            message.clear_cache = True
            await visitor.socket.send(message.SerializeToString())
            await visitor.choose(visitor.page.radios[0], option(visitor.page.radios[0], 4))

    run(act())
    assert values(database) == {"fluency": 4}


@pytest.mark.parametrize("path", ["_stcore/metrics", "_stcore/agent/openapi.json", "export/ratings.csv"])
def test_what_is_not_for_raters_is_not_there(still, path):
    _, server, cookie = still
    request = urllib.request.Request(f"{server.url}/{path}", headers={"Cookie": f"crossed_visit={cookie}"})
    assert status_of(request) == 404


def test_every_answer_has_its_security_headers(still):
    _, server, _ = still
    for path in ("", "readyz", "client.js", "_stcore/health"):
        with urllib.request.urlopen(f"{server.url}/{path}") as answer:
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("token", ["forged", "../../etc/passwd", "%00"])
def test_a_forged_link_is_refused_in_words(still, token):
    _, server, _ = still
    assert status_of(f"{server.url}/enter/{token}") in (400, 403, 404)


def test_the_training_is_walked_and_gates(small_study, server_for):
    """A rater who answers as the experts do passes; the page then leads to the rating."""
    from study.store import training

    database = open_study(small_study)
    cookie_token = people.invite(database, RATER, who="test")
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}")
    with database.reading() as connection:
        anchors = {(a.form, a.number): a for a in training.anchors(connection)}

    async def act():
        async with Visitor(server.url, enter(server.url, cookie_token)) as visitor:
            await visitor.tick("위 내용을 읽었고, 평가에 참여하는 데 동의합니다. (필수)")
            await visitor.press("동의하고 시작")
            await visitor.press("읽었습니다")
            for form, practice in (("A", True), ("B", False)):
                for number in range(1, 8):
                    wanted = list(anchors[form, number].consensus.values())
                    for radio, value in zip(list(visitor.page.radios), wanted, strict=True):
                        visitor.values[radio.widget] = ("string_value", option(radio, int(value)))
                    await visitor.press("답 보내기")
                    if practice:
                        assert "이유" in visitor.page.text
                        await visitor.press("다음 예시")
                if practice:
                    await visitor.press("계속")
            await visitor.press("시작")
            assert visitor.page.state("page") == "rate"

    run(act())
    with database.reading() as connection:
        done = training.attempts(connection, RATER)
    assert [(a.stage, a.passed) for a in done] == [("pre", False), ("post", True)]
    database.close()


def test_an_expert_answers_in_order_and_sees_no_item(small_study, server_for):
    from study.store import references

    database = open_study(small_study)
    token = people.invite(database, "expert-01", role="expert", who="test")
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}")

    async def act():
        seen = []
        async with Visitor(server.url, enter(server.url, token)) as visitor:
            await visitor.tick("위 내용을 읽었고, 평가에 참여하는 데 동의합니다. (필수)")
            await visitor.press("동의하고 시작")
            for answer in ("첫 대답이에요.", "둘째 대답이에요."):
                await visitor.write("환자로서 하는 대답", answer)
                await visitor.press("보내고 잠그기")
                assert "확인이 필요" in visitor.page.text
                await visitor.tick("이 질문에 대한 다른 대답을 보지 않고 직접 썼습니다.")
                await visitor.press("보내고 잠그기")
                seen.append(visitor.page.text)
        return seen

    seen = run(act())
    assert "첫 대답이에요." in seen[0]
    assert "번째로 드리는 대답" not in "".join(seen)
    with database.reading() as connection:
        assert references.counts(connection, "expert-01")[0] == 2
    database.close()
