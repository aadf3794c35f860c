"""The house keeps its own rules: who imports whom, clean code, commands that answer at once."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PACKAGES = [
    p for p in ("study", "generation", "annotation_app", "analysis") if (ROOT / p / "__init__.py").exists()
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [BIN / "lint-imports", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(folder)},
    )


def test_imports_follow_the_arrows():
    found = lint_imports(ROOT)
    assert 0 == found.returncode, found.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("study/errors.py", "import generation.run"),
        ("generation/run.py", "import analysis.load"),
        ("analysis/stats/agreement.py", "import matplotlib"),
        ("analysis/stats/agreement.py", "import study.tables"),
        ("study/tables.py", "import matplotlib"),
        ("annotation_app/session.py", "import analysis.load"),
        ("analysis/load.py", "import annotation_app.session"),
        ("analysis/load.py", "import streamlit"),
        ("analysis/judges.py", "import openai"),
    ],
)
def test_an_import_against_the_arrows_is_caught(tmp_path, file, line):
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with open(tmp_path / file, "a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")
    found = lint_imports(tmp_path)
    assert 1 == found.returncode, found.stdout + found.stderr
    assert "BROKEN" in found.stdout


def imported(module: Path) -> set[str]:
    """Every module that a file imports, also inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return found


@pytest.mark.parametrize("module", sorted((ROOT / "analysis" / "stats").rglob("*.py")), ids=lambda p: p.stem)
def test_statistics_know_no_path_clock_or_print(module):
    # import-linter sees our own modules; this sees the standard library too.
    pure = (
        "analysis.stats", "numpy", "scipy", "pandas", "statsmodels", "formulaic", "joblib", "threadpoolctl",
        "distributed",
    )  # fmt: skip
    standard = {
        "abc", "collections", "contextlib", "copy", "dataclasses", "decimal", "enum", "fractions", "functools",
        "html", "itertools", "math", "operator", "re", "textwrap", "typing", "warnings",
    }  # fmt: skip
    for name in imported(module) - {"study.errors", "__future__"}:
        assert name.startswith(pure) or name.split(".")[0] in standard, name


def test_code_is_clean():
    found = subprocess.run([BIN / "ruff", "check", "."], cwd=ROOT, capture_output=True, text=True)
    assert 0 == found.returncode, found.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_help_needs_no_heavy_library(package):
    # What makes --help slow is an import; so none of these may be loaded by the command line's module.
    heavy = "pandas numpy scipy matplotlib pyarrow streamlit openai kiwipiepy statsmodels formulaic sqlalchemy"
    code = f"import sys, {package}.cli; print(*[m for m in '{heavy}'.split() if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "" == found.stdout.strip()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_command_has_an_example_in_its_help(package):
    code = (
        f"import typer, {package}.cli as c; g = typer.main.get_command(c.app)\n"
        "def walk(g):\n"
        "    for name, command in g.commands.items():\n"
        "        if hasattr(command, 'commands'): walk(command)\n"
        "        elif 'Example' not in (command.help or ''): print(name)\n"
        "walk(g)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "" == found.stdout.strip()


def test_no_name_says_nothing():
    empty = {"utils", "util", "helpers", "helper", "common", "core", "base", "manager", "misc"}
    names = {p.stem for package in PACKAGES for p in (ROOT / package).rglob("*.py")}
    assert set() == names & empty
