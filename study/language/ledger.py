"""A case's facts by topic: which of them a question asks for, and whether what it asks is true of the patient."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from study.language.lexicon import group, well_words
from study.language.morphology import lemmas, morphemes
from study.language.quantities import conflict
from study.language.question import Question
from study.language.topics import UNLISTED, hits
from study.language.words import Words, words
from study.records import Case, Fact, Slot

_PEOPLE = ("father", "mother")
_RELATIVES = (
    group("father"), group("mother"), ("누나", "언니", "누이"), ("형", "오빠"), ("동생", "여동생", "남동생"),
    ("할아버지", "외할아버지"), ("할머니", "외할머니"), ("형제", "자매", "형제자매", "남매"),
)  # fmt: skip
_KINDS = (*_PEOPLE, "worse", "better")
_EMPTY = frozenset((
    "있", "없", "하", "되", "보", "나", "것", "거", "적", "때", "수", "데", "점", "분", "님", "저", "제",
    "그", "이", "좀", "더", "또", "잘", "많이", "혹시", "최근", "요즘", "지금", "은", "는", "도", "에",
    "에서", "로", "으로", "가", "를", "의", "만", "까지", "부터", "않", "안", "못", "아니", "주", "오",
    "말", "증상", "어떤", "어떻", "어떻게", "언제", "얼마나", "얼마", "무엇", "뭐", "무슨", "어디", "누구",
    "왜", "몇", "다른", "같", "특별히", "평소", "생기", "들", "환자", "소변", "시작하", "받", "앓", "병",
    "약", "먹", "일", "사람", "가족", "종류", "경험",
))  # fmt: skip
_WELL = ("괜찮", "정상", "건강하", "건강", "멀쩡하", "정상적", "양호하", "문제없", "무사하")
_AMISS = ("이상", "문제", "비정상", "나쁘", "합병증", "이상소견", "유산", "조산", "안좋")
_OPPOSED = (
    (group("worse"), group("better")),
    (("왼쪽", "좌측"), ("오른쪽", "우측")),
    (("낮", "오전", "오후", "대낮", "낮시간"), ("밤", "새벽", "저녁")),
    (("계속", "내내", "줄곧", "쭉", "꾸준히", "점점", "갈수록"), ("간헐", "맑", "맑아지", "오르내리", "오르")),
    (("시작하", "만", "초반", "마지막"), ("까지", "내내")),
    (
        ("혼자", "독거"),
        ("함께", "같이", "가족", "가족분", "부모", "부모님", "둘", "아내", "집사람", "남편", "아들"),
    ),
    (("갑자기",), ("서서히", "점점", "천천히")),
)
_LESS = ("줄", "감소", "감소하", "적어지", "약해지", "떨어지", "덜")
_ENDED = ("끊", "금연", "금연하", "금주")


@dataclass(frozen=True)
class Ledger:
    """The facts of one case, indexed by the topics of a lexicon of slots."""

    case: Case
    slots: Mapping[str, Slot]
    declared: Mapping[str, tuple[Fact, ...]]
    linked: Mapping[str, tuple[Fact, ...]]
    given: frozenset[str]

    def facts(self, topic: str) -> tuple[Fact, ...]:
        """Facts that answer a topic: those that name it, or, where none does, those whose wording is about it."""
        facts = self.declared.get(topic) or self.linked.get(topic, ())
        own = tuple(f for f in facts if f.category == "chief_complaint" and f.kind == "symptom")
        return own if topic in self.given and own else facts

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self.declared)


def index(case: Case, slots: Mapping[str, Slot]) -> Ledger:
    """A case's ledger, ready to be asked."""
    declared: dict[str, list[Fact]] = {}
    linked: dict[str, list[Fact]] = {}
    for fact in case.facts:
        for slot in fact.slots:
            declared.setdefault(slot, []).append(fact)
        if fact.category in ("greeting_identity", "clinical_reasoning", "physical_exam"):
            continue
        for hit in _about(fact, slots):
            if slots[hit].default == "deny":
                linked.setdefault(hit, []).append(fact)
    complaints = [f for f in case.facts if f.category == "chief_complaint" and f.kind == "symptom"]
    given = {topic for f in complaints for topic in _about(f, slots)} - set(declared)
    return Ledger(case, slots, _frozen(declared), _frozen(linked), frozenset(given))


def select(text: str, candidates: Iterable[Fact]) -> tuple[Fact, ...]:
    """Those of a topic's facts that the question singles out (어머님은, 걸을 때); all, if it does not."""
    candidates = tuple(candidates)
    if len(candidates) < 2:
        return candidates
    asked = _content(text)
    worded = [_wording(f) for f in candidates]
    shared = frozenset.intersection(*worded)
    overlaps = [asked & (w - shared) for w in worded]
    if any(overlaps):
        best = max(len(o) for o in overlaps)
        seen: set[str] = set()
        chosen = []
        for fact, overlap in sorted(zip(candidates, overlaps, strict=True), key=lambda p: -len(p[1])):
            if overlap and (len(overlap) == best or not overlap <= seen):
                chosen.append(fact)
                seen |= overlap
        return tuple(f for f in candidates if f in chosen)
    return candidates


def of_relative(text: str, candidates: Iterable[Fact]) -> tuple[Fact, ...]:
    """Those facts that speak of the relative whom the question names; all, if it names none."""
    candidates = tuple(candidates)
    asked = [people for people in _RELATIVES if words(text).find(people)]
    if not asked or not any(f.category == "family_history" for f in candidates):
        return candidates
    return tuple(f for f in candidates if any(_words_of(f).find(people) for people in asked))


def holds(fact: Fact, topic: str, text: str, question: Question, denies: bool = True) -> bool:
    """Whether the positive proposition of a question is true, given the fact that answers it."""
    present = fact.polarity == "present"
    asked, worded = words(text), _words_of(fact)
    if present and (_opposed(asked, worded) or conflict(text, fact.statement + " " + fact.answer)):
        return False
    if present and worded.find(_ENDED) and not asked.find(_ENDED):
        return question.past
    if worded.find(("정상", "문제없이", "문제없", "자연분만")) and present:
        return not asked.find(_AMISS) or bool(asked.find(("정상", "괜찮")))
    return present != asks_well(topic, text, denies, worded if present else None)


def asks_well(topic: str, text: str, denies: bool, worded: Words | None = None) -> bool:
    """Whether a question asks for the well side of a topic's problem: 소변 줄기는 괜찮으세요?"""
    asked = words(text)
    if asked.find((*_LESS, *_AMISS, "변화", "변하", "달라지")):
        return False
    general = _WELL if denies else ()
    found = [w for w in (*general, *well_words(topic)) if asked.find((w,))]
    if worded is not None:
        found = [w for w in found if not worded.find((w,)) or w in well_words(topic)]
        found = [w for w in found if w not in _ENDED or not worded.find(_ENDED)]
    return bool(found)


def relevance(text: str, fact: Fact) -> int:
    """How many words of a question a fact's own wording shares with it."""
    return len(_content(text) & _wording(fact))


def keyword_facts(text: str, case: Case) -> tuple[Fact, ...]:
    """Facts with the most keywords in the text: for a topic that no lexicon knows."""
    counts = [(sum(k in text for k in f.keywords if len(k) > 1), f) for f in case.facts]
    best = max((n for n, _ in counts), default=0)
    return tuple(f for n, f in counts if best and n == best)[:2]


def _about(fact: Fact, slots: Mapping[str, Slot]) -> list[str]:
    worded = (fact.statement, fact.answer)
    found = {h.topic for text in worded for h in hits(text, slots) if not h.weak}
    return sorted(found - {UNLISTED})


def _opposed(asked: Words, worded: Words) -> bool:
    for one, other in _OPPOSED:
        for here, there in ((one, other), (other, one)):
            if asked.find(here) and worded.find(there) and not asked.find(there) and not worded.find(here):
                return True
    return False


@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    """The words of a text that can single out a fact; kinship and worse or better under their group's name."""
    kept = set()
    for morpheme, lemma in zip(morphemes(text), lemmas(text), strict=True):
        if lemma and lemma not in _EMPTY and morpheme.tag not in ("JX", "JKB", "VX", "VCP"):
            kept.add(next((g for g in _KINDS if lemma in group(g)), lemma))
    return frozenset(kept)


def _wording(fact: Fact) -> frozenset[str]:
    return _content(fact.statement) | _content(fact.answer) | _content(" ".join(fact.keywords))


def _words_of(fact: Fact) -> Words:
    return words(re.sub(r"[()]", " ", f"{fact.statement}. {fact.answer}"))


def _frozen(facts: Mapping[str, list[Fact]]) -> dict[str, tuple[Fact, ...]]:
    return {topic: tuple(found) for topic, found in facts.items()}
