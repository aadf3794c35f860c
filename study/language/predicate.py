"""The main predicate of a Korean sentence, and how it is negated.

Subtypes follow the coding manual; what bare and contrastive long negation mean, Wee (2019, Language Research
55:579).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from study.language.morphology import Morpheme
from study.language.question import Subtype

Sentence = Sequence[Morpheme]

_PARTICLES = ("JKS", "JKO", "JKB", "JX", "JKC", "JKG")
_ASSURING = (
    "죠", "지요", "지", "네요", "네", "군요", "는군요", "구나", "고", "구", "구요", "고요", "다고요", "는데",
)  # fmt: skip
_QUOTING = ("다고", "라고", "는다고", "ᆫ다고", "이라고", "으라고", "냐고")
_SAYING = ("말씀", "말", "뜻", "얘기", "이야기", "상태", "상황", "의미")
_COUNTERS = ("때", "번", "주", "명", "님", "분")
_ASPECT = ("있", "계시", "보", "주", "오", "가", "버리", "지", "두", "놓", "나", "하", "대")


@dataclass(frozen=True)
class Predicate:
    """Where a predicate's stem stands, how many negations it carries, and the outermost one's subtype."""

    at: int
    negations: int = 0
    subtype: Subtype | None = None


def main(sentence: Sentence) -> Predicate | None:
    """The main predicate, read inwards from the sentence's end through frames like -다는 거죠."""
    at = last_stem(sentence, len(sentence))
    return None if at is None else read(sentence, at)


def read(sentence: Sentence, at: int) -> Predicate:
    """The predicate whose outermost stem stands at a place."""
    this = sentence[at]
    if this.form in ("않", "못하") and (this.tag == "VX" or _follows_ji(sentence, at)):
        return _long(sentence, at)
    if this.tag == "VCN":
        return _copula(sentence, at)
    if this.form in ("없", "모르", "못하"):
        return Predicate(at, 1, _lexical(sentence, at))
    if (inner := _framed(sentence, at)) is not None:
        return read(sentence, inner)
    inner = last_stem(sentence, at)
    if this.tag == "VX" and this.form in _ASPECT and inner is not None and at - inner <= 3:
        return replace(read(sentence, inner), at=at)
    if (adverb := _short(sentence, at)) is not None:
        return Predicate(at, 1, _short_subtype(sentence, at, adverb))
    return Predicate(at)


def last_stem(sentence: Sentence, end: int) -> int | None:
    """Where the last stem before a place stands."""
    return next((i for i in range(end - 1, -1, -1) if sentence[i].stem), None)


def has(sentence: Sentence, form: str, tag: str | None = None) -> bool:
    """Whether a morpheme stands in a sentence."""
    return any(m.form == form and tag in (None, m.tag) for m in sentence)


def _long(sentence: Sentence, at: int) -> Predicate:
    """-지 않-: with 는 it is inner; bare it seeks confirmation, unless an ending or a polarity word says no."""
    place = at - 1
    while place >= 0 and sentence[place].tag in ("JX", "JKO", "JKS"):
        place -= 1
    if place < 0 or sentence[place].form != "지":
        return Predicate(at, 1, "inner_lexical")
    inner = last_stem(sentence, place)
    deeper = read(sentence, inner).negations if inner is not None else 0
    contrast = place < at - 1
    if _strong_polarity(sentence) or has(sentence, "결코", "MAG"):
        subtype: Subtype = "inner_npi"
    elif contrast or _assures(sentence, at) or has(sentence, "별로", "MAG") or has(sentence, "그다지", "MAG"):
        subtype = "inner_long_neun"
    else:
        subtype = "outer_long"
    return Predicate(at, 1 + deeper, subtype)


def _copula(sentence: Sentence, at: int) -> Predicate:
    """N 아니세요? confirms N; N은 아니죠? and -ㄴ 건 아니죠? ask for its absence."""
    topic = at > 0 and sentence[at - 1].tag == "JX"
    head = at - 1
    while head >= 0 and sentence[head].tag in _PARTICLES:
        head -= 1
    clause = head > 0 and sentence[head].tag == "NNB" and sentence[head - 1].tag == "ETM"
    inner = last_stem(sentence, head) if clause else None
    deeper = read(sentence, inner).negations if inner is not None else 0
    if not (topic or _assures(sentence, at)):
        return Predicate(at, 1 + deeper, "outer_copula")
    return Predicate(at, 1 + deeper, "inner_npi" if clause else "inner_lexical")


def _lexical(sentence: Sentence, at: int) -> Subtype:
    """-ㄴ 적 없-, 한 번도 and 아무도 make a frame that only negation can fill."""
    place = at - 1
    between = (*_PARTICLES, "MAG")
    while place >= 0 and (sentence[place].tag in between or sentence[place].form in ("번", "한", "차례")):
        place -= 1
    experience = (
        place > 0
        and sentence[place].form in ("적", "일", "경험")
        and sentence[place - 1].tag == "ETM"
        and sentence[place - 1].form in ("ᆫ", "은", "던")
    )
    frame = experience or _even_once(sentence) or has(sentence, "아무")
    return "inner_npi" if frame else "inner_lexical"


def _short(sentence: Sentence, at: int) -> int | None:
    """Where 안 or 못 stands before this predicate: 안 계세요, 못 드세요, 운동을 안 하세요."""
    place = at - 2 if sentence[at].tag in ("XSV", "XSA") and at > 0 else at - 1
    while place >= 0 and sentence[place].tag == "MAG" and sentence[place].form not in ("안", "못"):
        place -= 1
    if place >= 0 and sentence[place].tag == "MAG" and sentence[place].form in ("안", "못"):
        return place
    if sentence[at].tag == "VX" and (inner := last_stem(sentence, at)) is not None:
        return _short(sentence, inner)
    return None


def _short_subtype(sentence: Sentence, at: int, adverb: int) -> Subtype:
    if sentence[at].form == "되" and sentence[adverb].form == "안" and _after_subject(sentence, adverb):
        return "inner_lexical"
    return "inner_npi" if _strong_polarity(sentence) else "inner_short"


def _framed(sentence: Sentence, at: int) -> int | None:
    """The predicate inside a frame: 없으신 거네요, 아픈 것 같으세요, 있다고 하셨죠."""
    this = sentence[at]
    if this.tag == "VCP" or this.form == "같":
        return _nominal(sentence, at)
    return _quoted(sentence, at)


def _nominal(sentence: Sentence, at: int) -> int | None:
    head = at - 1
    while head > 0 and sentence[head].tag in ("JKS", "JX"):
        head -= 1
    if head < 1 or sentence[head].form in _COUNTERS:
        return None
    if sentence[head].tag != "NNB" and sentence[head].form not in _SAYING:
        return None
    return last_stem(sentence, head) if sentence[head - 1].tag in ("ETM", "JKQ") else None


def _quoted(sentence: Sentence, at: int) -> int | None:
    place = at - 1
    if sentence[at].tag == "XSV" and place >= 0 and sentence[place].form in _SAYING:
        place -= 1
    elif sentence[at].form not in ("하", "그러", "듣", "들"):
        return None
    return last_stem(sentence, place) if place > 0 and sentence[place].form in _QUOTING else None


def _after_subject(sentence: Sentence, at: int) -> bool:
    place = at - 1
    while place >= 0 and sentence[place].tag == "MAG":
        place -= 1
    return place >= 0 and sentence[place].tag in ("JKS", "JKC")


def _assures(sentence: Sentence, at: int) -> bool:
    """An ending that asks to confirm the clause as it stands: 않죠, 않네요, 않고요, 않으신 거죠."""
    return any(m.form in _ASSURING and m.tag in ("EF", "EC") for m in sentence[at + 1:])


def _follows_ji(sentence: Sentence, at: int) -> bool:
    return any(m.form == "지" and m.tag == "EC" for m in sentence[max(0, at - 2):at])


def _strong_polarity(sentence: Sentence) -> bool:
    """Words that only negation allows: 한 번도, 아무도, 전혀."""
    return _even_once(sentence) or has(sentence, "아무") or has(sentence, "전혀", "MAG")


def _even_once(sentence: Sentence) -> bool:
    pairs = zip(sentence, sentence[1:], strict=False)
    return any(a.form in ("번", "차례", "한번") and b.form == "도" for a, b in pairs)
