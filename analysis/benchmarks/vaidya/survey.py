"""What a folder of conversations holds for a file of cases: which can be scored, and why the others cannot."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.benchmarks.vaidya import conversation
from analysis.benchmarks.vaidya.cases import Cases, Patient
from analysis.benchmarks.vaidya.conversation import Conversation, Parties, Unusable
from analysis.benchmarks.vaidya.metrics import vignette
from analysis.display import several
from generation import leaks
from study.errors import StudyError
from study.records import Encounter


@dataclass(frozen=True)
class Survey:
    """The conversations by case, in the cases' order; `invalid` says why a file cannot be used.

    `strangers` are conversations of cases that the file of cases does not have.
    """

    folder: Path
    cases: Cases
    conversations: Mapping[str, Conversation]
    missing: tuple[str, ...]
    invalid: Mapping[str, str]
    strangers: tuple[str, ...]

    @property
    def doctor(self) -> str | None:
        """The one doctor of the folder; None if it holds no conversation."""
        return next((c.encounter.source_id for c in self.conversations.values()), None)

    @property
    def simulated(self) -> bool:
        return any(c.simulated for c in self.conversations.values())


def survey(folder: Path, cases: Cases) -> Survey:
    """What a folder holds for these cases.

    Raises
    ------
    StudyError : if there is no such folder, or it holds conversations of several doctors or patients
    """
    if not folder.is_dir():
        raise StudyError(f"{folder}: no such folder; `analysis benchmark vaidya run` makes one")
    found: dict[str, Conversation] = {}
    invalid: dict[str, str] = {}
    there = dict(conversation.files(folder))
    for patient in cases.patients:
        if patient.case_id not in there:
            continue
        try:
            read = conversation.read(there[patient.case_id], patient.case_id)
            _check_case(read, patient)
        except Unusable as why:
            invalid[patient.case_id] = str(why)
        else:
            found[patient.case_id] = read if read.ended != "unknown" else _watched(read, patient)
    _check_speakers(folder, found)
    known = [p.case_id for p in cases.patients]
    return Survey(
        folder, cases, found, tuple(c for c in known if c not in there), invalid,
        tuple(c for c in there if c not in known),
    )  # fmt: skip


def differs(found: Conversation, patient: Patient, parties: Parties) -> str | None:
    """What makes an existing conversation another than the one asked for; None if nothing does."""
    if found.case_digest is None:
        return "does not say which text of the case it was made from"
    wanted = {**parties.plain(), "max_rounds": parties.rounds}
    has = {**{name: found.metadata.get(name) for name in parties.plain()}, "max_rounds": found.max_rounds}
    return next((f"has {n} {has[n]}, not {wanted[n]}" for n in wanted if has[n] != wanted[n]), None)


def _check_case(found: Conversation, patient: Patient) -> None:
    if found.case_digest is not None and found.case_digest != patient.digest:
        raise Unusable(f"was made from another text of case {patient.case_id}")


def _watched(found: Conversation, patient: Patient) -> Conversation:
    """A conversation of another program, with the leaks that its turns show."""
    case, turns = vignette(patient), []
    for turn in found.encounter.turns:
        turns.append(replace(turn, flags=leaks.of_turn(turn.speaker, turn.text, tuple(turns), case)))
    flags = leaks.of_encounter(turns, "", case)
    watched: Encounter = replace(found.encounter, turns=tuple(turns), flags=flags)
    return replace(found, encounter=watched)


def _check_speakers(folder: Path, found: Mapping[str, Conversation]) -> None:
    """Refuse a folder whose mean would be of several doctors, or of one with several patients."""
    for role in conversation.ROLES:
        speakers: dict[tuple[str, str], list[str]] = {}
        for case_id, one in found.items():
            model = one.encounter.source_id if role == "doctor" else one.encounter.patient_id
            named = model, str(one.metadata.get(f"{role}_provider") or "?")
            speakers.setdefault(named, []).append(conversation.path_of(folder, case_id).name)
        if len(speakers) > 1:
            told = "; ".join(f"{model} of {by} in {several(names, 3)}" for (model, by), names in speakers.items())
            raise StudyError(f"{folder}: holds conversations of more than one {role} ({told}); a folder is of one")
