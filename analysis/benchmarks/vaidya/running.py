"""Cases, a doctor and a patient → a folder of conversations in VAIDYA's form, over the benchmarks' engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.benchmarks import run as engine
from analysis.benchmarks.budget import Budget
from analysis.benchmarks.events import FILE, Events
from analysis.benchmarks.run import Outcome, Plan
from analysis.benchmarks.vaidya import conversation, manifest, providers
from analysis.benchmarks.vaidya.cases import Cases
from analysis.benchmarks.vaidya.conversation import Parties
from analysis.benchmarks.vaidya.metrics import vignette
from analysis.benchmarks.vaidya.pricing import Prices
from analysis.benchmarks.vaidya.providers import Served
from analysis.benchmarks.vaidya.survey import Survey, differs, survey
from generation.asking import now
from generation.encounter import Player
from generation.model_player import ModelPlayer
from generation.players import player
from generation.progress import Meter
from study.errors import StudyError
from study.records import Encounter, Role, Vignette

DEFAULTS: Mapping[Role, Mapping[str, object]] = {"doctor": {"max_tokens": 512}, "patient": {"max_tokens": 256}}
Settings = Mapping[Role, Mapping[str, object]]


@dataclass(frozen=True)
class Ran:
    """What a run did: the engine's outcome (None if every file was there already), and files left as they were."""

    parties: Parties
    outcome: Outcome | None
    written: int
    kept: int

    @property
    def incomplete(self) -> bool:
        return self.outcome is not None and self.outcome.open > 0


def plan(
    cases: Cases,
    parties: Parties,
    prices: Prices,
    environment: Mapping[str, str],
    *,
    concurrency: int,
    settings: Settings | None = None,
    replay: bool = False,
) -> Plan:
    """Who meets whom, ready to begin; no key is missing then, and nothing has been asked.

    Parameters
    ----------
    settings : of a role's model, beside the defaults
    replay : nobody will be asked, and no key is wanted

    Raises
    ------
    StudyError : for a wrong setting, an unset key, or a speaker that does not play its role
    """
    diagnoses = sorted({p.expected_diagnosis for p in cases.patients if p.expected_diagnosis})
    both = {
        role: _player(role, who, prices, environment, concurrency, (settings or {}).get(role, {}), diagnoses)
        for role, who in (("doctor", parties.doctor), ("patient", parties.patient))
    }
    for one in both.values():
        if isinstance(one, ModelPlayer) and not one.demo and not replay:
            one.settings.key()
    return Plan(tuple(map(vignette, cases.patients)), (both["doctor"],), both["patient"], parties.rounds)


def run(
    folder: Path,
    cases: Cases,
    parties: Parties,
    meetings: Plan,
    budget: Budget,
    meter: Meter,
    *,
    again: bool = False,
    replay: bool = False,
) -> Ran:
    """Hold what is open, and write patient_<id>.json and manifest.json.

    A conversation that is there stays as it is, if it is whole and of the same models, rounds and case.

    Parameters
    ----------
    again : hold every encounter anew

    Raises
    ------
    StudyError : before anything is asked, if the folder holds conversations of other speakers
    """
    known = check(folder, cases, parties, again=again)
    there = {} if again or known is None else _kept(known, parties)
    held = _open(folder, meetings, there)
    written: list[str] = []

    def each(case: Vignette, encounter: Encounter) -> None:
        if case.case_id in there and there[case.case_id] == encounter.config:
            return
        patient = cases.patient(case.case_id)
        assert patient is not None
        conversation.write(folder, encounter, patient, parties, now())
        written.append(case.case_id)

    outcome = None
    if held is not None:
        folder.mkdir(parents=True, exist_ok=True)
        outcome = engine.run(folder, held, budget, meter, replay=replay, again=again, each=each)
        manifest.write(folder, cases, parties, meetings, outcome)
    return Ran(parties, outcome, len(written), len(there))


def _player(
    role: Role,
    who: Served,
    prices: Prices,
    environment: Mapping[str, str],
    concurrency: int,
    given: Mapping[str, object],
    diagnoses: Sequence[str],
) -> Player:
    if who.embedded:
        if given:
            raise StudyError(f"{role} {who.model}: takes no settings; it is no model of a provider")
        if who.model == "embedded" and role == "doctor" and not diagnoses:
            raise StudyError("doctor embedded: names a diagnosis of the cases, and these have none; use mute")
        return player(role, who.model, diagnoses=diagnoses)
    price = prices.of(who.model, who.provider)
    found = providers.settings(who, price, concurrency, {**DEFAULTS[role], **given}, environment)
    return player(role, who.model, settings=found)


def check(folder: Path, cases: Cases, parties: Parties, *, again: bool) -> Survey | None:
    """What a folder holds already; None if there is none.

    Raises
    ------
    StudyError : if it is a file, holds the case file, or holds conversations that others would take the place of,
        though they are not their like
    """
    refuse_file(folder, "conversations")
    if not folder.is_dir():
        return None
    if cases.path.resolve().parent == folder.resolve():
        # A run writes its own cases.json, and would take the place of this one.
        raise StudyError(f"{cases.path}: lies in the folder of conversations; name another --output-dir")
    known = survey(folder, cases)
    for one in known.conversations.values():
        for role, has, wanted in (
            ("doctor", one.encounter.source_id, parties.doctor.model),
            ("patient", one.encounter.patient_id, parties.patient.model),
        ):
            if has != wanted:
                raise StudyError(
                    f"{one.path}: is a conversation with {role} {has}, not {wanted}; give each doctor, and each "
                    "patient, a folder of its own with --output-dir"
                )
        if one.case_digest is None and not again:
            raise StudyError(
                f"{one.path}: does not say which text of its case it was made from; name another --output-dir, or "
                "hold all anew with --no-skip-existing"
            )
    return known


def refuse_file(folder: Path, what: str) -> None:
    """Raise StudyError where a folder cannot be made, since a file is in its place or above it."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        raise StudyError(f"{nearest}: is a file; {what} go into a folder")


def _kept(known: Survey, parties: Parties) -> dict[str, str]:
    """Existing conversations that are those asked for, with what each was drawn from."""
    patients = {p.case_id: p for p in known.cases.patients}
    return {
        case_id: one.encounter.config
        for case_id, one in known.conversations.items()
        if differs(one, patients[case_id], parties) is None
    }


def _open(folder: Path, meetings: Plan, there: Mapping[str, str]) -> Plan | None:
    """The plan without cases that stand in files alone, such as those copied here; None if nothing is left.

    What the events know is the engine's to keep, so that its table is whole.
    """
    known = Events.read(folder / FILE, Budget())
    alone = {
        at.case.case_id
        for _, at in meetings.appointments()
        if at.case.case_id in there and not known.said(at.config)
    }
    left = tuple(c for c in meetings.cases if c.case_id not in alone)
    if not left:
        return None
    return Plan(left, meetings.doctors, meetings.patient, meetings.rounds, meetings.replicates)
