import re
from pathlib import Path

import pytest

from analysis import report
from analysis.drawing import Drawing
from analysis.load import load
from analysis.reliability import Bootstrap
from analysis.tables import as_csv
from study.errors import StudyError

QUICK = Bootstrap(n=100)


@pytest.fixture(scope="module")
def made(small):
    return report.report(load(small), QUICK)


@pytest.fixture(scope="module")
def page(made):
    return report.page(made)


def test_the_page_needs_nothing_from_outside(page):
    assert "<script" not in page
    assert "<link" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "@import" not in page and "url(" not in re.sub(r"url\(#", "", page)


def test_simulated_is_said_in_the_title_in_every_figure_and_below_every_table(made, page):
    assert "<title>작은 연구 (simulated ratings)</title>" in page
    assert all("simulated ratings" in figure.drawing.svg for figure in made.figures())
    assert all("imulated" in figure.caption for figure in made.figures())
    said = [f"{t.caption} {t.note} {t.model}" for t in made.tables() if t.name not in ("sources", "formulas")]
    assert all("imulated" in text for text in said)
    for table in made.tables():
        head, first = as_csv(table).splitlines()[:2]
        marked = head.endswith(",simulated") and first.endswith(",True")
        assert marked == (table.name not in ("sources", "formulas"))


def test_real_ratings_are_not_called_simulated(written, rating_maker):
    ratings = rating_maker().query("metric_id == 'engagement'").assign(simulated=False)
    assert "simulated" not in report.page(report.report(load(written(ratings)), QUICK))


def test_every_metric_has_its_section_with_what_was_asked(page):
    assert 'id="metric-fluency"' in page and 'id="metric-engagement"' in page
    assert "자연스럽습니까?" in page


def test_what_is_missing_is_counted(page):
    assert "2 (2 missing)" in page
    assert "2 status missing" in page


def test_the_planted_fault_stands_out_alone(made):
    table = next(t for t in made.tables() if t.name == "interactions-fluency")
    assert [row[0] for row in table.rows] == ["model_a × negative"]


def test_every_table_of_a_model_says_its_formula_n_and_convergence(made):
    elsewhere = ("reliability", "low", "severity", "two-models")
    models = [t for t in made.tables() if t.name.endswith("-fluency") and not t.name.startswith(elsewhere)]
    assert len(models) >= 10
    for table in models:
        assert "score ~ source*category + source*form" in table.model
        assert "322 simulated ratings (54 items, 6 raters" in table.model
        assert "converged" in table.model


def test_provenance_names_every_file_with_its_hash(page, small):
    for digest in load(small).inputs.values():
        assert digest in page


def test_the_same_study_gives_the_same_page(small, page):
    assert page == report.page(report.report(load(small), QUICK))


def test_files_are_written_beside_the_page(made, tmp_path, monkeypatch):
    monkeypatch.setattr(Drawing, "pdf", lambda drawing: b"%PDF")  # what is in it, test_figures holds
    written = report.write(made, tmp_path)
    assert tmp_path / "report.html" == written.paths[-1]
    figures, tables = made.figures(), made.tables()
    assert {f"{f.name}.{kind}" for f in figures for kind in ("svg", "pdf")} == names(tmp_path / "figures")
    assert {f"{t.name}.{kind}" for t in tables for kind in ("tex", "csv")} == names(tmp_path / "tables")
    assert len({t.name for t in tables}) == len(tables) and len({f.name for f in figures}) == len(figures)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_metric_that_allows_no_model_is_named_and_the_others_are_told(written, rating_maker):
    rated = rating_maker()
    flat = rated.assign(value=rated["value"].where(rated["metric_id"] == "engagement", 3.0))
    made = report.report(load(written(flat)), QUICK)
    assert "Not in this report:" in made.found[-1] and "every rating of fluency is 3" in made.found[-1]
    assert "encounters" in {t.name for t in made.tables()}


def test_where_no_metric_allows_a_model_the_report_is_refused(written, rating_maker):
    with pytest.raises(StudyError, match="every rating of fluency is 3"):
        report.report(load(written(rating_maker().assign(value=3.0))), QUICK)


def test_a_bare_file_has_no_report(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("rater,item,score\na,x,1\nb,x,2\n")
    with pytest.raises(StudyError, match="a report is made of a study folder"):
        report.report(load(path), QUICK)


def test_identifiers_on_the_page_are_its_own(page):
    found = re.findall(r'\sid="([^"]+)"', page)
    assert len(found) == len(set(found))
