"""The twin of the published study: a study folder of simulated ratings that print as the published figures do.

The ratings of the published study were not obtainable. Its printed means, intervals, reliabilities and penalties
bind any ratings that could have given them, and this is one set that does: 17 raters, 5 sources, 70 questions,
3 cases, 19,380 ratings. It is made from the printed figures (data/published/study.json) and a seed:

1. `counts`: a printed mean of 51 whole ratings names their total, and its bootstrap interval, whose exact
   distribution is known, names how often each rating was given.
2. `encounters`: a latent score puts the ratings in their places; swaps that keep every cell's frequencies then
   move ICC(2,k) of the 90 targets (15 encounters × 6 metrics) to the published one.
3. `totals`: whole totals of the answers that meet a source's mean and penalty, plainly and as the model has them.
4. `utterances`: ratings with those totals, spread until raters agree as little as published.

What was not published is free, stands as a constant where it is used, and is no finding. The answers' texts are
the shipped drafts, and for the low answers made-up faults; each ends with a sentence that says it is simulated.
"""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from study import design, tables
from study.config import FILE, Study, load
from study.content import shipped
from study.errors import StudyError
from study.folder import CONTENT, toml
from study.records import Content
from study.twin import encounters, utterances
from study.twin.published import Published, low_answers, published

ID = "published-twin"
FILES = ("responses", "items", "key", "assignment", "ratings")
DIGESTS = "contents.sha256"
MARK = "모의 응답이에요."  # "This is a simulated answer."; last, it leaves particle and register as they are
_TITLE = "Twin of the published study (simulated ratings)"
_SEED = 20261130
_STREAM = 20  # apart from the streams of the design and of `study.simulate`
_SEVERITY_SD = 0.25
_NOTE = {"crossed.simulated": "true"}


def build(folder: Path) -> Study:
    """The twin as a study folder: study.toml, responses, items, key, assignment, ratings, and their digests.

    Raises
    ------
    StudyError : if the folder holds anything but an earlier twin
    """
    _check_free(folder)
    study = _laid_out(folder)
    content, figures = study.content(), published()
    responses = _responses(content, figures)
    items, key = design.items(content, responses, study.seed)
    assignment, _ = design.assignment(items, key, study.raters, study.seed, apart=study.design.apart)
    ratings = _ratings(study, content, figures, items.merge(key, on="label"))
    tables.check_ratings(ratings, study.metrics)
    for name, frame in zip(FILES, (responses, items, key, assignment, ratings), strict=True):
        tables.write(frame, getattr(study, name), tables.TABLES[name], _NOTE)
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests(study).items())
    tables.replaced(folder / DIGESTS, lambda half: half.write_text(sums, encoding="utf-8"))
    return study


def digests(study: Study) -> dict[str, str]:
    """SHA-256 of what each table says, as CSV; a Parquet file's own bytes vary with the version that wrote it."""
    frames = {name: tables.read(getattr(study, name), tables.TABLES[name]) for name in FILES}
    return {
        name: hashlib.sha256(frame.to_csv(index=False, lineterminator="\n").encode()).hexdigest()
        for name, frame in frames.items()
    }


def _check_free(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / FILE).is_file() or load(folder).study_id != ID:
        raise StudyError(f"{folder}: is there already and holds no twin; name a new folder with --into")


def _laid_out(folder: Path) -> Study:
    """study.toml and the content; content that lies next door, as for the shipped twin, is not copied."""
    beside = shipped(CONTENT[0]).parent == folder.resolve().parent
    text = toml(ID, _TITLE, _SEED, sources="published.toml", content="../" if beside else "")
    tables.replaced(folder / FILE, lambda half: half.write_text(text, encoding="utf-8"))
    for name in () if beside else CONTENT:
        shutil.copyfile(shipped(name), folder / name)
    return load(folder)


def _responses(content: Content, figures: Published) -> pd.DataFrame:
    """One placeholder for each prompt and source: the shipped draft, or a low answer's fault."""
    low = {(answer.source_id, answer.prompt_id): answer for answer in low_answers()}
    rows = []
    for source in figures.sources:
        for prompt in content.prompts:
            said, detail = prompt.reference_answer, "placeholder: the shipped draft"
            if answer := low.get((source, prompt.prompt_id)):
                detail = f"placeholder: {answer.fault}"
                said = answer.text or dict(prompt.negation.contrast_answers)[answer.fault]
            rows.append((prompt.prompt_id, prompt.case_id, source, "ok", f"{said} {MARK}", detail, True))
    columns = ["prompt_id", "case_id", "source_id", "status", "text", "detail", "demo"]
    return pd.DataFrame(rows, columns=columns)


def _ratings(study: Study, content: Content, figures: Published, items: pd.DataFrame) -> pd.DataFrame:
    """Every rater's rating of every item on every metric of its kind, as the table `ratings`."""
    rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(_STREAM,)))
    severity = _SEVERITY_SD * rng.standard_normal(len(study.raters))
    prompts = pd.DataFrame(
        [(p.prompt_id, p.category, p.form) for p in content.prompts], columns=["prompt_id", "category", "form"]
    )
    of_encounters = encounters.ratings(figures, severity, rng)
    of_utterances = utterances.ratings(figures, prompts, severity, rng)
    utterance, encounter = (items[items["kind"] == kind] for kind in tables.KINDS)
    frames = [
        _long(of_utterances, (figures.utterance_metrics, figures.sources, prompts["prompt_id"], study.raters))
        .merge(utterance.rename(columns={"prompt_id": "unit"})[["label", "source_id", "unit"]]),
        _long(of_encounters, (figures.encounter_metrics, figures.sources, content.cases, study.raters))
        .merge(encounter.rename(columns={"case_id": "unit"})[["label", "source_id", "unit"]]),
    ]  # fmt: skip
    ratings = pd.concat(frames, ignore_index=True).assign(
        rater_kind="human", occasion=1, status="ok", reason=None, simulated=True
    )
    order = [c.name for c in tables.RATINGS.columns if c.name in ratings.columns]
    return ratings[order].sort_values(["metric_id", "rater_id", "label"], ignore_index=True)


def _long(values: np.ndarray, levels: tuple[Iterable[str], ...]) -> pd.DataFrame:
    """An array, metric × source × unit × rater, with one row for each value."""
    names = ["metric_id", "source_id", "unit", "rater_id"]
    index = pd.MultiIndex.from_product([list(level) for level in levels], names=names)
    return index.to_frame(index=False).assign(value=values.ravel().astype(float))
