"""study.toml → Study. What a study folder holds, and the names of its files."""

import datetime
import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from study import content
from study.errors import StudyError, joined
from study.records import Content, Judge, Metric, Source

FILE = "study.toml"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StudySection(Strict):
    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str
    seed: int = Field(ge=0)


class ContentSection(Strict):
    cases: str
    prompts: str
    checklists: str | None = None


class SourceRow(BaseModel):
    """Who answers. Keys beyond these three are settings of the source's kind; `generation` checks them."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str = Field(min_length=1)
    kind: str
    title: str | None = None


class GenerationSection(Strict):
    """The conditions under which responses are made: all of a study's models are asked within so many days.

    `waiver` is the reason why answers from further apart are accepted; it is published with the data.
    """

    window_days: float = Field(default=7, gt=0)
    waiver: str | None = None


class JudgeRow(BaseModel):
    """A model as a rater: its rubric, what it rates and how often. Further keys are the model's settings.

    `rubric` is a shipped one (ko, en) or a TOML file of the study; without `metrics` it rates all of them.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str = Field(min_length=1)
    rubric: str = "ko"
    metrics: tuple[str, ...] = ()
    repeats: int = Field(default=1, ge=1)


class MetricRow(Strict):
    id: str = Field(min_length=1)
    item: Literal["utterance", "encounter"]
    low: float
    high: float
    level: Literal["nominal", "ordinal", "interval", "ratio"] = "ordinal"
    step: float | None = 1.0
    question: str = ""
    anchors: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _scale(self) -> Self:
        if self.high <= self.low:
            raise ValueError(f"high {self.high:g} must be above low {self.low:g}")
        points = round((self.high - self.low) / self.step) + 1 if self.step else None
        if self.anchors and len(self.anchors) != points:
            raise ValueError(f"{len(self.anchors)} anchors for a scale of {points} points")
        return self


class PanelSection(Strict):
    """The human raters: so many (named rater-01 …), or by name."""

    raters: int | tuple[str, ...] = Field(default=0)

    @property
    def ids(self) -> tuple[str, ...]:
        if isinstance(self.raters, tuple):
            return self.raters
        width = max(2, len(str(self.raters)))
        return tuple(f"rater-{i:0{width}d}" for i in range(1, self.raters + 1))


class DesignSection(Strict):
    """Who rates what: everything (crossed), or balanced incomplete blocks of encounters."""

    kind: Literal["crossed", "incomplete"] = "crossed"
    raters_per_encounter: int | None = Field(default=None, ge=1)
    apart: int = Field(default=3, ge=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.kind == "incomplete") != (self.raters_per_encounter is not None):
            raise ValueError('raters_per_encounter goes with kind = "incomplete", and only with it')
        return self


class AppSection(Strict):
    """The rating app: its first language, its training, and what it asks and suggests beside the metrics."""

    language: Literal["ko", "en"] = "ko"
    training: str = "shipped"  # a file of rated examples, "shipped", or "none"
    guess: bool = False  # ask after each encounter whether a person or a model wrote the answers
    asker: Literal["student", "doctor"] = "student"  # what raters see the one who asks called
    pause_minutes: int = Field(default=40, ge=1)


class AnalysisSection(Strict):
    """Formulas in lme4 notation that replace the design's own, per kind of item."""

    utterance: str | None = None
    encounter: str | None = None


class EffectRow(Strict):
    """A shift of the latent score where all given conditions hold."""

    metrics: tuple[str, ...]
    shift: float
    source: str | None = None
    category: str | None = None
    form: str | None = None
    case: str | None = None

    def conditions(self) -> dict[str, str]:
        """Item column → the value it must have for the effect to apply."""
        given = {
            "source_id": self.source, "category": self.category, "form": self.form, "case_id": self.case
        }  # fmt: skip
        return {column: value for column, value in given.items() if value is not None}


class SimulationSection(Strict):
    """The known truth of simulated raters, in points of the scale before rounding."""

    mean: float = 4.2
    severity_sd: float = Field(default=0.25, ge=0)
    prompt_sd: float = Field(default=0.1, ge=0)
    response_sd: float = Field(default=0.2, ge=0)
    rater_source_sd: float = Field(default=0.1, ge=0)
    noise_sd: float = Field(default=0.6, ge=0)
    missing: float = Field(default=0.0, ge=0, lt=1)
    effect: tuple[EffectRow, ...] = ()


class ReleaseSection(Strict):
    """The data package: whose it is and under which licence, and what a person decided about its texts.

    `simulated` lets simulated ratings out, labelled as such everywhere. `comments` lets raters' comments out,
    scrubbed and without their rater. `rater_attribute` is a column of raters.csv. `consent` says how people
    consented where the rating app has no record of it. `withdrawn` are raters whose rows stay out. `audit` tells
    what a reader of a sample of the texts found overlooked. `cleared` are words that look like personal data and
    are none, `redact` words that are some and do not look it.
    """

    version: str = Field(default="1.0.0", pattern=r"^\d+\.\d+\.\d+$")
    date: datetime.date
    description: str = Field(min_length=1)
    license: str = Field(min_length=1)
    creators: tuple[str, ...] = Field(min_length=1)
    url: str = Field(pattern=r"^https?://")
    files_url: str | None = Field(default=None, pattern=r"^https?://.*/$")
    cite_as: str | None = None
    keywords: tuple[str, ...] = ()
    commercial_use: bool = True
    simulated: Literal["refused", "labelled"] = "refused"
    comments: bool = False
    rater_attribute: str | None = None
    consent: str | None = Field(default=None, min_length=1)
    withdrawn: tuple[str, ...] = ()
    audit: str | None = None
    cleared: tuple[str, ...] = ()
    redact: tuple[Annotated[str, Field(min_length=1)], ...] = ()


class RaiSection(Strict):
    """What only the study's people can say of their data; each key becomes the rai: field of that name.

    The first five are asked for by conferences, and a release is refused without them.
    """

    data_limitations: str | None = None
    data_biases: str | None = None
    personal_sensitive_information: str | None = None
    data_use_cases: str | None = None
    data_social_impact: str | None = None
    data_collection: str | None = None
    data_collection_raw_data: str | None = None
    data_collection_timeframe: tuple[str, ...] = ()
    data_annotation_analysis: str | None = None
    data_annotation_platform: str | None = None
    data_imputation_protocol: str | None = None
    data_release_maintenance_plan: str | None = None
    annotator_demographics: str | None = None


class StudyFile(Strict):
    study: StudySection
    content: ContentSection | None = None
    generation: GenerationSection = GenerationSection()
    source: tuple[SourceRow, ...] = ()
    judge: tuple[JudgeRow, ...] = ()
    metric: tuple[MetricRow, ...] = ()
    panel: PanelSection = PanelSection()
    design: DesignSection = DesignSection()
    app: AppSection = AppSection()
    analysis: AnalysisSection = AnalysisSection()
    simulation: SimulationSection | None = None
    release: ReleaseSection | None = None
    rai: RaiSection = RaiSection()

    @model_validator(mode="after")
    def _names(self) -> Self:
        for what, rows in (("source", self.source), ("judge", self.judge), ("metric", self.metric)):
            names = [row.id for row in rows]
            if again := sorted({n for n in names if names.count(n) > 1}):
                raise ValueError(f"{what} {again[0]} stands twice")
        if not self.metric:
            raise ValueError("no metric: a study needs at least one [[metric]]")
        return self


@dataclass(frozen=True)
class Study:
    """A study folder: what its study.toml says, and where its files lie."""

    folder: Path
    study_id: str
    title: str
    seed: int
    sources: tuple[Source, ...]
    judges: tuple[Judge, ...]
    generation: GenerationSection
    metrics: tuple[Metric, ...]
    raters: tuple[str, ...]
    design: DesignSection
    app: AppSection
    analysis: AnalysisSection
    content_files: ContentSection | None
    simulation: SimulationSection | None
    release: ReleaseSection | None
    rai: RaiSection
    digest: str

    def path(self, name: str) -> Path:
        return self.folder / name

    @property
    def responses(self) -> Path:
        return self.path("responses.parquet")

    @property
    def items(self) -> Path:
        return self.path("items.parquet")

    @property
    def assignment(self) -> Path:
        return self.path("assignment.parquet")

    @property
    def key(self) -> Path:
        return self.path("key.parquet")

    @property
    def ratings(self) -> Path:
        return self.path("ratings.parquet")

    @property
    def results(self) -> Path:
        return self.path("results")

    def metric(self, metric_id: str) -> Metric:
        """The metric of that name.

        Raises
        ------
        StudyError : if there is none
        """
        for metric in self.metrics:
            if metric.metric_id == metric_id:
                return metric
        known = ", ".join(m.metric_id for m in self.metrics)
        raise StudyError(f"{self.folder / FILE}: no metric {metric_id}; its metrics are {known}")

    def content(self) -> Content:
        """Cases, prompts and checklists of this study, loaded and checked.

        Raises
        ------
        StudyError : if the study has no [content], or a content file is wrong
        """
        if self.content_files is None:
            raise StudyError(
                f"{self.folder / FILE}: has no [content]; its ratings were imported, "
                "so there are no cases and prompts to work from"
            )
        files = self.content_files
        checklists = self.path(files.checklists) if files.checklists else None
        return content.load(self.path(files.cases), self.path(files.prompts), checklists)


def load(folder: Path) -> Study:
    """The study of a folder.

    Raises
    ------
    StudyError : if study.toml is absent or wrong; all problems of the file in one message, each with its place
    """
    path = folder / FILE
    if not folder.is_dir():
        raise StudyError(f"{folder}: no such study folder; `study new {folder}` makes one")
    if not path.is_file():
        raise StudyError(f"{path}: not found; a study folder has one (`study new` makes it)")
    raw = path.read_bytes()
    try:
        parsed = StudyFile.model_validate(tomllib.loads(raw.decode("utf-8")))
    except UnicodeDecodeError:
        raise StudyError(f"{path}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{path}: is not TOML: {error}") from None
    except ValidationError as error:
        raise StudyError(joined([f"{path}: {_problem(e)}" for e in error.errors()])) from None
    return _study(folder, parsed, hashlib.sha256(raw).hexdigest())


def _study(folder: Path, file: StudyFile, digest: str) -> Study:
    return Study(
        folder=folder,
        study_id=file.study.id,
        title=file.study.title,
        seed=file.study.seed,
        sources=tuple(Source(s.id, s.kind, s.title or s.id, dict(s.model_extra or {})) for s in file.source),
        judges=tuple(
            Judge(j.id, j.rubric, j.metrics, j.repeats, dict(j.model_extra or {})) for j in file.judge
        ),
        generation=file.generation,
        metrics=tuple(
            Metric(m.id, m.item, m.low, m.high, m.level, m.question, m.anchors, m.step) for m in file.metric
        ),
        raters=file.panel.ids,
        design=file.design,
        app=file.app,
        analysis=file.analysis,
        content_files=file.content,
        simulation=file.simulation,
        release=file.release,
        rai=file.rai,
        digest=digest,
    )


_SECTIONS: dict[str, type[BaseModel]] = {
    "study": StudySection,
    "content": ContentSection,
    "generation": GenerationSection,
    "source": SourceRow,
    "judge": JudgeRow,
    "metric": MetricRow,
    "panel": PanelSection,
    "design": DesignSection,
    "app": AppSection,
    "analysis": AnalysisSection,
    "simulation": SimulationSection,
    "release": ReleaseSection,
    "rai": RaiSection,
}


def _problem(error: dict) -> str:
    place = [str(p + 1) if isinstance(p, int) else p for p in error["loc"]]
    known = _SECTIONS.get(place[0], StudyFile) if len(place) > 1 else StudyFile
    if place[:2] == ["simulation", "effect"]:
        known = EffectRow
    where = _table(place[:-1])
    match error["type"]:
        case "missing":
            return f"{where} lacks {place[-1]}"
        case "extra_forbidden":
            return f"{where} has an unknown key {place[-1]}; known are {', '.join(known.model_fields)}"
        case "value_error":
            return f"{_table(place)}: {error['ctx']['error']}"
    return f"{where} {place[-1]} = {error['input']!r}: {error['msg']}"


def _table(place: list[str]) -> str:
    """A place as it looks in the file: `[design]`, `metric 3`, `the file`."""
    if not place:
        return "the file"
    if len(place) > 1:
        return f"{place[0]} {place[1]}"
    return f"[{place[0]}]"
