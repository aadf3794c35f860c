"""What a source is to the rest: something that answers one utterance to one case."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from study.errors import StudyError
from study.records import Case, Prompt, Source


@dataclass(frozen=True)
class Request:
    """One utterance put to the patient of one case. `prompt` is None where the utterance is not of the study's."""

    case: Case
    text: str
    prompt: Prompt | None = None


@dataclass(frozen=True)
class Answer:
    """What came back: text only where status is ok; `detail` says why it is not.

    `about` holds further columns of the table `responses`, where the source knows them. `asked` is False where
    nothing was sent, because an earlier question showed that none can be answered.
    """

    status: str
    text: str | None = None
    detail: str | None = None
    about: Mapping[str, object] = field(default_factory=dict)
    asked: bool = True


class Speaker(Protocol):
    """A source that is ready to answer."""

    def answer(self, request: Request) -> Answer: ...


def said(text: str) -> Answer:
    """An answer with text; a blank one is a failure, not an answer."""
    return Answer("ok", text) if text.strip() else Answer("empty", detail="the source answered with nothing")


def check_settings(source: Source, known: Collection[str] = ()) -> None:
    """Refuse a setting that the source's kind does not have.

    Raises
    ------
    StudyError : naming the setting and those that the kind knows
    """
    for name in source.settings:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise StudyError(f"study.toml: source {source.source_id}: {source.kind} has no setting {name}; {has}")
