"""What the pages say, by language: texts/ko.toml and texts/en.toml, which have the same entries."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from study.errors import StudyError
from study.records import Metric

LANGUAGES = {"ko": "한국어", "en": "English"}
_TEXTS = Path(__file__).parent / "texts"


@dataclass(frozen=True)
class Catalogue:
    """The texts of one language."""

    language: str
    texts: dict[str, str]
    metrics: dict[str, dict[str, object]]

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key such as `rate.next`, with its gaps filled."""
        return self.texts[key].format(**values) if values else self.texts[key]

    def scale(self, metric: Metric, content_language: str) -> tuple[str, tuple[str, ...]]:
        """A metric's question and the words on its points.

        The study's own words, but where the rater chose another language than the study's and this catalogue
        has the metric with as many points, the catalogue's.
        """
        if metric.metric_id == "author_guess":
            return self("rate.guess_source"), (self("rate.guess_person"), self("rate.guess_model"))
        if metric.metric_id == "author_confidence":
            return self("rate.guess_confidence"), tuple(self(f"rate.guess_{n}") for n in range(1, 5))
        known = self.metrics.get(metric.metric_id)
        anchors = metric.anchors or ("",) * points(metric)
        if known and self.language != content_language and len(known["anchors"]) == len(anchors):
            return known["question"], tuple(known["anchors"])
        return metric.question or metric.metric_id, tuple(anchors)


def points(metric: Metric) -> int:
    """How many points a metric's scale has; 0 if every value between its ends is one."""
    return round((metric.high - metric.low) / metric.step) + 1 if metric.step else 0


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language.

    Raises
    ------
    StudyError : for a language that has none
    """
    if language not in LANGUAGES:
        raise StudyError(f"{language}: no such language; there are {', '.join(LANGUAGES)}")
    sections = tomllib.loads((_TEXTS / f"{language}.toml").read_text(encoding="utf-8"))
    metrics = sections.pop("metrics")
    texts = {f"{section}.{key}": text for section, entries in sections.items() for key, text in entries.items()}
    return Catalogue(language, texts, metrics)
