"""A human expert's answers, as `generation expert import` or the app's expert page left them."""

from pathlib import Path

from generation import expert
from generation.sources.speaker import Answer, Request, check_settings, said
from study.records import Content, Source


def open_source(source: Source, content: Content, folder: Path) -> "Written":
    """An expert's answers.

    Raises
    ------
    StudyError : if they were given to another list of questions
    """
    check_settings(source)
    return Written(expert.load(folder, source.source_id, content))


class Written:
    """Answers what the expert wrote to the study's prompts, and no other question."""

    def __init__(self, answers: dict[str, str]) -> None:
        self._answers = answers

    def answer(self, request: Request) -> Answer:
        text = self._answers.get(request.prompt.prompt_id) if request.prompt else None
        return said(text) if text else Answer("missing", detail="the expert has not answered this")
