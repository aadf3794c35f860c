"""What must not be said in an encounter: the answer by the patient, the doctor's part by the patient.

A leak is a flag on the turn and on the encounter; nothing is taken out or asked again, and the report counts it.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from generation.conclusion import read
from study.records import Role, Turn, Vignette

NAMED = "patient_named_diagnosis"
AS_DOCTOR = "patient_as_doctor"
TOLD = "doctor_told_diagnosis"
FLAGS = (NAMED, AS_DOCTOR, TOLD)

_LABEL = re.compile(r"^\s*[*_\[(]*(?:doctor|physician|dr\.?|clinician|의사|선생님)[*_\])]*\s*[:：]", re.I | re.M)
_CUES = re.compile(
    "|".join(
        (
            r"as your (?:doctor|physician)",
            r"i(?:'d| would) (?:like to )?(?:order|prescribe|refer you)",
            r"(?:let me|i(?:'ll| will| am going to)) (?:examine|auscultate|prescribe|order)",
            r"you (?:most likely |probably )?have been diagnosed",
            r"how long have you (?:had|been)",
            r"what brings you in",
            r"do you have any (?:allerg|other symptom)",
            r"처방해\s*드리",
            r"진찰해?\s*보겠",
            r"검사를?\s*(?:해|진행해|시행해)\s*(?:보겠|보도록)",
            r"어디가 불편",
            r"언제부터 (?:그러|아프)셨",
            r"감별\s*진단",
        )
    ),
    re.I,
)
_WORD = re.compile(r"[^\W_]+")
_ABBREVIATION = 5  # letters at most
_VAGUE = re.compile(r",?\s*\b(?:unspecified|nos|상세불명의?)\b", re.I)


def of_turn(role: Role, text: str, before: Sequence[Turn], case: Vignette) -> tuple[str, ...]:
    """Flags of one utterance. A patient who repeats a diagnosis that the doctor named first gives nothing away."""
    if role != "patient":
        return ()
    found = []
    if names(text, case.diagnosis):
        doctor_said = any(t.speaker == "doctor" and names(t.text, case.diagnosis) for t in before)
        found += [] if doctor_said else [NAMED]
    if _LABEL.search(text) or _CUES.search(text) or read(text):
        found.append(AS_DOCTOR)
    return tuple(found)


def of_encounter(turns: Sequence[Turn], told: str, case: Vignette) -> tuple[str, ...]:
    """The leaks of a whole encounter, each once."""
    found = {flag for t in turns for flag in t.flags} | ({TOLD} if names(told, case.diagnosis) else set())
    return tuple(flag for flag in FLAGS if flag in found)


def names(text: str, diagnosis: str) -> bool:
    """Whether a text holds a diagnosis by its name, its abbreviation in brackets, or the name before them.

    >>> names("They said MULTIPLE  sclerosis once.", "Multiple sclerosis (MS)")
    True
    >>> names("이게 천식인가요?", "천식"), names("Ms. Kim has symptoms", "Sclerosis (MS)")
    (True, False)
    """
    said = f" {_words(text)} "
    folded = said.casefold()
    return any(
        (f" {name}" if _hangul(name) else f" {name} ") in (said if name.isupper() else folded)
        for name in variants(diagnosis)
    )


@lru_cache(maxsize=4096)
def variants(diagnosis: str) -> tuple[str, ...]:
    """What a diagnosis is known by: the whole, the part before brackets, the parts in brackets.

    An abbreviation keeps its capitals, since many are words without them.

    >>> variants("Multiple sclerosis (MS)")
    ('multiple sclerosis ms', 'multiple sclerosis', 'MS')
    """
    parts = map(_words, (diagnosis, *re.split(r"[()\[\]]", _VAGUE.sub("", diagnosis))))
    short = 0 if diagnosis.isupper() else _ABBREVIATION
    return tuple(dict.fromkeys(p if p.isupper() and len(p) <= short else p.casefold() for p in parts if p))


def _words(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text)))


def _hangul(name: str) -> bool:
    """Whether a particle may stand behind the name."""
    return "가" <= name[-1] <= "힣"
