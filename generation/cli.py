"""generation: put a study's prompts to its sources, and look at what one of them would be told and say."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from generation.expert_cli import app as expert_app
from generation.sources.kinds import KINDS
from study.errors import StudyError, joined
from study.terminal import command, dump, main, say, warn

if TYPE_CHECKING:
    from study.config import Study

app = command("generation", "Put a study's prompts to its sources.")
app.add_typer(expert_app, name="expert")

Folder = Annotated[Path, typer.Argument(help="The study folder, with its study.toml.")]
Named = TypeVar("Named")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]


def run() -> None:
    main(app)


@app.command(name="run", epilog=f"Kinds of source: {', '.join(KINDS)}.")
def run_study(
    folder: Folder = Path("."),
    again: Annotated[bool, typer.Option("--again", help="Ask for every answer anew.")] = False,
    as_json: Json = False,
) -> None:
    """Put every prompt to every source: responses.parquet, one row each, failures included.

    Run again, it asks only for what is missing, failed or changed. An answer is kept whatever it says.

    Example: generation run demo-study
    """
    from generation.progress import Meter
    from generation.run import run
    from study.config import load

    study = load(folder)
    _say_window(study)
    outcome = run(study, again, Meter(quiet=as_json))
    if as_json:
        dump({"study": study.study_id, **vars(outcome), "failed": outcome.failed, "open": outcome.open})
    else:
        say(f"{study.responses}: {outcome.cells} responses, {outcome.asked} asked now, {outcome.kept} kept")
        for source, statuses in outcome.statuses.items():
            say(f"  {source:<20} {', '.join(f'{n} {status}' for status, n in statuses.items())}")
        if outcome.flags:
            say(f"flagged: {', '.join(f'{n} {flag}' for flag, n in outcome.flags.items())}")
        if outcome.cost is not None:
            unknown = f", {outcome.unpriced} answers of unknown cost" if outcome.unpriced else ""
            say(f"cost: {outcome.cost:.4f}{unknown}")
    if outcome.open:
        reasons = [f"{source}: {reason}" for source, reason in outcome.stopped.items()]
        again_ = f"{outcome.open} of {outcome.cells} have no outcome yet; run again to ask for them"
        raise StudyError(joined([*reasons, f"{study.responses}: {again_}"]))


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


@app.command()
def status(folder: Folder = Path("."), as_json: Json = False) -> None:
    """Say how far the responses have come, source by source. Nothing is asked.

    Example: generation status demo-study
    """
    from generation.status import standings
    from study.config import load

    found = standings(load(folder))
    if as_json:
        dump([s.plain() for s in found])
        return
    for s in found:
        parts = [f"{s.cells - s.open}/{s.cells} settled"]
        parts += [f"{n} {name}" for name, n in s.sums.statuses.items() if name not in ("ok", "failed")]
        parts += [f"{sum(s.sums.flags.values())} flags"] if s.sums.flags else []
        parts += [f"cost {s.sums.cost:.4f}"] if s.sums.cost is not None else []
        parts += [f"{s.attempts.sent} requests"] if s.attempts.sent else []
        parts += [f"{s.attempts.lost} of them lost"] if s.attempts.lost else []
        say(f"{s.source:<20} {', '.join(parts)}")


@app.command()
def verify(
    folder: Folder = Path("."),
    release: Annotated[bool, typer.Option("--release", help="Also refuse what may not be published.")] = False,
    as_json: Json = False,
) -> None:
    """Hold the responses against the study: the exact grid, today's questions, the journal's words, one window.

    Example: generation verify demo-study --release
    """
    from generation.verify import verify as held
    from study.config import load

    found = held(load(folder), release=release)
    if as_json:
        dump(vars(found))
    else:
        for note in found.notes:
            say(f"note: {note}")
    if found.problems:
        if as_json:
            raise typer.Exit(1)
        raise StudyError(joined(found.problems))
    if not as_json:
        say(f"{folder}: the responses are those of the study")


@app.command()
def export_batch(
    source: Annotated[str, typer.Argument(help="The source whose open questions to write.")],
    folder: Folder = Path("."),
    to: Annotated[Path, typer.Option("--to", help="The file to write.")] = Path("batch.jsonl"),
) -> None:
    """Write the open questions of a source as a provider's batch file.

    Example: generation export-batch gpt demo-study --to batch.jsonl
    """
    from generation import batch
    from study.config import load

    say(f"{to}: {batch.export(load(folder), source, to)} questions to {source}")


@app.command()
def import_batch(
    source: Annotated[str, typer.Argument(help="The source that answered.")],
    files: Annotated[
        list[Path], typer.Argument(help="The batch's output file, and its error file if it has one.")
    ],
    folder: Annotated[Path, typer.Option("--study", help="The study folder.")] = Path("."),
    as_json: Json = False,
) -> None:
    """Take the answers of a provider's batch, matched by each question's name, and write responses.parquet.

    Example: generation import-batch gpt output.jsonl errors.jsonl --study demo-study
    """
    from generation import batch
    from study.config import load

    found = batch.import_(load(folder), source, files)
    if as_json:
        dump(vars(found))
        return
    say(f"{found.taken} answers of {source} taken, {found.known} stood already, {found.failed} failed")


def _say_window(study: "Study") -> None:
    from generation.verify import window_note

    if (note := window_note(study)) is not None:
        warn(note)


def _one(known: dict[str, Named], name: str | None, what: str) -> Named:
    if not known:
        raise StudyError(f"{what} at all")
    if name is None:
        return next(iter(known.values()))
    if name not in known:
        raise StudyError(f"{what} {name}; there are {', '.join(known)}")
    return known[name]
