"""Whether a Korean sentence asks for content: a request to tell, or a content word that asks."""

from study.language.morphology import Morpheme
from study.language.predicate import Predicate, Sentence

_TELL = ("말", "말씀", "설명", "이야기", "얘기", "소개", "묘사", "표현", "대답", "진술")
_TELL_VERBS = ("알리", "들리", "가르치", "전하")
_REQUEST_STEMS = ("주", "보", "있", "되", "하", "좋", "괜찮", "싶")
_REQUEST_ENDINGS = (
    "세요", "으세요", "시죠", "죠", "십시오", "어요", "ᆯ까요", "을까요", "나요", "ᆫ가요", "습니까", "ᆸ니까",
    "ᆯ래요", "을래요", "요", "겠어요", "어", "ᆯ게요", "면",
)  # fmt: skip
_CONTENT = (
    "어떤", "어떻", "어떻게", "어떠", "어떡하", "어찌", "어쩌", "어디", "어느", "언제", "얼마", "얼마나", "무엇",
    "뭐", "무어", "무슨", "누구", "누", "왜", "몇", "며칠", "웬", "뭣",
)  # fmt: skip
_CONTENT_TAGS = ("NP", "NNG", "MM", "MAG", "VA", "VV", "IC", "NNB", "NR", "XR")
_VAGUE = ("어디", "뭐", "무엇", "무슨", "누구", "언제", "어떤")  # also "some", before 있다 and 없다
_ANY = ("라도", "이라도", "나", "이나", "든", "든지", "이든", "이든지", "든가")  # 언제라도, 누구나
_HEADS = (
    "데", "거", "것", "적", "분", "점", "곳", "일", "약", "문제", "증상", "질환", "병", "사람", "가족",
)  # fmt: skip
_EXISTS = ("있", "없", "계시")
_ASKS = ("여쭈", "여쭙", "묻", "물어보", "여쭤보", "질문", "확인", "말씀")
_INDIRECT = ("ᆫ지", "는지", "은지", "ᆯ지", "을지")
_TURNING = ("는데", "ᆫ데", "은데", "지만", "니까", "으니까", "으니")


def tells(sentence: Sentence) -> bool:
    """Whether a sentence requests to be told, whatever its grammar: 말씀해 주시겠어요, 알려 주세요."""
    tail = list(sentence[-9:])
    return any(_is_telling(tail, at) and _requests(tail, at) for at in range(len(tail)))


def asks_content(sentence: Sentence, predicate: Predicate) -> bool:
    """Whether a content word asks, rather than meaning some: 어디가 아프세요 against 어디 아픈 데 있으세요."""
    for at, this in enumerate(sentence):
        if this.form not in _CONTENT or this.tag not in _CONTENT_TAGS or _means_some(sentence, at, predicate):
            continue
        indirect = any(m.form in _INDIRECT for m in sentence[at:])  # 무슨 약인지는 모르세요?
        if not (predicate.subtype and indirect) and not _closed_off(sentence, at):
            return True
    return False


def _is_telling(tail: list[Morpheme], at: int) -> bool:
    if tail[at].form in _TELL_VERBS:
        return True
    if tail[at].tag not in ("XSV", "VV") or tail[at].form != "하":
        return False
    place = at - 1
    while place >= 0 and tail[place].tag in ("JKO", "MAG", "JX"):
        place -= 1
    return place >= 0 and tail[place].form in _TELL


def _requests(tail: list[Morpheme], at: int) -> bool:
    """Whether what follows a verb of telling makes it a request: -어 주세요, -어 보시겠어요; not -하셨어요."""
    after = [m for m in tail[at + 1:] if m.stem]
    ordering = tail[-1].form in ("세요", "십시오") and tail[at].form == "하"  # not 들리세요
    if not all(m.form in _REQUEST_STEMS for m in after) or tail[-1].form not in _REQUEST_ENDINGS:
        return False
    return ordering or any(m.form in ("주", "보") for m in after)


def _means_some(sentence: Sentence, at: int, predicate: Predicate) -> bool:
    this, after = sentence[at], sentence[at + 1:]
    follower = after[0] if after else None
    if follower and (follower.form in _ANY or follower.form == "도" and follower.tag == "JX"):
        return True
    if this.form == "얼마":
        return follower is not None and follower.form in ("전", "안", "간")
    if this.form == "몇":
        some = follower is not None and follower.form in ("가지", "개")
        return some and any(m.form in _ASKS for m in after)
    if this.form not in (*_VAGUE, "누") or sentence[predicate.at].form not in _EXISTS:
        return False
    return _vague_phrase(this, after)


def _vague_phrase(this: Morpheme, after: Sentence) -> bool:
    """A bare content word before a modified noun that exists or not: 뭐 드시는 약 있으세요."""
    if this.form in ("누구", "누"):
        return _modified(after)
    if this.form not in ("무슨", "어떤"):
        marked = bool(after) and after[0].tag in ("JKS", "JKO", "JKB", "JKC", "XSN")
        return not marked and _modified(after)
    noun = next((i for i, m in enumerate(after) if m.noun), None)
    if noun is None:
        return False
    marked = noun + 1 < len(after) and after[noun + 1].tag in ("JKS", "JKO", "JKB")
    some = any(m.form in ("라도", "이라도") for m in after)
    return some or not marked and (this.form == "무슨" or _modified(after))


def _modified(after: Sentence) -> bool:
    """A modified noun before the predicate: 불편하신 데, 드시는 거, 앓으신 적."""
    return any(a.tag == "ETM" and b.form in _HEADS for a, b in zip(after, after[1:], strict=False))


def _closed_off(sentence: Sentence, at: int) -> bool:
    """Whether a clause ends between word and predicate: 왜 왔는지는 알겠는데, 열은 있으세요?"""
    return any(m.tag == "EC" and m.form in _TURNING for m in sentence[at + 1:])
