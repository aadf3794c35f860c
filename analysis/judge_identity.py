"""Who a judge is: model, prompt, temperature, dates, and what would make another judge of it."""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from analysis import load
from analysis.rubric import SHIPPED
from study import config, content, tables
from study.errors import StudyError
from study.records import Judge, Metric

_ABOUT = ("model", "prompt", "prompt_file", "temperature", "date", "own_family")


@dataclass(frozen=True)
class Identity:
    """What is known of a judge; None where nobody said it.

    `prompt_sha256` is of the rubric or prompt as a whole, not of one item's messages. `own_family` are the sources
    of the judge's own model family.
    """

    name: str
    kind: str
    models: tuple[str, ...] = ()
    prompt_sha256: str | None = None
    temperature: float | None = None
    repeats: int = 1
    first_date: str | None = None
    last_date: str | None = None
    own_family: tuple[str, ...] = ()

    def plain(self) -> dict[str, object]:
        return asdict(self)


def identity(loaded: load.Loaded, name: str, about: Mapping[str, object] | None = None) -> Identity:
    """The judge's identity: from the study's own row and log, or from what is told about it.

    Raises
    ------
    StudyError : if `about` contradicts the ratings' own record of the model
    """
    mine = loaded.frame[loaded.frame["rater"] == name]
    known = Identity(
        name=name, kind=str(mine["rater_kind"].iloc[0]),
        repeats=int(mine["occasion"].nunique()) if "occasion" in mine else 1,
    )  # fmt: skip
    if loaded.study is not None:
        known = _from_study(loaded.study, known)
    return _told(known, about or {})


def read_about(path: Path) -> dict[str, object]:
    """A TOML file about a judge: model, prompt or prompt_file, temperature, date, own_family.

    Raises
    ------
    StudyError : if it is no such file
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StudyError(f"{path}: cannot be read as TOML ({error})") from None
    if strange := sorted(set(told) - set(_ABOUT)):
        raise StudyError(f"{path}: has an unknown key {strange[0]}; known are {', '.join(_ABOUT)}")
    if "prompt_file" in told:
        prompt = path.parent / str(told.pop("prompt_file"))
        if not prompt.is_file():
            raise StudyError(f"{path}: prompt_file {prompt} is not there")
        told["prompt"] = prompt.read_text(encoding="utf-8")
    return told


def fingerprint(loaded: load.Loaded, known: Identity, metric: Metric) -> dict[str, object]:
    """What a calibration holds for: the judge's model and prompt, the metric, the content pack."""
    return {
        "models": sorted(known.models),
        "prompt_sha256": known.prompt_sha256,
        "metric": named(metric),
        "content_sha256": _content(loaded.study),
    }


def named(metric: Metric) -> dict[str, str]:
    """A metric by its id and by all that is said of it, however its file writes a number; a step of 0 is none."""
    plain = replace(metric, low=float(metric.low), high=float(metric.high), step=metric.step or None)
    return {"id": metric.metric_id, "sha256": _digest(asdict(plain))}


def changed(then: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """What makes a calibration void, a clause each; empty if nothing does."""
    found = []
    words = {
        "models": "the judge's model",
        "prompt_sha256": "the judge's prompt",
        "content_sha256": "the content pack",
    }
    for key, what in words.items():
        if then.get(key) != now.get(key):
            found.append(f"{what} changed from {_short(then.get(key))} to {_short(now.get(key))}")
    if then.get("metric") != now.get("metric"):
        found.append("the metric (its question, scale or anchors) changed")
    return found


def _from_study(study: config.Study, known: Identity) -> Identity:
    ratings = tables.read_parquet(study.ratings)
    mine = ratings[ratings["rater_id"] == known.name]
    if "model" in mine:
        known = replace(known, models=tuple(sorted(mine["model"].dropna().unique())))
    row = next((j for j in study.judges if j.judge_id == known.name), None)
    if row is not None:
        known = _from_row(study, row, known)
    log = study.path("judges") / f"{known.name}.jsonl"
    dates = sorted(_dates(log)) if log.is_file() else []
    return replace(known, first_date=dates[0], last_date=dates[-1]) if dates else known


def _from_row(study: config.Study, row: Judge, known: Identity) -> Identity:
    model = row.settings.get("model")
    models = known.models or ((str(model),) if model else ())
    rubric = content.shipped(f"rubrics/{row.rubric}.toml") if row.rubric in SHIPPED else study.path(row.rubric)
    prompt = load.digest(rubric) if rubric.is_file() else None
    return replace(known, models=models, prompt_sha256=prompt,
                   temperature=float(row.settings.get("temperature", 0.0)))  # fmt: skip


def _dates(log: Path) -> Iterable[str]:
    """Days on which the judge judged, from its log."""
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue  # a line half written by a run that was killed
            if record.get("event") == "judged" and isinstance(record.get("at"), str):
                yield record["at"][:10]


def _told(known: Identity, about: Mapping[str, object]) -> Identity:
    model = about.get("model")
    if model and known.models and str(model) not in known.models:
        raise StudyError(f"{known.name}: you say model {model}, its ratings say {', '.join(known.models)}")
    prompt, date = about.get("prompt"), about.get("date")
    return replace(
        known,
        models=known.models or ((str(model),) if model else ()),
        prompt_sha256=known.prompt_sha256 or (_sha(str(prompt)) if prompt else None),
        temperature=known.temperature if known.temperature is not None else _number(about.get("temperature")),
        first_date=known.first_date or (str(date) if date else None),
        last_date=known.last_date or (str(date) if date else None),
        own_family=tuple(about.get("own_family", ())) or known.own_family,
    )  # fmt: skip


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _content(study: config.Study | None) -> str | None:
    if study is None or study.content_files is None:
        return None
    files = study.content_files
    named = [files.cases, files.prompts, files.checklists]
    return _sha("".join(load.digest(study.path(name)) for name in named if name))


def _digest(value: object) -> str:
    return _sha(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _short(value: object) -> str:
    if not value:
        return "not stated"
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return text[:12] if len(text) == 64 else text


def lengths(study: config.Study) -> pd.Series:
    """Letters of each item's text by label, where items have one."""
    items = tables.read(study.items, tables.ITEMS)
    texts = items.dropna(subset="text").set_index("label")["text"]
    return texts.str.strip().str.len()
