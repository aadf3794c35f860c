"""The rule patient with one fault: in reasoning and education turns it speaks as the clinician does."""

from pathlib import Path

from generation.sources.ledger import RulePatient
from generation.sources.speaker import Request, check_settings
from generation.sources.wording import turned
from study.language.morphology import sentences
from study.language.reading import Reading
from study.records import Content, Source

_TURNS = ("clinical_reasoning", "patient_education")


def open_source(source: Source, content: Content, folder: Path) -> "Clinician":
    check_settings(source)
    return Clinician(content)


class Clinician(RulePatient):
    """네, 정확합니다. 밤이랑 새벽에 심한 양상으로, 감별 진단을 위해 추가 검사가 필요합니다."""

    def body(self, reading: Reading, request: Request) -> str:
        if not _slips(reading, request):
            return super().body(reading, request)
        state = "상태로" if all(f.kind in ("concern", "exposure") for f in reading.facts) else "양상으로"
        facts = [f"{turned(sentences(f.answer)[0], 'of')} {state}," for f in reading.facts[:1]]
        return " ".join([*_opening(reading), *facts, _close(reading, request)])


def _slips(reading: Reading, request: Request) -> bool:
    if request.prompt is not None:
        return request.prompt.category in _TURNS
    return reading.purpose in ("confirm", "reaction") or "patient_ideas" in reading.topics


def _opening(reading: Reading) -> list[str]:
    if reading.purpose == "confirm" and reading.proposition == reading.question.judged_positive:
        return ["정확합니다."]
    if "patient_ideas" in reading.topics:
        return ["현재로서는 원인이 불명확합니다."] if reading.question.form == "open_ended" else []
    said = {"understanding": "설명은 이해하였습니다.", "advice": "시행하겠습니다.", "consent": "동의합니다."}
    return [said[reading.reaction]] if reading.reaction in said else []


def _close(reading: Reading, request: Request) -> str:
    if reading.purpose == "reaction":
        return "치료 후 경과 관찰이 필요합니다."
    return "감별 진단을 위해 추가 검사가 필요합니다."
