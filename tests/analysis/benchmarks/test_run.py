"""Cases × doctors × repeats → encounters and ratings: resumed, replayed, within budget, no number made up."""

import datetime
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.benchmarks import encounters
from analysis.benchmarks.budget import Budget, BudgetSpent
from analysis.benchmarks.events import FILE, told
from analysis.benchmarks.rate import RATINGS, rate
from analysis.benchmarks.run import Plan, run
from analysis.benchmarks.scoring import Scored
from generation.asking import Asker
from generation.client import body
from generation.model_player import ModelPlayer
from generation.players import player
from generation.price import bound, cost
from generation.progress import Meter
from generation.settings import Price, model_settings
from study import tables
from study.errors import StudyError
from study.records import Metric, Vignette

_spec = importlib.util.spec_from_file_location("loopback", Path(__file__).parents[2] / "loopback.py")
loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loopback)
Loopback, Wire, chat, failure = loopback.Loopback, loopback.Wire, loopback.chat, loopback.failure

NAMES = ("Gout", "Asthma", "Migraine", "Scurvy", "Rickets", "Measles")
CASES = tuple(
    Vignette(str(i), f"Case {i}. It began {i + 2} days ago. I smoke. I take no medicines.", name)
    for i, name in enumerate(NAMES)
)
PRICE = Price(input=2.0, output=8.0, as_of=datetime.date(2026, 11, 1))
QUIET = {"first_wait": 0.001, "attempts": 2, "max_tokens": 50}


def talking(hit, n):
    """A server that plays both: the doctor concludes in its third turn."""
    said = hit.body["messages"]
    if "You are a doctor" in said[0]["content"]:
        turn = sum(m["role"] == "assistant" for m in said)
        return chat("Diagnosis: Gout\nConsidered: Gout 80" if turn == 2 else f"Question {turn}?", model="doc-1")
    return chat(f"It hurts since {len(said)} days.", model="pat-1")


def settings(server, **more):
    return model_settings({"model": "m-1", "base_url": server.url} | QUIET | more, "test")


def plan(server=None, cases=CASES, doctors=(), patient="embedded", rounds=4, **more):
    """Doctors behind a server or by name; the patient is the embedded one or a model."""
    names = [c.diagnosis for c in CASES]
    found = [ModelPlayer("gpt", "doctor", settings(server, **more))] if server else []
    found += [player("doctor", d, diagnoses=names) for d in doctors]
    who = player("patient", "embedded")
    if patient == "model":
        who = ModelPlayer("pat", "patient", settings(server, **more))
    return Plan(tuple(cases), tuple(found), who, rounds=rounds)





def held(folder, planned, budget=None, **more):
    with Meter(quiet=True) as meter:
        return run(folder, planned, budget or Budget(), meter, **more)


def rated(folder, scorers, budget=None, cases=CASES, **more):
    by = {c.case_id: c for c in cases}
    pairs = [(by[e.case_id], e) for e in encounters.read(folder)]
    with Meter(quiet=True) as meter:
        return rate(folder, pairs, scorers, budget or Budget(), meter, **more)


class Exact:
    """The rule that a diagnosis is right if it is the expected one, letter by letter."""

    rater_id, kind, identity, workers = "exact", "rule", {}, 1
    metrics = (Metric("diagnosis", "encounter", 0, 1, "nominal"),)

    def open(self, note):
        raise AssertionError("a rule has nothing to open")

    stop = close = open

    def score(self, case, encounter, key):
        right = float(encounter.diagnosis == case.diagnosis)
        return Scored("ok", {"diagnosis": right}, None if encounter.diagnosis else "no_diagnosis")


class Asking:
    """A judge behind a server; anything but 0 or 1 is no verdict."""

    kind, workers = "judge", 2
    metrics = (Metric("diagnosis", "encounter", 0, 1, "nominal"),)

    def __init__(self, server, name="judge", **more):
        self.rater_id, self.settings = name, settings(server, **more)
        self.identity = {"model": "m-1"}

    def open(self, note):
        self.asker = Asker(self.settings, note)

    def score(self, case, encounter, key):
        sent = body(self.settings, [{"role": "user", "content": f"{encounter.diagnosis} = {case.diagnosis}?"}])
        asked = self.asker.ask(key, sent, {"bound": bound(self.settings, sent)})
        if asked.call is None:
            return Scored("failed" if asked.attempts else "not_asked", reason=str(asked.error))
        about = {"cost": cost(asked.call.reply.usage, self.settings.price), "attempts": asked.attempts}
        text = asked.call.reply.text
        if text not in ("0", "1"):
            return Scored("judge_error", reason=f"{text!r} is no verdict", about=about)
        return Scored("ok", {"diagnosis": float(text)}, about=about)

    def stop(self):
        self.asker.gate.stop()

    def close(self):
        self.asker.close()


def test_oracle_scores_all_and_mute_nothing(tmp_path):
    outcome = held(tmp_path, plan(doctors=("embedded", "oracle", "mute")))
    rows = rated(tmp_path, [Exact()]).rows
    assert (18, 0) == (outcome.encounters, outcome.open)
    means = rows.groupby(rows["label"].str.split("/").str[2])["value"].mean()
    assert (1.0, 0.0) == (means["oracle"], means["mute"])
    assert {"no_diagnosis"} == set(rows.loc[rows["label"].str.endswith("mute"), "reason"])
    assert {"ok"} == set(rows["status"]) and {"rule"} == set(rows["rater_kind"])
    assert {"doctor_told_diagnosis": 6} == outcome.flags


def test_the_table_gives_back_what_it_was_given(tmp_path):
    with Loopback(talking) as server:
        held(tmp_path, plan(server, patient="model", price=PRICE))
    first = list(encounters.read(tmp_path))
    tables.write(encounters.frame(first), tmp_path / "again.parquet", tables.ENCOUNTERS)
    assert first == list(encounters.read(tmp_path / "again.parquet"))
    assert (3, "Gout", (("Gout", 80.0),)) == (first[0].rounds, first[0].diagnosis, first[0].candidates)


def test_every_call_stands_in_the_events_with_what_it_took(tmp_path):
    with Loopback(talking) as server:
        outcome = held(tmp_path, plan(server, patient="model", price=PRICE))
        assert 36 == len(server.hits) == outcome.calls
        assert {h.attempt for h in server.hits} == {r["attempt"] for r in told(tmp_path / FILE, "asked")}
    said = list(told(tmp_path / FILE, "said"))
    assert {"doc-1", "pat-1"} == {r["model"] for r in said}
    assert all(r["prompt_hash"] and r["prompt_tokens"] == 900 and r["seconds"] > 0 for r in said)
    each = (900 * 2 + 12 * 8) / 1e6
    assert outcome.cost == pytest.approx(36 * each)
    found = next(encounters.read(tmp_path))
    assert (3, 2700, 36) == (found.doctor.calls, found.doctor.prompt_tokens, found.doctor.completion_tokens)
    assert found.cost == pytest.approx(6 * each)


def test_the_doctor_hears_the_patient_and_not_the_case(tmp_path):
    with Loopback(talking) as server:
        held(tmp_path, plan(server, patient="model"))
        sent = [h.body["messages"] for h in server.hits]
    doctors = [m for m in sent if "You are a doctor" in m[0]["content"]]
    assert all(name not in json.dumps(m) for m in doctors for name in NAMES[1:])
    last = max(doctors, key=len)
    assert ["system", "user", "assistant", "user", "assistant", "user"] == [m["role"] for m in last]
    assert last[1]["content"].startswith("It hurts since")


def test_without_a_price_the_cost_is_unknown(tmp_path):
    with Loopback(talking) as server:
        outcome = held(tmp_path, plan(server))
    assert (None, 6) == (outcome.cost, outcome.unpriced)
    assert all(e.cost is None for e in encounters.read(tmp_path))


def test_a_second_run_asks_nothing_and_writes_the_same(tmp_path):
    with Loopback(talking) as server:
        held(tmp_path, plan(server))
        first = (tmp_path / encounters.FILE).read_bytes()
        outcome = held(tmp_path, plan(server))
        assert (6, 18) == (outcome.kept, len(server.hits))
    assert first == (tmp_path / encounters.FILE).read_bytes()


def test_what_was_said_tells_whether_an_encounter_is_over(tmp_path):
    """Not the line that says so: without its last words, an encounter goes on from where it then is."""
    with Loopback(talking) as server:
        held(tmp_path, plan(server, concurrency=1))
        lines = (tmp_path / FILE).read_text(encoding="utf-8").splitlines(keepends=True)
        last = max(i for i, line in enumerate(lines) if '"event":"said"' in line)
        (tmp_path / FILE).write_text("".join(lines[:last] + lines[last + 1 :]), encoding="utf-8")
        assert {"concluded": 5, "not_run": 1} == held(tmp_path, plan(server), replay=True).statuses["gpt"]
        outcome = held(tmp_path, plan(server))
        assert (5, 0, 19) == (outcome.kept, outcome.open, len(server.hits))


def test_one_budget_serves_several_runs_of_a_folder(tmp_path):
    budget = Budget(max_calls=18)
    with Loopback(talking) as server:
        assert 0 == held(tmp_path, plan(server), budget).open
        assert 0 == held(tmp_path, plan(server), budget).open
        assert 18 == budget.calls == len(server.hits)


def test_again_asks_for_everything_anew(tmp_path):
    with Loopback(talking) as server:
        held(tmp_path, plan(server))
        held(tmp_path, plan(server), again=True)
        assert 36 == len(server.hits)


def test_a_changed_setting_is_another_encounter(tmp_path):
    with Loopback(talking) as server:
        held(tmp_path, plan(server))
        assert 0 == held(tmp_path, plan(server, temperature=0.1)).kept
        assert 0 == held(tmp_path, plan(server, rounds=5)).kept
        assert 6 == held(tmp_path, plan(server, concurrency=2)).kept


def test_many_at_a_time_make_the_encounters_that_one_makes(tmp_path):
    texts = []
    for workers in (1, 6):
        with Loopback(talking) as server:
            held(tmp_path / str(workers), plan(server, patient="model", concurrency=workers))
            assert server.most_at_once <= workers
        texts.append([[t.text for t in e.turns] for e in encounters.read(tmp_path / str(workers))])
    assert texts[0] == texts[1]


def test_replay_makes_no_call_and_the_same_scores(tmp_path):
    with Loopback(talking) as server:
        planned = plan(server, doctors=("embedded",))
        held(tmp_path, planned)
        judge = Asking(server)
        server.script = lambda hit, n: chat("1")
        first, file = rated(tmp_path, [Exact(), judge]), (tmp_path / encounters.FILE).read_bytes()
    replayed = held(tmp_path, planned, replay=True)
    again = rated(tmp_path, [Exact(), judge], replay=True)
    assert (0, 12) == (replayed.open, replayed.kept) and file == (tmp_path / encounters.FILE).read_bytes()
    assert first.rows.equals(again.rows) and 12 == again.kept


def test_nothing_to_replay_is_said(tmp_path):
    with pytest.raises(StudyError, match="nothing to replay"):
        held(tmp_path, plan(doctors=("mute",)), replay=True)


def test_a_broken_server_is_nobodys_score(tmp_path):
    """429 and 5xx are counted, stay outside every mean, and only they go on, from where they broke off."""

    def sick(hit, n):
        case = hit.body["messages"][1]["content"]
        turn = sum(m["role"] == "assistant" for m in hit.body["messages"])
        return failure(503 if "1" in case else 429) if turn == 1 and "Case" in case else talking(hit, n)

    cases = [Vignette(c.case_id, c.text, c.diagnosis, extra={"chief_complaint": t}) for c, t in
             zip(CASES, ("Cough", "Case 1", "Case 2", "Fever", "Itch", "Rash"), strict=True)]  # fmt: skip
    with Loopback(sick) as server:
        outcome = held(tmp_path, plan(server, cases))
        assert {"gpt": {"infra_error": 2, "concluded": 4}} == outcome.statuses and 2 == outcome.open
        rows = rated(tmp_path, [Exact()], cases=cases).rows
        assert {"infra_error": 2, "ok": 4} == rows["status"].value_counts().to_dict()
        assert 2 == rows["value"].isna().sum() and "HTTP 503" in rows["reason"].iloc[1]
        assert (0.25, 4) == (rows["value"].mean(), rows["value"].count())
        server.script, before = talking, len(server.hits)
        assert 0 == held(tmp_path, plan(server, cases)).open
        assert 4 == len(server.hits) - before  # two turns each of the two that broke off after the first


def test_a_wrong_key_stops_the_run_and_is_no_result(tmp_path):
    with Loopback(lambda hit, n: failure(401)) as server:
        outcome = held(tmp_path, plan(server, concurrency=1))
        assert 1 == len(server.hits)
    assert {"infra_error": 1, "not_run": 5} == outcome.statuses["gpt"] and "401" in outcome.stopped


def test_a_missing_key_is_said_before_anything_is_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with Loopback(talking) as server, pytest.raises(StudyError, match="NO_SUCH_KEY is empty"):
        held(tmp_path, plan(server, api_key_env="NO_SUCH_KEY"))


@pytest.mark.parametrize("words", ["", "   ", None])
def test_an_empty_turn_is_the_doctors_failure_and_stands(tmp_path, words):
    with Loopback(lambda hit, n: chat(words)) as server:
        outcome = held(tmp_path, plan(server))
        assert {"doctor_failed": 6} == outcome.statuses["gpt"] and 0 == outcome.open
        held(tmp_path, plan(server))
        assert 6 == len(server.hits)
    assert [1] * 6 == [len(e.turns) for e in encounters.read(tmp_path)]


def test_max_calls_is_never_exceeded_and_a_run_goes_on_from_there(tmp_path):
    with Loopback(talking) as server:
        outcome = held(tmp_path, plan(server, concurrency=3), Budget(max_calls=7))
        assert 7 == len(server.hits) and outcome.open and "--max-calls 7 is reached" == outcome.stopped
        held(tmp_path, plan(server), Budget(max_calls=7))
        assert 7 == len(server.hits)
        assert 0 == held(tmp_path, plan(server), Budget(max_calls=18)).open
        assert 18 == len(server.hits)


def test_max_cost_is_never_exceeded(tmp_path):
    each = (900 * 2 + 12 * 8) / 1e6
    with Loopback(talking) as server:
        small = Budget(max_cost=5.5 * each)
        outcome = held(tmp_path, plan(server, price=PRICE, concurrency=3), small)
        assert outcome.open and "would be exceeded" in outcome.stopped
        assert 0 < small.spent <= small.max_cost
        assert small.spent == pytest.approx(len(server.hits) * each)
        assert 0 == held(tmp_path, plan(server, price=PRICE), Budget(max_cost=1)).open
        assert 18 == len(server.hits)


def test_a_cost_that_cannot_be_bounded_is_refused_at_once(tmp_path):
    with Loopback(talking) as server:
        with pytest.raises(StudyError, match="gpt has no price or no token limit"):
            held(tmp_path, plan(server), Budget(max_cost=1))
        assert [] == server.hits


def test_a_call_that_was_lost_stays_spent():
    budget = Budget(max_cost=1)
    budget.admit("q", "a1", 0.4)
    budget.count({"event": "missed", "key": "q", "attempt": "a1", "kind": "transport"})
    budget.admit("q", "a2", 0.4)
    budget.count({"event": "missed", "key": "q", "attempt": "a2", "kind": "busy"})
    assert 0.4 == budget.spent
    budget.admit("q", "a3", 0.5)
    budget.count({"event": "said", "question": "q", "cost": 0.1})
    assert 0.5 == budget.spent
    with pytest.raises(BudgetSpent):
        budget.admit("r", "a4", 0.6)


ENDS = st.sampled_from(["said", "busy", "transport"])


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1), ENDS), max_size=30))
def test_whatever_calls_cost_a_budget_is_not_exceeded(calls):
    """Real costs never exceed the bound; calls that were lost count with theirs."""
    budget, paid = Budget(max_cost=5), 0.0
    for number, (limit, share, end) in enumerate(calls):
        key, attempt = f"q{number}", f"a{number}"
        try:
            budget.admit(key, attempt, limit)
        except BudgetSpent:
            break
        if end == "said":
            paid += limit * share
            budget.count({"event": "said", "question": key, "cost": limit * share})
        else:
            paid += limit if end == "transport" else 0
            budget.count({"event": "missed", "key": key, "attempt": attempt, "kind": end})
    assert budget.spent == pytest.approx(paid) and paid <= 5 + 1e-9


@pytest.mark.parametrize(("name", "value"), [("max_cost", 0), ("max_cost", -1), ("max_calls", 0)])
def test_a_budget_of_nothing_is_refused(name, value):
    with pytest.raises(StudyError, match="more than nothing"):
        Budget(**{name: value})


def test_a_judges_word_is_kept_and_no_verdict_is_no_number(tmp_path):
    answers = iter(["1", "yes", "0", "2", "1"])
    held(tmp_path, plan(doctors=("oracle",), cases=CASES[:5]))
    with Loopback(lambda hit, n: chat(next(answers))) as server:
        first = rated(tmp_path, [Asking(server, concurrency=1)])
        assert {"ok": 3, "judge_error": 2} == first.statuses["judge"]
        assert 2 == first.rows["value"].isna().sum()
        again = rated(tmp_path, [Asking(server)])
        assert (5, 0, 5) == (again.kept, again.asked, len(server.hits))


def test_a_judge_that_was_not_reached_is_missing_and_asked_again(tmp_path):
    held(tmp_path, plan(doctors=("oracle",), cases=CASES[:3]))
    with Loopback(lambda hit, n: failure(500)) as server:
        first = rated(tmp_path, [Asking(server, attempts=1)])
        assert ({"missing": 3}, 3) == (first.statuses["judge"], first.open)
        server.script = lambda hit, n: chat("1")
        assert 0 == rated(tmp_path, [Asking(server)]).open


def test_a_judge_keeps_within_the_budget(tmp_path):
    held(tmp_path, plan(doctors=("oracle",)))
    with Loopback(lambda hit, n: chat("1")) as server:
        found = rated(tmp_path, [Asking(server)], Budget(max_calls=2))
        assert (2, 4, "--max-calls 2 is reached") == (len(server.hits), found.open, found.stopped)


def test_other_raters_rows_stay(tmp_path):
    held(tmp_path, plan(doctors=("oracle",)))
    rated(tmp_path, [Exact()])
    with Loopback(lambda hit, n: chat("1")) as server:
        rated(tmp_path, [Asking(server)])
    found = tables.read(tmp_path / RATINGS, tables.RATINGS)
    assert {"exact": 6, "judge": 6} == found["rater_id"].value_counts().to_dict()
    assert np.isclose(found["value"], 1).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cases": ()}, "there is no case"),
        ({"cases": CASES[:1] * 2}, "case 0 stands twice"),
        ({"doctors": ()}, "there is no doctor"),
        ({"doctors": ("mute", "mute")}, "doctor mute stands twice"),
        ({"rounds": 0}, "rounds = 0"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(change, said):
    with pytest.raises(StudyError, match=said):
        plan(**{"doctors": ("mute",)} | change)


RUN = """
import sys
from pathlib import Path
import test_run as here
class There: url = sys.argv[2]
here.held(Path(sys.argv[1]), here.plan(There, patient="model", concurrency=2, price=here.PRICE))
"""


def test_killed_in_the_middle_it_goes_on_without_asking_twice(tmp_path):
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", RUN, str(tmp_path / "killed")]
    with Loopback(talking, delay=0.01) as server:
        for kill_after in (5, 9, None):
            before = len(server.hits)
            process = subprocess.Popen([*command, server.url], env=env)
            while kill_after and process.poll() is None and len(server.hits) < before + kill_after:
                time.sleep(0.002)
            if kill_after:
                os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=60)
        assert 0 == process.returncode
        held(tmp_path / "whole", plan(server, patient="model", price=PRICE))
    said = Counter((r["encounter_id"], r["index"]) for r in told(tmp_path / "killed" / FILE, "said"))
    assert {1} == set(said.values()) and 36 == len(said)
    whole, killed = (
        [(e.encounter_id, e.status, [t.text for t in e.turns], e.cost) for e in encounters.read(tmp_path / name)]
        for name in ("whole", "killed")
    )
    assert whole == killed
