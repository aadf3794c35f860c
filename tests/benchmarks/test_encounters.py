"""How fast encounters are held, replayed and rated anew, and that memory does not grow with them."""

import json
import math
import subprocess
import sys

import pytest

pytestmark = pytest.mark.benchmark_only
# Answers every question after a delay, and takes little time of its own: loopback.py takes as much as we do.
SERVER = """
import asyncio, json, sys
answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
          "choices": [{"index": 0, "finish_reason": "stop",
                       "message": {"role": "assistant", "content": "How is it now?"}}],
          "usage": {"prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912}}
body = json.dumps(answer).encode()
head = f"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: {len(body)}\\r\\n\\r\\n".encode()

class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.data = transport, b""

    def data_received(self, data):
        self.data += data
        top, blank, rest = self.data.partition(b"\\r\\n\\r\\n")
        if blank and len(rest) >= int(top.lower().split(b"content-length:")[1].split(b"\\r\\n")[0]):
            self.data = b""
            asyncio.get_running_loop().call_later(float(sys.argv[1]), self.transport.write, head + body)

async def serve():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()

asyncio.run(serve())
"""
PRELUDE = """
import json, resource, sys, time
from pathlib import Path
import openai, pandas, pyarrow.parquet
from analysis.benchmarks import encounters
from analysis.benchmarks.budget import Budget
from analysis.benchmarks.rate import rate
from analysis.benchmarks.run import Plan, run
from analysis.benchmarks.scoring import Scored
from generation.model_player import ModelPlayer
from generation.players import player
from generation.progress import Meter
from generation.settings import model_settings
from study.records import Metric, Vignette

def cases(n):
    return tuple(Vignette(str(i), f"Case {i}. It began {i + 2} days ago. I smoke.", f"Ill {i}") for i in range(n))

def held(folder, plan, **more):
    with Meter(quiet=True) as meter:
        return run(folder, plan, Budget(), meter, **more)

def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
"""
HOLD = """
folder, url = Path(sys.argv[1]), sys.argv[2]
settings = model_settings({"model": "m", "base_url": url, "concurrency": 32}, "m")
both = [ModelPlayer(role, role, settings) for role in ("doctor", "patient")]
plan = Plan(cases(200), (both[0],), both[1], rounds=8)
begun, worked = time.perf_counter(), time.process_time()
outcome = held(folder, plan)
print(json.dumps({"seconds": time.perf_counter() - begun, "cpu": time.process_time() - worked,
                  "calls": outcome.calls, "open": outcome.open}))
"""
REPLAY = """
class Exact:
    rater_id, kind, identity, workers = "exact", "rule", {}, 1
    metrics = (Metric("diagnosis", "encounter", 0, 1, "nominal"),)
    def score(self, case, encounter, key):
        return Scored("ok", {"diagnosis": float(encounter.diagnosis == case.diagnosis)})

folder, n = Path(sys.argv[1]), int(sys.argv[2])
told = cases(n)
plan = Plan(told, (player("doctor", "embedded", diagnoses=[c.diagnosis for c in told]),),
            player("patient", "embedded"), rounds=8)
held(folder, plan)
before, begun = grown(), time.perf_counter()
outcome = held(folder, plan, replay=True)
by = {c.case_id: c for c in told}
with Meter(quiet=True) as meter:
    rated = rate(folder, ((by[e.case_id], e) for e in encounters.read(folder)), [Exact()], Budget(), meter,
                 replay=True)
print(json.dumps({"seconds": time.perf_counter() - begun, "encounters": outcome.encounters, "open": outcome.open,
                  "rows": len(rated.rows), "mb": grown() - before}))
"""
REMEMBER = """
folder, n = Path(sys.argv[1]), int(sys.argv[2])
from analysis.benchmarks.events import Events
plan = Plan(cases(n), (player("doctor", "mute"),), player("patient", "embedded"), rounds=8)
marks = [grown()]
held(folder, plan)
marks.append(grown())
print(json.dumps({"mb": marks}))
"""


def told(code, *args):
    command = [sys.executable, "-c", PRELUDE + code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_two_hundred_cases_take_little_more_than_the_server_does(tmp_path):
    """The ideal: 200 encounters, 32 at a time, are seven rows of sixteen calls of 50 ms, one after the other."""
    command = [sys.executable, "-c", SERVER, "0.05"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        found = [told(HOLD, tmp_path / str(i), url) for i in range(3)]
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    best = min(found, key=lambda f: f["seconds"])
    ideal = math.ceil(200 / 32) * 16 * 0.05
    print(
        f"\n200 encounters of 8 rounds, 32 at a time, 50 ms a call: {best['seconds']:.2f} s "
        f"({best['cpu']:.2f} s of work); ideal {ideal:.2f} s"
    )
    assert (3200, 0) == (best["calls"], best["open"])
    assert best["seconds"] <= 1.2 * ideal


def test_a_thousand_conversations_are_replayed_and_rated_anew_in_seconds(tmp_path):
    found = told(REPLAY, tmp_path, 1000)
    print(f"\n1,000 conversations replayed and rated anew: {found['seconds']:.2f} s, {found['mb']:+.0f} MB")
    assert (1000, 0, 1000) == (found["encounters"], found["open"], found["rows"])
    assert found["seconds"] < 10


def test_memory_stays_flat_over_ten_times_the_encounters(tmp_path):
    few, many = (told(REMEMBER, tmp_path / str(n), n)["mb"] for n in (500, 5000))
    print(f"\n500 encounters: {few[1] - few[0]:+.0f} MB; 5,000: {many[1] - many[0]:+.0f} MB")
    assert (many[1] - many[0]) - (few[1] - few[0]) < 60
