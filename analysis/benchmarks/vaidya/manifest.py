"""manifest.json: what a folder of conversations was made from. Nothing reads it but people."""

import json
from pathlib import Path

from analysis import results
from analysis.benchmarks.run import Outcome, Plan
from analysis.benchmarks.vaidya.cases import Cases
from analysis.benchmarks.vaidya.conversation import Parties
from generation.asking import now
from study import tables

FILE = "manifest.json"


def write(folder: Path, cases: Cases, parties: Parties, meetings: Plan, outcome: Outcome) -> None:
    """Write the manifest, whole or not at all."""
    text = json.dumps(plain(cases, parties, meetings, outcome), ensure_ascii=False, indent=2, default=str)
    tables.replaced(folder / FILE, lambda half: half.write_text(text + "\n", encoding="utf-8"))


def plain(cases: Cases, parties: Parties, meetings: Plan, outcome: Outcome) -> dict[str, object]:
    """The manifest as plain values. No key is in it."""
    return {
        **parties.plain(),
        "provider_known_by": {"doctor": parties.doctor.how, "patient": parties.patient.how},
        "max_rounds": parties.rounds,
        "benchmark": cases.benchmark,
        "input": cases.path.name,
        "input_sha256": cases.digest,
        "cases": len(cases.patients),
        "players": {
            role: {"name": who.name, "demo": who.demo} | dict(who.identity)
            for role, who in (("doctor", meetings.doctors[0]), ("patient", meetings.patient))
        },
        "encounters": {name: dict(counts) for name, counts in outcome.statuses.items()},
        "flags": dict(outcome.flags),
        "calls": outcome.calls,
        "total_cost": outcome.cost if not outcome.unpriced else None,
        "unpriced": outcome.unpriced,
        "stopped": outcome.stopped,
        "simulated": parties.doctor.embedded or parties.patient.embedded,
        "written_at": now(),
        "versions": results.versions(),
    }
