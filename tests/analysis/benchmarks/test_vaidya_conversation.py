"""patient_<id>.json: the document's example is read, ours are read by whoever knows the document's fields only."""

import datetime
import json
import re

import pytest

from analysis.benchmarks.vaidya import cases, conversation
from analysis.benchmarks.vaidya.conversation import Parties, Unusable
from analysis.benchmarks.vaidya.providers import served
from generation.settings import Price
from study.records import Encounter, Spent, Turn

PRICE = Price(input=2.5, output=10.0, as_of=datetime.date(2026, 11, 1))
WHEN = "2026-11-30T12:00:00+00:00"
# Written from the document's list of fields, with the figures of its example.
EXAMPLE = {
    "agent": "DoctorSimulator (gpt-4o)",
    "conversation": [
        {"Patient": "I see double.", "Doctor": "Since when?"},
        {"Patient": "For a month.", "Doctor": "You may have myasthenia gravis."},
    ],
    "candidate_diseases": ["Myasthenia gravis", "Botulism"],
    "disease_scores": {"Myasthenia gravis": 85, "Botulism": 10},
    "token_usage": {"prompt_tokens": 5101, "completion_tokens": 584, "total_tokens": 6981},
    "total_cost": 0.0229,
    "metadata": {
        "case_id": "0", "doctor_model": "gpt-4o", "doctor_provider": "openai", "patient_model": "gpt-4o",
        "patient_provider": "openai", "created_at": "2025-08-01T12:00:00Z", "source_path": "cases.json",
    },
}  # fmt: skip


def example(tmp_path, **other):
    path = tmp_path / "patient_0.json"
    path.write_text(json.dumps(EXAMPLE | other), encoding="utf-8")
    return path


def parties(doctor="gpt-4o", patient="gpt-4o"):
    return Parties(served(doctor, None, "doctor"), served(patient, None, "patient"), 8, "cases.json")


def encounter(**other):
    given = {
        "encounter_id": "0/1/gpt-4o", "case_id": "0", "source_id": "gpt-4o", "patient_id": "gpt-4o",
        "replicate": 1, "status": "concluded", "diagnosis": "Myasthenia gravis", "config": "c0",
        "turns": (
            Turn(1, "patient", "복시가 있어요."), Turn(1, "doctor", "Since when?"),
            Turn(2, "patient", "A month."), Turn(2, "doctor", "Diagnosis: Myasthenia gravis"),
        ),
        "candidates": (("Myasthenia gravis", 85.0), ("Botulism", 10.0)),
        "doctor": Spent(2, 3000, 1000, 200, 0, (2000 * 2.5 + 1000 * 2.5 + 200 * 10) / 1e6, "gpt-4o"),
        "patient": Spent(2, 2000, 0, 100, 0, (2000 * 2.5 + 100 * 10) / 1e6, "gpt-4o"),
    }  # fmt: skip
    return Encounter(**given | other)


def patient(tmp_path):
    path = tmp_path / "cases.json"
    entry = {"patient_id": 0, "case_study": "Double vision.", "expected_diagnosis": "Myasthenia gravis"}
    path.write_text(json.dumps([entry]), encoding="utf-8")
    return cases.load(path).patients[0]


def ours(tmp_path, **other):
    return conversation.write(tmp_path, encounter(**other), patient(tmp_path), parties(), WHEN)


def test_the_documents_example_is_read(tmp_path):
    found = conversation.read(example(tmp_path), "0")
    assert ("gpt-4o", "unknown", 4) == (found.encounter.source_id, found.ended, len(found.encounter.turns))
    assert ("Myasthenia gravis", 85.0) == found.encounter.candidates[0]
    assert None is found.case_digest and not found.simulated


def test_where_the_example_contradicts_itself_is_said(tmp_path):
    said = conversation.contradictions(conversation.read(example(tmp_path), "0"), {"doctor": PRICE})
    assert 2 == len(said)
    assert "1,296 tokens more" in said[0] and "0.0229 is not that of its tokens, which is 0.0186" in said[1]


def by_the_documents_fields(path):
    """What a reader finds who has the document and nothing else."""
    held = json.loads(path.read_text(encoding="utf-8"))
    assert re.fullmatch(r"patient_\d+\.json", path.name)
    doctor = re.fullmatch(r"DoctorSimulator \((.+)\)", held["agent"])[1]
    meta, used = held["metadata"], held["token_usage"]
    assert doctor == meta["doctor_model"] and isinstance(meta["case_id"], str)
    assert {"doctor_provider", "patient_model", "patient_provider", "source_path"} < set(meta)
    assert datetime.datetime.fromisoformat(meta["created_at"]).utcoffset() == datetime.timedelta(0)
    assert all(set(pair) == {"Patient", "Doctor"} for pair in held["conversation"])
    assert set(held["disease_scores"]) == set(held["candidate_diseases"])
    assert all(0 <= score <= 100 for score in held["disease_scores"].values())
    assert used["total"] == used["prompt"] + used["completion"]
    return held["conversation"][-1]["Doctor"], used["total"], held["total_cost"]


def test_ours_is_read_by_the_documents_fields_alone(tmp_path):
    last, tokens, cost = by_the_documents_fields(ours(tmp_path))
    assert ("Diagnosis: Myasthenia gravis", 3200 + 2100) == (last, tokens)
    assert (5000 * 2.5 + 300 * 10) / 1e6 == pytest.approx(cost, abs=1e-12)


def test_ours_comes_back_as_it_went(tmp_path):
    found = conversation.read(ours(tmp_path), "0")
    sent = encounter()
    assert (sent.turns, sent.diagnosis, sent.candidates, sent.status, sent.config) == (
        found.encounter.turns, found.encounter.diagnosis, found.encounter.candidates, found.ended,
        found.encounter.config,
    )  # fmt: skip
    assert found.case_digest == patient(tmp_path).digest and not found.simulated
    assert [] == conversation.contradictions(found, {"doctor": PRICE, "patient": PRICE})


def test_an_embedded_speaker_is_said_in_the_file(tmp_path):
    path = conversation.write(tmp_path, encounter(), patient(tmp_path), parties("embedded"), WHEN)
    assert conversation.read(path, "0").simulated


def test_a_cost_that_is_not_the_tokens_is_said(tmp_path):
    path = ours(tmp_path)
    held = json.loads(path.read_text("utf-8"))
    held["total_cost"] += 0.01
    path.write_text(json.dumps(held))
    said = conversation.contradictions(conversation.read(path, "0"), {"doctor": PRICE, "patient": PRICE})
    assert ["total_cost: 0.025500 is not that of its tokens, which is 0.015500"] == said


def test_an_unknown_price_is_null_and_listed_never_nought(tmp_path):
    path = ours(tmp_path, doctor=Spent(2, 3000, 0, 200, 0, None, "gpt-4o"))
    held = json.loads(path.read_text("utf-8"))
    assert (None, ["gpt-4o"]) == (held["total_cost"], held["crossed"]["unpriced"])


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path, monkeypatch):
    before = ours(tmp_path).read_bytes()
    monkeypatch.setattr("os.replace", lambda *a: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError):
        ours(tmp_path, diagnosis="Botulism")
    assert before == (tmp_path / "patient_0.json").read_bytes()
    assert ["cases.json", "patient_0.json"] == sorted(p.name for p in tmp_path.iterdir())


BAD = {
    "half written": lambda text: text[: len(text) // 2],
    "nothing": lambda text: "",
    "a list": lambda text: f"[{text}]",
    "of another case": lambda text: text.replace('"case_id": "0"', '"case_id": "7"'),
    "its case as a number": lambda text: text.replace('"case_id": "0"', '"case_id": 0'),
    "an empty doctor turn": lambda text: text.replace("Since when?", "  "),
    "an empty patient turn": lambda text: text.replace("For a month.", ""),
    "no doctor turn": lambda text: text.replace(', "Doctor": "Since when?"', ""),
    "a turn that is no text": lambda text: text.replace('"Since when?"', "5"),
    "no conversation": lambda text: text.replace('"conversation"', '"talk"'),
    "a key twice": lambda text: text.replace('"total_cost"', '"agent"'),
    "no doctor named": lambda text: text.replace("DoctorSimulator (gpt-4o)", "x").replace("doctor_model", "y"),
    "a status of nothing": lambda text: text[:-1] + ', "crossed": {"status": "infra_error"}}',
}


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD)
def test_a_file_that_holds_no_whole_conversation_is_unusable(tmp_path, spoil):
    path = example(tmp_path)
    path.write_text(spoil(path.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(Unusable):
        conversation.read(path, "0")


@pytest.mark.parametrize("score", [101, -1, True, "85"], ids=str)
def test_a_score_off_the_scale_is_said_and_left_out(tmp_path, score):
    found = conversation.read(example(tmp_path, disease_scores={"Botulism": score}), "0")
    assert () == found.encounter.candidates and "no number from 0 to 100" in found.notes[0]


def test_a_conversation_that_failed_keeps_what_was_said(tmp_path):
    path = ours(tmp_path, status="doctor_failed", turns=encounter().turns[:3], diagnosis=None, detail="empty")
    found = conversation.read(path, "0")
    assert (3, "doctor_failed") == (len(found.encounter.turns), found.ended)
    assert [{"Patient": "복시가 있어요.", "Doctor": "Since when?"}, {"Patient": "A month."}] == json.loads(
        path.read_text("utf-8")
    )["conversation"]


def test_only_conversations_are_listed(tmp_path):
    for name in ("patient_2.json", "patient_-1.json", "patient_x.json", "manifest.json", ".patient_3.json.1.part"):
        (tmp_path / name).write_text("{}")
    assert ["-1", "2"] == sorted(case_id for case_id, _ in conversation.files(tmp_path))
