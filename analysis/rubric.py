"""A judge's rubric: what a model is told before it rates, in the words of a TOML file."""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from study.content import shipped
from study.errors import StudyError, joined
from study.records import Case, Metric

SHIPPED = ("ko", "en")
CASE_FIELDS = (  # what a rater, too, may read of a case
    "chief_complaint", "door_note", "demographic_context", "clinical_state", "history", "conversational_style"
)  # fmt: skip


class _Metric(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    guide: str
    question: str | None = None
    anchors: tuple[str, ...] = ()


class _Labels(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    case: str
    chief_complaint: str
    door_note: str
    demographic_context: str
    clinical_state: str
    history: str
    conversational_style: str
    context: str
    question: str
    answer: str
    rated: str
    encounter: str
    metrics: str
    no_answer: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str
    instructions: str
    format: str
    again: str
    labels: _Labels
    metric: dict[str, _Metric]


@dataclass(frozen=True)
class Turn:
    """One question and what the patient said to it; no answer is None."""

    question: str | None
    answer: str | None


@dataclass(frozen=True)
class View:
    """What a judge sees of one item: never its source, and its label only as the name of the row to write.

    For an utterance `rated` is one turn and `before` those of the dialogue before it; for an encounter `rated`
    holds all its turns.
    """

    label: str
    kind: str
    rated: tuple[Turn, ...]
    before: tuple[Turn, ...] = ()
    case: Case | None = None


@dataclass(frozen=True)
class Rubric:
    """A rubric with where it is from: its file's SHA-256."""

    name: str
    file: _File
    digest: str

    def check(self, metrics: Sequence[Metric]) -> None:
        """Refuse metrics that the rubric does not explain, or explains for another scale.

        Raises
        ------
        StudyError : with all problems, one a line
        """
        problems = []
        for metric in metrics:
            told = self.file.metric.get(metric.metric_id)
            points = _points(metric)
            if told is None:
                known = ", ".join(self.file.metric)
                problems.append(f"{self.name}: has no [metric.{metric.metric_id}]; it explains {known}")
            elif told.anchors and points is not None and len(told.anchors) != len(points):
                problems.append(
                    f"{self.name}: [metric.{metric.metric_id}] has {len(told.anchors)} anchors; "
                    f"the scale has {len(points)} points"
                )
        if problems:
            raise StudyError(joined(problems))

    def messages(self, view: View, metrics: Sequence[Metric]) -> list[dict[str, str]]:
        """What is sent for one item: the rubric once, then the case and what is rated."""
        told = "\n\n".join(self._metric(m) for m in metrics)
        form = self.file.format.strip().replace("{shape}", shape(metrics))
        system = f"{self.file.instructions.strip()}\n\n# {self.file.labels.metrics}\n\n{told}\n\n{form}"
        return [{"role": "system", "content": system}, {"role": "user", "content": self._item(view)}]

    def again(self, problem: str) -> str:
        """How a judge is asked to answer again."""
        return self.file.again.replace("{problem}", problem)

    def _metric(self, metric: Metric) -> str:
        told = self.file.metric[metric.metric_id]
        points, anchors = _points(metric), told.anchors or metric.anchors
        scale = f"{metric.low:g}–{metric.high:g}"
        if points is not None and anchors:
            scale = ", ".join(f"{point:g} = {word}" for point, word in zip(points, anchors, strict=True))
        return f"## {metric.metric_id}\n{told.question or metric.question}\n{told.guide}\n{scale}"

    def _item(self, view: View) -> str:
        labels = self.file.labels
        parts = []
        if view.case is not None:
            told = {"chief_complaint": view.case.chief_complaint, "door_note": view.case.door_note}
            told |= {name: getattr(view.case.persona, name) for name in CASE_FIELDS[2:]}
            lines = [f"{getattr(labels, name)}: {told[name]}" for name in CASE_FIELDS if told[name]]
            parts.append("\n".join([f"# {labels.case}", *lines]))
        if view.before:
            parts.append("\n".join([f"# {labels.context}", *map(self._turn, view.before)]))
        title = labels.rated if view.kind == "utterance" else labels.encounter
        parts.append("\n".join([f"# {title}", *map(self._turn, view.rated)]))
        return "\n\n".join(parts)

    def _turn(self, turn: Turn) -> str:
        labels = self.file.labels
        asked = f"{labels.question}: {turn.question}\n" if turn.question else ""
        return f"{asked}{labels.answer}: {turn.answer or labels.no_answer}"


def shape(metrics: Sequence[Metric]) -> str:
    """The form of a verdict, as an example without a score in it."""
    scores = ", ".join(f'"{m.metric_id}": …' for m in metrics)
    return f'{{"reason": "…", "scores": {{{scores}}}}}'


def load(name: str, folder: Path) -> Rubric:
    """A shipped rubric by its language, or a study's own file.

    Raises
    ------
    StudyError : if there is none, or it is wrong; all problems in one message
    """
    path = shipped(f"rubrics/{name}.toml") if name in SHIPPED else folder / name
    try:
        raw = path.read_bytes()
        file = _File.model_validate(tomllib.loads(raw.decode("utf-8")))
    except (FileNotFoundError, IsADirectoryError):
        raise StudyError(f"{path}: no such rubric; name a file, or one of {', '.join(SHIPPED)}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StudyError(f"{path}: is not TOML: {error}") from None
    except ValidationError as error:
        raise StudyError(joined([f"{path}: {_problem(e)}" for e in error.errors()])) from None
    return Rubric(path.name if name in SHIPPED else name, file, hashlib.sha256(raw).hexdigest())


def digest(messages: Sequence[Mapping[str, str]]) -> str:
    """SHA-256 of what was sent."""
    return hashlib.sha256(json.dumps(list(messages), ensure_ascii=False).encode()).hexdigest()


def _points(metric: Metric) -> list[float] | None:
    if not metric.step:
        return None
    return [metric.low + i * metric.step for i in range(round((metric.high - metric.low) / metric.step) + 1)]


def _problem(error: dict) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"lacks {place}" if error["type"] == "missing" else f"{place}: {error['msg']}"
