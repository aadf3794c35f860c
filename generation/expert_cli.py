"""generation expert: the list of questions out to a human expert, the answers in."""

from pathlib import Path
from typing import Annotated

import typer

from study.terminal import command, say

app = command("expert", "A human expert as a source: the questions out, the answers in.")

Folder = Annotated[Path, typer.Argument(help="The study folder, with its study.toml.")]


@app.command()
def export(
    folder: Folder = Path("."),
    to: Annotated[Path, typer.Option("--to", help="A .csv or .xlsx file to write.")] = Path("questions.xlsx"),
) -> None:
    """Write the study's questions for an expert to answer, and beside them what may be read of the patients.

    Example: generation expert export demo-study --to questions.csv
    """
    from generation import expert
    from study.config import load

    study = load(folder)
    content = study.content()
    cases = expert.export(content, to)
    say(f"{to}: {len(content.prompts)} questions; the patients are described in {cases}")
    say("No model's answer is in either file. The expert fills in the column `answer`, and changes nothing else.")


@app.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="The filled-in .csv or .xlsx file.")],
    folder: Folder = Path("."),
    source: Annotated[str, typer.Option(help='The source of kind "expert" in study.toml.')] = "expert",
    attested_by: Annotated[
        str, typer.Option(help="Who attests to having written the answers without seeing a model's.")
    ] = "",
) -> None:
    """Take an expert's answers, one to each question, with the attestation that they were written blind.

    Example: generation expert import questions.csv demo-study --source clinician --attested-by "K. S."
    """
    from generation import expert
    from study.config import load

    found = expert.import_(load(folder), source, file, attested_by)
    say(f"{len(found.answers)} answers of {source}, attested by {found.attested_by}:")
    say(f'  "{expert.ATTESTATION}"')
    say(f"Next: generation run {folder}")
