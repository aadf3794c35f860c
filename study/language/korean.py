"""The form of a Korean question, from its last predicate.

The coding manual's rules: the last clause decides; a content word or a request to tell makes a question open;
a negated main predicate makes it negative. Negation subtypes and their particles follow Park and Dubinsky (2019,
PLSA 4:19) and Wee (2019, Language Research 55:579).
"""

from dataclasses import dataclass, replace

from study.language.morphology import Morpheme, morphemes, sentences
from study.language.question import Question, Subtype

_TELL = ("말", "말씀", "설명", "이야기", "얘기", "소개", "묘사", "표현", "대답", "진술")
_TELL_VERBS = ("알리", "들리", "가르치", "전하")
_CONTENT = ("어떤", "어떻", "어떻게", "어떠", "어떡하", "어찌", "어쩌", "어디", "어느", "언제", "얼마", "얼마나", "무엇", "뭐", "무어", "무슨",
            "누구", "누", "왜", "몇", "며칠", "웬", "뭣")
_VAGUE = ("어디", "뭐", "무엇", "무슨", "누구", "언제", "어떤")  # also "some", before 있다 and 없다
_ANY = ("라도", "이라도", "나", "이나", "든", "든지", "이든", "이든지", "든가")  # 언제라도, 누구나: no question
_CASE = ("JKS", "JKO", "JKB", "JX", "JKC", "JKG")
_ASKING = ("ᆫ가", "은가", "는가", "ᆫ가요", "은가요", "는가요", "나요", "나", "ᆯ까요", "을까요", "세요", "으세요", "어요", "아요", "습니까",
           "ᆸ니까", "죠", "지요")
_ASSURING = ("죠", "지요", "지", "네요", "네", "군요", "는군요", "구나", "고", "구", "구요", "고요", "다고요", "는데")
_TAGS = ("맞", "그렇", "이해하")
_NOT = ("않", "못하")


@dataclass(frozen=True)
class _Predicate:
    """A clause's predicate: where its stem stands, whether its clause is negated, and how."""

    at: int
    negations: int = 0
    subtype: Subtype | None = None
    contrast: bool = False


def recognise(text: str) -> Question:
    """Form, negation and judged proposition of the final request of a Korean utterance."""
    *before, last = sentences(text)
    found = morphemes(last)
    if not found:
        return Question("open_ended")
    if _is_topic_alone(found):
        return Question("open_ended")
    predicate = _main(found)
    if predicate is None or _tells(found):
        return Question("open_ended")
    if not predicate.subtype and (_is_alternative(found) or _opens_with_or(found)):
        return Question("affirmative", alternative=True, past=_past(found))
    if _asks_content(found, predicate):
        return Question("open_ended", past=_past(found))
    if predicate.subtype:
        return _negative(found, predicate)
    return Question("affirmative", judged_positive=_tagged_positive(found, predicate, before), past=_past(found))


def negated(text: str) -> bool:
    """Whether the last predicate of a clause denies: 없어요, 안 아파요, 아프지는 않아요."""
    found = morphemes(text)
    predicate = _main(found) if found else None
    return predicate is not None and predicate.negations % 2 == 1


def _negative(found: tuple[Morpheme, ...], predicate: _Predicate) -> Question:
    subtype, outer = predicate.subtype, predicate.subtype in ("outer_long", "outer_copula")
    judged = predicate.negations - 1 if outer else predicate.negations
    biased = _has(found, "혹시", "MAG") or _has(found, "그렇", "VA") or any(
        a.form == "고" and b.form in ("있", "계시") for a, b in zip(found, found[1:], strict=False)
    )
    question = Question("negative", subtype, judged_positive=judged % 2 == 0, past=_past(found))
    return replace(question, ambiguous=subtype == "outer_long" and not biased)


def _main(found: tuple[Morpheme, ...]) -> _Predicate | None:
    """The main predicate, read inwards from the sentence's end through frames like -다는 거죠."""
    at = _last_stem(found, len(found))
    return None if at is None else _read(found, at)


def _read(found: tuple[Morpheme, ...], at: int) -> _Predicate:
    this = found[at]
    if this.tag == "VX" and this.form in _NOT or this.form in _NOT and _before(found, at, "지"):
        return _long(found, at)
    if this.tag == "VCN":
        return _copula(found, at)
    if this.form == "없" and this.tag in ("VA", "VV"):
        return _lexical(found, at)
    if this.form in ("모르", "못하") and this.tag in ("VV", "VX"):
        return _Predicate(at, 1, _strengthened(found, at, "inner_lexical"))
    if this.form == "이" and this.tag == "VCP" and (inner := _nominal(found, at)) is not None:
        return _read(found, inner)
    if this.form == "같" and (inner := _nominal(found, at)) is not None:
        return _read(found, inner)
    if (inner := _quoted(found, at)) is not None:
        return _read(found, inner)
    if this.tag == "VX" and (inner := _last_stem(found, at)) is not None and _is_light(found, inner, at):
        return replace(_read(found, inner), at=at)
    if (adverb := _short(found, at)) is not None:
        become = this.form == "되" and found[adverb].form == "안" and _follows(found, adverb, ("JKS", "JKC"))
        subtype = "inner_lexical" if become else "inner_short"
        npi = not become and (_has(found, "아무", None) or _has(found, "전혀", "MAG") or _even_once(found))
        return _Predicate(at, 1, "inner_npi" if npi else subtype)
    return _Predicate(at)


def _long(found: tuple[Morpheme, ...], at: int) -> _Predicate:
    """-지 않-: with 는 it is inner; bare it seeks confirmation, unless an ending or a polarity word says no."""
    marks = [m for m in found[:at] if m.start >= found[at].start - 4 and m.tag in ("JX", "JKO", "JKS")]
    place = at - 1
    while place >= 0 and found[place].tag in ("JX", "JKO", "JKS"):
        place -= 1
    if place < 0 or found[place].form != "지":
        return _Predicate(at, 1, "inner_lexical")
    contrast = place < at - 1 and bool(marks or found[at - 1].tag in ("JX", "JKO", "JKS"))
    inner = _last_stem(found, place)
    deeper = _read(found, inner).negations if inner is not None else 0
    if _even_once(found) or _has(found, "아무", None) or _has(found, "전혀", "MAG") or _has(found, "결코", "MAG"):
        subtype: Subtype = "inner_npi"
    elif contrast or _assures(found, at) or _has(found, "별로", "MAG") or _has(found, "그다지", "MAG"):
        subtype = "inner_long_neun"
    else:
        subtype = "outer_long"
    return _Predicate(at, 1 + deeper, subtype, contrast)


def _copula(found: tuple[Morpheme, ...], at: int) -> _Predicate:
    """N 아니세요? confirms N; N은 아니죠? and -ㄴ 건 아니죠? ask for its absence."""
    topic = at > 0 and found[at - 1].tag == "JX"
    head = at - 1
    while head >= 0 and found[head].tag in _CASE:
        head -= 1
    clause = head > 0 and found[head].tag == "NNB" and found[head - 1].tag == "ETM"
    inner = _last_stem(found, head) if clause else None
    deeper = _read(found, inner).negations if inner is not None else 0
    if not (topic or _assures(found, at)):
        return _Predicate(at, 1 + deeper, "outer_copula")
    return _Predicate(at, 1 + deeper, "inner_npi" if clause else "inner_lexical")


def _lexical(found: tuple[Morpheme, ...], at: int) -> _Predicate:
    return _Predicate(at, 1, _strengthened(found, at, "inner_lexical"))


def _strengthened(found: tuple[Morpheme, ...], at: int, subtype: Subtype) -> Subtype:
    """-ㄴ 적 없-, 한 번도 and 아무도 make a frame that only negation can fill."""
    place = at - 1
    while place >= 0 and (found[place].tag in _CASE or found[place].tag == "MAG" or _counts_once(found, place)):
        place -= 1
    experience = (
        place > 0
        and found[place].form in ("적", "일", "경험")
        and found[place - 1].tag == "ETM"
        and found[place - 1].form in ("ᆫ", "은", "던")
    )
    return "inner_npi" if experience or _even_once(found) or _has(found, "아무", None) else subtype


def _short(found: tuple[Morpheme, ...], at: int) -> int | None:
    """Where 안 or 못 stands before this predicate: 안 계세요, 못 드세요, 운동을 안 하세요."""
    place = at - 1
    if found[at].tag in ("XSV", "XSA") and place >= 0:
        place -= 1
    while place >= 0 and found[place].tag == "MAG" and found[place].form not in ("안", "못"):
        place -= 1
    if place >= 0 and found[place].tag == "MAG" and found[place].form in ("안", "못"):
        return place
    if found[at].tag == "VX" and (inner := _last_stem(found, at)) is not None:
        return _short(found, inner)
    return None


def _nominal(found: tuple[Morpheme, ...], at: int) -> int | None:
    """The predicate inside 없으신 거네요, 아프시다는 말씀이죠, 피곤한 편이세요."""
    head = at - 1
    while head > 0 and found[head].tag in ("JKS", "JX"):
        head -= 1
    named = found[head].tag == "NNB" or found[head].form in ("말씀", "말", "뜻", "얘기", "이야기", "상태", "상황", "의미")
    if head < 1 or not named or found[head].form in ("때", "번", "주", "명", "님", "분"):
        return None
    return _last_stem(found, head) if found[head - 1].tag in ("ETM", "JKQ") else None


def _quoted(found: tuple[Morpheme, ...], at: int) -> int | None:
    """The predicate inside 있다고 하셨죠; a quotation that ends the sentence needs no verb: 없으시다고요?"""
    place = at - 1
    if found[at].tag == "XSV" and place >= 0 and found[place].form in ("말씀", "말", "얘기", "이야기"):
        place -= 1
    elif found[at].form not in ("하", "그러", "듣", "들"):
        return None
    quoting = ("다고", "라고", "는다고", "ᆫ다고", "이라고", "으라고", "냐고")
    return _last_stem(found, place) if place > 0 and found[place].form in quoting else None


def _tagged_positive(found: tuple[Morpheme, ...], predicate: _Predicate, before: list[str]) -> bool:
    """Whether the proposition behind a tag (맞나요?, 그렇죠?) is positive; without a tag it is."""
    this = found[predicate.at]
    tag = this.form in _TAGS or this.tag in ("XSV",) and found[predicate.at - 1].form == "이해"
    if not tag:
        return True
    inner = _last_stem(found, predicate.at)
    while inner is not None and (found[inner].form in _TAGS or found[inner].form == "하"):
        inner = _last_stem(found, inner)
    if inner is not None:
        return _read(found, inner).negations % 2 == 0
    return not (before and negated(before[-1]))


def _tells(found: tuple[Morpheme, ...]) -> bool:
    """말씀해 주시겠어요, 알려 주세요, 얘기해 보세요: a request to tell, whatever its grammar."""
    tail = list(found[-9:])
    for at, this in enumerate(tail):
        verb = this.form in _TELL_VERBS or (
            this.tag in ("XSV", "VV") and this.form == "하" and at > 0 and _telling_noun(tail, at)
        )
        after = [m for m in tail[at + 1:] if m.stem]
        asks = all(m.form in ("주", "보", "있", "되", "하", "좋", "괜찮", "싶") for m in after)
        polite = tail[-1].form in ("세요", "으세요", "시죠", "죠", "십시오", "어요", "ᆯ까요", "을까요", "나요", "ᆫ가요", "습니까", "ᆸ니까",
                                   "ᆯ래요", "을래요", "요", "겠어요", "어", "ᆯ게요", "면")
        quoted = at + 1 < len(tail) and tail[at + 1].form in ("었", "시", "는", "ᆫ") and not any(
            m.form in ("주", "보") for m in after
        )
        request = any(m.form in ("주", "보") for m in after) or tail[-1].form in ("세요", "십시오")
        if verb and asks and polite and request and not (quoted and tail[-1].form not in ("세요", "십시오")):
            return True
    return False


def _telling_noun(tail: list[Morpheme], at: int) -> bool:
    place = at - 1
    while place >= 0 and (tail[place].tag in ("JKO", "MAG", "JX")):
        place -= 1
    return place >= 0 and tail[place].form in _TELL


def _asks_content(found: tuple[Morpheme, ...], predicate: _Predicate) -> bool:
    """Whether a content word asks, rather than meaning some: 어디가 아프세요 against 어디 아픈 데 있으세요."""
    for at, this in enumerate(found):
        if this.form in _CONTENT and this.tag in ("NP", "NNG", "MM", "MAG", "VA", "VV", "IC", "NNB", "NR", "XR") and not (
            _is_vague(found, at, predicate)
        ):
            if predicate.subtype and _embedded(found, at):
                continue
            if not _closed_off(found, at):
                return True
    return False


def _is_vague(found: tuple[Morpheme, ...], at: int, predicate: _Predicate) -> bool:
    this, after = found[at], found[at + 1:]
    follower = after[0] if after else None
    if follower and (follower.form in _ANY or follower.form == "도" and follower.tag == "JX"):
        return True
    if this.form == "얼마" and follower and follower.form in ("전", "안", "간"):
        return True
    if this.form == "몇" and follower and follower.form in ("가지", "개") and any(
        m.form in ("여쭈", "여쭙", "묻", "물어보", "여쭤보", "질문", "확인", "말씀") for m in after
    ):
        return True
    if this.form in ("누구", "누") and found[predicate.at].form in ("있", "없", "계시") and _adnominal(after):
        return True
    if this.form not in _VAGUE or found[predicate.at].form not in ("있", "없", "계시"):
        return False
    if follower and follower.form == "어떤":
        return False
    if this.form in ("무슨", "어떤"):
        noun_at = next((i for i, m in enumerate(after) if m.noun), None)
        if noun_at is None:
            return False
        marked = noun_at + 1 < len(after) and after[noun_at + 1].tag in ("JKS", "JKO", "JKB")
        some = any(m.form in ("라도", "이라도") for m in after) or (this.form == "무슨" and not marked)
        return some or (not marked and _adnominal(after))
    marked = follower is not None and follower.tag in ("JKS", "JKO", "JKB", "JKC", "XSN")
    return not marked and _adnominal(after)


def _adnominal(after: tuple[Morpheme, ...]) -> bool:
    """A modified dependent noun before the predicate: 불편하신 데, 드시는 거, 앓으신 적."""
    heads = ("데", "거", "것", "적", "분", "점", "곳", "일", "약", "문제", "증상", "질환", "병", "사람", "가족")
    return any(a.tag == "ETM" and b.form in heads for a, b in zip(after, after[1:], strict=False))


def _embedded(found: tuple[Morpheme, ...], at: int) -> bool:
    """Inside an indirect question: 무슨 약인지는 모르세요?"""
    return any(m.form in ("ᆫ지", "는지", "은지", "ᆯ지", "을지") for m in found[at:])


def _closed_off(found: tuple[Morpheme, ...], at: int) -> bool:
    """Whether a clause boundary stands between the content word and the predicate: 왜 왔는지는 알겠는데, 열은 있으세요?"""
    return any(m.tag == "EC" and m.form in ("는데", "ᆫ데", "은데", "지만", "니까", "으니까", "으니") for m in found[at + 1:])


def _is_alternative(found: tuple[Morpheme, ...]) -> bool:
    asked = [m for m in found if m.tag in ("EF", "EC") and m.form in _ASKING]
    joined = any(a.form == "아니" and b.form in ("면", "라면") for a, b in zip(found, found[1:], strict=False))
    joined = joined or any(m.form in ("아니면", "혹은") and m.tag == "MAJ" for m in found[2:])
    endings = [m for m in asked if m.tag == "EF"]
    tag = found[_last_stem(found, len(found)) or 0].form in (*_TAGS, "아니", "않")
    return joined and len(found) > 4 or len(endings) > 1 and not tag


def _opens_with_or(found: tuple[Morpheme, ...]) -> bool:
    return found[0].form in ("아니면", "혹은") or found[0].form == "아니" and len(found) > 1 and found[1].form == "면"


def _is_topic_alone(found: tuple[Morpheme, ...]) -> bool:
    """다른 증상은요?: a topic held out, its predicate left to the patient."""
    tail = found[:-1] if found[-1].form == "요" else found
    return bool(tail) and tail[-1].tag == "JX" and tail[-1].form in ("은", "는", "ᆫ") and not tail[-1].stem


def _last_stem(found: tuple[Morpheme, ...], end: int) -> int | None:
    return next((i for i in range(end - 1, -1, -1) if found[i].stem), None)


def _is_light(found: tuple[Morpheme, ...], inner: int, at: int) -> bool:
    """An auxiliary that adds aspect, not a proposition of its own: 먹고 있다, 해 보다, 빠져 버리다."""
    return at - inner <= 3 and found[at].form in ("있", "계시", "보", "주", "오", "가", "버리", "지", "두", "놓", "나", "하", "대")


def _follows(found: tuple[Morpheme, ...], at: int, tags: tuple[str, ...]) -> bool:
    place = at - 1
    while place >= 0 and found[place].tag == "MAG":
        place -= 1
    return place >= 0 and found[place].tag in tags


def _assures(found: tuple[Morpheme, ...], at: int) -> bool:
    """An ending that asks to confirm the clause as it stands: 않죠, 않네요, 않고요, 않으신 거죠."""
    return any(m.form in _ASSURING and m.tag in ("EF", "EC") for m in found[at + 1:])


def _before(found: tuple[Morpheme, ...], at: int, form: str) -> bool:
    return any(m.form == form and m.tag == "EC" for m in found[max(0, at - 2):at])


def _counts_once(found: tuple[Morpheme, ...], at: int) -> bool:
    return found[at].form in ("번", "한", "차례")


def _even_once(found: tuple[Morpheme, ...]) -> bool:
    """한 번도, 한 차례도."""
    return any(
        a.form in ("번", "차례", "한번") and b.form == "도" for a, b in zip(found, found[1:], strict=False)
    )


def _has(found: tuple[Morpheme, ...], form: str, tag: str | None) -> bool:
    return any(m.form == form and (tag is None or m.tag == tag) for m in found)


def _past(found: tuple[Morpheme, ...]) -> bool:
    experience = any(m.form == "적" and m.tag == "NNB" for m in found)
    return experience or any(m.form in ("었", "았", "였") and m.tag == "EP" for m in found[-6:])
