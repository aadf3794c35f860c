"""Prompts × sources → responses, with models behind a loopback server beside the embedded sources."""

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from generation import cli
from generation.journal import Journal, records
from generation.manifest import MANIFEST
from generation.run import JOURNAL, run
from generation.sources.kinds import KINDS
from generation.status import standings
from generation.verify import verify, window_note
from study import config, content, design, folder, tables
from study.errors import StudyError

_spec = importlib.util.spec_from_file_location("loopback", Path(__file__).parents[1] / "loopback.py")
loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loopback)
Loopback, Wire, chat, failure = loopback.Loopback, loopback.Wire, loopback.chat, loopback.failure

PRICE = 'price = { input = 2.0, output = 8.0, as_of = "2026-11-01" }'


def sources(server, names=("gpt", "claude"), more="", kind="openai_chat"):
    """Rows of study.toml for models behind a server."""
    return "".join(
        f'\n[[source]]\nid = "{name}"\nkind = "{kind}"\nmodel = "{name}-1"\nbase_url = "{server.url}"\n'
        f"first_wait = 0.001\nattempts = 3\n{more}\n"
        for name in names
    )


def make(path, rows, prompts=2, embedded=False):
    """A study of two prompts a case (all if None) with these sources, beside the embedded ones if asked."""
    folder.new(path, title="Test")
    study_toml = path / "study.toml"
    text = study_toml.read_text(encoding="utf-8")
    head, tail = text.split("[[source]]", 1)
    tail = "[[source]]" + tail if embedded else tail[tail.index("[panel]") :]
    if embedded:
        tail = tail.replace("[panel]", rows + "\n[panel]")
    study_toml.write_text(head + ("" if embedded else rows) + tail, encoding="utf-8")
    if prompts is not None:
        file = path / "prompts.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        kept = Counter()
        document["prompts"] = [
            p for p in document["prompts"] if (kept.update([p["case_id"]]) or kept[p["case_id"]]) <= prompts
        ]
        file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return config.load(path)


def responses(study):
    return tables.read(study.responses, tables.RESPONSES)


def test_every_prompt_is_put_to_every_source_once(tmp_path):
    with Loopback(lambda hit, n: chat(model=hit.body["model"])) as server:
        study = make(tmp_path / "s", sources(server, more=PRICE))
        outcome = run(study)
        assert len(server.hits) == 12
    assert (outcome.cells, outcome.asked, outcome.open) == (12, 12, 0)
    found = responses(study)
    assert not found.duplicated(["prompt_id", "source_id"]).any()
    assert found.groupby("source_id")["model"].unique().str[0].to_dict() == {"gpt": "gpt-1", "claude": "claude-1"}
    assert found["cost"].sum() == pytest.approx(12 * (900 * 2 + 12 * 8) / 1e6)
    assert found["answered_at"].dt.tz is not None


def test_a_model_is_told_the_persona_and_the_question_and_nothing_else(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        run(study)
        sent = server.hits[0].body["messages"]
    cases = study.content()
    prompt = next(p for p in cases.prompts if p.text == sent[1]["content"])
    assert sent[0]["content"] == "\n\n".join(cases.cases[prompt.case_id].persona.fields())
    assert ["system", "user"] == [m["role"] for m in sent]


def test_run_again_asks_nothing_that_has_an_outcome(tmp_path):
    odd = [
        chat(""),
        chat(None, message={"refusal": "no"}),
        chat("네", finish="length"),
        chat(finish="content_filter"),
    ]
    with Loopback(lambda hit, n: odd[n] if n < 4 else chat()) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "concurrency = 1"))
        first = run(study)
        before = responses(study)
        again = run(study)
        assert (again.asked, len(server.hits)) == (0, 6)
    assert first.statuses == {"gpt": {"empty": 1, "refused": 1, "ok": 4}}
    assert {"empty": 1, "refusal": 1, "truncated": 1, "filtered": 1} == {
        k: v for k, v in first.flags.items() if k in ("empty", "refusal", "truncated", "filtered")
    }
    pd.testing.assert_frame_equal(before, responses(study))


def test_failed_rows_stay_as_rows_and_only_they_are_asked_again(tmp_path):
    with Loopback(lambda hit, n: failure(500, "down") if "gpt" in hit.body["model"] else chat()) as server:
        study = make(tmp_path / "s", sources(server))
        first = run(study)
        assert first.statuses == {"gpt": {"failed": 6}, "claude": {"ok": 6}}
        failed = responses(study).query("source_id == 'gpt'")
        assert failed["text"].isna().all()
        assert set(failed["detail"]) == {"HTTP 500: down (3 attempts)"}
        server.script = lambda hit, n: chat()
        n = len(server.hits)
        second = run(study)
        assert (second.asked, second.kept, len(server.hits) - n) == (6, 6, 6)
    assert second.open == 0


def test_a_source_that_cannot_be_reached_does_not_keep_the_others_from_answering(tmp_path, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    with Loopback() as server:
        rows = sources(server, ("gpt",), 'api_key_env = "MY_KEY"') + sources(server, ("claude",))
        outcome = run(make(tmp_path / "s", rows))
        assert len(server.hits) == 6
    assert outcome.statuses == {"gpt": {"failed": 6}, "claude": {"ok": 6}}
    assert outcome.stopped["gpt"].startswith("MY_KEY is empty")


def test_without_money_one_question_is_enough(tmp_path):
    broke = failure(429, "You exceeded your current quota", "insufficient_quota")
    with Loopback(lambda hit, n: broke) as server:
        outcome = run(make(tmp_path / "s", sources(server, ("gpt",), "concurrency = 1")))
        assert len(server.hits) == 1
    assert "insufficient_quota" in outcome.stopped["gpt"]
    assert outcome.open == 6


def test_changed_settings_make_new_questions_and_the_old_answers_stay_in_the_journal(tmp_path):
    with Loopback(lambda hit, n: chat(f"{hit.body['temperature']}")) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "temperature = 0.7"))
        run(study)
        toml = study.folder / "study.toml"
        toml.write_text(toml.read_text(encoding="utf-8").replace("temperature = 0.7", "temperature = 0.2"))
        study = config.load(study.folder)
        assert ["6 answers of gpt were given to other questions or settings"] == [
            p.split(": ", 1)[1][:58] for p in verify(study).problems
        ]
        assert run(study).asked == 6
    assert set(responses(study)["text"]) == {"0.2"}
    assert {"0.7", "0.2"} == {r["text"] for _, r in records(study.path(JOURNAL)) if r["event"] == "answered"}


def test_answers_that_raters_have_are_not_replaced(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server))
        run(study)
        items, key = design.items(study.content(), responses(study), study.seed)
        tables.write(items, study.items, tables.ITEMS)
        tables.write(key, study.key, tables.KEY)
        run(study)
        with pytest.raises(StudyError, match="is with the raters"):
            run(study, again=True)
        toml = study.folder / "study.toml"
        toml.write_text(toml.read_text(encoding="utf-8").replace("gpt-1", "gpt-2"))
        with pytest.raises(StudyError, match="the answer of gpt to .* is with the raters"):
            run(config.load(study.folder))


def test_again_draws_everything_anew_also_after_a_stop(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        run(study)
        with Journal(study.path(JOURNAL)) as journal:
            journal.append({"event": "again"})
        assert run(study).asked == 6
        assert run(study, again=True).asked == 6
        assert run(study).asked == 0


def test_a_cache_written_only_at_the_end_would_lose_what_was_paid_for(tmp_path, monkeypatch):
    synced, seen = [], []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (fsync(file), synced.append(file)))

    def script(hit, n):
        lines = [r for _, r in records(study.path(JOURNAL))]
        asked = {r["attempt"] for r in lines if r["event"] == "asked"}
        answered = sum(r["event"] == "answered" for r in lines)
        seen.append((hit.attempt in asked, answered, len(synced) >= answered))
        return chat()

    with Loopback(script) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "concurrency = 1"))
        run(study)
    assert [(True, n, True) for n in range(6)] == seen


def test_a_seed_that_does_not_hold_leaves_the_first_draw_in_place(tmp_path):
    with Loopback(lambda hit, n: chat(f"{n}번째로 드리는 대답이에요.")) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "seed = 7"))
        run(study)
        drawn = responses(study)["text"].tolist()
        assert len(set(drawn)) == 6  # one seed, six questions; the server promises nothing
        study.responses.unlink()
        assert run(study).asked == 0
    assert drawn == responses(study)["text"].tolist()
    assert verify(study).problems == []


def test_a_blank_answer_does_not_leave_the_denominator(tmp_path):
    with Loopback(lambda hit, n: chat("  \n") if n == 2 else chat()) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "concurrency = 1"))
        outcome = run(study)
    assert (outcome.cells, outcome.open, outcome.statuses) == (6, 0, {"gpt": {"ok": 5, "empty": 1}})
    assert len(responses(study)) == 6
    said = CliRunner().invoke(cli.app, ["status", str(study.folder)]).stdout
    assert "6/6 settled, 1 empty" in said


def test_two_prompts_of_one_id_are_refused_before_anything_is_asked(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        file = study.folder / "prompts.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        document["prompts"].append(document["prompts"][0] | {"text": "다른 질문이에요?"})
        file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        with pytest.raises(StudyError, match=f"prompt {document['prompts'][0]['prompt_id']} stands twice"):
            run(config.load(study.folder))
        assert server.hits == []


def test_one_question_that_cannot_be_sent_does_not_kill_the_others(tmp_path):
    with Loopback(lambda hit, n: failure(400, "context length exceeded") if n == 1 else chat()) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "concurrency = 1"))
        outcome = run(study)
    assert outcome.statuses["gpt"].pop("ok") == 5
    assert sum(outcome.statuses["gpt"].values()) == 1
    assert responses(study)["text"].isna().sum() == 1


def test_a_journal_that_is_being_written_is_left_alone(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        with Journal(study.path(JOURNAL)), pytest.raises(StudyError, match="another run is writing"):
            run(study)


def test_concurrency_is_kept_for_each_source(tmp_path):
    with Loopback(delay=0.05) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "concurrency = 3"), prompts=4)
        run(study)
        assert server.most_at_once == 3


def test_unpriced_answers_are_counted_not_free(tmp_path):
    first = iter([True])  # of the two models' questions, which arrive in any order

    def script(hit, n):
        return chat(usage=None) if hit.body["model"] == "gpt-1" and next(first, False) else chat()

    with Loopback(script) as server:
        rows = sources(server, ("gpt",), PRICE + "\nconcurrency = 1") + sources(server, ("claude",))
        study = make(tmp_path / "s", rows)
        outcome = run(study)
    assert outcome.unpriced == 1 + 6
    assert outcome.cost == pytest.approx(5 * (900 * 2 + 12 * 8) / 1e6)
    assert responses(study)["cost"].isna().sum() == 7


def test_the_manifest_says_under_which_conditions(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret-key")
    with Loopback(lambda hit, n: failure(503) if n == 0 else chat()) as server:
        rows = sources(server, ("gpt",), 'api_key_env = "MY_KEY"\nunsupported = ["temperature"]\n' + PRICE)
        study = make(tmp_path / "s", rows)
        run(study)
    raw = (study.folder / MANIFEST).read_text(encoding="utf-8")
    assert "sk-very-secret" not in raw + (study.folder / JOURNAL).read_text(encoding="utf-8")
    found = json.loads(raw)
    gpt = found["sources"]["gpt"]
    assert gpt["models"] == {"fake-1": 6}
    assert gpt["fingerprints"] == {"fp_1": 6}
    assert gpt["requests"] == {"sent": 7, "answered": 6, "failed": 1, "lost_when_killed": 0}
    assert gpt["deviations"] == ["temperature = 0.7 is not supported by gpt-1 and was not sent"]
    assert gpt["settings"]["top_p"] == 0.95
    assert "temperature" not in gpt["settings"]
    assert set(found["files"]) == {"study.toml", "cases.json", "prompts.json"}
    assert len(found["personas"]) == 3
    assert found["versions"]["openai"].startswith("3.")


@pytest.mark.parametrize("embedded", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_killed_ten_times_it_ends_with_the_exact_grid(tmp_path, embedded):
    # Four models, with the five embedded sources beside them in the slow run; SIGKILL at random moments.
    chance = random.Random(20261130)
    with Loopback(delay=0.03) as server:
        rows = sources(server, ("gpt", "claude", "gemini", "llama"), "concurrency = 2")
        study = make(tmp_path / "s", rows, prompts=12, embedded=embedded)
        command = [sys.executable, "-m", "generation", "run", str(study.folder), "--json"]
        kills = 0
        for _ in range(60):
            done = len(server.hits)
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until, more = time.monotonic() + 60, chance.randint(4, 12)
            while process.poll() is None and len(server.hits) < done + more and time.monotonic() < until:
                time.sleep(0.005)
            if process.poll() is None and kills < 10:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            if process.wait(timeout=60) == 0:
                break
        assert (kills, process.returncode) == (10, 0)
        sent = [hit.attempt for hit in server.hits]
    found = responses(study)
    cases = study.content()
    assert len(found) == len(cases.prompts) * (9 if embedded else 4)
    assert not found.duplicated(["prompt_id", "source_id"]).any()
    assert set(found["status"]) == {"ok"}
    lines = [r for _, r in records(study.path(JOURNAL))]
    answered = Counter((r["prompt_id"], r["source_id"]) for r in lines if r["event"] == "answered")
    assert set(answered.values()) == {1}  # nobody was asked twice for an answer that stood
    asked = {r["attempt"] for r in lines if r["event"] == "asked"}
    assert len(sent) == len(set(sent))
    assert set(sent) <= asked  # every request that the server received is accounted for
    lost = sum(s.attempts.lost for s in standings(study))
    assert len(asked) == 4 * len(cases.prompts) + lost
    assert verify(study).problems == []


def test_verify_finds_what_was_tampered_with(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server))
        run(study)
        assert verify(study).problems == []
        good = responses(study)
        edited = good.copy()
        edited.loc[0, "text"] = "네, 있어요."
        tables.write(edited, study.responses, tables.RESPONSES)
        assert "is not what the journal holds" in verify(study).problems[0]
        tables.write(good.iloc[1:], study.responses, tables.RESPONSES)
        assert "has no row for" in verify(study).problems[0]
        run(study)
        assert verify(study).problems == []


def test_a_prompt_that_takes_fewer_tokens_the_second_time_is_found(tmp_path):
    def usage(tokens):
        return {"prompt_tokens": tokens, "completion_tokens": 5}

    with Loopback(lambda hit, n: chat(usage=usage(900 if n < 6 else 700))) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        run(study)
        run(study, again=True)
    assert "took 900 prompt tokens once and 700 another time" in verify(study).problems[0]


def test_a_model_that_changes_under_its_name_is_found(tmp_path):
    with Loopback(lambda hit, n: chat(model=f"gpt-1-{'2026-08' if n < 3 else '2026-11'}")) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "concurrency = 1"))
        run(study)
    assert "gpt was answered by several models (gpt-1-2026-08, gpt-1-2026-11)" in verify(study).problems[0]


def aged(study, days):
    """The study's first answer, made so many days older."""
    found = responses(study)
    found.loc[0, "answered_at"] = found.loc[0, "answered_at"] - pd.Timedelta(days=days)
    tables.write(found, study.responses, tables.RESPONSES)


def test_answers_from_two_weeks_are_refused_at_release_unless_waived(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        run(study)
    assert verify(study, release=True).problems == []
    assert window_note(study) is None
    aged(study, 8)
    assert "the study allows 7 days" in window_note(study)
    assert "asked over 8.0 days, and the study allows 7" in verify(study, release=True).problems[0]
    assert "not fit for release" in verify(study).notes[0]
    toml = study.folder / "study.toml"
    waived = '[generation]\nwaiver = "a model came back after an outage"\n\n'
    toml.write_text(waived + toml.read_text(encoding="utf-8"), encoding="utf-8")
    assert verify(config.load(study.folder), release=True).problems == []


def test_demo_rows_are_refused_at_release(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, ("gpt",), "demo = true"))
        run(study)
    assert ["source gpt is for demonstration only"] == [
        p.split(": ", 1)[1].split(";")[0] for p in verify(study, release=True).problems
    ]


def test_the_command_fails_where_a_row_failed_and_says_what_to_do(tmp_path):
    with Loopback(lambda hit, n: failure(400, "no")) as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        done = CliRunner().invoke(cli.app, ["run", str(study.folder)])
    assert isinstance(done.exception, StudyError)
    assert "6 of 6 have no outcome yet; run again to ask for them" in str(done.exception)
    assert "gpt" in done.stdout


def test_status_and_verify_speak(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, more=PRICE))
        run(study)
    said = CliRunner().invoke(cli.app, ["status", str(study.folder)]).stdout
    assert "gpt                  6/6 settled, cost 0.0114, 6 requests" in said
    plain = json.loads(CliRunner().invoke(cli.app, ["status", str(study.folder), "--json"]).stdout)
    assert plain[0]["requests"] == {"sent": 6, "missed": 0, "answered": 6, "lost": 0}
    assert "are those of the study" in CliRunner().invoke(cli.app, ["verify", str(study.folder)]).stdout


def test_an_old_responses_file_is_still_read(tmp_path):
    old = pd.DataFrame(
        {
            "prompt_id": ["a"],
            "case_id": ["c"],
            "source_id": ["s"],
            "status": ["ok"],
            "text": ["t"],
            "detail": [None],
        }
    )
    tables.write(old, tmp_path / "r.parquet", tables.RESPONSES)
    assert list(tables.read(tmp_path / "r.parquet", tables.RESPONSES).columns) == list(old.columns)


def test_two_prompts_with_the_same_words_are_two_questions(tmp_path):
    with Loopback() as server:
        study = make(tmp_path / "s", sources(server, ("gpt",)))
        file = study.folder / "prompts.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        document["prompts"][1]["text_ko"] = document["prompts"][0]["text_ko"]
        file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        run(study)
        assert len(server.hits) == 6


def test_shipped_content_is_what_these_tests_rest_on():
    assert len(content.load(content.shipped("cases.json"), content.shipped("prompts.json")).prompts) == 70


def test_the_help_lists_the_kinds_of_source_as_study_toml_says():
    said = CliRunner().invoke(cli.app, ["run", "--help"]).output
    assert not [kind for kind in KINDS if kind not in said]
