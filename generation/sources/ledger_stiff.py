"""The rule patient with one fault: it reads out the ledger's wording instead of speaking."""

from pathlib import Path

from generation.sources.ledger import RulePatient
from generation.sources.speaker import Request, check_settings
from study.language.reading import Reading
from study.records import Content, Source

_REACTIONS = {"understanding": "이해함.", "advice": "시행 예정.", "consent": "동의함.", "opinion": "동의함."}


def open_source(source: Source, content: Content, folder: Path) -> "Stiff":
    check_settings(source)
    return Stiff(content)


class Stiff(RulePatient):
    """네. 열과 오한 없음."""

    pause = "."

    def body(self, reading: Reading, request: Request) -> str:
        facts = " ".join(f"{f.statement}." for f in reading.facts)
        if reading.purpose == "social":
            return "동의함." if reading.topics else ""
        if reading.purpose == "reaction":
            return f"{_REACTIONS.get(reading.reaction or '', '')} {facts}".strip() or "해당 없음."
        if reading.purpose == "confirm" and reading.proposition == reading.question.judged_positive:
            return f"일치함. {facts}".strip()
        return facts or ("해당 없음." if reading.denies else "알 수 없음.")
