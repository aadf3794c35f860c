"""A rule patient: reads a Korean question against the case's ledger, and answers in the patient's words.

Deterministic and offline. It is a fair partner to practise with and a baseline to hold models against, not a
substitute for one: it knows what the ledger says, denies symptoms that it does not name, and else does not know.
"""

from pathlib import Path

from generation.sources.speaker import Answer, Request, check_settings, said
from generation.sources.wording import UNKNOWN, denial, reaction, told, turned
from study.errors import StudyError
from study.language.ledger import Ledger, index
from study.language.question import Particle
from study.language.reading import Reading, read
from study.records import Content, Source

_ASKING_WHY = ("원인", "왜", "이유", "때문", "생각")


def open_source(source: Source, content: Content, folder: Path) -> "RulePatient":
    check_settings(source)
    return RulePatient(content)


class RulePatient:
    """The rule patient of a study's cases. Its planted-fault kin override `particle` or `body`, and nothing else.

    Raises
    ------
    StudyError : if the study's prompts are not Korean
    """

    def __init__(self, content: Content) -> None:
        if content.language != "ko":
            raise StudyError(f"the rule patient speaks Korean; this study's prompts are {content.language}")
        self._slots = content.slots
        self._ledgers: dict[str, Ledger] = {}

    def answer(self, request: Request) -> Answer:
        reading = self.read(request)
        opening, body = self.particle(reading), self.body(reading, request)
        if opening == "none":
            return said(body)
        if not body:
            return said(f"{opening}.")
        return said(f"{opening}{self.pause} {body}")

    pause = ","

    def read(self, request: Request) -> Reading:
        """The question, read against the case's ledger."""
        name = request.case.case_id
        if name not in self._ledgers or self._ledgers[name].case is not request.case:
            self._ledgers[name] = index(request.case, self._slots)
        return read(request.text, self._ledgers[name])

    def particle(self, reading: Reading) -> Particle:
        """네, 아니요 or none: by the truth of the proposition as asked."""
        return reading.particle

    def body(self, reading: Reading, request: Request) -> str:
        """The answer after its particle."""
        match reading.purpose:
            case "social":
                return _social(request.text) if reading.topics else _closing(request.text)
            case "reaction":
                return reaction(reading)
            case "confirm" if reading.proposition == reading.question.judged_positive:
                return f"맞아요. {told(reading.facts)}".strip()
            case _:
                return _fact(reading, request.text)


def _social(text: str) -> str:
    if "안녕" in text and "?" not in text:
        return "안녕하세요."
    asks = any(word in text for word in ("여쭤", "여쭙", "질문", "물어", "묻", "이야기", "얘기", "문진", "면담"))
    return "괜찮아요. 물어보세요." if asks else "괜찮아요."


def _closing(text: str) -> str:
    return "감사합니다." if any(word in text for word in ("감사", "고맙", "수고", "안녕히", "고생")) else ""


def _fact(reading: Reading, text: str) -> str:
    if not reading.facts:
        if reading.denies and reading.question.form != "open_ended":
            return "괜찮아요." if reading.proposition else denial(text)
        return "그런 건 없어요." if reading.denies else UNKNOWN
    body = told(reading.facts)
    if reading.topics == ("chief_complaint",) and any(word in text for word in ("오셨", "오신", "오시", "이유")):
        return f"{turned(reading.facts[0].answer, 'so')} 왔어요."
    if reading.topics == ("patient_ideas",) and any(word in text for word in _ASKING_WHY):
        return f"{UNKNOWN} {body}"
    return f"안녕하세요. {body}" if reading.purpose == "identity" and _greets(reading, text) else body


def _greets(reading: Reading, text: str) -> bool:
    return "안녕" in text and reading.particle == "none"
