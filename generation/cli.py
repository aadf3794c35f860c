"""generation: put a study's prompts to its sources, and look at what one of them would be told and say."""

from pathlib import Path
from typing import Annotated, TypeVar

import typer

from study.errors import StudyError
from study.terminal import command, dump, main, say

app = command("generation", "Put a study's prompts to its sources.")

Folder = Annotated[Path, typer.Argument(help="The study folder, with its study.toml.")]
Named = TypeVar("Named")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]


def run() -> None:
    main(app)


@app.command(name="run")
def run_study(
    folder: Folder = Path("."),
    again: Annotated[bool, typer.Option("--again", help="Ask for every answer anew.")] = False,
    as_json: Json = False,
) -> None:
    """Put every prompt to every source: responses.parquet, one row each, failures included.

    Run again, it asks only for what is missing, failed or changed.

    Example: generation run demo-study
    """
    from generation.run import run
    from study.config import load

    study = load(folder)
    with _bar(as_json) as progress:
        outcome = run(study, again, progress)
    if as_json:
        dump({"study": study.study_id, **vars(outcome), "failed": outcome.failed})
        return
    say(f"{study.responses}: {outcome.cells} responses, {outcome.asked} asked now, {outcome.kept} kept")
    for source, statuses in outcome.statuses.items():
        say(f"  {source:<20} {', '.join(f'{n} {status}' for status, n in statuses.items())}")


@app.command()
def preview(
    folder: Folder = Path("."),
    case: Annotated[str | None, typer.Option(help="The case; the first one if not named.")] = None,
    source: Annotated[str | None, typer.Option(help="The source; the first one if not named.")] = None,
    question: Annotated[str | None, typer.Option(help="What to ask; else the case's first prompt.")] = None,
    variant: Annotated[str, typer.Option(help="Persona variant of the system prompt.")] = "baseline",
    as_json: Json = False,
) -> None:
    """Show the system prompt of one case, and one source's answer to one question.

    Example: generation preview demo-study --case HEM --source ledger --question "열은 없으세요?"
    """
    from generation.prompt import system_prompt
    from generation.sources.kinds import open_source
    from generation.sources.speaker import Request
    from study.config import load
    from study.records import Prompt

    study = load(folder)
    content = study.content()
    chosen_case = _one(content.cases, case, f"{folder}: no case")
    chosen = _one({s.source_id: s for s in study.sources}, source, f"{folder}: no source")
    prompts = content.prompts_of(chosen_case.case_id)
    prompt: Prompt | None = next((p for p in prompts if question is None or p.text == question), None)
    text = question or (prompt.text if prompt else "")
    if not text.strip():
        raise StudyError(f"{folder}: case {chosen_case.case_id} has no prompt; give one with --question")
    system = system_prompt(chosen_case.persona, content.language, variant)
    answer = open_source(chosen, content, study.folder).answer(Request(chosen_case, text, prompt))
    if as_json:
        shown = {"case": chosen_case.case_id, "source": chosen.source_id, "system": system, "question": text}
        dump(shown | vars(answer))
        return
    say(f"{system}\n\nstudent  {text}\n{chosen.source_id}  {answer.text or f'({answer.status}: {answer.detail})'}")


def _one(known: dict[str, Named], name: str | None, what: str) -> Named:
    if not known:
        raise StudyError(f"{what} at all")
    if name is None:
        return next(iter(known.values()))
    if name not in known:
        raise StudyError(f"{what} {name}; there are {', '.join(known)}")
    return known[name]


class _bar:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        import sys

        self._shown = not quiet and sys.stderr.isatty()

    def __enter__(self) -> "object":
        if not self._shown:
            return None
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress

        self._rich = Progress(*Progress.get_default_columns(), MofNCompleteColumn(),
                              console=Console(stderr=True), transient=True)
        task = self._rich.add_task("responses", total=None)
        self._rich.start()
        return lambda done, total: self._rich.update(task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._rich.stop()
