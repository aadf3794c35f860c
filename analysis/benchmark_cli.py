"""`analysis benchmark`: dialogue benchmarks. Exit code 2 means that what was asked for is not complete."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from analysis.benchmarks.study_cli import to_study
from analysis.options import Json
from study.terminal import command, dump, say, warn

if TYPE_CHECKING:
    from analysis.benchmarks.vaidya.conversation import Parties
    from analysis.benchmarks.vaidya.running import Ran

INCOMPLETE = 2

app = command("benchmark", "Dialogue benchmarks: a doctor and a patient meet, and the encounters are rated.")
vaidya = command("vaidya", "VAIDYA's DiagBench and MedConvBench: its files and flags; exit code 2 if incomplete.")
app.add_typer(vaidya, name="vaidya")
app.command("to-study")(to_study)

Input = Annotated[Path, typer.Option("--input", help="A .json file with a list of cases.")]
Output = Annotated[Path, typer.Option("--output-dir", help="The folder of conversations; one for each doctor.")]
Kind = Annotated[
    Literal["diagbench", "medconvbench"] | None,
    typer.Option("--benchmark", help="What the cases are for; told from their keys where that is clear."),
]
PatientModel = Annotated[str, typer.Option(help="Who plays the patient; embedded and local need no key.")]
Provider = Literal["openai", "xai", "together", "local_openai"]
PatientProvider = Annotated[Provider | None, typer.Option(help="Who serves the patient; told from its name.")]
Strict = Annotated[bool, typer.Option("--strict", help="Take no provider that was not named.")]
Prices = Annotated[
    Path | None, typer.Option(help="YAML or JSON: models.NAME.{provider, input_cost_per_million_tokens, …}.")
]
MaxCost = Annotated[float | None, typer.Option(help="Stop before the folder's calls cost more than this.")]
MaxCalls = Annotated[int | None, typer.Option(help="Stop before the folder's calls are more than this.")]
DoctorSetting = Annotated[
    list[str] | None, typer.Option("--doctor-setting", metavar="KEY=VALUE", help="As of a source; repeatable.")
]
PatientSetting = Annotated[
    list[str] | None, typer.Option("--patient-setting", metavar="KEY=VALUE", help="As of a source; repeatable.")
]
Replay = Annotated[bool, typer.Option("--replay", help="Make no call: only what the folder's events hold.")]


@vaidya.command()
def cases(
    folder: Annotated[Path, typer.Argument(metavar="study", help="The study folder.")] = Path("."),
    output: Annotated[Path, typer.Option("--output", help="The .json file to write.")] = Path("cases.json"),
) -> None:
    """Write a study's cases as a case file: its diagnoses, and its prompts as the questions that should be asked.

    Example: analysis benchmark vaidya cases my-study --output cases.json
    """
    from analysis.benchmarks.vaidya import from_study
    from study.config import load

    n = from_study.write(load(folder).content(), output)
    say(f"{output}: {n} cases; say --benchmark diagbench or --benchmark medconvbench with them")


@vaidya.command()
def run(
    input: Input,
    output_dir: Output,
    doctor_model: Annotated[str, typer.Option(help="The doctor: a model, or embedded, oracle, mute, local.")],
    doctor_provider: Annotated[Provider | None, typer.Option(help="Who serves it; told from its name.")] = None,
    patient_model: PatientModel = "gpt-4o",
    patient_provider: PatientProvider = None,
    max_rounds: Annotated[int, typer.Option(min=1, max=200, help="Rounds of an encounter at most.")] = 8,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing/--no-skip-existing", help="Leave whole conversations as they are.")
    ] = True,
    benchmark: Kind = None,
    prices: Prices = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Encounters at a time.")] = 4,
    doctor_setting: DoctorSetting = None,
    patient_setting: PatientSetting = None,
    strict: Strict = False,
    replay: Replay = False,
    as_json: Json = False,
) -> None:
    """Let a doctor meet every patient of a case file: patient_ID.json each, manifest.json, encounters.parquet.

    A run that was stopped or killed goes on where it was. Exit code 2: an encounter failed on the way or was not
    held; run again for the rest.

    Example: analysis benchmark vaidya run --input cases.json --output-dir gpt-4o --doctor-model gpt-4o

    Example: analysis benchmark vaidya run --input cases.json --output-dir try --doctor-model embedded
    --patient-model embedded
    """
    import os

    from analysis.benchmarks.budget import Budget
    from analysis.benchmarks.vaidya import cases as case_file
    from analysis.benchmarks.vaidya import pricing, providers, running, words
    from generation.progress import Meter

    cases = case_file.load(input, benchmark)
    parties = _parties(
        (doctor_model, doctor_provider), (patient_model, patient_provider), max_rounds, input, strict=strict
    )
    settings = {
        "doctor": providers.given(doctor_setting or (), "--doctor-setting"),
        "patient": providers.given(patient_setting or (), "--patient-setting"),
    }
    meetings = running.plan(
        cases, parties, pricing.load(prices), os.environ, concurrency=concurrency, settings=settings, replay=replay
    )
    with Meter(quiet=as_json) as meter:
        found = running.run(
            output_dir, cases, parties, meetings, Budget(max_cost, max_calls), meter,
            again=not skip_existing, replay=replay,
        )  # fmt: skip
    if as_json:
        dump(_plain(found))
    else:
        say(words.ran(found))
    if found.incomplete:
        _incomplete(output_dir, f"{found.outcome.open} encounters are open; run again", found.outcome.stopped)


@vaidya.command()
def evaluate(
    input: Input,
    output_dir: Output,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="judge|rule", help="Who scores, repeatable; the judge."),
    ] = None,
    evaluator_model: Annotated[
        str | None,
        typer.Option(help="The judge: else $VAIDYA_EVALUATOR_MODEL, $DIAGBENCH_EVALUATOR_MODEL, gpt-4.1."),
    ] = None,
    evaluator_provider: Annotated[Provider | None, typer.Option(help="Who serves it; told from its name.")] = None,
    extract_diagnosis_flag: Annotated[
        bool,
        typer.Option("--extract-diagnosis-flag", help="Let a model name the last doctor turn's diagnosis first."),
    ] = False,
    extractor_model: Annotated[str, typer.Option(help="That model.")] = "gpt-4.1-mini",
    threads: Annotated[
        int, typer.Option("--threads", "--concurrency", min=1, max=256, help="Encounters judged at a time.")
    ] = 128,
    evaluator_setting: Annotated[
        list[str] | None,
        typer.Option("--evaluator-setting", metavar="KEY=VALUE", help="As of a judge; repeatable."),
    ] = None,
    benchmark: Kind = None,
    prices: Prices = None,
    calibration: Annotated[
        Path | None, typer.Option(help="A judge-card.json of `analysis calibrate`; one in the folder is found.")
    ] = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    strict: Strict = False,
    replay: Replay = False,
    as_json: Json = False,
) -> None:
    """Score a folder of conversations: evaluation-RATER.json and rating rows in ratings.parquet.

    Exit code 2, as VAIDYA's document has it: a conversation is missing or invalid, or has no score. Its score is
    then null and outside the mean; the mean with each of these as 0 stands beside it.

    Example: analysis benchmark vaidya evaluate --input cases.json --output-dir gpt-4o --evaluator-model gpt-4.1

    Example: analysis benchmark vaidya evaluate --input cases.json --output-dir try --by rule
    """
    import os

    from analysis.benchmarks.budget import Budget
    from analysis.benchmarks.vaidya import cases as case_file
    from analysis.benchmarks.vaidya import evaluation, pricing, providers, scorers, survey, twin, words
    from generation.progress import Meter

    cases = case_file.load(input, benchmark)
    found = survey.survey(output_dir, cases)
    known = pricing.load(prices)
    extractor = extractor_model if extract_diagnosis_flag else None
    settings = providers.given(evaluator_setting or (), "--evaluator-setting")
    asked = scorers.Asked(
        tuple(by or ["judge"]), evaluator_model, evaluator_provider, extractor, threads, settings, replay
    )
    raters = scorers.scorers(asked, cases.benchmark, known, os.environ, strict=strict, tell=warn)
    done = []
    with Meter(quiet=as_json) as meter:
        for rater in raters:
            one = evaluation.evaluate(
                found, rater, Budget(max_cost, max_calls), meter, replay=replay,
                prices=scorers.speakers(found, known),
            )  # fmt: skip
            one.summary["calibration"] = twin.twin(one, rater, found, calibration)
            evaluation.write(one, output_dir / f"evaluation-{rater.rater_id}.json")
            twin.about(one, rater, output_dir)
            done.append(one)
    if as_json:
        dump([evaluation.plain(one) for one in done])
    else:
        say("\n\n".join(words.evaluated(one) for one in done))
    if left := [one for one in done if one.incomplete]:
        counts = ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in left[0].lacking.items())
        why = next((one.stopped for one in left if one.stopped), None)
        _incomplete(output_dir, f"{left[0].rater_id}: cases without a score: {counts}", why)


@vaidya.command("run-many")
def run_many(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="Doctors, input, output_root and log_dir.")],
    strict: Strict = False,
    replay: Replay = False,
    as_json: Json = False,
) -> None:
    """Let several doctors meet the same patients: a folder of output_root and a log of log_dir for each.

    The file has input, output_root, log_dir and doctor_models (names, or model, provider and settings), and may
    have patient_model, patient_provider, patient_settings, max_rounds, skip_existing, benchmark, prices,
    concurrency, max_cost and max_calls (of each doctor). Exit code 2: an encounter of some doctor is open.

    Example: analysis benchmark vaidya run-many doctors.yaml
    """
    import os

    from analysis.benchmarks.vaidya import many, running_many, words
    from generation.progress import Meter

    asked = many.load(file)
    prepared = running_many.prepare(asked, os.environ, strict=strict, replay=replay)
    for one in prepared:
        _say_providers(one.parties)
    with Meter(quiet=as_json) as meter:
        found = running_many.run(asked, prepared, meter, replay=replay)
    if as_json:
        dump([_plain(one) for one in found])
    else:
        say("\n\n".join(words.ran(one) for one in found))
    if left := [one for one in found if one.incomplete]:
        names = ", ".join(one.parties.doctor.model for one in left)
        _incomplete(asked.output_root, f"encounters of {names} are open; run again", left[0].outcome.stopped)


def _parties(
    doctor: tuple[str, str | None], patient: tuple[str, str | None], rounds: int, source: Path, *, strict: bool
) -> "Parties":
    from analysis.benchmarks.vaidya import providers
    from analysis.benchmarks.vaidya.conversation import Parties

    parties = Parties(
        providers.served(*doctor, "doctor", strict=strict), providers.served(*patient, "patient", strict=strict),
        rounds, str(source),
    )  # fmt: skip
    _say_providers(parties)
    return parties


def _say_providers(parties: "Parties") -> None:
    for role, who in (("doctor", parties.doctor), ("patient", parties.patient)):
        if who.how in ("inferred", "assumed"):
            warn(who.line(role))


def _incomplete(folder: Path, what: str, why: str | None) -> None:
    """Say what is not complete, and leave with the exit code for it."""
    typer.echo(f"incomplete: {folder}: {what}{f' ({why})' if why else ''}", err=True)
    raise typer.Exit(INCOMPLETE)


def _plain(found: "Ran") -> dict[str, object]:
    outcome = found.outcome
    return {
        **found.parties.plain(),
        "written": found.written,
        "kept": found.kept,
        "encounters": {} if outcome is None else {k: dict(v) for k, v in outcome.statuses.items()},
        "open": 0 if outcome is None else outcome.open,
        "calls": 0 if outcome is None else outcome.calls,
        "cost": None if outcome is None else outcome.cost,
        "unpriced": 0 if outcome is None else outcome.unpriced,
        "stopped": None if outcome is None else outcome.stopped,
    }
