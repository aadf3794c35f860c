"""An embedded patient for runs without keys: it answers from the case's own sentences, by retrieval.

It reads out what the case says that fits the question, each sentence once, and never one that names the diagnosis.
It is no actor: a floor that needs no network, to try a benchmark with and to test it by.
"""

import re
from collections.abc import Mapping, Sequence

from generation import leaks
from generation.asking import Note
from generation.encounter import Appointment, Speaker
from generation.retrieval import Index, Passage, passages
from generation.sources.speaker import Answer, said
from study.records import Turn, Vignette

_FITS = 0.12  # cosine below which a sentence has nothing to do with the question
_AT_MOST = 2  # sentences an answer
_UNKNOWN = {"en": "I'm not sure about that.", "ko": "글쎄요, 그건 잘 모르겠어요."}
# What a question is about, in words that a case uses for it.
_ABOUT = {
    r"how long|when|start|began|onset|언제|얼마나|시작": "day week month year ago since history "
    "started onset sudden gradual 일 전 주 전 달 전 부터 처음 갑자기",
    r"better|worse|relie|aggravat|나아|심해|악화|완화": "better worse worsens improves relief "
    "relieved rest activity 나아 심해 쉬어 그대로",
    r"medic|drug|pills|tablets|약": "medications medicine takes prescribed tablets daily 약을 약은 먹어요 복용",
    r"allerg|알레르기": "allergy allergies allergic 알레르기",
    r"smok|alcohol|drink|담배|술": "smoker non-smoker smokes pack cigarettes alcohol drinks social history "
    "담배 피우 술은 소주 맥주",
    r"famil|mother|father|가족|부모": "family history mother father brother sister 가족 아버지 어머니",
    r"past|operation|surger|illness|medical problems|앓|수술|병력": "past medical history surgery surgical "
    "diagnosed 앓은 수술 고혈압 당뇨",
    r"work|live|job|occupation|직업|하시는 일|사세요": "works social history occupation lives 일해요 직업",
    r"other symptoms|anything else|notice|다른 증상|그 밖": "secondary symptoms notes also denies 증상",
    r"bring|problem today|어디가|어떤 일로|불편": "chief complaint primary symptom presents",
    r"test|examin|scan|blood|검사|진찰": "exam examination test results blood imaging 검사 진찰",
}  # fmt: skip


class RetrievalPatient:
    """Plays any case from its text, the same way each time."""

    workers, demo, bounded = 0, True, True

    def __init__(self, name: str = "embedded") -> None:
        self.name = name
        self.identity: Mapping[str, object] = {"kind": "retrieval_patient", "version": 1}

    def brief(self, case: Vignette, rounds: int) -> str:
        return case.text

    def open(self, note: Note) -> None:
        """Nothing has to be made ready."""

    def meets(self, at: Appointment, rounds: int) -> Speaker:
        return _Patient(at.case)

    def stop(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is open."""


class _Patient:
    """The patient of one encounter. What it has told is read from the turns, so that it can be resumed."""

    def __init__(self, case: Vignette) -> None:
        self._case = case
        self._known = tuple(p for p in passages(case.text) if not leaks.names(p.text, case.diagnosis))
        self._index = Index([f"{p.heading} {p.text}" for p in self._known])

    def say(self, turns: Sequence[Turn]) -> Answer:
        if not turns:
            return said(self._complaint())
        told = " ".join(t.text for t in turns if t.speaker == "patient")
        found = [_sentence(p.text) for p in self._fitting(turns[-1].text) if p.text not in told]
        return said(" ".join(found[:_AT_MOST]) or _UNKNOWN.get(self._case.language, _UNKNOWN["en"]))

    def _complaint(self) -> str:
        given = self._case.extra.get("chief_complaint")
        if isinstance(given, str) and given.strip() and not leaks.names(given, self._case.diagnosis):
            return _sentence(given)
        first = [p for p in self._known if p.heading == "Primary Symptom"] or self._known
        return _sentence(first[0].text) if first else _UNKNOWN.get(self._case.language, _UNKNOWN["en"])

    def _fitting(self, question: str) -> list[Passage]:
        """The case's sentences that fit a question, the best first."""
        about = " ".join(words for cue, words in _ABOUT.items() if re.search(cue, question, re.I))
        plain, wide = self._index.scores(question), self._index.scores(about)
        fit = [p + w / 2 for p, w in zip(plain, wide, strict=True)]
        order = sorted(range(len(fit)), key=lambda i: (-fit[i], i))
        return [self._known[i] for i in order if fit[i] >= _FITS]


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "?", "!", "。", "요", "다")) else f"{text}."
