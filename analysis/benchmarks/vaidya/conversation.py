"""patient_<id>.json: one conversation as VAIDYA's document has it, written whole or not at all, and read strictly.

What the document does not have stands under the one key `crossed`: how the encounter ended, each role's own tokens
and cost, and what the conversation was made from. Files without it, such as VAIDYA's own, are read too.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.benchmarks.vaidya import usage
from analysis.benchmarks.vaidya.cases import Patient
from analysis.benchmarks.vaidya.providers import Served
from analysis.strict_json import NotJson, parsed
from generation.settings import Price
from study import tables
from study.records import Encounter, Turn

_NAME = re.compile(r"patient_(-?\d+)\.json")
_AGENT = re.compile(r"DoctorSimulator \((.+)\)", re.DOTALL)
_STATUSES = ("concluded", "max_rounds", "doctor_failed", "patient_failed")
Ended = Literal["concluded", "max_rounds", "doctor_failed", "patient_failed", "unknown"]
ROLES = ("doctor", "patient")


@dataclass(frozen=True)
class Parties:
    """Who meets whom, for how many rounds at most, and where the cases were read."""

    doctor: Served
    patient: Served
    rounds: int
    source_path: str

    def plain(self) -> dict[str, str]:
        """The four names of the document's metadata."""
        both = {"doctor": self.doctor, "patient": self.patient}
        named = {f"{role}_model": who.model for role, who in both.items()}
        return named | {f"{role}_provider": who.provider for role, who in both.items()}


@dataclass(frozen=True)
class Conversation:
    """A conversation read from its file.

    `ended` is unknown where the file does not say; `notes` say what in it does not add up. `encounter` has what
    the engine's scorers need. `simulated`: one of the two was embedded, or the small model of this machine.
    """

    path: Path
    case_id: str
    encounter: Encounter
    ended: Ended
    metadata: Mapping[str, object]
    tokens: usage.Tokens
    cost: float | None
    case_digest: str | None
    max_rounds: int | None
    simulated: bool
    notes: tuple[str, ...] = ()


class Unusable(Exception):
    """A file that holds no conversation that can be scored; the message says why."""


def path_of(folder: Path, case_id: str) -> Path:
    return folder / f"patient_{case_id}.json"


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every conversation file of a folder with the case that its name tells."""
    for path in sorted(folder.glob("patient_*.json")):
        if found := _NAME.fullmatch(path.name):
            yield found[1], path


def write(folder: Path, encounter: Encounter, patient: Patient, parties: Parties, created_at: str) -> Path:
    """An encounter as patient_<id>.json; the path."""
    path = path_of(folder, patient.case_id)
    document = plain(encounter, patient, parties, created_at)
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    tables.replaced(path, lambda half: half.write_text(text + "\n", encoding="utf-8"))
    return path


def plain(encounter: Encounter, patient: Patient, parties: Parties, created_at: str) -> dict[str, object]:
    """An encounter under the document's names."""
    roles = {role: usage.of(getattr(encounter, role)) for role in ROLES}
    costs = {role: getattr(encounter, role).cost for role in ROLES}
    return {
        "agent": f"DoctorSimulator ({parties.doctor.model})",
        "conversation": pairs(encounter.turns),
        "candidate_diseases": [name for name, _ in encounter.candidates],
        "disease_scores": dict(encounter.candidates),
        "token_usage": usage.added(roles.values()).plain(),
        "total_cost": usage.whole(costs.values()),
        "metadata": {
            "case_id": patient.case_id,
            **parties.plain(),
            "created_at": created_at,
            "source_path": parties.source_path,
        },
        "crossed": {
            "encounter_id": encounter.encounter_id,
            "status": encounter.status,
            "detail": encounter.detail,
            "diagnosis": encounter.diagnosis,
            "flags": list(encounter.flags),
            "turn_flags": {str(i): list(t.flags) for i, t in enumerate(encounter.turns) if t.flags},
            "max_rounds": parties.rounds,
            "case_sha256": patient.digest,
            "config": encounter.config,
            "usage": {
                role: roles[role].plain() | {"cost": costs[role], "calls": getattr(encounter, role).calls}
                for role in ROLES
            },
            "unpriced": [who for who, cost in zip(_models(parties), costs.values(), strict=True) if cost is None],
            "simulated": parties.doctor.embedded or parties.patient.embedded,
        },
    }


def pairs(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Turns as the document's pairs; one that was never spoken has no key."""
    found: list[dict[str, str]] = []
    for turn in turns:
        if turn.speaker == "patient":
            found.append({})
        found[-1][turn.speaker.capitalize()] = turn.text
    return found


def read(path: Path, case_id: str) -> Conversation:
    """The conversation in a file that should hold that case's.

    Raises
    ------
    Unusable : if the file is half written, empty somewhere, or of another case
    """
    document = _document(path)
    metadata = _mapping(document.get("metadata"), "metadata")
    if (found := metadata.get("case_id")) != case_id:
        raise Unusable(f"holds case {json.dumps(found)}, not {json.dumps(case_id)}")
    ours = _mapping(document.get("crossed", {}), "crossed")
    ended = ours.get("status", "unknown")
    if ours and ended not in _STATUSES:
        raise Unusable(f"has status {ended!r}, which no finished encounter has")
    turns = tuple(_turns(document.get("conversation"), whole=ended in ("concluded", "max_rounds", "unknown")))
    doctor, notes = _doctor(document, metadata)
    candidates, more = _candidates(document)
    tokens, odd = usage.read(_mapping(document.get("token_usage", {}), "token_usage"))
    cost = _cost(document.get("total_cost"))
    encounter = Encounter(
        encounter_id=str(ours.get("encounter_id") or f"{case_id}/1/{doctor}"),
        case_id=case_id,
        source_id=doctor,
        patient_id=str(metadata.get("patient_model") or "unknown"),
        replicate=1,
        status=ended if ended in _STATUSES else "concluded",
        turns=turns,
        diagnosis=ours.get("diagnosis") if isinstance(ours.get("diagnosis"), str) else None,
        candidates=candidates,
        flags=tuple(map(str, ours.get("flags") or ())),
        detail=ours.get("detail") if isinstance(ours.get("detail"), str) else None,
        config=str(ours.get("config") or ""),
    )
    return Conversation(
        path, case_id, encounter, ended, metadata, tokens, cost,
        _text(ours.get("case_sha256")), _integer(ours.get("max_rounds")), bool(ours.get("simulated", False)),
        (*notes, *more, *(f"token_usage: {note}" for note in odd)),
    )  # fmt: skip


def contradictions(found: Conversation, prices: Mapping[str, Price | None]) -> list[str]:
    """What does not add up in a conversation, with its cost held against the doctor's and the patient's prices.

    A file that keeps both roles apart is computed from them; one that does not, from its totals at the doctor's
    price, as the document's example has it.
    """
    document = _document(found.path)
    own = document.get("crossed", {}).get("usage") if isinstance(document.get("crossed"), Mapping) else None
    notes = list(found.notes)
    if not isinstance(own, Mapping):
        note = usage.cost_note(found.cost, found.tokens, prices.get("doctor"))
        return notes + ([f"total_cost: {note}"] if note else [])
    parts = {role: usage.read(_mapping(own.get(role, {}), f"usage of the {role}"))[0] for role in ROLES}
    if (sums := usage.added(parts.values())).total != found.tokens.total:
        notes.append(f"token_usage: the roles' totals sum to {sums.total}, the file's is {found.tokens.total}")
    costs = usage.whole([parts[role].cost(prices.get(role)) for role in ROLES])
    if None not in (costs, found.cost) and not math.isclose(costs, found.cost, abs_tol=1e-9, rel_tol=1e-9):
        notes.append(f"total_cost: {found.cost:.6f} is not that of its tokens, which is {costs:.6f}")
    return notes


def _document(path: Path) -> Mapping[str, object]:
    try:
        document = parsed(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"cannot be read ({error})") from None
    except NotJson as error:
        raise Unusable(f"is half written or no JSON ({error})") from None
    return _mapping(document, "the file")


def _turns(conversation: object, *, whole: bool) -> Iterator[Turn]:
    """The turns of a list of pairs; only a conversation that failed may end without a doctor's word."""
    if not isinstance(conversation, list) or not (conversation or not whole):
        raise Unusable("has no conversation")
    for number, pair in enumerate(conversation, 1):
        if not isinstance(pair, Mapping):
            raise Unusable(f"conversation[{number - 1}] is no pair of Patient and Doctor")
        for key, role in (("Patient", "patient"), ("Doctor", "doctor")):
            text = pair.get(key)
            if isinstance(text, str) and text.strip():
                yield Turn(number, role, text)
            elif whole or number < len(conversation) or (key == "Patient" and "Doctor" in pair):
                what = "is missing" if key not in pair else "is empty" if isinstance(text, str) else "is no text"
                raise Unusable(f"conversation[{number - 1}]: {key} {what}")


def _doctor(document: Mapping[str, object], metadata: Mapping[str, object]) -> tuple[str, list[str]]:
    """The doctor's model, by the metadata and by the agent's name; a note where the two differ."""
    named = _text(metadata.get("doctor_model"))
    agent = _AGENT.fullmatch(str(document.get("agent") or ""))
    if named is None and agent is None:
        raise Unusable("does not say which model the doctor is (metadata.doctor_model)")
    if named and agent and agent[1] != named:
        return named, [f"agent names {agent[1]}, metadata.doctor_model {named}"]
    return named or agent[1], []


def _candidates(document: Mapping[str, object]) -> tuple[tuple[tuple[str, float], ...], list[str]]:
    scores = _mapping(document.get("disease_scores") or {}, "disease_scores")
    wrong = [n for n, v in scores.items() if isinstance(v, bool) or not isinstance(v, int | float)]
    outside = [n for n, v in scores.items() if n not in wrong and not 0 <= v <= 100]
    notes = [f"disease_scores: {n}'s {scores[n]!r} is no number from 0 to 100" for n in (*wrong, *outside)]
    kept = {n: float(v) for n, v in scores.items() if n not in wrong and n not in outside}
    return tuple(kept.items()), notes


def _cost(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _models(parties: Parties) -> tuple[str, str]:
    return parties.doctor.model, parties.patient.model


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise Unusable(f"{what} is no object")
    return value


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
