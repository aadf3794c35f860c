"""run-many: a YAML file with several doctors, each with its own folder of conversations and its own log."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from analysis.benchmarks.vaidya.cases import Benchmark
from analysis.benchmarks.vaidya.yaml_file import document
from study.errors import StudyError, joined


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    provider: str | None = None
    settings: dict[str, object] = {}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    input: str
    output_root: str
    log_dir: str
    doctor_models: tuple[_Model, ...] = Field(min_length=1)
    patient_model: str = "gpt-4o"
    patient_provider: str | None = None
    patient_settings: dict[str, object] = {}
    max_rounds: int = Field(default=8, ge=1)
    skip_existing: bool = True
    benchmark: Benchmark | None = None
    prices: str | None = None
    concurrency: int = Field(default=4, ge=1, le=256)
    max_cost: float | None = Field(default=None, gt=0)
    max_calls: int | None = Field(default=None, gt=0)

    @field_validator("doctor_models", mode="before")
    @classmethod
    def _names(cls, given: object) -> object:
        """A doctor may be a mere name."""
        return [{"model": g} if isinstance(g, str) else g for g in given] if isinstance(given, list) else given


@dataclass(frozen=True)
class Doctor:
    """One doctor of the file with the name of its folder and log."""

    model: str
    provider: str | None
    slug: str
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Many:
    """A file of doctors; paths are as the file says, from its own folder."""

    path: Path
    input: Path
    output_root: Path
    log_dir: Path
    doctors: tuple[Doctor, ...]
    file: _File
    prices: Path | None


def load(path: Path) -> Many:
    """A YAML file of doctors.

    Raises
    ------
    StudyError : with all problems, one a line; also if two doctors would share a folder
    """
    try:
        file = _File.model_validate(document(path))
    except ValidationError as error:
        raise StudyError(joined([f"{path}: {_problem(e)}" for e in error.errors()])) from None
    here = path.parent
    source = here / file.input
    if source.is_dir() or source.suffix.lower() != ".json":
        raise StudyError(f"{path}: input {file.input} has to be one .json file that holds a list of cases")
    doctors = tuple(Doctor(m.model, m.provider, slug(m.model), m.settings) for m in file.doctor_models)
    _check_slugs(path, doctors)
    prices = here / file.prices if file.prices else None
    return Many(path, source, here / file.output_root, here / file.log_dir, doctors, file, prices)


def slug(model: str) -> str:
    """A model's name as one folder's name.

    >>> slug("Qwen/Qwen3-8B"), slug("ft:gpt-4o:me::1")
    ('Qwen-Qwen3-8B', 'ft-gpt-4o-me-1')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.") or "model"


def _check_slugs(path: Path, doctors: tuple[Doctor, ...]) -> None:
    """Refuse doctors whose folders would be one; case does not tell folders apart everywhere."""
    taken: dict[str, str] = {}
    problems = []
    for doctor in doctors:
        before = taken.setdefault(doctor.slug.lower(), doctor.model)
        if before == doctor.model and list(d.model for d in doctors).count(before) > 1:
            problems.append(f"{path}: doctor_models: {before} stands twice")
        elif before != doctor.model:
            both = f"{before} and {doctor.model}"
            problems.append(f"{path}: doctor_models: {both} would share the folder {doctor.slug}")
    if problems:
        raise StudyError(joined(list(dict.fromkeys(problems))))


def _problem(error: Mapping[str, object]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f"lacks {place}"
        case "extra_forbidden":
            return f"has an unknown key {place}; known are {', '.join(_File.model_fields)}"
    return f"{place}: {error['msg']}" if place else f"is no mapping of {', '.join(_File.model_fields)}"
