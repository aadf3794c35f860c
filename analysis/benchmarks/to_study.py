"""A slice of a benchmark as a study folder: people rate the very encounters that judges and rules have rated.

The app shows each dialogue under a meaningless label; ratings of judges and rules come along under the same
labels, so that `analysis calibrate` holds one against the other as in any study.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.benchmarks import encounters
from analysis.benchmarks.rate import RATINGS, metrics
from analysis.benchmarks.scoring import SCORED
from generation import vignette
from generation.retrieval import passages
from study import design, tables
from study.config import PanelSection, Study
from study.errors import StudyError
from study.folder import from_ratings
from study.importers.long import Imported
from study.records import Content, Encounter, Metric, Prompt, Vignette

CATEGORY = "dialogue"
_SLICE = 20  # a stream of the seed, apart from those of the design and of simulated raters
_EXPECTED = {
    "en": ("Expected diagnosis: {}", "Should be asked: {}", "No. {}"),
    "ko": ("정답 진단: {}", "물어야 할 것: {}", "{}번"),
}
# Raters see it, and so it names no run and no doctor.
_TITLE = {"en": "Doctors and patients in conversation", "ko": "의사와 환자의 대화"}
_UNTOLD = (
    "role_declaration", "demographic_context", "history", "conversational_style", "behavioral_constraints"
)  # fmt: skip
_SECTIONS = """
[content]
cases = "cases.json"
prompts = "prompts.json"

[app]
language = "{language}"
training = "none"
asker = "doctor"
"""


@dataclass(frozen=True)
class Made:
    """What the study folder holds."""

    study: Study
    encounters: int
    cases: int
    doctors: tuple[str, ...]
    ratings: int


def to_study(
    benchmarks: Sequence[Path], folder: Path, *, n: int = 30, raters: int = 5, seed: int, answer: bool = True
) -> Made:
    """Make a study of about n encounters: every doctor on the same cases, drawn by the seed.

    Parameters
    ----------
    benchmarks : folders of benchmark runs that have been rated; their doctors are the study's sources
    n : encounters; the cases are as many as all doctors' encounters on them fit into it
    answer : show raters what the case expects, as the judge is shown it

    Raises
    ------
    StudyError : if there are no ratings yet, a doctor stands in two folders, or no case was met by all doctors
    """
    cases, met = _met(benchmarks)
    rated_on = {m.metric_id: m for f in benchmarks for m in metrics(f / RATINGS)}
    chosen = _slice(met, n, seed)
    doctors = tuple(dict.fromkeys(e.source_id for e in met))
    language = cases[chosen[0].case_id].language
    content, responses = _content(chosen, cases, language, seed)
    items, key = design.items(content, responses, seed)
    whole = items[items["kind"] == "encounter"]
    label = {(r.case_id, r.source_id): r.label for r in whole.merge(key, on="label").itertuples()}
    ratings = _ratings(benchmarks, {e.encounter_id: label[e.case_id, e.source_id] for e in chosen})
    names = tuple(r for r in PanelSection(raters=raters).ids)
    assignment, _ = design.assignment(whole, key, names, seed)
    _check_folder(folder)
    _write(folder / "cases.json", _cases(chosen, cases, language, answer=answer))
    _write(folder / "prompts.json", _prompts(content))
    made = from_ratings(
        folder,
        Imported(items, key, ratings, doctors, tuple(_asked(rated_on, ratings))),
        ", ".join(str(f) for f in benchmarks),
        made_by="analysis benchmark to-study",
        title=_TITLE.get(language, _TITLE["en"]),
        raters=names,
        seed=seed,
        sections=_SECTIONS.format(language=language if language in _EXPECTED else "en"),
    )
    tables.write(assignment, made.assignment, tables.ASSIGNMENT)
    return Made(made, len(chosen), len({e.case_id for e in chosen}), doctors, len(ratings))


def _met(benchmarks: Sequence[Path]) -> tuple[dict[str, Vignette], list[Encounter]]:
    """The cases and encounters of all folders together."""
    cases: dict[str, Vignette] = {}
    met: list[Encounter] = []
    seen: dict[str, Path] = {}
    for folder in benchmarks:
        for case in vignette.read(folder / vignette.FILE):
            known = cases.setdefault(case.case_id, case)
            if (known.text, known.diagnosis) != (case.text, case.diagnosis):
                raise StudyError(f"{folder}: case {case.case_id} is another than in {benchmarks[0]}")
        found = list(encounters.read(folder))
        for doctor in dict.fromkeys(e.source_id for e in found):
            if doctor in seen:
                raise StudyError(f"{folder}: doctor {doctor} stands in {seen[doctor]} too; give one another id")
            seen[doctor] = folder
        met += found
    return cases, met


def _slice(met: Sequence[Encounter], n: int, seed: int) -> list[Encounter]:
    """Whole cases, drawn at random from those that every doctor has an encounter on."""
    doctors = {e.source_id for e in met}
    by_case: dict[str, dict[str, Encounter]] = {}
    for e in met:
        if e.status in SCORED and e.turns and e.replicate == 1:
            by_case.setdefault(e.case_id, {})[e.source_id] = e
    whole = [c for c, found in by_case.items() if set(found) == doctors]
    if not whole:
        raise StudyError("no case has an encounter of every doctor that can be rated; finish the runs first")
    if n < len(doctors):
        raise StudyError(f"--n {n} is fewer than the {len(doctors)} doctors; give at least one encounter of each")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_SLICE,)))
    drawn = sorted(rng.permutation(len(whole))[: n // len(doctors)])
    return [e for i in drawn for e in by_case[whole[i]].values()]


def _content(
    chosen: Sequence[Encounter], cases: Mapping[str, Vignette], language: str, seed: int
) -> tuple[Content, pd.DataFrame]:
    """Dialogues as a study has them: what the doctor says is a prompt, what the patient answers is its response.

    Prompts are numbered in an order that knows no doctor. Who speaks first or last alone has an empty other side.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_SLICE, 1)))
    prompts: list[Prompt] = []
    rows = []
    for number, place in enumerate(rng.permutation(len(chosen)), 1):
        encounter = chosen[place]
        for turn, (asked, answered) in enumerate(exchanges(encounter), 1):
            name = f"{encounter.case_id}-{number:03d}-{turn:02d}"
            prompts.append(Prompt(name, encounter.case_id, turn, CATEGORY, "open_ended", asked))
            rows.append((name, encounter.case_id, encounter.source_id, "ok", answered))
    content = Content(language, dict.fromkeys(cases), tuple(prompts), {}, (CATEGORY,))  # type: ignore[arg-type]
    return content, pd.DataFrame(rows, columns=["prompt_id", "case_id", "source_id", "status", "text"])


def exchanges(encounter: Encounter) -> list[tuple[str, str]]:
    """What the doctor says and what the patient answers to it, in order."""
    pairs: list[list[str]] = []
    for turn in encounter.turns:
        if turn.speaker == "doctor":
            pairs.append([turn.text, ""])
        elif pairs and not pairs[-1][1]:
            pairs[-1][1] = turn.text
        else:
            pairs.append(["", turn.text])
    return [(asked, answered) for asked, answered in pairs]


def _cases(
    chosen: Sequence[Encounter], cases: Mapping[str, Vignette], language: str, *, answer: bool
) -> dict[str, object]:
    return {
        "cases": [
            _case(cases[name], language, answer=answer) for name in dict.fromkeys(e.case_id for e in chosen)
        ],
        "slots": {},
    }


def _case(case: Vignette, language: str, *, answer: bool) -> dict[str, object]:
    """A vignette in the grammar of a study's cases. Its sheet is what raters may read of it."""
    diagnosis, asked, title = _EXPECTED.get(language, _EXPECTED["en"])
    told = "\n".join(
        f"{heading}: {words}" if heading else words
        for heading, found in groupby(passages(case.text), key=lambda p: p.heading)
        for words in [" ".join(p.text for p in found)]
    )
    expected = [diagnosis.format(case.diagnosis)] if case.diagnosis else []
    questions = case.extra.get("expected_questions")
    if isinstance(questions, list):
        listed = "; ".join(f"{q['question']} ({q['score']:g})" for q in questions)
        expected.append(asked.format(listed))
    return {
        "case_id": case.case_id,
        "title_ko": title.format(case.case_id),
        "chief_complaint_ko": str(case.extra.get("chief_complaint") or ""),
        "persona": {name: {language: ""} for name in _UNTOLD} | {"clinical_state": {language: told}},
        "facts": [],
        "encounter": {"door_note_ko": " ".join(expected) if answer else ""},
    }


def _prompts(content: Content) -> dict[str, object]:
    return {
        "language": content.language,
        "categories": [{"id": CATEGORY}],
        "prompts": [
            {
                "prompt_id": p.prompt_id, "case_id": p.case_id, "turn": p.turn, "category": p.category,
                "form": p.form, "text_ko": p.text,
            }
            for p in content.prompts
        ],
    }  # fmt: skip


def _ratings(benchmarks: Sequence[Path], labels: Mapping[str, str]) -> pd.DataFrame:
    """What judges and rules said of the slice, under its labels."""
    found = pd.DataFrame(columns=tables.RATINGS.names)
    for folder in benchmarks:
        rows = tables.read(folder / RATINGS, tables.RATINGS)
        rows = rows[rows["label"].isin(labels)]
        found = tables.stacked(found, rows.assign(label=rows["label"].map(labels)))
    if found.empty:
        raise StudyError(f"{benchmarks[0] / RATINGS}: rates none of these encounters; evaluate the runs first")
    return found


def _asked(rated_on: Mapping[str, Metric], ratings: pd.DataFrame) -> Iterable[Metric]:
    used = set(ratings["metric_id"])
    return (metric for name, metric in rated_on.items() if name in used)


def _check_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StudyError(f"{folder}: is there already and not empty; name a new folder")


def _write(path: Path, document: object) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=1)
    tables.replaced(path, lambda half: half.write_text(text, encoding="utf-8"))
