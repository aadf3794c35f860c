"""Embedded doctors for runs without keys, and two whose score is known beforehand.

The rule doctor asks from a list that knows no rubric, and in its last round names the diagnosis of the list it was
given that shares most with what the patient said. The oracle knows the answer (and is flagged for it); the mute
asks and never concludes.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from generation import conclusion
from generation.asking import Note
from generation.encounter import Appointment, Speaker
from generation.retrieval import Index
from generation.sources.speaker import Answer, said
from study.errors import StudyError
from study.records import Turn, Vignette

QUESTIONS = {
    "en": (
        "When did this start, and how has it gone on since?",
        "What makes it better, and what makes it worse?",
        "What other symptoms have you noticed?",
        "Which illnesses or operations have you had in the past?",
        "Which medicines do you take, and do you have any allergy?",
        "Do you smoke, drink alcohol or take drugs?",
        "Which illnesses run in your family?",
        "What work do you do, and how do you live?",
        "Have you had fever, night sweats or a change of weight?",
        "Have you had chest pain or trouble with your breath?",
        "Have you had any trouble with your stomach, bowels or urine?",
        "Have you travelled, or been near somebody who is ill?",
        "Were there any tests or examinations, and what did they show?",
    ),
    "ko": (
        "언제부터 시작됐고, 그 뒤로 어떻게 변했나요?",
        "어떨 때 나아지고 어떨 때 심해지나요?",
        "다른 증상은 어떤 것이 있었나요?",
        "전에 앓은 병이나 받은 수술이 있나요?",
        "드시는 약이나 알레르기가 있나요?",
        "담배나 술은 하세요?",
        "가족 중에 앓는 분이 있나요?",
        "하시는 일은 무엇이고 누구와 사세요?",
        "열이 나거나 땀이 나거나 몸무게가 변했나요?",
        "가슴이 아프거나 숨이 차나요?",
        "속이나 대변, 소변은 어떠세요?",
        "여행을 다녀오거나 아픈 사람과 지낸 적이 있나요?",
        "받으신 검사나 진찰이 있으면 결과가 어땠나요?",
    ),
}
_THANKS = {"en": "Thank you for your answers.", "ko": "말씀 감사합니다."}
_WEIGHED = 5


class _Embedded:
    """What all embedded doctors have in common: no connection, no cost."""

    workers, demo, bounded = 0, True, True

    def __init__(self, name: str, identity: Mapping[str, object]) -> None:
        self.name = name
        self.identity = identity

    def brief(self, case: Vignette, rounds: int) -> str:
        return ""

    def open(self, note: Note) -> None:
        """Nothing has to be made ready."""

    def stop(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is open."""


class RuleDoctor(_Embedded):
    """Asks its list, then chooses from the diagnoses it was given; none where they share no word.

    Parameters
    ----------
    diagnoses : to choose from, those of all cases together

    Raises
    ------
    StudyError : with fewer than two different ones, since the list would give the answer away
    """

    def __init__(self, diagnoses: Sequence[str], name: str = "embedded") -> None:
        by_name = {d.casefold(): d for d in sorted(diagnoses, reverse=True) if d}
        self._diagnoses = tuple(sorted(by_name.values()))
        if len(self._diagnoses) < 2:
            raise StudyError(
                "the embedded doctor chooses among the diagnoses of all cases, and there is only one; "
                "give more cases, or another doctor"
            )
        listed = hashlib.sha256("\n".join(self._diagnoses).encode()).hexdigest()
        super().__init__(name, {"kind": "rule_doctor", "version": 1, "diagnoses": listed})
        self._index = Index(self._diagnoses)

    def meets(self, at: Appointment, rounds: int) -> Speaker:
        return _Asking(_language(at), rounds, self._concluded)

    def _concluded(self, turns: Sequence[Turn], language: str) -> str:
        scores = self._index.scores(" ".join(t.text for t in turns if t.speaker == "patient"))
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        weighed = [(self._diagnoses[i], round(100 * scores[i], 1)) for i in order[:_WEIGHED] if scores[i] > 0]
        return conclusion.line(weighed[0][0], weighed, language) if weighed else ""


class Oracle(_Embedded):
    """Knows the answer and gives it at once: what a scorer must give the full score."""

    def __init__(self, name: str = "oracle") -> None:
        super().__init__(name, {"kind": "oracle", "version": 1})

    def brief(self, case: Vignette, rounds: int) -> str:
        return case.diagnosis

    def meets(self, at: Appointment, rounds: int) -> Speaker:
        answer = conclusion.line(at.case.diagnosis, [(at.case.diagnosis, 100)], _language(at))
        return _Asking(_language(at), 1, lambda turns, language: answer)


class Mute(_Embedded):
    """Asks and never concludes: what a scorer must give nothing."""

    def __init__(self, name: str = "mute") -> None:
        super().__init__(name, {"kind": "mute", "version": 1})

    def meets(self, at: Appointment, rounds: int) -> Speaker:
        return _Asking(_language(at), rounds, lambda turns, language: "")


class _Asking:
    """Asks one question of the list a round; what it concludes with comes in the last."""

    def __init__(self, language: str, rounds: int, last: Callable[[Sequence[Turn], str], str]) -> None:
        self._language, self._rounds, self._last = language, rounds, last

    def say(self, turns: Sequence[Turn]) -> Answer:
        asked = sum(t.speaker == "doctor" for t in turns)
        if asked + 1 < self._rounds:
            questions = QUESTIONS[self._language]
            return said(questions[asked % len(questions)])
        return said(f"{_THANKS[self._language]}\n{self._last(turns, self._language)}".strip())


def _language(at: Appointment) -> str:
    return at.case.language if at.case.language in QUESTIONS else "en"
