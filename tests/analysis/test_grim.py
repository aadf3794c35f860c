import io
import json

import pytest
from typer.testing import CliRunner

from analysis.cli import app
from study.terminal import main

# The 30 encounter means that the study printed which this toolkit generalises; 51 ratings from 1 to 5 behind each.
PUBLISHED = """\
source,comprehensibility,hallucination_free,coherence,consistency,engagement,overall_satisfaction
Human,4.84,4.49,4.80,4.75,4.18,4.61
Claude 3.5 Sonnet,4.45,4.35,4.00,4.39,3.82,3.82
GPT-4o,4.59,4.41,4.08,4.53,3.75,3.82
HyperCLOVA X,4.57,4.02,4.24,4.39,4.16,3.88
Llama-3.1 70B,3.71,3.94,2.94,3.82,2.94,2.71
"""


def long(wide: str) -> str:
    head, *rows = (line.split(",") for line in wide.splitlines())
    return "source,metric,mean\n" + "".join(
        f"{row[0]},{metric},{value}\n" for row in rows for metric, value in zip(head[1:], row[1:], strict=True)
    )


def run(*words: str, text: str | None = None, code: int = 0):
    result = CliRunner().invoke(app, ["grim", *words], input=text, catch_exceptions=False)
    assert code == result.exit_code, result.output
    return result.stdout


def refused(capsys, monkeypatch, text: str, *words: str) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(SystemExit) as caught:
        main(lambda: app(["grim", "-", *words], standalone_mode=False))
    assert caught.value.code == 1
    return capsys.readouterr().err


def test_the_published_means_are_all_possible_over_51_ratings():
    text = run("-", "--n", "51", "--scale", "1:5", text=long(PUBLISHED))
    assert "No row of 30 is impossible." in text
    # 51 of 100 hundredths are possible means.
    assert f"with probability {0.51**30:.2g}" in text


def test_one_mean_is_spoken_of_as_one():
    text = run("-", text="source,mean,n\na,3.51,51\nb,3.51,400\n")
    assert "1 mean could be tested; a made-up one would pass with probability 0.51" in text
    assert "1 mean tells nothing: at its n every mean" in text


def test_at_another_n_they_are_not():
    text = run("-", "--n", "50", "--scale", "1:5", text=long(PUBLISHED), code=1)
    assert "of 30 rows cannot come from so many ratings" in text


def test_one_changed_digit_is_named_with_its_neighbours(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(long(PUBLISHED.replace("4.84", "4.83")), encoding="utf-8")
    found = json.loads(run(str(path), "--n", "51", "--json", code=1))
    wrong = [row for row in found["estimates"] if row["mean_is"] == "impossible"]
    assert [("Human comprehensibility", ["4.82", "4.84"])] == [(row["name"], row["nearest"]) for row in wrong]


def test_semicolons_tabs_and_decimal_commas_are_read():
    for text in ("mean;n;sd\n4,84;51;0,37\n", "mean\tn\tsd\n4.84\t51\t0.37\n"):
        assert "No row of 1 is impossible." in run("-", "--scale", "1:5", text=text)


def test_zeros_lost_in_a_spreadsheet_are_put_back():
    assert "cannot tell" in run("-", text="mean,n\n4.8,51\n")
    run("-", "--decimals", "2", text="mean,n\n4.8,51\n")
    run("-", "--decimals", "2", text="mean,n\n4.7,51\n", code=1)


def test_the_table_is_kept_as_csv(tmp_path):
    run("-", "--n", "51", "--csv", str(tmp_path / "checked.csv"), text="mean\n4.84\n")
    assert (tmp_path / "checked.csv").read_text("utf-8").startswith("name,mean,n,items,sd,mean_is")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mean,n\nhigh,51\n3.2,51\n4.1,few\n", "line 2: 'high' is not a number"),
        ("mean,n\n4.1,few\n", "line 2: n is few; it must be a whole number"),
        ("mean\n4.1\n", "has no column n; it has mean (or give --n for all rows)"),
        ("n\n51\n", "has no column mean; it has n"),
        ("mean,n\n4.1\n", "line 2: 1 cells, not 2"),
        ("", "holds no table"),
        ("mean,mean,n\n1,2,3\n", "column mean stands twice"),
        ("mean,n,low,high\n7.1,10,1,5\n", "line 2: mean 7.1: lies outside the scale, 1 to 5"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_line(capsys, monkeypatch, text, said):
    assert said in refused(capsys, monkeypatch, text)


def test_a_file_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(lambda: app(["grim", "nowhere.csv"], standalone_mode=False))
    assert "nowhere.csv: no such file" in capsys.readouterr().err
