"""Cases × doctors × repeats → encounters.parquet: each met once, or present with the reason why not.

Every call and utterance stands in events.jsonl before anything follows from it; the table is what the events say.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from analysis.benchmarks import encounters
from analysis.benchmarks.budget import Budget
from analysis.benchmarks.events import FILE, Events, Keep, Remembering
from generation import vignette
from generation.asking import Spread, now, spread
from generation.encounter import Appointment, Player, Speaker, meet
from generation.journal import Journal
from generation.progress import Meter
from generation.retry import Gate
from study import tables
from study.errors import StudyError, joined
from study.records import Encounter, Vignette

ROUNDS = 8
OPEN = ("infra_error", "not_run")  # is asked for again
_ROWS = 500  # written at a time
Each = Callable[[Vignette, Encounter], object]


@dataclass(frozen=True)
class Plan:
    """Who meets whom: every doctor sees every case so many times, all with the same patient player.

    `concurrency` is how many encounters one doctor is in at a time; the players' own where it is not given.

    Raises
    ------
    StudyError : without cases or doctors, for a case or doctor that stands twice, or nothing to repeat
    """

    cases: tuple[Vignette, ...]
    doctors: tuple[Player, ...]
    patient: Player
    rounds: int = ROUNDS
    replicates: int = 1
    concurrency: int | None = None

    def __post_init__(self) -> None:
        problems = [f"case {n} stands twice" for n in _again(c.case_id for c in self.cases)]
        problems += [f"doctor {n} stands twice; give one of them another id" for n in _again(self._doctor_ids)]
        problems += ["there is no case"] * (not self.cases) + ["there is no doctor"] * (not self.doctors)
        for name in ("rounds", "replicates"):
            if getattr(self, name) < 1:
                problems.append(f"{name} = {getattr(self, name)}; at least 1 is needed")
        if self.concurrency is not None and self.concurrency < 1:
            problems.append(f"concurrency = {self.concurrency}; at least 1 is needed")
        if problems:
            raise StudyError(joined(problems))

    @property
    def players(self) -> tuple[Player, ...]:
        return (*self.doctors, self.patient)

    @property
    def _doctor_ids(self) -> list[str]:
        return [d.name for d in self.doctors]

    def appointments(self) -> Iterator[tuple[Player, Appointment]]:
        """Every encounter in the table's order."""
        for doctor in self.doctors:
            for case in self.cases:
                for replicate in range(1, self.replicates + 1):
                    yield doctor, self._appointment(doctor, case, replicate)

    @property
    def encounters(self) -> int:
        return len(self.doctors) * len(self.cases) * self.replicates

    def workers(self, doctor: Player) -> int:
        own = [w for w in (doctor.workers, self.patient.workers) if w]
        return self.concurrency or min(own, default=1)

    def told(self) -> dict[str, object]:
        """What the events say of a run."""
        return {
            "cases": len(self.cases), "rounds": self.rounds, "replicates": self.replicates,
            "doctors": {d.name: dict(d.identity) for d in self.doctors},
            "patient": {self.patient.name: dict(self.patient.identity)},
        }  # fmt: skip

    def _appointment(self, doctor: Player, case: Vignette, replicate: int) -> Appointment:
        named = {
            "doctor": [doctor.name, doctor.identity, doctor.brief(case, self.rounds)],
            "patient": [self.patient.name, self.patient.identity, self.patient.brief(case, self.rounds)],
            "case": [case.case_id, case.language, str(case.extra.get("chief_complaint", ""))],
            "times": [self.rounds, replicate],
        }
        written = json.dumps(named, ensure_ascii=False, sort_keys=True, default=str)
        config = hashlib.sha256(written.encode()).hexdigest()
        demo = doctor.demo or self.patient.demo
        return Appointment(case, doctor.name, self.patient.name, replicate, config, demo)


@dataclass
class Outcome:
    """What the encounters of a plan add up to. `cost` is None as long as no cost is known.

    A run with an encounter that is `open` is not a result: nothing about a doctor follows from a server's silence.
    """

    encounters: int = 0
    kept: int = 0
    statuses: dict[str, Counter] = field(default_factory=dict)
    flags: Counter = field(default_factory=Counter)
    calls: int = 0
    cost: float | None = None
    unpriced: int = 0
    stopped: str | None = None

    def add(self, encounter: Encounter) -> None:
        self.encounters += 1
        self.statuses.setdefault(encounter.source_id, Counter())[encounter.status] += 1
        self.flags.update(encounter.flags)
        self.calls += encounter.doctor.calls + encounter.patient.calls
        if encounter.cost is None:
            self.unpriced += 1
        else:
            self.cost = (self.cost or 0.0) + encounter.cost

    def count(self, *statuses: str) -> int:
        """Encounters with one of these statuses, of all doctors."""
        return sum(n for counts in self.statuses.values() for s, n in counts.items() if s in statuses)

    @property
    def open(self) -> int:
        """Encounters that a further run would ask for."""
        return self.count(*OPEN)


def run(
    folder: Path,
    plan: Plan,
    budget: Budget,
    meter: Meter,
    *,
    replay: bool = False,
    again: bool = False,
    each: Each = lambda case, encounter: None,
) -> Outcome:
    """Let every doctor of a plan meet every case; encounters.parquet and, beside it, the cases, written whole.

    What stands in the events is kept, whatever it is: an encounter is never held again because of how it went.
    Only what failed on the way, changed or is missing is asked for, from where it broke off.

    Parameters
    ----------
    replay : make no call; what the events do not hold stays not_run
    again : ask for every encounter anew
    each : is told of every encounter that has an end, in the plan's order, once all have been held

    Raises
    ------
    StudyError : before anything is asked, if a key is missing, the budget cannot be kept, or an event unreadable
    """
    path = folder / FILE
    if replay:
        if not path.is_file():
            raise StudyError(f"{path}: not found; there is nothing to replay")
        outcome = _written(folder, plan, Events.read(path, budget), each)
        outcome.kept = outcome.encounters - outcome.open
        return outcome
    _check_budget(plan, budget)
    with Journal(path) as journal:
        vignette.write(plan.cases, folder / vignette.FILE)
        if again:
            journal.append({"event": "again", "at": now()})
        events = Events.read(path, budget)
        keep = Keep(journal, events, budget)
        todo = _open(plan, events)
        kept = plan.encounters - sum(map(len, todo.values()))
        journal.append({"event": "run", **plan.told(), "kept": kept, "at": now()})
        stopped = _hold(plan, todo, events, keep, budget, meter)
        outcome = _written(folder, plan, events, each)
    outcome.kept, outcome.stopped = kept, stopped
    return outcome


def remembered(plan: Plan, events: Events, doctor: Player, at: Appointment) -> Encounter:
    """An encounter as the events tell it; nobody is asked."""
    known = events.said(at.config)
    both = [Remembering(role, at.config, at.encounter_id, known) for role in ("doctor", "patient")]
    return meet(*both, at, rounds=plan.rounds, told=doctor.brief(at.case, plan.rounds))


def _open(plan: Plan, events: Events) -> dict[str, list[Appointment]]:
    """What is to be held, by doctor: what was said tells whether an encounter is over."""
    todo: dict[str, list[Appointment]] = {d.name: [] for d in plan.doctors}
    for doctor, at in plan.appointments():
        if remembered(plan, events, doctor, at).status in OPEN:
            todo[doctor.name].append(at)
    return todo


def _hold(
    plan: Plan,
    todo: Mapping[str, list[Appointment]],
    events: Events,
    keep: Keep,
    budget: Budget,
    meter: Meter,
) -> str | None:
    """Hold every open encounter; why it could not be done to the end, or None."""
    if not any(todo.values()):
        return None
    reasons: list[str] = []

    def one(doctor: Player, at: Appointment) -> None:
        known = events.said(at.config)

        def remembering(role: str, speaker: Speaker) -> Remembering:
            return Remembering(role, at.config, at.encounter_id, known, speaker, keep)

        found = meet(
            remembering("doctor", doctor.meets(at, plan.rounds)),
            remembering("patient", plan.patient.meets(at, plan.rounds)),
            at, rounds=plan.rounds, told=doctor.brief(at.case, plan.rounds),
        )  # fmt: skip
        if found.status == "not_run":
            reasons.append(str(found.detail))
            return
        keep(_ended(found), durable=found.doctor.calls + found.patient.calls > 0)
        failed = found.status not in ("concluded", "max_rounds")
        meter.add(doctor.name, failed=failed, flagged=bool(found.flags), cost=found.cost)

    note = budget.noting(keep.noted)
    begun: list[Spread] = []
    try:
        for player in plan.players:
            player.open(note)
        for doctor in plan.doctors:
            own, total = todo[doctor.name], len(plan.cases) * plan.replicates
            meter.begin(doctor.name, total, total - len(own))
            if own:
                workers = min(plan.workers(doctor), len(own))
                begun.append(spread(own, lambda at, doctor=doctor: one(doctor, at), workers, Gate()))
        for work in begun:
            work.join()
    except BaseException:
        for player in plan.players:
            player.stop()
        for work in begun:
            work.stop()
        raise
    finally:
        for player in plan.players:
            player.close()
    return budget.closed or (reasons[0] if reasons else None)


def _written(folder: Path, plan: Plan, events: Events, each: Each) -> Outcome:
    outcome = Outcome()

    def parts() -> Iterator[object]:
        every = plan.appointments()
        while some := list(islice(every, _ROWS)):
            found = [(at.case, remembered(plan, events, doctor, at)) for doctor, at in some]
            for case, encounter in found:
                outcome.add(encounter)
                if encounter.status not in OPEN:
                    each(case, encounter)
            yield encounters.frame(e for _, e in found)

    tables.write_parts(parts(), folder / encounters.FILE, tables.ENCOUNTERS)
    return outcome


def _ended(encounter: Encounter) -> dict[str, object]:
    return {
        "event": "ended", "config": encounter.config, "encounter_id": encounter.encounter_id,
        "status": encounter.status, "diagnosis": encounter.diagnosis, "detail": encounter.detail,
        "flags": encounter.flags, "cost": encounter.cost, "at": now(),
    }  # fmt: skip


def _check_budget(plan: Plan, budget: Budget) -> None:
    loose = [p.name for p in plan.players if not p.bounded]
    if budget.max_cost is not None and loose:
        raise StudyError(
            f"--max-cost cannot be kept: {', '.join(dict.fromkeys(loose))} has no price or no token limit; "
            "give both, or use --max-calls"
        )


def _again(names: Iterable[str]) -> list[str]:
    counts: Mapping[str, int] = Counter(names)
    return [name for name, n in counts.items() if n > 1]
