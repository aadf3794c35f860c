"""Every page of every role in Chromium, from the first link to the lock: what is shown, and what is on the wire.

CROSSED_PICTURES=folder keeps a picture of each page at both widths.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from annotation_app import marking, rehearsal
from annotation_app.catalogue import catalogue
from annotation_app.founding import open_study
from study import tables
from study.store import people, ratings, references, seals, training

WIDTHS = (1280, 360)
RATER, BESIDE, FAILING = "rater-01", "rater-02", "rater-03"
PAGES = {
    "nobody/sign in", "nobody/refused",
    "rater/consent", "rater/instructions", "rater/example", "rater/feedback", "rater/practised", "rater/test",
    "rater/passed", "rater/answer", "rater/cannot judge", "rater/note", "rater/dialogue", "rater/done",
    "rater/failed", "rater/held", "rater/locked",
    "expert/consent", "expert/answer", "expert/next answer", "expert/refused", "expert/done",
    "coordinator/gaps", "coordinator/invitation", "coordinator/held", "coordinator/lockable", "coordinator/locked",
    "coordinator/unblinded",
}  # fmt: skip


@dataclass
class Walk:
    """What was found on the way: by page and width, and by role what came over the wire."""

    study: object
    language: str
    found: dict[tuple[str, int], dict[str, object]] = field(default_factory=dict)
    wires: dict[str, list] = field(default_factory=dict)
    download: bytes = b""


@pytest.fixture(scope="module", params=["ko", "en"])
def walk(request, opened, axe, until, study_maker, module_server_for, tmp_path_factory):
    study = study_maker(
        tmp_path_factory.mktemp("walk") / "study", raters=3, cases=1, prompts=2, app="guess = true"
    )
    database = open_study(study)
    server = module_server_for(f"sqlite:///{study.folder / 'ratings.db'}")
    walker = Walker(Walk(study, request.param), database, server.url, opened, axe, until)
    walker.nobody()
    walker.rater()
    walker.failing()
    walker.expert()
    walker.coordinator()
    database.close()
    return walker.walk


class Walker:
    """Goes through the pages as people do, and looks at each."""

    def __init__(self, walk: Walk, database, url: str, opened, axe, until) -> None:
        self.walk, self.database, self.url = walk, database, url
        self.opened, self.axe, self.until = opened, axe, until
        self.say = catalogue(walk.language)

    def enter(self, person: str, role: str):
        token = people.invite(self.database, person, role=role, locale=self.walk.language, who="test")
        return self.visit(role, f"{self.url}/enter/{token}")

    def visit(self, role: str, url: str):
        page, wire = self.opened(url)
        self.walk.wires.setdefault(role, []).append(wire)
        return page

    def look(self, page, name: str) -> None:
        page.wait_for_timeout(150)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(100)
            self.walk.found[name, width] = {
                "axe": self.axe(page),
                "language": page.evaluate("document.documentElement.lang"),
                "width": page.evaluate("document.documentElement.scrollWidth"),
                "scales": page.evaluate(_SCALES),
                "broken": page.evaluate(_BROKEN),
                "cut": page.evaluate(_CUT),
                "exceptions": page.locator("[data-testid=stException]").count(),
            }
            if folder := os.environ.get("CROSSED_PICTURES"):
                file = f"{name.replace('/', '-')}-{self.walk.language}-{width}.png"
                self.picture(page, Path(folder) / file, width)
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})

    def picture(self, page, path: Path, width: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        height = page.evaluate("(document.querySelector('[data-testid=stMain]') ?? document.body).scrollHeight")
        page.set_viewport_size({"width": width, "height": max(900, height + 20)})
        page.wait_for_timeout(100)
        page.screenshot(path=path)

    def press(self, page, key: str, then: str) -> None:
        page.locator(f'[class*="st-key-{key}"] button').first.click()
        page.wait_for_selector(then, state="attached")

    def tick(self, page, key: str) -> None:
        page.locator(f'[class*="st-key-{key}"] label').first.click()

    def groups(self, page, number: int) -> None:
        self.until(page, lambda: page.locator("[role=radiogroup]").count() == number, what=f"{number} questions")

    def nobody(self) -> None:
        page = self.visit("nobody", f"{self.url}/")
        self.look(page, "nobody/sign in")
        page.goto(f"{self.url}/enter/forged")
        self.look(page, "nobody/refused")

    def consent(self, page, role: str, then: str) -> None:
        page.wait_for_selector(_on("consent"), state="attached")
        self.look(page, f"{role}/consent")
        self.tick(page, "participation")
        self.press(page, "next-consent", then)

    def rater(self) -> None:
        page = self.enter(RATER, "rater")
        self.consent(page, "rater", _on("instructions"))
        self.look(page, "rater/instructions")
        self.press(page, "next-instructions", _on("training"))
        self.train(page)
        self.press(page, "next-start", _on("rate"))
        self.rate(page)
        page.wait_for_selector(_on("done"), state="attached")
        self.look(page, "rater/done")

    def train(self, page) -> None:
        for attempt, form in ((1, "A"), (2, "B")):
            for place, wanted in enumerate(self.consensus(form), 1):
                page.wait_for_selector(f".st-key-next-{attempt}-{place}")
                self.groups(page, len(wanted))
                if place == 1:
                    self.look(page, "rater/example" if attempt == 1 else "rater/test")
                for value in wanted:
                    page.keyboard.press(str(int(value)))
                chosen = page.locator("[role=radiogroup] input:checked")
                self.until(page, lambda chosen=chosen, wanted=wanted: chosen.count() == len(wanted))
                page.locator(f".st-key-next-{attempt}-{place} button").click()
                if attempt == 1:
                    page.wait_for_selector(".cr-why")
                    if place == 1:
                        self.look(page, "rater/feedback")
                    page.locator('[class*="st-key-next-feedback-"] button').click()
            if attempt == 1:
                page.wait_for_selector(".st-key-next-result-1")
                self.look(page, "rater/practised")
                page.locator(".st-key-next-result-1 button").click()
        page.wait_for_selector(".st-key-next-start")
        self.look(page, "rater/passed")

    def consensus(self, form: str) -> list[list[float]]:
        with self.database.reading() as connection:
            metrics = [m.metric_id for m in ratings.metrics(connection, "main")]
            anchors = [a for a in training.anchors(connection) if a.form == form]
        return [[a.consensus[m] for m in metrics if m in a.consensus] for a in anchors]

    def rate(self, page) -> None:
        for position, questions in ((1, 3), (2, 3), (3, 8), (4, 3), (5, 3), (6, 8)):
            page.wait_for_selector(f'.cr-state[data-position="{position}"]', state="attached")
            self.groups(page, questions)
            if position == 1:
                self.look(page, "rater/answer")
            if position == 3:
                self.look(page, "rater/dialogue")
            if position == 2:
                self.unjudged(page)
            for number in range(questions - (position == 2)):
                page.keyboard.press(str(1 + (position + number) % 2))
            page.wait_for_selector('[class*="st-key-next-"] button:not([disabled])')
            page.keyboard.press("n")

    def unjudged(self, page) -> None:
        """The first question cannot be judged; and a note."""
        page.keyboard.press("x")
        self.groups(page, 4)
        self.look(page, "rater/cannot judge")
        page.keyboard.press("1")
        page.get_by_text(self.say("rate.note")).click()
        page.locator("textarea").fill("덧붙이는 말")
        self.look(page, "rater/note")
        page.locator(".cr-head h1").click()

    def failing(self) -> None:
        """A rater who always scores 1 fails three tests; what they answered is put in behind the pages."""
        rehearsal.ready_rater(self.database, BESIDE)
        page = self.enter(FAILING, "rater")
        page.wait_for_selector(_on("consent"), state="attached")
        self.tick(page, "participation")
        self.press(page, "next-consent", _on("instructions"))
        self.press(page, "next-instructions", _on("training"))
        for attempt in range(1, marking.TESTS + 2):
            self.answer_all(attempt)
            page.reload()
            page.wait_for_selector(_on("training"), state="attached")
            if attempt > 1:  # the result before this one is shown again, and left behind
                page.locator(f".st-key-next-result-{attempt - 1} button").click()
            self.until(page, lambda n=attempt: self.attempts() == n, what=f"attempt {attempt}")
            page.wait_for_timeout(500)
            if attempt == 2:
                self.look(page, "rater/failed")
        self.look(page, "rater/held")

    def attempts(self) -> int:
        with self.database.reading() as connection:
            return len(training.attempts(connection, FAILING))

    def answer_all(self, attempt: int) -> None:
        with self.database.reading() as connection:
            anchors = training.anchors(connection)
        form = marking.form_of(attempt, sorted({a.form for a in anchors}))
        for anchor in anchors:
            if anchor.form == form:
                given = dict.fromkeys(anchor.consensus, 1.0)
                training.answer(self.database, FAILING, attempt, form, anchor.number, given)

    def expert(self) -> None:
        page = self.enter("expert-01", "expert")
        self.consent(page, "expert", _on("author"))
        page.wait_for_selector("textarea")
        self.look(page, "expert/answer")
        page.locator("textarea").fill("어제부터 배가 아파요.")
        self.press(page, "next-", "[role=alert]")
        self.look(page, "expert/refused")
        self.tick(page, "a-")
        name = page.locator(".cr-state").get_attribute("data-item")
        page.locator('[class*="st-key-next-"] button').click()
        self.until(page, lambda: page.locator(".cr-state").get_attribute("data-item") != name)
        self.look(page, "expert/next answer")
        while True:
            with self.database.reading() as connection:
                question = references.next_question(connection, "expert-01")
            if question is None:
                break
            references.send(self.database, "expert-01", question.prompt_id, "네, 그래요.", blind=True)
        page.reload()
        page.wait_for_selector(_on("authored"), state="attached")
        self.look(page, "expert/done")

    def coordinator(self) -> None:
        page = self.enter("coordinator-01", "coordinator")
        page.wait_for_selector(_on("coordinate"), state="attached")
        page.wait_for_selector(".cr-download")
        self.look(page, "coordinator/gaps")
        page.locator(".st-key-make-link button").click()
        page.wait_for_selector("[data-testid=stCode]")
        self.look(page, "coordinator/invitation")
        page.locator(".st-key-admit-now button").click()
        self.until(page, lambda: page.locator(".st-key-admit-now").count() == 0)
        self.look(page, "coordinator/held")
        for person in (BESIDE, FAILING):
            seals.excuse(self.database, person, "ill", "test")
        page.reload()
        page.wait_for_selector(".st-key-sure")
        self.look(page, "coordinator/lockable")
        self.tick(page, "sure")
        page.wait_for_selector(".st-key-lock-now button:not([disabled])")
        page.locator(".st-key-lock-now button").click()
        self.until(page, lambda: page.locator(".st-key-lock-now").count() == 0)
        self.look(page, "coordinator/locked")
        with page.expect_download() as waiting:
            page.locator(".cr-download").click()
        self.walk.download = Path(waiting.value.path()).read_bytes()
        seals.unblind(self.database, "0" * 64, "test")
        page.reload()
        page.wait_for_selector(".cr-download")
        page.wait_for_timeout(500)
        self.look(page, "coordinator/unblinded")
        rater = self.enter(RATER, "rater")
        rater.wait_for_selector(_on("closed"), state="attached")
        self.look(rater, "rater/locked")


def _on(page: str) -> str:
    return f'.cr-state[data-page="{page}"]'


def test_every_page_is_looked_at(walk):
    assert {name for name, _ in walk.found} == PAGES


def test_axe_finds_nothing(walk):
    assert {} == {where: f["axe"] for where, f in walk.found.items() if f["axe"]}


def test_no_page_scrolls_sideways(walk):
    assert {} == {where: f["width"] for where, f in walk.found.items() if f["width"] > where[1]}


def test_every_page_says_its_language(walk):
    ours = {where: f["language"] for where, f in walk.found.items() if not where[0].startswith("nobody/")}
    assert set(ours.values()) == {walk.language}


def test_the_points_of_a_scale_stand_in_one_row_and_are_large_enough(walk):
    for where, found in walk.found.items():
        for rows, height in found["scales"]:
            assert (rows, height >= 44) == (1, True), where


def test_no_word_is_cut(walk):
    assert {} == {where: f["cut"] for where, f in walk.found.items() if f["cut"]}


def test_no_korean_word_is_broken(walk):
    assert {} == {where: f["broken"] for where, f in walk.found.items() if f["broken"]}


def test_no_page_fails(walk):
    assert {} == {where: f["exceptions"] for where, f in walk.found.items() if f["exceptions"]}


@pytest.mark.parametrize("role", ["nobody", "rater", "expert", "coordinator"])
def test_no_byte_of_a_whole_session_names_a_source(walk, role, secrets_of):
    secrets = secrets_of(walk.study)
    for wire in walk.wires[role]:
        assert len(wire.pieces) > 5
        assert wire.leaks(secrets, downloads=False) == []


def test_no_page_of_a_rater_or_an_expert_shows_another_person(walk):
    for role, own in (("rater", None), ("expert", "expert-01")):
        others = {"coordinator-01", "expert-01", "rater-01", "rater-02", "rater-03"} - {own}
        for wire in walk.wires[role]:
            assert wire.leaks({p: [p.encode()] for p in others}) == []


def test_no_answer_of_a_source_reaches_an_expert(walk):
    texts = tables.read(walk.study.responses, tables.RESPONSES)["text"]
    for wire in walk.wires["expert"]:
        assert wire.leaks({t: [t.encode()] for t in texts}) == []


def test_the_download_is_the_ratings_without_their_sources(walk, secrets_of):
    secrets = secrets_of(walk.study)
    sealed = [*(s.source_id for s in walk.study.sources), str(walk.study.seed)]
    assert walk.download.count(b"\n") > 20
    assert [] == [word for word in sealed if any(form in walk.download for form in secrets[word])]


# Of each scale: in how many rows its points stand, and how high the lowest is.
_SCALES = """
[...document.querySelectorAll('[role=radiogroup]')].filter(g => g.querySelector('strong')).map(g => {
  const points = [...g.querySelectorAll('label')].filter(l => l.querySelector('strong'))
  const boxes = points.map(l => l.getBoundingClientRect())
  return [new Set(boxes.map(b => Math.round(b.top))).size, Math.min(...boxes.map(b => b.height))]
})
"""
# Words that reach out of their box, or of the window.
_CUT = """
[...document.querySelectorAll('label p, button p, h1, h2, h3, .cr-turn p, .cr-where, dd, summary')].filter(e => {
  const box = e.getBoundingClientRect()
  return e.offsetParent && (e.scrollWidth > e.clientWidth + 1 || box.right > innerWidth + 1 || box.left < -1)
}).map(e => e.textContent.slice(0, 60))
"""
# Texts in which a line may end within a word.
_BROKEN = """
[...document.querySelectorAll('[data-testid=stMain] :is(p, li, label p, h1, h2, h3, dd, td, th)')]
  .filter(e => getComputedStyle(e).wordBreak !== 'keep-all').map(e => e.textContent.slice(0, 60))
"""
