"""A study folder into its ratings database. Runs in commands, never in the process that serves pages.

The serving process is given the database alone: it opens neither study.toml, which names the sources, nor the
responses, nor the key.
"""

import json
from pathlib import Path

from study import tables
from study.config import Study
from study.errors import StudyError
from study.records import Content, Metric
from study.store import founding
from study.store.address import database_url
from study.store.database import Database, open_database

_SHIPPED = Path(__file__).parent / "anchors" / "ko.json"


def open_study(study: Study, url: str | None = None) -> Database:
    """The study's database, with whatever the folder holds by now laid into it.

    Raises
    ------
    StudyError : if folder and database do not belong together, or a file is wrong
    """
    content = study.content()
    database = open_database(url or database_url(study))
    try:
        _found(database, study, content)
    except Exception:
        database.close()
        raise
    return database


def _found(database: Database, study: Study, content: Content) -> None:
    founding.found(
        database,
        study_id=study.study_id,
        title=study.title,
        language=study.app.language,
        digest=study.digest,
        metrics=study.metrics,
        content=content,
        raters=study.raters,
        settings={
            "guess": study.app.guess,
            "pause_minutes": study.app.pause_minutes,
            "content_language": content.language,
            "asker": study.app.asker,
        },
        items=_rows(study.items, tables.ITEMS),
        assignment=_rows(study.assignment, tables.ASSIGNMENT),
        anchors=anchors(study),
    )


def anchors(study: Study) -> list[dict[str, object]]:
    """The training's rated examples, each on the study's metrics of its kind; none where the study wants none.

    The shipped ones speak of the shipped metrics; a study with other metrics brings its own file, or none.

    Raises
    ------
    StudyError : for a file that is absent, or whose examples lack a metric or leave its scale
    """
    if study.app.training == "none":
        return []
    shipped = study.app.training == "shipped"
    path = _SHIPPED if shipped else study.path(study.app.training)
    if not path.is_file():
        raise StudyError(f"{path}: no such file; study.toml names it in [app] as training")
    try:
        examples = json.loads(path.read_text(encoding="utf-8"))["anchors"]
    except (json.JSONDecodeError, KeyError, UnicodeDecodeError):
        raise StudyError(f"{path}: is no file of anchors; it is JSON with a list under \"anchors\"") from None
    problems = [problem for example in examples for problem in _problems(example, study.metrics)]
    if problems and shipped:
        return []
    if problems:
        raise StudyError("\n".join(f"{path}: {p}" for p in problems))
    return [_on_metrics(example, study.metrics) for example in examples]


def _problems(example: dict, metrics: tuple[Metric, ...]) -> list[str]:
    name = f"form {example.get('form')} number {example.get('number')}"
    if lacking := {"form", "number", "kind", "turns", "consensus", "rationale"} - set(example):
        return [f"{name} lacks {', '.join(sorted(lacking))}"]
    found = []
    for metric in metrics:
        if metric.item == example["kind"]:
            value = example["consensus"].get(metric.metric_id)
            if value is None:
                found.append(f"{name} has no consensus on {metric.metric_id}")
            elif not metric.low <= value <= metric.high:
                found.append(f"{name}: {value:g} is off the scale of {metric.metric_id}")
    return found


def _on_metrics(example: dict, metrics: tuple[Metric, ...]) -> dict[str, object]:
    asked = [m.metric_id for m in metrics if m.item == example["kind"]]
    return example | {"consensus": {m: example["consensus"][m] for m in asked}}


def _rows(path: Path, table: tables.Table) -> list[dict[str, object]]:
    return tables.read(path, table).to_dict("records") if path.exists() else []
