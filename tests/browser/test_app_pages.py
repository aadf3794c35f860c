"""The rating page in Chromium: keys alone, a server that is killed and comes back, reload and the way back."""

from urllib.parse import urlsplit

import pytest

from annotation_app import rehearsal
from annotation_app.catalogue import catalogue
from annotation_app.founding import open_study
from study.store import people, ratings, withdrawal

RATER = "rater-01"


@pytest.mark.parametrize(("language", "width"), [("ko", 1280), ("ko", 360), ("en", 1280), ("en", 360)])
def test_an_encounter_is_rated_with_keys_alone(opened, until, axe, live, language, width):
    _, database, server = live
    token = rehearsal.ready_rater(database, RATER)
    people.speak(database, RATER, language)
    page, _ = opened(f"{server.url}/enter/{token}", width)
    page.wait_for_selector("[role=radiogroup]")
    assert page.evaluate("document.documentElement.lang") == language
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rows = page.evaluate(
        "[...document.querySelectorAll('[role=radiogroup]')[0].querySelectorAll('label')].slice(0, 5)"
        ".map(l => [Math.round(l.getBoundingClientRect().top), l.getBoundingClientRect().height])"
    )
    assert len({top for top, _ in rows}) == 1
    assert min(height for _, height in rows) >= 44
    assert axe(page) == []
    for position, metrics in ((1, 3), (2, 3), (3, 3), (4, 6)):
        page.wait_for_selector(f'.cr-state[data-position="{position}"]', state="attached")
        until(page, lambda n=metrics: page.locator("[role=radiogroup]").count() == n)
        for number in range(metrics):
            page.keyboard.press(str(1 + (position + number) % 5))
        until(page, lambda p=position: went_on(page, p), what=f"the item after {position}")
    with database.reading() as connection:
        assert ratings.progress(connection, RATER).rated == 15
        given = [[m.value for m in ratings.marks(connection, RATER, p).values()] for p in (1, 2, 3, 4)]
    assert given == [[float(1 + (p + n) % 5) for n in range(m)] for p, m in ((1, 3), (2, 3), (3, 3), (4, 6))]


def went_on(page, position: int) -> bool:
    """Whether the next item is there; else N is pressed, which an item that is not yet rated does not hear."""
    if page.locator(f'.cr-state[data-position="{position + 1}"]').count():
        return True
    page.keyboard.press("n")
    return False


def test_keys_rest_while_text_is_typed(opened, live):
    _, database, server = live
    page, _ = opened(f"{server.url}/enter/{rehearsal.ready_rater(database, RATER)}")
    page.get_by_text("표시와 의견").click()
    page.locator("textarea").click()
    page.keyboard.type("1 2 3 n x")
    page.wait_for_timeout(500)
    with database.reading() as connection:
        assert ratings.progress(connection, RATER).rated == 0


def rating(opened, live):
    """The rating page of a rater who is ready."""
    _, database, server = live
    page, _ = opened(f"{server.url}/enter/{rehearsal.ready_rater(database, RATER)}")
    page.wait_for_selector("[role=radiogroup]")
    return page


def held(database, position: int = 1) -> list[float | None]:
    with database.reading() as connection:
        return [m.value for m in ratings.marks(connection, RATER, position).values()]


def at(page, position: int) -> None:
    page.wait_for_selector(f'.cr-state[data-position="{position}"]', state="attached")


def scored(page, keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_selector('[class*="st-key-next-"] button:not([disabled])')


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_the_first_click_after_a_restart_is_saved_and_half_typed_text_is_kept(opened, until, live, by):
    _, database, server = live
    page = rating(opened, live)
    page.keyboard.press("4")
    until(page, lambda: held(database) == [4.0])
    page.get_by_text(catalogue("ko")("rate.note")).click()
    page.locator("textarea").fill("아직 다 쓰지 않은")
    server.kill()
    page.wait_for_timeout(1500)
    server.start()
    second = page.locator("[role=radiogroup]").nth(1).locator("label").nth(1)
    until(page, lambda: second.locator("input").is_enabled(), what="the page after the restart")
    if by == "mouse":
        second.click()
    else:
        page.locator(".cr-head h1").click()
        page.keyboard.press("2")
    until(page, lambda: held(database) == [4.0, 2.0], what="the first click after the restart")
    assert page.locator("textarea").input_value() == "아직 다 쓰지 않은"
    assert page.locator(".cr-state").get_attribute("data-position") == "1"


def test_reload_and_the_way_back_keep_the_place_and_the_answers(opened, until, live):
    _, database, _ = live
    page = rating(opened, live)
    scored(page, "435")
    page.keyboard.press("n")
    at(page, 2)
    page.reload()
    at(page, 2)
    page.wait_for_selector('[class*="st-key-back-"] button:not([disabled])')
    page.keyboard.press("b")
    at(page, 1)
    chosen = page.locator("[role=radiogroup] input:checked")
    until(page, lambda: chosen.count() == 3, what="the answers that were given")
    words = "e => e.closest('label').querySelector('strong').textContent"
    assert [chosen.nth(i).evaluate(words) for i in range(3)] == ["4", "3", "5"]
    page.go_back()
    page.go_forward()
    at(page, 1)
    assert held(database) == [4.0, 3.0, 5.0]


def test_what_is_saved_is_told_in_the_readers_own_time(browser, live):
    _, database, server = live
    token = rehearsal.ready_rater(database, RATER)
    context = browser.new_context(timezone_id="Asia/Seoul")
    page = context.new_page()
    page.goto(f"{server.url}/enter/{token}")
    page.wait_for_selector("[role=radiogroup]")
    page.keyboard.press("4")
    page.wait_for_selector(".cr-saved")
    with database.reading() as connection:
        [mark] = ratings.marks(connection, RATER, 1).values()
    hour = (int(mark.at[11:13]) + 9) % 24
    assert f"{hour:02d}{mark.at[13:19]}" in page.locator(".cr-saved").inner_text()
    context.close()


def test_below_a_base_path_an_item_is_rated_and_nothing_is_asked_beside_it(opened, small_study, server_for):
    database = open_study(small_study)
    server = server_for(f"sqlite:///{small_study.folder / 'ratings.db'}", base="/rate")
    page, _ = opened(f"{server.url}/enter/{rehearsal.ready_rater(database, RATER)}")
    paths = []
    page.on("request", lambda request: paths.append(urlsplit(request.url).path))
    page.reload()
    page.wait_for_selector("[role=radiogroup]")
    scored(page, "435")
    assert held(database) == [4.0, 3.0, 5.0]
    assert paths and [p for p in paths if not p.startswith("/rate/")] == []
    assert page.context.cookies()[0]["path"] == "/rate/"
    database.close()


def test_whatever_the_audit_holds_has_words(opened, until, live):
    _, database, server = live
    people.preview(database, "test")
    people.replace(database, "rater-02", "rater-02b", "test")
    rehearsal.ready_rater(database, "rater-03")
    withdrawal.withdraw(database, "rater-03", "test")
    token = people.invite(database, "coordinator-01", role="coordinator", who="test")
    page, _ = opened(f"{server.url}/enter/{token}")
    last = page.locator(".cr-table").last
    page.wait_for_selector(".cr-table")
    for what in ("preview", "replaced", "withdrawn", "admitted", "founded"):
        words = catalogue("ko")(f"audit.{what}")
        until(page, lambda words=words: words in last.inner_text(), what=f"{words} in the audit's table")
