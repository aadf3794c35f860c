import json
import re

import pytest
from typer.testing import CliRunner

from analysis.cli import app
from analysis.load import load
from analysis.reliability import Bootstrap
from analysis.reporting import checklists, methods
from analysis.reporting.analysed import analysed
from analysis.reporting.facts import facts
from study.errors import StudyError


@pytest.fixture(scope="module")
def made(small):
    loaded = load(small)
    return analysed(loaded, loaded.study, Bootstrap(n=100), "auto")


@pytest.fixture(scope="module")
def known(made):
    return facts(made)


def items(sheet: checklists.Sheet) -> dict:
    return {entry.number: entry for entry in sheet.entries}


@pytest.mark.parametrize("name", checklists.NAMES)
def test_every_sheet_has_every_item_answered_or_marked(made, known, name):
    for sheet in checklists.sheets(made, name, known):
        assert len(checklists.load(name).items) == len(sheet.entries)
        assert len({e.number for e in sheet.entries}) == len(sheet.entries)
        assert all(entry.told or entry.write for entry in sheet.entries)


@pytest.mark.parametrize("name", checklists.NAMES)
def test_no_sheet_holds_a_blank(made, known, name):
    for sheet in checklists.sheets(made, name, known):
        text = checklists.as_markdown(sheet)
        assert not re.search(r"\bNone\b|\bnan\b|[{}]|\(\)| ,|: \.|—", text), text


def test_grras_has_its_fifteen_items():
    assert [str(i) for i in range(1, 16)] == [item.number for item in checklists.load("grras").items]


def test_what_the_data_tell_is_filled(made, known):
    own = items(checklists.sheets(made, "grras", known)[0])
    assert "6 simulated human raters, 60 items" in own["11"].told[0]
    assert "ICC(2,1)" in own["13"].told[0] and "engagement" in own["13"].told[0]
    assert own["13"].state == "filled" and own["6"].state == "in part" and own["7"].state == "to write"


def test_what_is_not_known_is_left_to_a_person(made, known):
    # No assignment: nobody knows in which order was rated, or who saw what.
    assert "order" not in known and "blinding" not in known
    assert not items(checklists.sheets(made, "grras", known)[0])["9"].told
    assert "files do not tell" in items(checklists.sheets(made, "chart", known)[0])["6b"].write


def test_heds_has_a_sheet_for_each_metric_with_its_own_question(made, known):
    fluency, engagement = checklists.sheets(made, "heds", known)
    assert ["heds-fluency", "heds-engagement"] == [fluency.name, engagement.name]
    assert ("자연스럽습니까?",) == items(fluency)["4.3.7"].told
    assert not items(engagement)["4.3.7"].told
    assert "1 to 5 in steps of 1" in items(engagement)["4.3.4"].told[0]


def test_an_unknown_checklist_is_named():
    with pytest.raises(StudyError, match="the checklists are grras, heds, chart"):
        checklists.load("consort")


def test_simulated_is_said_on_every_sheet(made, known):
    sheet = checklists.sheets(made, "chart", known)[0]
    assert "simulated" in checklists.as_markdown(sheet)
    assert "<title>CHART: reporting chatbot assessment (simulated ratings)</title>" in checklists.as_page(sheet)


def test_the_command_writes_markdown_and_pages(written):
    folder = written()
    result = CliRunner().invoke(app, ["checklist", str(folder), "--of", "heds", "--bootstrap", "100", "--json"])
    assert result.exit_code == 0, result.output
    sheets = json.loads(result.stdout)
    assert ["heds-fluency", "heds-engagement"] == [sheet["name"] for sheet in sheets]
    kept = {path.name for path in (folder / "checklists").iterdir()}
    assert {f"{s['name']}.{kind}" for s in sheets for kind in ("md", "html")} == kept
    assert not re.search(r"(?:src|href)=", (folder / "checklists" / "heds-fluency.html").read_text("utf-8"))


def test_the_methods_paragraph_leaves_no_hole(made, known):
    told = methods.methods(made, known)
    text = " ".join(told.lead)
    assert not re.search(r"\bNone\b|\bnan\b|  |[{}]|\(\)| [,.;]|\.\.|—", text), text
    assert "Three sources (Expert, model_b and model_a) answered 18 prompts in 2 cases" in text
    assert "Six simulated human raters rated 54 items on fluency (1 to 5) and 6 encounters on engagement" in text
    assert "fitted by REML" in text and "Holm" in text
    assert "Not recorded in the study" in told.lead[-1] and "whether raters knew the sources" in told.lead[-1]


@pytest.mark.parametrize("gone", ["reference", "n_cases", "n_categories", "icc_range", "df_method"])
def test_without_a_fact_its_sentence_goes_too(made, known, gone):
    text = " ".join(methods.methods(made, {k: v for k, v in known.items() if k != gone}).lead)
    assert not re.search(r"\bNone\b|  |\(\)| [,.;]|\.\.", text), text
