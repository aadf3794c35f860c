import pandas as pd
import pytest

from analysis.tables import Table, as_csv, as_html, as_latex, as_text

TABLE = Table(
    "t", "Means & more", ("source", "mean"), (("model_a", "−0.27 [−0.34, −0.19]"), ("표준화 환자", "—")), "n = 2",
    "score ~ 1",
)  # fmt: skip


def test_text_columns_line_up_with_korean_in_them():
    lines = as_text(TABLE).splitlines()
    wide = sum(2 if "가" <= letter <= "힣" else 1 for letter in lines[2])
    assert len(lines[1]) == wide


def test_html_escapes_and_scrolls_in_its_own_box():
    page = as_html(TABLE)
    assert "Means &amp; more" in page
    assert "<div class=scroll tabindex=0><table>" in page
    assert "model_<wbr>a" in page


def test_the_model_stands_below_a_table_that_stands_alone():
    assert "score $" not in as_html(TABLE)
    assert r"n = 2 score \textasciitilde{} 1" in as_latex(TABLE)


def test_latex_has_no_bare_special_signs():
    body = as_latex(TABLE)
    assert r"model\_a & $-$0.27 [$-$0.34, $-$0.19] \\" in body
    assert r"Means \& more" in body
    assert "---" in body


def test_a_row_of_the_wrong_length_is_our_mistake():
    with pytest.raises(AssertionError, match="broken"):
        Table("broken", "", ("a", "b"), (("1",),))


def test_a_paper_numbers_its_tables_itself():
    assert r"\caption{Estimated means}" in as_latex(Table("t", "Table 1. Estimated means", ("a",), (("x",),)))


def test_long_text_has_a_column_that_breaks():
    rows = (("1.00", "short"), ("2.00", "an answer of many words " * 4))
    assert r"{rp{0.4\linewidth}}" in as_latex(Table("t", "", ("mean", "answer"), rows, text_columns=(1,)))


def test_csv_holds_the_numbers_behind_the_cells_unrounded():
    numbers = pd.DataFrame({"source": ["model_a"], "estimate": [-0.2719280001]})
    assert as_csv(Table("t", "", ("source", "mean"), (("model_a", "−0.27"),), numbers=numbers)) == (
        "source,estimate\nmodel_a,-0.2719280001\n"
    )
    assert as_csv(TABLE) == 'source,mean\nmodel_a,"−0.27 [−0.34, −0.19]"\n표준화 환자,—\n'
