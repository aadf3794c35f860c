"""A judge's reply → scores, read strictly: what is not exactly a verdict is none.

Nothing is rounded, clamped or filled in. A judge that wrote "4/5", 7 on a scale of 5 or "true" has not judged.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.strict_json import NotJson, parsed
from study.records import Metric

_FENCED = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)
_KEYS = {"scores", "reason"}


class NoVerdict(Exception):
    """A reply that is no verdict; the message says why, in words that can be put to the judge."""


@dataclass(frozen=True)
class Verdict:
    """A score for every metric asked; None where the judge says that it cannot tell."""

    scores: dict[str, float | None]
    reason: str | None = None


def read(text: str, metrics: Sequence[Metric]) -> Verdict:
    """The verdict in a reply: one JSON object, alone or in one code fence.

    >>> scale = Metric("fluency", "utterance", 1, 5)
    >>> read('{"scores": {"fluency": 4}}', [scale])
    Verdict(scores={'fluency': 4.0}, reason=None)

    Raises
    ------
    NoVerdict : if it holds anything else, lacks a metric, or has a value that is not on its scale
    """
    document = document_in(text)
    if "scores" not in document:
        raise NoVerdict('it has no "scores"')
    if unknown := sorted(set(document) - _KEYS):
        raise NoVerdict(f"it has the unknown key {unknown[0]!r}")
    scores, reason = document["scores"], document.get("reason")
    if not isinstance(scores, dict):
        raise NoVerdict('"scores" is not an object')
    if reason is not None and not isinstance(reason, str):
        raise NoVerdict('"reason" is not a text')
    names = [m.metric_id for m in metrics]
    if missing := [n for n in names if n not in scores]:
        raise NoVerdict(f"it has no score for {', '.join(missing)}")
    if strangers := sorted(set(scores) - set(names)):
        raise NoVerdict(f"it scores {strangers[0]!r}, which was not asked")
    return Verdict({m.metric_id: _score(scores[m.metric_id], m) for m in metrics}, reason or None)


def document_in(text: str) -> dict[str, object]:
    """The JSON object that a reply is, alone or in one code fence.

    Raises
    ------
    NoVerdict : if it is anything else
    """
    fenced = _FENCED.fullmatch(text.strip())
    try:
        document = parsed(fenced[1] if fenced else text)
    except NotJson as error:
        raise NoVerdict(str(error)) from None
    if not isinstance(document, dict):
        raise NoVerdict("it is not a JSON object")
    return document


def _score(value: object, metric: Metric) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoVerdict(
            f"the score of {metric.metric_id} is {json.dumps(value, ensure_ascii=False)}, not a number"
        )
    if not metric.low <= value <= metric.high:
        raise NoVerdict(f"{value:g} is outside {metric.metric_id}'s {metric.low:g} to {metric.high:g}")
    if metric.step and abs((steps := (value - metric.low) / metric.step) - round(steps)) > 1e-9:
        raise NoVerdict(f"{value:g} lies between the points of {metric.metric_id}'s scale")
    return float(value)
