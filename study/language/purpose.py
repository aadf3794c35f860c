"""What an utterance is for: asking, confirming a summary, or putting a plan to the patient.

The coding manual's order: a plan or an explanation first, then a summary, then leave and greeting; all else asks.
"""

import re
from collections.abc import Mapping
from typing import Literal

from study.language.morphology import sentences
from study.language.question import Question
from study.language.topics import hits
from study.records import Slot

Purpose = Literal["fact", "identity", "social", "confirm", "reaction"]
Reaction = Literal["worry", "understanding", "consent", "advice", "opinion"]

_CONTRAST = re.compile(
    r"(?<=지만|는데|은데|인데|운데|니까|한데|던데|텐데)[,\s]\s*|(?<=신데|난데|린데|픈데|쁜데)[,\s]\s*"
)
_SUMMARY = re.compile(
    r"정리(하|해)|요약|맞게 이해|제대로 이해|제가 이해한|말씀(이시|하신|이네|이군|인가|이죠|인 거)"
    r"|다는 (말씀|거|것|뜻)|(신|은|는|인) ?거(군요|네요|죠|지요)"
)
_PLAN = re.compile(
    "|".join((
        r"(면|게|편이|것이|습관이) ?(제일 |더 |훨씬 |가장 )?(좋|도움|중요|안전)",
        r"필요(하|할|합|해)|(셔야|아야|어야|해야|여야)",
        r"(드릴|할|볼|쓸|놓을|낼)게요|려고 (하|합|해)|(하|드리|보)겠(습니다|어요|는데)",
        r"(드릴|할|볼|쓸|될|릴|일) ?(텐데|예정|건데|거예요|겁니다)",
        r"제 (설명|말)|(설명|말씀|안내) ?(드린|드렸|해 드린|드리)",
        r"의심|가능성|것 같(아요|습니다|은데)|권(하|해|합)|추천|수(도)? 있(어요|습니다|으니|는데|어서)",
        r"(끊|줄이|피하|참지 마|드시지 마|삼가)시|마세요|하세요\.",
    ))
)  # fmt: skip
_REQUESTS: tuple[tuple[Reaction, re.Pattern[str]], ...] = (
    ("worry", re.compile(r"걱정|염려|불안|궁금|질문|물어보(고|실)|무섭|두려|부담")),
    ("understanding", re.compile(r"이해|알아들으|알아듣|설명.*(되셨|괜찮|충분)|아시겠|알겠")),
    ("advice", re.compile(
        r"(수|자신) ?(는 |가 |도 )?(있|없)|노력|약속|지키|지켜|실천|시도|시작해 보"
        r"|해 보시겠|해 보시는|줄여 보|끊어 보|보시겠|가능하"
    )),
    ("consent", re.compile(
        r"괜찮|될까요|되겠|되나요|되죠|동의|진행|받으시겠|하시겠|맞으시겠|해도|원하|협조|싫"
    )),
    ("opinion", re.compile(r"어떠(세요|신가|십|시|실)|어떻게 생각|생각")),
)  # fmt: skip
_TREATMENT = re.compile(r"설명|검사|치료|입원|수술|처방")
_FAILING = re.compile(r"안 되|못 하|어려|모르|헷갈|안 가는|힘드|힘들")
_CLOSING = re.compile(r"감사|고맙|고생하셨|수고|알겠습니다|들어가세요|안녕히|조심히")
_ORDER = re.compile(
    r"(앉|누우|일어나|기다려 주|들이쉬|내쉬|쉬어 보|벗|걷어|돌아누우|움직이지 마)"
    r"[가-힣 ]*(세요|십시오|실게요)[.!]?$"
)
_SYMPATHY = re.compile(
    r"(놀라|힘드|걱정|불편|속상|고생|답답|괴로)[가-힣 ]*(겠어요|겠네요|겠습니다|군요|네요)[.!]?$"
)
_MEETING = re.compile(r"안녕|반갑|처음 뵙|입니다")


def last_clause(sentence: str) -> str:
    """What follows the last "but" or "and so" of a sentence: 열은 나지만 | 기침은 없으세요?"""
    return _CONTRAST.split(sentence)[-1]


def sums_up(text: str) -> bool:
    """Whether an utterance restates what the patient said, to have it confirmed."""
    return _SUMMARY.search(text) is not None and _PLAN.search(sentences(text)[-1]) is None


def reaction_to(text: str) -> Reaction | None:
    """What answer to a plan or an explanation an utterance asks for; None if it puts no plan."""
    last = sentences(text)[-1]
    if not _PLAN.search(text):
        return None
    if len(sentences(text)) == 1 and last_clause(last) == last and not _TREATMENT.search(last):
        return None
    tail = last_clause(last)
    return next((reaction for reaction, request in _REQUESTS if request.search(tail)), None)


def asks_for_failure(text: str) -> bool:
    """Whether it is asked what was not understood: 이해가 안 되는 부분은 없으세요?"""
    return _FAILING.search(sentences(text)[-1]) is not None


def asks_leave(text: str, question: Question, slots: Mapping[str, Slot]) -> bool:
    """Whether leave to ask or to examine is sought, and nothing else: 몇 가지 여쭤봐도 될까요?"""
    last = sentences(text)[-1]
    return question.form != "open_ended" and any(h.topic == "permission" for h in hits(last, slots))


def needs_no_answer(text: str) -> bool:
    """Whether an utterance thanks, closes, directs or shows sympathy, and asks nothing."""
    last = sentences(text)[-1]
    return "?" not in last and any(p.search(last) for p in (_CLOSING, _ORDER, _SYMPATHY))


def greets(text: str, slots: Mapping[str, Slot]) -> bool:
    """Whether an utterance only greets."""
    return bool(_MEETING.search(text)) and "?" not in text and not hits(sentences(text)[-1], slots)
