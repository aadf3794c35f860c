"""What a Korean answer opens with and how it is spoken: particle and register."""

import re
from dataclasses import dataclass
from typing import Literal

from study.language.morphology import Morpheme, lemmas, morphemes, sentences
from study.language.question import Particle
from study.language.words import Words, words

Level = Literal["haeyo", "hasipsio", "nominal", "other"]

# What a clinician says and a patient does not. Words that patients use too (항생제, 내시경, 천식) are not here.
CLINICIANS_TERMS = (
    "혈뇨", "빈뇨", "야간뇨", "배뇨통", "배뇨 시", "요절박", "절박뇨", "객혈", "각혈", "천명", "호흡곤란",
    "흉통", "발열", "오심", "부종", "압통", "반발압통", "촉진", "타진", "청진", "소견", "감별", "병력",
    "과거력", "가족력", "기왕력", "복용력", "투약", "음주력", "흡연력", "양상", "경과 관찰", "추적 관찰",
    "호전", "악화", "발현", "재발", "간헐적", "지속적", "급성", "만성", "신우신염", "요로감염", "악성",
    "종양", "종괴", "세팔로스포린", "금기", "적응증", "예후", "주호소", "동반 증상", "수반", "진단적",
    "처치", "병변", "징후", "상기도", "기저질환", "임상", "환자분", "검사상", "이학적", "약제",
    "의심됩니다", "권고", "권장됩니다", "판단됩니다", "사료됩니다",
)  # fmt: skip
_HESITATION = r"(?:(?:음|어|아|저|흠|에|글쎄요|그게|저기)[,.…~\s]+)*"
_YES = re.compile(_HESITATION + r"(네|예|넵|넹|네에|응|그럼요|맞아요|맞습니다|그렇습니다|그래요)(?=[\s,.!?~…]|$)")
_NO = re.compile(_HESITATION + r"(아니요|아니오|아뇨|아녀|아니에요|아녜요|아닙니다|아니)(?=[\s,.!?~…]|$)")
_COUNTED = re.compile(_HESITATION + r"네 (살|명|번|시|개|달|주|가지|시간|잔|병|갑|차례|군데)")



@dataclass(frozen=True)
class Register:
    """How an answer is spoken: clinician's terms in it, and the speech level of each sentence."""

    terms: tuple[str, ...]
    levels: tuple[Level, ...]

    @property
    def patient(self) -> bool:
        """Plain words in 해요체, as the cases' patients speak."""
        return not self.terms and all(level == "haeyo" for level in self.levels)


def answered(text: str) -> Particle:
    """The particle an answer starts with, hesitations apart; 네 살 is a number."""
    if _COUNTED.match(text):
        return "none"
    if _NO.match(text):
        return "아니요"
    return "네" if _YES.match(text) else "none"


def without_particle(text: str) -> str:
    """An answer without its opening 네 or 아니요."""
    found = None if _COUNTED.match(text) else _NO.match(text) or _YES.match(text)
    return text[found.end():].lstrip(" ,.!~…") if found else text


def register(text: str) -> Register:
    """Clinician's terms and speech levels of an answer."""
    terms = tuple(t for t in CLINICIANS_TERMS if t in text)
    spoken = [s for s in sentences(text) if without_particle(s) or len(sentences(text)) == 1]
    return Register(terms, tuple(_level(s) for s in spoken if answered(s) == "none" or without_particle(s)))


def mentions(text: str, keywords: tuple[str, ...]) -> bool:
    """Whether a text has one of a fact's keywords: as written, or by its lemmas (아파요 has 아프).

    A keyword of one letter counts as a word of its own only: 열 is not in 열심히.
    """
    found = words(text)
    return any(len(k) > 1 and k in text or _has_lemmas(found, k) or _begins(text, k) for k in keywords)


def _has_lemmas(found: Words, keyword: str) -> bool:
    wanted = [name for m, name in zip(morphemes(keyword), lemmas(keyword), strict=True) if name and _counts(m)]
    return bool(wanted) and all(found.find((name,)) for name in wanted)


def _begins(text: str, keyword: str) -> bool:
    """뻗 stands for 뻗치다 and 뻗어 나가다; a noun such as 피 does not stand for 피우다."""
    if len(keyword) > 1 or morphemes(keyword)[0].noun:
        return False
    return any(m.stem and m.form.startswith(keyword) for m in morphemes(text))


def _counts(morpheme: Morpheme) -> bool:
    return morpheme.stem or morpheme.noun or morpheme.tag in ("MAG", "SN")


def _level(sentence: str) -> Level:
    bare = sentence.rstrip(" .?!~…\"'”’")
    if bare.endswith(("요", "죠")):
        return "haeyo"
    if bare.endswith(("니다", "니까", "십시오")):
        return "hasipsio"
    return "nominal" if bare.endswith(("음", "함", "됨", "임", "짐", "감", "남", "옴", "앎")) else "other"
