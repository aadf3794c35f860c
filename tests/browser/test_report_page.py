"""The report in a real browser, at the width of a desk and of a phone."""

import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    import numpy as np
    import pandas as pd

    from analysis import report
    from analysis.load import load
    from analysis.reliability import Bootstrap
    from study import tables

    folder = tmp_path_factory.mktemp("report") / "study"
    folder.mkdir()
    sources = ("expert", "a_model_with_a_long_name", "another_model_with_a_longer_name")
    (folder / "study.toml").write_text(
        '[study]\nid = "page"\ntitle = "보고서"\nseed = 1\n'
        + "".join(f'[[source]]\nid = "{s}"\nkind = "recorded"\n' for s in sources)
        + '[panel]\nraters = 4\n[[metric]]\nid = "fluency"\nitem = "utterance"\nlow = 1\nhigh = 5\n',
        encoding="utf-8",
    )
    rows = [
        (f"U{s}{p:02d}", source, f"p{p:02d}", ("affirmative", "negative")[p % 2], f"category_{p % 5}")
        for s, source in enumerate(sources)
        for p in range(20)
    ]
    made = pd.DataFrame(rows, columns=["label", "source_id", "prompt_id", "form", "category"])
    items = made.drop(columns="source_id").assign(
        kind="utterance", case_id="case", encounter=None, turn=pd.array([1] * len(made), "Int64"), text="네."
    )
    tables.write(items, folder / "items.parquet", tables.ITEMS)
    tables.write(made[["label", "source_id"]], folder / "key.parquet", tables.KEY)
    rng = np.random.default_rng(4)
    ratings = made[["label"]].merge(
        pd.DataFrame({"rater_id": [f"rater-{i:02d}" for i in range(1, 5)]}), how="cross"
    )
    ratings = ratings.assign(rater_kind="human", metric_id="fluency", occasion=1, status="ok", reason=None)
    ratings = ratings.assign(value=rng.integers(1, 6, len(ratings)).astype(float), simulated=True)
    tables.write(ratings, folder / "ratings.parquet", tables.RATINGS)
    file = folder / report.FILE
    file.write_text(report.page(report.report(load(folder), Bootstrap(n=100))), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(params=WIDTHS, ids=[f"{w}px" for w in WIDTHS])
def opened(request, browser, page_file):
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.asked = []
    page.on("request", lambda r: page.asked.append(r.url))
    page.goto(page_file.as_uri())
    yield page
    page.close()


def test_the_page_never_scrolls_sideways(opened):
    opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide = opened.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0


def test_nothing_is_asked_of_the_network(opened, page_file):
    assert [page_file.as_uri()] == opened.asked


def test_a_wide_table_scrolls_in_its_own_box(opened):
    opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    boxes = opened.evaluate(
        """[...document.querySelectorAll('.scroll')].map(
             box => [box.scrollWidth > box.clientWidth, getComputedStyle(box).overflowX])"""
    )
    assert all(how == "auto" for _, how in boxes)
    if opened.viewport_size["width"] == 390:
        assert any(scrolls for scrolls, _ in boxes)


def test_figures_fit_their_place_and_cut_no_label(opened):
    cut = opened.evaluate(
        """[...document.querySelectorAll('.drawn svg')].flatMap(svg => {
             const box = svg.getBoundingClientRect();
             return [...svg.querySelectorAll('text')].filter(t => {
               const at = t.getBoundingClientRect();
               return at.left < box.left - 1 || at.right > box.right + 1
                 || at.top < box.top - 1 || at.bottom > box.bottom + 1;
             }).map(t => t.textContent);
           })"""
    )
    assert cut == []


def test_simulated_is_in_sight_at_once(opened):
    banner = opened.locator(".banner")
    assert "simulated" in banner.inner_text()
    assert banner.bounding_box()["y"] < 300


def test_a_link_to_a_metric_opens_its_fold(opened):
    opened.click("nav a[href='#metric-fluency']")
    opened.wait_for_function("document.querySelector('#metric-fluency').closest('details').open", timeout=5000)
    assert opened.locator("#metric-fluency table").first.is_visible()


def test_a_checklist_marks_what_a_person_must_write(opened):
    opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    marked = opened.locator("#list-grras .write")
    assert marked.count() >= 4 and "To write" in marked.first.inner_text()
