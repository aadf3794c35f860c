"""The notebooks run from top to bottom as they stand in the repository, and define no function."""

import ast
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat reads notebooks; it comes with the test extra")
nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks; it comes with the test extra")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_of(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def printed(name, folder):
    """What a notebook prints and shows as text when it is run in a folder."""
    notebook = nbformat.read(FOLDER / name, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    return "".join(out.get("text", "") + str(out.get("data", {})) for out in outputs)


@every_notebook
def test_it_defines_no_function(path):
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    tree = ast.parse("\n".join(cell.source for cell in code_of(path)))
    assert not [node for node in ast.walk(tree) if isinstance(node, defined)]


@every_notebook
def test_it_is_kept_without_output(path):
    assert all(not cell.get("outputs") for cell in code_of(path))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_calibration_finds_the_planted_bias(tmp_path):
    said = printed("judge-calibration.ipynb", tmp_path)
    assert "favours ledger_clinician, its own family, by" in said
    assert "register on fluency:" in said


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_paper_finds_every_published_number(tmp_path):
    said = printed("paper.ipynb", tmp_path)
    assert "133/133 (100%) published numbers are equal within their tolerance" in said
    assert "(simulated ratings)" in said and "simulated ratings</text>" in said
    assert [] == list(tmp_path.iterdir())
