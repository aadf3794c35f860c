"""croissant.json as it is read: the parts that lead to the data, each in its place and of its type."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from study.errors import StudyError, joined


class Part(BaseModel):
    """A part of the description; keys that lead to no data are left to others."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Reference(Part):
    id: str = Field(alias="@id", pattern=r"^\S+$")


class Extract(Part):
    column: str


class Source(Part):
    fileObject: Reference
    extract: Extract


class Target(Part):
    field: Reference


class Described(Part):
    """A field: the column of a file that it is taken from."""

    id: str = Field(alias="@id", pattern=r"^\S+$")
    name: str
    dataType: str
    source: Source
    references: Target | None = None

    @property
    def file(self) -> str:
        return self.source.fileObject.id

    @property
    def column(self) -> str:
        return self.source.extract.column


class RecordSet(Part):
    id: str = Field(alias="@id", pattern=r"^\S+$")
    key: list[Reference] = Field(min_length=1)
    field: list[Described] = Field(min_length=1)

    @property
    def names(self) -> dict[str, str]:
        """The @id of each field → its name."""
        return {f.id: f.name for f in self.field}


class File(Part):
    id: str = Field(alias="@id", pattern=r"^\S+$")
    contentUrl: str = Field(min_length=1)
    encodingFormat: str
    sha256: str

    @property
    def local(self) -> str:
        """The file's name in the package, wherever its address says that it lies."""
        return self.contentUrl.rsplit("/", 1)[-1]


class Description(Part):
    distribution: list[File] = Field(min_length=1)
    recordSet: list[RecordSet] = Field(min_length=1)


def document(path: Path) -> dict[str, object]:
    """The whole document, unread.

    Raises
    ------
    StudyError : if it is no JSON object
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise StudyError(f"{path.name}: is not JSON") from None
    if not isinstance(told, dict):
        raise StudyError(f"{path.name}: is not a JSON object")
    return told


def description(told: dict[str, object], name: str) -> Description:
    """What a document says of its files and record sets.

    Raises
    ------
    StudyError : with every part that is missing or of the wrong type, one a line
    """
    try:
        return Description.model_validate(told)
    except ValidationError as error:
        raise StudyError(joined([f"{name}: {_place(e['loc'])}: {e['msg']}" for e in error.errors()])) from None


def _place(where: tuple[str | int, ...]) -> str:
    return " ".join(str(part + 1) if isinstance(part, int) else part for part in where)
