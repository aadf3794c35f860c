"""The kinds of source a study.toml can name. A kind is one module with `open_source`, and one line here."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from generation.sources.speaker import Speaker
from study.errors import StudyError
from study.records import Content, Source

KINDS = {
    "draft_reference": "the shipped expert-style drafts, as they stand in the prompts file",
    "ledger": "a rule patient that answers from the case's facts ledger; offline, the embedded default",
    "ledger_polarity": "the rule patient with one fault: negative questions answered by English polarity",
    "ledger_clinician": "the rule patient with one fault: a clinician's register in reasoning and education turns",
    "ledger_stiff": "the rule patient with one fault: the ledger's own wording instead of a patient's",
    "openai_chat": "a model behind an OpenAI-compatible address (model = \"…\", base_url = \"…\")",
    "local": "a small real model on this machine, for demonstrations only (extra `local`)",
    "expert": "a human expert's answers, brought in by `generation expert import`",
    "recorded": "answers from a CSV or Parquet file (file = \"…\") with columns prompt_id and text",
}

Opening = Callable[[Source, Content, Path], Speaker]


def open_source(source: Source, content: Content, folder: Path) -> Speaker:
    """A source, ready to answer; its kind's module is imported only now.

    Raises
    ------
    StudyError : for an unknown kind, or settings that the kind refuses
    """
    if source.kind not in KINDS:
        raise StudyError(f"study.toml: source {source.source_id} has kind {source.kind}; "
                         f"the kinds are {', '.join(KINDS)}")
    opening = cast(Opening, import_module(f"generation.sources.{source.kind}").open_source)
    return opening(source, content, folder)
