"""Several doctors one after another, all set up before the first of them is asked anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.benchmarks.budget import Budget
from analysis.benchmarks.run import Plan
from analysis.benchmarks.vaidya import cases as case_file
from analysis.benchmarks.vaidya import pricing, running
from analysis.benchmarks.vaidya.cases import Cases
from analysis.benchmarks.vaidya.conversation import Parties
from analysis.benchmarks.vaidya.many import Many
from analysis.benchmarks.vaidya.providers import served
from analysis.benchmarks.vaidya.running import Ran
from generation.asking import now
from generation.journal import Journal
from generation.progress import Meter
from study.errors import StudyError, joined


@dataclass(frozen=True)
class Prepared:
    """One doctor ready to meet the cases."""

    cases: Cases
    parties: Parties
    meetings: Plan
    folder: Path
    log: Path


def prepare(
    asked: Many, environment: Mapping[str, str], *, strict: bool = False, replay: bool = False
) -> list[Prepared]:
    """Every doctor of a file, set up; nothing has been asked.

    Raises
    ------
    StudyError : with the problems of all doctors, one a line
    """
    file = asked.file
    cases = case_file.load(asked.input, file.benchmark)
    prices = pricing.load(asked.prices)
    running.refuse_file(asked.log_dir, "logs")
    found, problems = [], []
    for doctor in asked.doctors:
        try:
            parties = Parties(
                served(doctor.model, doctor.provider, "doctor", strict=strict),
                served(file.patient_model, file.patient_provider, "patient", strict=strict),
                file.max_rounds, str(asked.input),
            )  # fmt: skip
            folder = asked.output_root / doctor.slug
            running.check(folder, cases, parties, again=not file.skip_existing)
            settings = {"doctor": doctor.settings, "patient": file.patient_settings}
            meetings = running.plan(
                cases, parties, prices, environment, concurrency=file.concurrency, settings=settings,
                replay=replay,
            )  # fmt: skip
        except StudyError as error:
            problems += [f"{asked.path}: {line}" for line in str(error).splitlines()]
            continue
        loose = [p.name for p in meetings.players if not p.bounded]
        if file.max_cost is not None and loose and not replay:
            problems.append(f"{asked.path}: max_cost needs a price and a token limit for {', '.join(loose)}")
        found.append(Prepared(cases, parties, meetings, folder, asked.log_dir / f"{doctor.slug}.jsonl"))
    if problems:
        raise StudyError(joined(list(dict.fromkeys(problems))))
    return found


def run(asked: Many, prepared: Sequence[Prepared], meter: Meter, *, replay: bool = False) -> list[Ran]:
    """Hold what is open of each doctor; what one could not do keeps none of the others from it."""
    found = []
    for one in prepared:
        budget = Budget(asked.file.max_cost, asked.file.max_calls)
        with Journal(one.log) as log:
            log.append({"event": "begun", **one.parties.plain(), "folder": one.folder.name, "at": now()})
            ran = running.run(
                one.folder, one.cases, one.parties, one.meetings, budget, meter,
                again=not asked.file.skip_existing, replay=replay,
            )  # fmt: skip
            log.append({"event": "ended", **_told(ran), "at": now()})
        found.append(ran)
    return found


def _told(ran: Ran) -> dict[str, object]:
    """What a log says of a run's end."""
    outcome = ran.outcome
    if outcome is None:
        return {"kept": ran.kept, "written": 0, "open": 0}
    return {
        "kept": ran.kept, "written": ran.written, "open": outcome.open, "calls": outcome.calls,
        "encounters": {name: dict(counts) for name, counts in outcome.statuses.items()},
        "cost": outcome.cost, "unpriced": outcome.unpriced, "stopped": outcome.stopped,
    }  # fmt: skip
