"""Whatever a judge writes, a value comes only from a verdict."""

import pytest

from analysis.verdict import NoVerdict, read
from study.records import Metric

METRICS = [Metric("fluency", "utterance", 1, 5), Metric("accuracy", "utterance", 1, 5)]


def good(**more):
    return '{"reason": "자연스럽다.", "scores": {"fluency": 4, "accuracy": 5}}'


@pytest.mark.parametrize(
    "text",
    [
        good(),
        f" \n{good()}\n",
        f"```json\n{good()}\n```",
        f"```\n{good()}\n```",
        '{"scores": {"accuracy": 5.0, "fluency": 4}}',
    ],
)
def test_a_verdict_is_read(text):
    assert read(text, METRICS).scores == {"fluency": 4.0, "accuracy": 5.0}


def test_a_judge_may_say_that_it_cannot_tell():
    assert read('{"scores": {"fluency": null, "accuracy": 5}}', METRICS).scores["fluency"] is None


BAD = {
    "prose": "The answer is natural, so I give fluency 4 and accuracy 5.",
    "prose around": f"Here you are: {good()}",
    "prose behind": f"{good()} I hope this helps.",
    "two objects": f"{good()}\n{good()}",
    "cut": good()[:-3],
    "a list": "[4, 5]",
    "a number": "4",
    "nothing": "",
    "bare scores": '{"fluency": 4, "accuracy": 5}',
    "no scores": '{"reason": "좋다."}',
    "scores as a list": '{"scores": [4, 5]}',
    "a metric left out": '{"scores": {"fluency": 4}}',
    "a metric too many": '{"scores": {"fluency": 4, "accuracy": 5, "empathy": 3}}',
    "a score as text": '{"scores": {"fluency": "4", "accuracy": 5}}',
    "a score as true": '{"scores": {"fluency": true, "accuracy": 5}}',
    "a score as fraction": '{"scores": {"fluency": "4/5", "accuracy": 5}}',
    "a score in a list": '{"scores": {"fluency": [4], "accuracy": 5}}',
    "too high": '{"scores": {"fluency": 6, "accuracy": 5}}',
    "too low": '{"scores": {"fluency": 0, "accuracy": 5}}',
    "minus": '{"scores": {"fluency": -1, "accuracy": 5}}',
    "between points": '{"scores": {"fluency": 4.5, "accuracy": 5}}',
    "NaN": '{"scores": {"fluency": NaN, "accuracy": 5}}',
    "infinity": '{"scores": {"fluency": Infinity, "accuracy": 5}}',
    "twice": '{"scores": {"fluency": 4, "fluency": 1, "accuracy": 5}}',
    "twice above": '{"scores": {"fluency": 1, "accuracy": 1}, "scores": {"fluency": 4, "accuracy": 5}}',
    "unknown key": '{"score": 4, "scores": {"fluency": 4, "accuracy": 5}}',
    "single quotes": "{'scores': {'fluency': 4, 'accuracy': 5}}",
    "trailing comma": '{"scores": {"fluency": 4, "accuracy": 5,}}',
    "the form itself": '{"reason": "…", "scores": {"fluency": …, "accuracy": …}}',
    "reason as object": '{"reason": {"x": 1}, "scores": {"fluency": 4, "accuracy": 5}}',
    "deep": "[" * 5000 + "]" * 5000,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_what_is_no_verdict_gives_no_value(text):
    with pytest.raises(NoVerdict):
        read(text, METRICS)


def test_the_fault_is_said_so_that_a_judge_can_mend_it():
    with pytest.raises(NoVerdict, match="6 is outside fluency's 1 to 5"):
        read(BAD["too high"], METRICS)
    with pytest.raises(NoVerdict, match='the score of fluency is "4", not a number'):
        read(BAD["a score as text"], METRICS)
