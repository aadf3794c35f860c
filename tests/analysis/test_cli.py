import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.cli import app
from study.terminal import main

COMMANDS = (
    "fit", "contrasts", "anova", "ranova", "effects", "influence", "reliability", "gstudy", "power", "compare",
    "report",
)  # fmt: skip


def run(*words: str | Path) -> str:
    """What a command prints on standard output."""
    result = CliRunner().invoke(app, [str(w) for w in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(capsys, *words: str | Path) -> str:
    """The one line that a user's mistake prints on standard error, with exit code 1."""
    with pytest.raises(SystemExit) as caught:
        main(lambda: app([str(w) for w in words], standalone_mode=False))
    assert caught.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ") and printed.err.count("\n") == 1
    return printed.err


def test_fit_prints_a_metric_and_keeps_its_result(written):
    folder = written()
    text = run("fit", folder, "--metric", "fluency")
    assert "Linear mixed model of fluency, fit by REML" in text
    assert "simulated" in text
    kept = json.loads((folder / "results" / "fit-fluency.json").read_text(encoding="utf-8"))
    assert kept["provenance"]["study"] == "small"
    assert not list((folder / "results").glob(".*"))


def test_fit_of_a_study_sums_up_all_its_metrics(written):
    folder = written()
    text = run("fit", folder)
    assert "fluency" in text and "engagement" in text
    assert {"fit-fluency.json", "fit-engagement.json"} == {p.name for p in (folder / "results").iterdir()}


def test_fit_in_json_and_csv_holds_full_precision(written, tmp_path):
    document = json.loads(run("fit", written(), "-m", "fluency", "--json", "--csv", tmp_path / "fit.csv"))
    table = pd.read_csv(tmp_path / "fit.csv")
    assert list(table) == ["term", "estimate", "std_error", "df", "statistic", "p_value", "low", "high", "n"]
    assert table["estimate"].tolist() == [row["estimate"] for row in document["coefficients"]]


def test_the_published_model_has_two_random_terms(written):
    document = json.loads(run("fit", written(), "-m", "fluency", "--model", "published", "--json"))
    assert [row["group"] for row in document["components"]] == ["rater", "case:prompt", "residual"]


def test_a_bare_file_takes_its_own_names_in_the_formula(tmp_path):
    path = tmp_path / "panel.csv"
    rows = [f"{w},{t},{(3 * w + 5 * t) % 7}" for w in range(6) for t in range(9)]
    path.write_text("who,text,stars\n" + "\n".join(rows) + "\n")
    text = run("fit", path, "--formula", "stars ~ 1 + (1|who) + (1|text)")
    assert "Formula: stars ~ 1 + (1 | who) + (1 | text)" in text
    assert [p.name for p in tmp_path.iterdir()] == ["panel.csv"]


@pytest.mark.parametrize("command", ["contrasts", "anova", "ranova", "effects"])
def test_what_is_asked_of_a_fit_is_printed_kept_and_given_as_csv(command, written, tmp_path):
    folder = written()
    text = run(command, folder, "-m", "fluency", "--csv", tmp_path / "table.csv")
    assert "score ~ source*category" in text
    kept = json.loads((folder / "results" / f"{command}-fluency.json").read_text(encoding="utf-8"))
    assert len(pd.read_csv(tmp_path / "table.csv")) == len(kept["estimates"])
    document = json.loads(run(command, folder, "-m", "fluency", "--json"))
    assert document == kept


def test_fit_ordinal_keeps_thresholds_and_stands_beside_the_linear_model(written):
    folder = written()
    text = run("fit", folder, "-m", "engagement", "--ordinal")
    assert "Cumulative logit mixed model of engagement" in text
    assert "Linear beside ordinal model" in text
    kept = json.loads((folder / "results" / "ordinal-engagement.json").read_text(encoding="utf-8"))
    assert kept["thresholds"] and kept["beside_linear"]


def test_the_panel_is_seen_rater_by_rater(written):
    text = run("reliability", written(), "-m", "fluency", "--full", "--bootstrap", "100")
    for part in ("ICC(3,k)  ICC(C,k)", "Gwet's AC2", "Raters, the severest first", "Without each rater in turn"):
        assert part in text


def test_gstudy_gives_a_row_for_every_size(written):
    words = ["--n-raters", "3,6", "--n-prompts", "9,18", "--cost", "0.5", "--json"]
    document = json.loads(run("gstudy", written(), "-m", "fluency", *words))
    rows = document["estimates"]
    assert [(r["prompt"], r["rater"]) for r in rows] == [(9, 3), (9, 6), (18, 3), (18, 6)]
    assert rows[0]["cost"] == 0.5 * rows[0]["n_ratings"] == 0.5 * 3 * 9 * 3
    assert "limit precision" in document["limit"]


def test_power_from_assumed_variances_is_the_closed_form():
    # Design of 5 sources, 70 prompts, 17 raters: power .46, .70, .87, .96 by 1,000 simulated studies.
    variances = "source_prompt=0.16,source_rater=0.01,residual=0.4225"
    sizes = ["--sources", "5", "--n-prompts", "70", "--n-raters", "17", "--difference", "0.15,0.2,0.25,0.3"]
    document = json.loads(run("power", "--assume", variances, *sizes, "--json"))
    assert [round(r["power"], 2) for r in document["estimates"]] == [0.46, 0.70, 0.87, 0.96]


def test_power_from_a_pilot_names_where_it_comes_from(written):
    text = run("power", written(), "-m", "fluency", "--n-raters", "6", "--n-prompts", "18", "--difference", "0.3")
    assert "Power from the fit of fluency (simulated ratings)" in text


@pytest.mark.parametrize("more", [[], ["--missing", "0.1"]])
def test_simulated_power_does_not_depend_on_jobs(more):
    words = ["power", "--assume", "source_prompt=0.1,source_rater=0.01,residual=0.4", "--n-prompts", "6",
             "--n-raters", "3", "--difference", "0.5", "--simulate", "100", "--mean", "3", "--scale", "1:5",
             "--json", *more]  # fmt: skip
    one, two = (json.loads(run(*words, "--jobs", n))["estimates"] for n in ("1", "2"))
    assert one == two


def test_two_subsets_are_compared_together(written):
    words = ["-m", "fluency", "--where", "form=affirmative", "--where", "form=negative"]
    text = run("compare", written(), *words)
    assert "form=affirmative beside form=negative (simulated ratings); fitted together" in text
    assert "model_a" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["power", "--assume", "residual=1"], "--n-prompts and --n-raters"),
        (["power", "--assume", "noise=1", "--n-prompts", "5", "--n-raters", "5"], "component noise is unknown"),
        (["gstudy", ".", "--n-raters", "5;8"], "write numbers with commas between them"),
        (["gstudy", ".", "--n-raters", "5.5"], "write whole numbers"),
        (["gstudy", ".", "--cost-of", "rater"], "write names with numbers"),
        (["compare", "."], "--with"),
    ],
)
def test_planning_options_are_refused_in_one_sentence(words, says, small, capsys):
    assert says in refused(capsys, *[str(small) if w == "." else w for w in words])


def test_a_condition_that_leaves_nothing_is_refused(small, capsys):
    words = ["compare", small, "-m", "fluency", "--where", "form=affirmative", "--where", "form=rude"]
    assert "--where form=rude: no rating; form has" in refused(capsys, *words)


def test_reliability_says_targets_raters_and_cells(written):
    text = run("reliability", written(), "-m", "engagement", "--bootstrap", "100")
    assert "ICC(2,k) = ICC(A,k)" in text
    assert "36/36 (100%)" in text


def test_reliability_in_json_has_a_row_per_coefficient(written):
    document = json.loads(run("reliability", written(), "-m", "engagement", "--bootstrap", "100", "--json"))
    assert {"ICC(2,1)", "ICC(2,k)", "alpha, ordinal", "alpha, interval"} == {
        r["term"] for r in document["estimates"]
    }


def test_report_names_the_page_it_wrote(written, rating_maker):
    folder = written(rating_maker().query("metric_id == 'engagement'"))
    text = run("report", folder, "--bootstrap", "100")
    assert f"{folder / 'report.html'}: with" in text
    assert (folder / "report.html").is_file()
    assert (folder / "figures" / "means-encounter.pdf").read_bytes().startswith(b"%PDF")
    kept = pd.read_csv(folder / "tables" / "encounters.csv")
    assert {"source", "metric", "estimate", "low", "high"} <= set(kept) and 3 == len(kept)


def test_report_lists_what_it_wrote_in_json(written, rating_maker):
    folder = written(rating_maker().query("metric_id == 'engagement'"))
    told = json.loads(run("report", folder, "--bootstrap", "100", "--json"))
    assert str(folder / "report.html") == told["page"] == told["written"][-1]
    assert all(Path(path).is_file() for path in told["written"])


BAD = {
    "missing column": ("rater,item,points\na,x,3\n", "column score is missing"),
    "off the scale": ("rater,item,score\na,x,9\n", "outside the scale's 1 to 5"),
    "given twice": ("rater,item,score\na,x,3\na,x,4\n", "more than once"),
    "a rater without ratings": ("rater,item,score\na,x,3\na,y,4\nb,x,\n", "no rating by b"),
    "constant": ("rater,item,score\na,x,3\na,y,3\nb,x,3\nb,y,3\n", "every rating of score is 3"),
    "one level": ("rater,item,score,g\na,x,3,u\na,y,3,u\nb,x,4,u\nb,y,1,u\n", "g has one level"),
    "empty": ("", "is empty"),
    "wrong kind": ("\x89PNG\r\n\x1a\n\0", "is not a table of text"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_exit_one_and_nothing_written(case, tmp_path, capsys):
    content, says = BAD[case]
    path = tmp_path / "ratings.csv"
    path.write_text(content, encoding="latin-1")
    formula = ["--formula", "score ~ g + (1|rater)"] if case == "one level" else []
    message = refused(capsys, "fit", path, "--scale", "1:5", "--out", tmp_path / "results", *formula)
    assert says in message
    assert [p.name for p in tmp_path.iterdir()] == ["ratings.csv"]


def test_a_prompt_without_a_case_stops_the_report_before_anything_is_written(written, table_maker, capsys):
    items, _ = table_maker()
    items.loc[items["label"] == "U0003", "case_id"] = None
    folder = written(items=items)
    assert "prompt case-0-03 (item U0003) has no case" in refused(capsys, "report", folder)
    assert not (folder / "report.html").exists() and not (folder / "tables").exists()


@pytest.mark.parametrize("scale", ["5:1", "1-5", "low:high"])
def test_a_scale_is_two_numbers(scale, tmp_path, capsys):
    assert "--scale" in refused(capsys, "fit", tmp_path, "--scale", scale)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    assert f"Example: analysis {command}" in " ".join(run(command, "--help").split())


def test_help_loads_none_of_the_heavy_libraries():
    code = (
        "import sys; from analysis.cli import app\n"
        "try: app(['fit', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pandas', 'numpy', 'scipy', 'matplotlib', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("[]")
