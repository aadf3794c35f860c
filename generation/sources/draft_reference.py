"""The shipped expert-style drafts: each prompt's reference answer as it stands in the prompts file."""

from pathlib import Path

from generation.sources.speaker import Answer, Request, check_settings, said
from study.records import Content, Source


def open_source(source: Source, content: Content, folder: Path) -> "DraftReference":
    check_settings(source)
    return DraftReference()


class DraftReference:
    """Answers the study's own prompts, and no other question."""

    def answer(self, request: Request) -> Answer:
        if request.prompt is None or request.prompt.reference_answer is None:
            return Answer("missing", detail="the prompts file has no reference answer to this")
        return said(request.prompt.reference_answer)
