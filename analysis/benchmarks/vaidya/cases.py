"""VAIDYA's case file: a JSON list of patients, read strictly; every problem of a file in one message.

Nothing is asked of any model before a file has passed here.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.strict_json import NotJson, parsed
from study.errors import StudyError, joined

Benchmark = Literal["diagbench", "medconvbench"]
BENCHMARKS: tuple[Benchmark, ...] = ("diagbench", "medconvbench")
_NEEDED = {"diagbench": "expected_diagnosis", "medconvbench": "expected_questions"}


@dataclass(frozen=True)
class Question:
    """One question that a doctor should ask, and how much it counts."""

    question: str
    score: float


@dataclass(frozen=True)
class Patient:
    """One entry of a case file. `entry` is all of it, keys that nobody knows included.

    `digest` is the SHA-256 of what a conversation is made from: of all but what is expected of the doctor, so that
    a corrected answer can be scored anew without another conversation.
    """

    patient_id: int
    case_study: str
    expected_diagnosis: str | None
    expected_questions: tuple[Question, ...]
    entry: Mapping[str, object]
    digest: str

    @property
    def case_id(self) -> str:
        return str(self.patient_id)

    @property
    def total(self) -> float:
        """What all of the expected questions count together."""
        return sum(q.score for q in self.expected_questions)


@dataclass(frozen=True)
class Cases:
    """A case file that can be run: its patients in the file's order."""

    path: Path
    benchmark: Benchmark
    patients: tuple[Patient, ...]
    digest: str

    def patient(self, case_id: str) -> Patient | None:
        return next((p for p in self.patients if p.case_id == case_id), None)


def load(path: Path, benchmark: Benchmark | None = None) -> Cases:
    """The cases of a file.

    Parameters
    ----------
    benchmark : what the cases are for; told from their keys if left out

    Raises
    ------
    StudyError : with all problems, one a line, each naming its place
    """
    raw = _raw(path)
    document = document_in(raw, path)
    if not isinstance(document, list):
        raise StudyError(f"{path}: holds {_kind(document)}; it has to be a list of cases, also for one: [{{…}}]")
    if not document:
        raise StudyError(f"{path}: holds no case")
    chosen = benchmark or _told(document, path)
    problems = [f"{path}: {problem}" for problem in _problems(document, chosen)]
    if problems:
        raise StudyError(joined(problems))
    patients = tuple(_patient(entry, chosen) for entry in document)
    return Cases(path, chosen, patients, hashlib.sha256(raw).hexdigest())


def document_in(raw: bytes, path: Path) -> object:
    """The JSON document in a file's bytes.

    Raises
    ------
    StudyError : if they are none
    """
    try:
        return parsed(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise StudyError(f"{path}: is not UTF-8 text") from None
    except NotJson as error:
        if error.line is None:
            raise StudyError(f"{path}: {error}") from None
        lines = "; JSON lines have to become one list" if raw.lstrip()[:1] == b"{" and error.line > 1 else ""
        raise StudyError(f"{path}:{error.line}: is not one JSON document from here on{lines}") from None


def _raw(path: Path) -> bytes:
    if path.is_dir():
        raise StudyError(f"{path}: is a folder; name one .json file that holds a list of cases")
    if path.suffix.lower() != ".json":
        raise StudyError(f"{path}: is no .json file; cases come as one JSON list in a file that ends in .json")
    try:
        return path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None


def _told(entries: Sequence[object], path: Path) -> Benchmark:
    """Which benchmark the cases are for, by the key that each of them needs."""
    has = {name: any(isinstance(e, Mapping) and key in e for e in entries) for name, key in _NEEDED.items()}
    found = [name for name in BENCHMARKS if has[name]]
    if len(found) == 1:
        return found[0]
    keys = " and ".join(_NEEDED.values())
    what = f"the cases have both {keys}" if found else f"no case has {' or '.join(_NEEDED.values())}"
    raise StudyError(f"{path}: {what}; say --benchmark {' or --benchmark '.join(BENCHMARKS)}")


def _problems(entries: Sequence[object], benchmark: Benchmark) -> Iterator[str]:
    first: dict[int, int] = {}
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            yield f"case [{index}] is {_kind(entry)}, not an object"
            continue
        yield from (f"case [{index}]: {problem}" for problem in _entry_problems(entry, benchmark))
        number = entry.get("patient_id")
        if _is_integer(number):
            if number in first:
                yield f"cases [{first[number]}] and [{index}] have the same patient_id {number}"
            first.setdefault(number, index)


def _entry_problems(entry: Mapping[str, object], benchmark: Benchmark) -> Iterator[str]:
    if "patient_id" not in entry:
        yield "has no patient_id"
    elif not _is_integer(entry["patient_id"]):
        yield f"patient_id is {_shown(entry['patient_id'])}; it has to be an integer"
    if not _is_text(entry.get("case_study")):
        yield _lack(entry, "case_study", "a text")
    if benchmark == "diagbench" and not _is_text(entry.get("expected_diagnosis")):
        yield _lack(entry, "expected_diagnosis", "a text")
    if benchmark == "medconvbench":
        yield from _question_problems(entry)


def _question_problems(entry: Mapping[str, object]) -> Iterator[str]:
    asked = entry.get("expected_questions")
    if not isinstance(asked, list) or not asked:
        yield _lack(entry, "expected_questions", "a list of {question, score}")
        return
    scores = []
    for place, item in enumerate(asked):
        where = f"expected_questions[{place}]"
        if not isinstance(item, Mapping):
            yield f"{where} is {_kind(item)}, not an object"
            continue
        if not _is_text(item.get("question")):
            yield f"{where}.{_lack(item, 'question', 'a text')}"
        score = item.get("score")
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score) or score < 0:
            yield f"{where}.{_lack(item, 'score', 'a number of at least 0')}"
        else:
            scores.append(score)
    if len(scores) == len(asked) and sum(scores) <= 0:
        yield "the scores of expected_questions sum to 0, so that no coverage can be computed"


def _patient(entry: Mapping[str, object], benchmark: Benchmark) -> Patient:
    asked = entry["expected_questions"] if benchmark == "medconvbench" else ()
    diagnosis = entry.get("expected_diagnosis")
    told = {key: value for key, value in entry.items() if key not in _NEEDED.values()}
    text = json.dumps(told, sort_keys=True, ensure_ascii=False)
    return Patient(
        entry["patient_id"],
        entry["case_study"],
        diagnosis if _is_text(diagnosis) else None,
        tuple(Question(q["question"], float(q["score"])) for q in asked),
        entry,
        hashlib.sha256(text.encode()).hexdigest(),
    )


def _is_integer(value: object) -> bool:
    """Whether a value is an integer; in Python, true is one too, and here it is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _lack(entry: Mapping[str, object], key: str, wanted: str) -> str:
    found = f"is {_shown(entry[key])}" if key in entry else "is missing"
    return f"{key} {found}; it has to be {wanted}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
