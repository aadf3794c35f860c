"""What VAIDYA measures, as metrics of encounters, and what both a judge and a rule say without looking."""

from collections.abc import Sequence

from analysis.benchmarks.scoring import Scored
from analysis.benchmarks.vaidya.cases import Benchmark, Patient, Question
from study.records import Encounter, Metric, Vignette

NO_DIAGNOSIS = "no_diagnosis"
METRICS: dict[Benchmark, Metric] = {
    "diagbench": Metric(
        "diagnosis", "encounter", 0.0, 1.0, "nominal", "Does the doctor come to the right diagnosis?",
        ("no", "yes"),
    ),
    "medconvbench": Metric(
        "question_coverage", "encounter", 0.0, 1.0, "ratio",
        "Which share of the questions that belong to this case does the doctor ask, by their weight?", (), None,
    ),
}  # fmt: skip


def vignette(patient: Patient) -> Vignette:
    """An entry of a case file as the engine has cases; `extra` keeps all of the entry."""
    korean = sum("가" <= c <= "힣" for c in patient.case_study) > len(patient.case_study) / 10
    return Vignette(
        patient.case_id, patient.case_study, patient.expected_diagnosis or "", "ko" if korean else "en",
        dict(patient.entry),
    )  # fmt: skip


def questions_of(case: Vignette) -> tuple[Question, ...]:
    """The expected questions of a case that has passed `cases.load`."""
    return tuple(Question(q["question"], float(q["score"])) for q in case.extra["expected_questions"])


def covered(asked: Sequence[bool], expected: Sequence[Question]) -> tuple[float, str]:
    """The share of the questions' scores that was asked for, and how many questions that are.

    >>> covered([True, False], [Question("Fever?", 3), Question("Cough?", 1)])
    (0.75, '1 of 2 expected questions asked: q1')
    """
    hits = [q.score for q, hit in zip(expected, asked, strict=True) if hit]
    value = sum(hits) / sum(q.score for q in expected)
    named = ", ".join(f"q{i}" for i, hit in enumerate(asked, 1) if hit)
    return value, f"{len(hits)} of {len(expected)} expected questions asked" + (f": {named}" if named else "")


def unscored(encounter: Encounter, benchmark: Benchmark) -> Scored | None:
    """What is said of an encounter without a look at it; None if it has to be scored.

    A doctor that comes to no diagnosis scores 0. One that says nothing where it should speak has no score: nothing
    is made up in its place.
    """
    if encounter.status in ("doctor_failed", "patient_failed"):
        return Scored("not_applicable", reason=f"{encounter.status}: {encounter.detail or 'no words'}")
    if benchmark == "diagbench" and encounter.status == "max_rounds":
        return Scored("ok", {METRICS[benchmark].metric_id: 0.0}, NO_DIAGNOSIS)
    return None
