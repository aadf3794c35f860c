"""Judges as raters, against a loopback server."""

import importlib.util
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis import automated, cli, judges, load, rubric
from generation.journal import records
from generation.progress import Meter
from study import config, tables
from study.errors import StudyError

_spec = importlib.util.spec_from_file_location("loopback", Path(__file__).parents[1] / "loopback.py")
loopback = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loopback)
Loopback, Wire, chat, failure = loopback.Loopback, loopback.Wire, loopback.chat, loopback.failure


def verdict(hit, score=4):
    """A good verdict on whatever metrics the judge was asked for."""
    asked = re.findall(r"^## (\w+)$", hit.body["messages"][0]["content"], re.M)
    return json.dumps({"reason": "r", "scores": dict.fromkeys(asked, score)})


def with_judge(study, server, **more):
    """The study with a judge added to its study.toml."""
    settings = {"model": "judge-model", "base_url": server.url, "first_wait": 0.001, "attempts": 2} | more
    lines = ["", "[[judge]]", 'id = "judge-1"', *(f"{k} = {_toml(v)}" for k, v in settings.items())]
    path = study.folder / "study.toml"
    head = path.read_text(encoding="utf-8").split("[[judge]]")[0]
    path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return config.load(study.folder)


def _toml(value):
    return json.dumps(value, ensure_ascii=False)  # true of everything that these tests write


def judged(study):
    with Meter(quiet=True) as meter:
        return judges.judge(study, "judge-1", meter)


def test_a_judge_rates_every_item_on_every_metric(small_study):
    with Loopback(lambda hit, n: chat(verdict(hit))) as server:
        study = with_judge(small_study, server)
        done, rows = judged(study)
    assert done.statuses == {"ok": 18 * 3 + 6 * 6}
    assert len(server.hits) == 24
    assert set(rows["value"]) == {4.0}
    assert set(rows["model"]) == {"fake-1"}
    assert automated.join(study, rows) == 90
    tables.check_ratings(tables.read(study.ratings, tables.RATINGS), study.metrics)


def test_a_judge_receives_no_source(small_study):
    with Loopback(lambda hit, n: chat(verdict(hit))) as server:
        judged(with_judge(small_study, server))
        seen = json.dumps([[dict(h.headers), h.body] for h in server.hits], ensure_ascii=False)
    for source in small_study.sources:
        assert source.source_id not in seen
        assert max(re.split("[-_]", source.source_id), key=len) not in seen


def test_one_item_a_call_with_what_a_rater_sees(small_study):
    with Loopback(lambda hit, n: chat(verdict(hit))) as server:
        study = with_judge(small_study, server, concurrency=1)
        judged(study)
    items = tables.read(study.items, tables.ITEMS).reset_index()
    third = items[(items["kind"] == "utterance") & (items["turn"] == 3)].iloc[0]
    same = items[(items["encounter"] == third["encounter"]) & (items["turn"] < 3)]
    said = server.hits[items.index[items["label"] == third["label"]][0]].body["messages"][1]["content"]
    content = study.content()
    assert content.cases[third["case_id"]].persona.clinical_state in said
    assert content.cases[third["case_id"]].persona.behavioral_constraints not in said
    assert third["text"] in said.split("# 평가할 대답")[1]
    assert all(text in said.split("# 평가할 대답")[0] for text in same["text"])
    others = items[(items["kind"] == "utterance") & (items["encounter"] != third["encounter"])]
    assert not any(text in said for text in others["text"])


def test_a_judge_resumes_and_asks_nothing_twice(small_study):
    with Loopback(lambda hit, n: chat(verdict(hit)) if n < 10 else failure(500)) as server:
        study = with_judge(small_study, server, concurrency=1)
        first, rows = judged(study)
        assert first.statuses["missing"] > 0
        assert rows.loc[rows["status"] == "missing", "value"].isna().all()
        server.script = lambda hit, n: chat(verdict(hit))
        before = len(server.hits)
        second, rows = judged(study)
        assert (second.kept, len(server.hits) - before) == (10, 14)
        assert judged(study)[0].asked == 0
    assert second.statuses == {"ok": 90}


def test_every_attempt_has_its_line(small_study):
    with Loopback(lambda hit, n: failure(503) if n % 3 == 0 else chat(verdict(hit))) as server:
        study = with_judge(small_study, server, attempts=4)
        judged(study)
    lines = [r for _, r in records(study.path("judges") / "judge-1.jsonl")]
    asked = {r["attempt"] for r in lines if r["event"] == "asked"}
    assert asked == {h.attempt for h in server.hits}


BAD = [
    "The answer is natural.", "", "4", "[4, 5, 4]", "{}", '{"scores": {}}', '{"scores": {"fluency": 4',
    '{"scores": [4, 4, 4]}', "I cannot rate this.", "null", "true",
]  # fmt: skip


def bad_scores(hit, value):
    return json.dumps({"scores": {**json.loads(verdict(hit))["scores"], "coherence": value}})


def bad_replies():
    yield from ((f"says {text[:20]!r}", lambda hit, text=text: chat(text)) for text in BAD)
    for value in ("4", True, 6, 0, 4.5, [4], {"score": 4}, "4/5"):
        yield f"scores {value!r}", lambda hit, value=value: chat(bad_scores(hit, value))
    yield "NaN", lambda hit: chat(verdict(hit).replace("4", "NaN"))
    yield "cut", lambda hit: chat(verdict(hit)[:-4], finish="length")
    yield "cut but whole", lambda hit: chat(verdict(hit), finish="length")
    yield "refusal", lambda hit: chat(None, message={"refusal": "no"})
    yield "no content", lambda hit: chat(None)


@pytest.mark.parametrize(("name", "reply"), list(bad_replies()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_bad_reply_is_asked_for_again_twice_and_never_becomes_a_value(small_study, name, reply):
    with Loopback(lambda hit, n: reply(hit)) as server:
        study = with_judge(small_study, server, concurrency=8, metrics=["coherence"])
        done, rows = judged(study)
        assert done.statuses == {"judge_error": 6}
        assert rows["value"].isna().all()
        assert len(server.hits) == 6 * 3
        assert all("without a verdict" in r for r in rows["reason"])
        assert judged(study)[0].asked == 0  # an unreadable judge is an outcome, not drawn again
    tables.check_ratings(rows, study.metrics)


def test_the_command_gives_values_to_the_items_that_got_a_verdict_and_to_no_other(small_study):
    """24 items: four get a verdict, each other one a bad reply of its own kind, three times."""
    kinds = iter([None] * 4 + [reply for _, reply in bad_replies()][4:])
    of_item = {}

    def script(hit, n):
        said = hit.body["messages"][1]["content"]
        if said not in of_item:
            of_item[said] = next(kinds)
        return chat(verdict(hit)) if of_item[said] is None else of_item[said](hit)

    with Loopback(script) as server:
        study = with_judge(small_study, server, concurrency=1)
        ran = CliRunner().invoke(cli.app, ["judge", str(study.folder), "--json"])
    assert 0 == ran.exit_code, ran.output
    rows = tables.read(study.ratings, tables.RATINGS)
    by_item = rows.groupby("label")["status"].agg(set)
    assert {"judge_error": 20, "ok": 4} == by_item.map(lambda s: "".join(s)).value_counts().to_dict()
    assert (rows["value"].notna() == (rows["status"] == "ok")).all()
    assert {"ok", "judge_error"} == set(json.loads(ran.output)[0]["statuses"])
    assert len(server.hits) == 4 + 20 * 3


def test_the_command_says_why_a_judge_gave_no_verdict(small_study):
    with Loopback(lambda hit, n: chat('{"rating": 4}')) as server:
        study = with_judge(small_study, server, metrics=["coherence"])
        ran = CliRunner().invoke(cli.app, ["judge", str(study.folder)])
    assert "6 judge_error" in ran.stdout
    assert 'the commonest judge_error: 3 replies without a verdict: it has no "scores"' in ran.stderr


@pytest.mark.parametrize("word", ["false", "true", "yes", False])
def test_a_word_that_a_loose_parser_takes_for_true_is_no_score(small_study, word):
    with Loopback(lambda hit, n: chat(bad_scores(hit, word))) as server:
        done, rows = judged(with_judge(small_study, server, metrics=["coherence"]))
    assert done.statuses == {"judge_error": 6}
    assert rows["value"].isna().all()


def test_an_unreadable_judge_does_not_turn_a_ranking(small_study):
    """Of the better source half the verdicts are unreadable: the lowest score in their place would put it last."""
    items = tables.read(small_study.items, tables.ITEMS).query("kind == 'utterance'")
    spoken = items.merge(tables.read(small_study.key, tables.KEY), on="label")
    better, worse = (s.source_id for s in small_study.sources)
    of_text = dict(zip(spoken["text"], spoken["source_id"], strict=True))
    broken = set(spoken.loc[spoken["source_id"] == better, "text"].iloc[:5])

    def script(hit, n):
        last = hit.body["messages"][1]["content"].split("# 평가할 대답")[1]
        text = next(t for t in sorted(of_text, key=len, reverse=True) if t in last)
        return chat("fluency: high") if text in broken else chat(verdict(hit, 5 if of_text[text] == better else 3))

    with Loopback(script) as server:
        study = with_judge(small_study, server, metrics=["fluency"])
        done, rows = judged(study)
        automated.join(study, rows)
    assert done.statuses == {"ok": 13, "judge_error": 5}
    selected = load.select(load.load(study.folder, without=study.raters), "fluency")
    assert {better: 5.0, worse: 3.0} == selected.frame.groupby("source", observed=True)["score"].mean().to_dict()
    assert (5, "status judge_error") in [(part.rows, part.reason) for part in selected.left_out]


def test_a_judge_whose_calls_failed_does_not_end_as_if_all_were_well(small_study):
    with Loopback(lambda hit, n: failure(500)) as server:
        study = with_judge(small_study, server, metrics=["fluency"])
        ran = CliRunner().invoke(cli.app, ["judge", str(study.folder)])
    assert "not every item was judged" in str(ran.exception)
    assert "18 missing" in ran.output


def test_a_judge_that_mends_its_reply_is_heard(small_study):
    def script(hit, n):
        return chat(verdict(hit) if len(hit.body["messages"]) > 2 else "fluency: 6")

    with Loopback(script) as server:
        study = with_judge(small_study, server, metrics=["fluency"])
        done, _ = judged(study)
    assert done.statuses == {"ok": 18}
    again = next(h for h in server.hits if len(h.body["messages"]) > 2)
    assert "it is not one JSON object" in again.body["messages"][-1]["content"]


def test_a_cut_verdict_is_given_more_room(small_study):
    def script(hit, n):
        room = hit.body["max_tokens"]
        return chat(verdict(hit)) if room > 400 else chat(verdict(hit)[:-5], finish="length")

    with Loopback(script) as server:
        done, _ = judged(with_judge(small_study, server, metrics=["fluency"]))
    assert done.statuses == {"ok": 18}
    assert {h.body["max_tokens"] for h in server.hits} == {400, 800}


def test_a_judge_may_abstain(small_study):
    with Loopback(lambda hit, n: chat(verdict(hit, None))) as server:
        done, rows = judged(with_judge(small_study, server, metrics=["fluency"]))
    assert done.statuses == {"cannot_judge": 18}
    assert rows["value"].isna().all()


def test_repeats_are_occasions_and_different_draws(small_study):
    with Loopback(lambda hit, n: chat(verdict(hit))) as server:
        study = with_judge(small_study, server, metrics=["fluency"], repeats=3, seed=7)
        _, rows = judged(study)
    assert rows["occasion"].value_counts().to_dict() == {1: 18, 2: 18, 3: 18}
    assert {7, 8, 9} == {h.body["seed"] for h in server.hits}


def test_a_wrong_key_stops_the_judge_and_leaves_its_rows_missing(small_study):
    with Loopback(lambda hit, n: failure(401, "bad key")) as server:
        done, rows = judged(with_judge(small_study, server, concurrency=1))
        assert len(server.hits) == 1
    assert done.stopped_by.startswith("HTTP 401: bad key")
    assert done.statuses == {"missing": 90}
    assert set(rows["reason"].str[:9]) == {"HTTP 401:", "not asked"}


def test_judging_again_takes_the_place_of_the_judges_own_rows_only(small_study):
    people = pd.DataFrame(
        {"rater_id": "rater-01", "rater_kind": "human", "label": label, "metric_id": "fluency", "occasion": 1,
         "value": 3.0, "status": "ok", "reason": None, "simulated": False}
        for label in tables.read(small_study.items, tables.ITEMS).query("kind == 'utterance'")["label"]
    )  # fmt: skip
    tables.write(people, small_study.ratings, tables.RATINGS)
    with Loopback(lambda hit, n: chat(verdict(hit))) as server:
        study = with_judge(small_study, server, metrics=["fluency"])
        automated.join(study, judged(study)[1])
        automated.join(study, judged(study)[1])
    kept = tables.read(study.ratings, tables.RATINGS)
    assert kept["rater_id"].value_counts().to_dict() == {"rater-01": 18, "judge-1": 18}
    assert set(kept.loc[kept["rater_id"] == "rater-01", "value"]) == {3.0}


@pytest.mark.parametrize("name", rubric.SHIPPED)
def test_shipped_rubrics_explain_the_nine_metrics(small_study, name):
    found = rubric.load(name, small_study.folder)
    found.check(small_study.metrics)
    assert len(small_study.metrics) == 9


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"rubric": "mine.toml"}, "mine.toml: no such rubric; name a file, or one of ko, en"),
        ({"metrics": ["empathy"]}, "no metric empathy"),
        ({"temprature": 1}, "judge judge-1 has an unknown key temprature"),
        ({"repeats": 0}, "judge 1 repeats = 0"),
    ],
)
def test_a_wrong_judge_is_named_before_anything_is_asked(small_study, row, says):
    with Loopback() as server, pytest.raises(StudyError) as caught:
        judged(with_judge(small_study, server, **row))
    assert says in str(caught.value)
    assert server.hits == []


def test_a_rubric_for_another_scale_is_refused(small_study):
    path = small_study.folder / "study.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'(id = "fluency".*?)high = 5(.*?)anchors = [^\n]*', r"\1high = 7\2", text, flags=re.S))
    with Loopback() as server, pytest.raises(StudyError, match="has 5 anchors; the scale has 7 points"):
        judged(with_judge(config.load(small_study.folder), server, rubric="en"))
