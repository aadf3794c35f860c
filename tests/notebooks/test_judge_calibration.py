"""The notebook runs from top to bottom as it stands in the repository, and defines no function."""

import ast
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat reads notebooks; it comes with the test extra")
nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks; it comes with the test extra")

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "judge-calibration.ipynb"


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def source_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def test_it_defines_no_function(notebook):
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    assert not [node for node in ast.walk(ast.parse(source_of(notebook))) if isinstance(node, defined)]


def test_it_is_kept_without_output(notebook):
    assert all(not cell.get("outputs") for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_it_runs_and_finds_the_planted_bias(notebook, tmp_path):
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                                     resources={"metadata": {"path": str(tmp_path)}})  # fmt: skip
    client.execute()
    printed = "".join(
        out.get("text", "") for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs
    )
    assert "favours ledger_clinician, its own family, by" in printed
    assert "register on fluency:" in printed
