"""Every command that the README shows exists, with the options it shows."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import typer

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8").replace("\\\n", " ")
LINES = [
    line[2:].split("  #")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]
PACKAGES = ("study", "generation", "annotation_app", "analysis")
COMMANDS = [shlex.split(line) for line in LINES if line.split()[0] in PACKAGES]
TARGETS = [line.split()[1] for line in LINES if line.startswith("make ")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_shown_parses(words):
    command, rest = typer.main.get_command(import_module(f"{words[0]}.cli").app), words[1:]
    while hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands[name]
    with command.make_context(name, rest) as context:
        assert context.params


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_shown_is_in_the_makefile(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_readme_shows_every_package_at_work():
    assert set(PACKAGES) == {words[0] for words in COMMANDS}


def test_folders_on_the_map_exist():
    tree = re.search(r"## The code\n\n```\n(.*?)```", TEXT, re.DOTALL).group(1)
    parent = ROOT
    for line in tree.splitlines():
        found = re.match(r"( *)(\w+)/ ", line)
        if found:
            parent = ROOT / found[2] if not found[1] else parent
            folder = parent if not found[1] else parent / found[2]
            assert folder.is_dir(), folder
