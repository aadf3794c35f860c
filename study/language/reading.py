"""A Korean question read against a case: its purpose, its topics, the facts that answer it, and the particle."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from study.language.ledger import Ledger, asks_well, holds, keyword_facts, relevance, select
from study.language.lexicon import group
from study.language.morphology import morphemes, sentences
from study.language.question import Particle, Question, particle, recognise
from study.language.topics import UNLISTED, aspects, claims, has_any, hits, topics
from study.records import Fact

Purpose = Literal["fact", "identity", "social", "confirm", "reaction"]
Reaction = Literal["worry", "understanding", "consent", "advice", "opinion"]

_CONTRAST = re.compile(r"(?<=지만|는데|은데|인데|운데|니까|한데|던데|텐데)[,\s]\s*|(?<=신데|난데|린데|픈데|쁜데)[,\s]\s*")
_EXCEPT = re.compile(r"^.*?\S ?(말고도|말고는|말고|빼고는|빼고|이외에는|이외에|외에는|외에도|외에|제외하고)\s*")
_SUMMARY = re.compile(r"정리(하|해)|요약|맞게 이해|제대로 이해|제가 이해한|말씀(이시|하신|이네|이군|인가|이죠|인 거)|다는 (말씀|거|것|뜻)|(신|은|ᆫ|는|인) ?거(군요|네요|죠|지요)")
_PLAN = re.compile(
    r"(면|게|편이|것이|습관이) ?(제일 |더 |훨씬 |가장 )?(좋|도움|중요|안전)|필요(하|할|합|해)|(셔야|아야|어야|해야|여야)|(드릴|할|볼|쓸|놓을|낼)게요|"
    r"려고 (하|합|해)|(드릴|할|볼|쓸|될|릴|일) ?(텐데|예정|건데|거예요|겁니다)|제 (설명|말)|(설명|말씀|안내) ?(드린|드렸|해 드린|드리)|의심|가능성|"
    r"(하|드리|보)겠(습니다|어요|는데)|것 같(아요|습니다|은데)|권(하|해|합)|추천|수(도)? 있(어요|습니다|으니|는데|어서)|(끊|줄이|피하|참지 마|드시지 마|삼가)시|마세요|하세요\."
)
_REQUESTS: tuple[tuple[Reaction, re.Pattern[str]], ...] = (
    ("worry", re.compile(r"걱정|염려|불안|궁금|질문|물어보(고|실)|무섭|두려|부담")),
    ("understanding", re.compile(r"이해|알아들으|알아듣|설명.*(되셨|괜찮|충분)|아시겠|알겠")),
    ("advice", re.compile(r"(수|실 수|하실 수|자신) ?(는 |가 |도 )?(있|없)|노력|약속|지키|지켜|실천|시도|시작해 보|해 보시겠|해 보시는|줄여 보|끊어 보|보시겠|가능하")),
    ("consent", re.compile(r"괜찮|될까요|되겠|되나요|되죠|동의|진행|받으시겠|하시겠|맞으시겠|해도|원하|협조|싫")),
    ("opinion", re.compile(r"어떠(세요|신가|십|시|실)|어떻게 생각|생각")),
)
_LIMIT = 2  # facts in one answer: a patient speaks one or two sentences


@dataclass(frozen=True)
class Reading:
    """What a question asks of a case.

    `proposition` is the truth of what it asks, put positively; None where the case does not say, or nothing is
    asked that could be true or false. `denies` tells a patient who has no fact whether to deny or not to know.
    """

    question: Question
    purpose: Purpose
    topics: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    proposition: bool | None = None
    denies: bool = False
    reaction: Reaction | None = None
    particle: Particle = "none"


def read(text: str, ledger: Ledger) -> Reading:
    """A student's utterance, read against a case's ledger."""
    question = recognise(text)
    last = sentences(text)[-1]
    if question.form != "open_ended" and _is_permission(last, ledger) or _is_greeting(text, ledger):
        return _particled(Reading(question, "social", ("permission",), proposition=True))
    if _is_summary(text) and question.form == "affirmative":
        return _particled(_summary(text, question, ledger))
    if (reaction := _reaction(text, question)) is not None:
        return _particled(_reacting(text, question, reaction, ledger))
    return _particled(_asking(text, question, ledger))


def _asking(text: str, question: Question, ledger: Ledger) -> Reading:
    scope = _scope(text, ledger)
    found = _found(scope, ledger)
    if not found:
        return _by_keyword(text, question, ledger)
    chosen: list[tuple[str, Fact]] = []
    for topic in found:
        pool = [f for t in _siblings(topic, found, ledger) for f in _candidates(t, scope, ledger)]
        facts = select(scope, _once(pool))
        if facts and question.form == "open_ended":
            facts += tuple(f for f in pool if f.polarity == "unknown" and f not in facts)
        chosen += [(topic, f) for f in facts if all(f is not known for _, known in chosen)]
    purpose: Purpose = "identity" if set(found) <= {"name", "birth"} else "fact"
    if not chosen:
        return _without_fact(question, purpose, found, scope, ledger)
    truths = {f.fact_id: _holds(f, topic, scope, question, ledger) for topic, f in chosen}
    proposition = any(truths.values())
    facts = _telling([f for _, f in chosen], truths, question)
    return Reading(question, purpose, found, facts, proposition)


def _holds(fact: Fact, topic: str, scope: str, question: Question, ledger: Ledger) -> bool:
    named = re.search(r"([가-힣]{2,4}) ?(님|씨)", scope)
    if topic == "name" and named:
        return any(k in named[1] or named[1] in k for k in fact.keywords)
    slot = ledger.slots.get(topic)
    return holds(fact, topic, scope, question, slot is not None and slot.default == "deny")


def _siblings(topic: str, found: tuple[str, ...], ledger: Ledger) -> list[str]:
    """Topics that ask of the same relatives, and so share one pool of facts."""
    if topic not in ledger.slots or ledger.slots[topic].category != "family_history":
        return [topic]
    return [t for t in found if t in ledger.slots and ledger.slots[t].category == "family_history"]


def _once(facts: list[Fact]) -> list[Fact]:
    return list({f.fact_id: f for f in facts}.values())


def _telling(facts: list[Fact], truths: dict[str, bool], question: Question) -> tuple[Fact, ...]:
    """One or two facts: what is there before what is not, main facts before minor ones."""
    if question.form == "open_ended":
        kept = [f for f in facts if f.polarity != "absent"] or facts
        kept = kept + [f for f in facts if f not in kept and len(kept) < _LIMIT]
    else:
        deciding = any(truths.values())
        kept = [f for f in facts if truths[f.fact_id] == deciding]
        kept += [f for f in facts if f.polarity == "unknown" and f not in kept]
    major = [f for f in kept if f.priority == "core" or f.kind in ("attribute", "history")] or kept
    return tuple(major[:_LIMIT])


def _without_fact(
    question: Question, purpose: Purpose, found: tuple[str, ...], scope: str, ledger: Ledger
) -> Reading:
    denies = any(t == UNLISTED or ledger.slots[t].default == "deny" for t in found)
    well = any(asks_well(t, scope, denies) for t in found)
    return Reading(question, purpose, found, (), well if denies else None, denies)


def _by_keyword(text: str, question: Question, ledger: Ledger) -> Reading:
    facts = keyword_facts(sentences(text)[-1], ledger.case)
    if facts:
        proposition = any(holds(f, "", text, question) for f in facts)
        return Reading(question, "fact", (), facts, proposition)
    symptom = re.search(r"증상|느낌|아프|불편|통증", sentences(text)[-1]) is not None
    return Reading(question, "fact", (), (), False if symptom else None, symptom)


def _found(scope: str, ledger: Ledger) -> tuple[str, ...]:
    """Topics of a scope; an aspect (언제부터, 얼마나) belongs to a symptom of its own only if the ledger says so."""
    found = [h.topic for h in topics(scope, ledger.slots, ledger.known, ledger.given)]
    symptoms = [t for t in found if t not in ledger.given and t in ledger.slots]
    for aspect in aspects(scope, ledger.slots):
        if aspect.topic in ("chief_complaint", "other_symptoms"):
            continue
        facts = _candidates(aspect.topic, scope, ledger)
        of_own = [t for t in symptoms if ledger.slots[t].category == "hpc_associated"]
        own = [t for t in of_own if any(claims(f.statement, t) for f in ledger.facts(aspect.topic))]
        nothing = all(not ledger.facts(t) and ledger.slots[t].category == "hpc_precipitating" for t in symptoms)
        if symptoms and facts and (own or nothing):
            return (aspect.topic,)
    return tuple(dict.fromkeys(found))


def _candidates(topic: str, scope: str, ledger: Ledger) -> tuple[Fact, ...]:
    facts = ledger.facts(topic)
    if topic != "aggravate_relieve":
        return facts
    direction = [g for g in ("worse", "better") if _directed(scope, g)]
    factors = [f for f in ledger.case.facts if f.category == "hpc_precipitating" and f.polarity == "present"]
    for pool in (facts, factors):
        told = [f for f in pool if any(_directed(f"{f.statement}. {f.answer}", g) for g in direction)]
        if told:
            return tuple(told)
    return facts


def _directed(text: str, direction: str) -> bool:
    more = ("더+아프", "더+힘들", "더+불편하", "더+나", "더+심하") if direction == "worse" else ()
    return has_any(text, (*group(direction), *more))


def _summary(text: str, question: Question, ledger: Ledger) -> Reading:
    """A summary to confirm: false as soon as one of its clauses contradicts the ledger."""
    mentioned: list[Fact] = []
    for clause, denied in _clauses(text):
        for hit in hits(clause, ledger.slots):
            if hit.topic in ("summary", "education", "chief_complaint", "previous_episode", "other_symptoms"):
                continue
            if hit.weak and any(not h.weak and h.topic not in ledger.given for h in hits(clause, ledger.slots)):
                continue
            for fact in select(clause, ledger.facts(hit.topic)):
                if fact.category in ("clinical_reasoning", "greeting_identity", "past_medical") and (
                    hit.topic not in ledger.declared
                ):
                    continue
                claim = holds(fact, hit.topic, clause, replace(question, past=True))
                if claim == denied and hit.topic in ledger.declared and _at_stake(clause, fact, hit.topic, ledger):
                    return Reading(question, "confirm", (hit.topic,), (fact,), not question.judged_positive)
                mentioned.append(fact)
    told = [f for f in ledger.facts("summary")][:1]
    if not told and mentioned:
        told = [max([f for f in mentioned if f.category != "chief_complaint"] or mentioned, key=lambda f: relevance(text, f))]
    return Reading(question, "confirm", ("summary",), tuple(told), question.judged_positive)


def _at_stake(clause: str, fact: Fact, topic: str, ledger: Ledger) -> bool:
    """Whether a clause is about the fact, rather than sharing a word with it."""
    found = topics(clause, ledger.slots, ledger.known, ledger.given)
    return any(h.topic == topic for h in found)


def _clauses(text: str) -> list[tuple[str, bool]]:
    """The clauses of an utterance, and whether each denies: 통증 없이 | 소변만 붉고 | …"""
    found = []
    for sentence in sentences(text):
        start = 0
        marks = morphemes(sentence)
        for at, m in enumerate(marks):
            ends = m.tag == "EC" and m.form in ("고", "며", "으며", "지만", "는데", "ᆫ데", "은데", "면서", "으면서", "어서", "아서")
            follows = marks[at + 1] if at + 1 < len(marks) else None
            if ends and not (follows and follows.tag == "VX") or m.form == "없이" or follows is None:
                piece = sentence[start:m.end].strip(" ,")
                if piece:
                    found.append((piece, _denied(piece)))
                start = m.end
    return found


def _denied(clause: str) -> bool:
    marks = morphemes(clause)
    if any(m.form == "없이" for m in marks):
        return True
    negative = sum(m.form in ("없", "않", "안", "못", "아니", "모르") and m.tag in ("VA", "VV", "VX", "MAG", "VCN") for m in marks)
    return negative % 2 == 1


def _reacting(text: str, question: Question, reaction: Reaction, ledger: Ledger) -> Reading:
    concern = ledger.facts("education") or ledger.facts("patient_ideas")
    facts: tuple[Fact, ...] = concern[:1]
    if reaction == "advice":
        habits = [
            f
            for hit in hits(text, ledger.slots)
            for f in ledger.facts(hit.topic)
            if f.category == "social_history" and f.kind == "exposure" and f.polarity == "present"
            and any(k in text for k in f.keywords)
        ]
        facts = tuple(dict.fromkeys(habits))[:1]
    proposition = reaction != "understanding" or not _fails(text)
    if reaction == "worry" and not facts:
        proposition = False
    return Reading(question, "reaction", ("education",), facts, proposition, reaction=reaction)


def _fails(text: str) -> bool:
    """Whether the question asks for what failed: 이해가 안 되는 부분, 어려운 점."""
    last = sentences(text)[-1]
    return re.search(r"안 되|못 하|어려|모르|헷갈|안 가는|힘드|힘들", last) is not None


def _reaction(text: str, question: Question) -> Reaction | None:
    last = sentences(text)[-1]
    if not _PLAN.search(text):
        return None
    plan_apart = len(sentences(text)) > 1 or _CONTRAST.search(last) or "설명" in last or re.search(r"검사|치료|입원|수술|처방", last)
    if not plan_apart:
        return None
    tail = _CONTRAST.split(last)[-1]
    for reaction, request in _REQUESTS:
        if request.search(tail):
            return reaction
    return None


def _is_summary(text: str) -> bool:
    return _SUMMARY.search(text) is not None and _PLAN.search(sentences(text)[-1]) is None


def _is_permission(last: str, ledger: Ledger) -> bool:
    return any(h.topic == "permission" for h in hits(last, ledger.slots))


def _is_greeting(text: str, ledger: Ledger) -> bool:
    if not re.search(r"안녕|반갑|처음 뵙|입니다", text) or text.rstrip().endswith("?"):
        return False
    return not hits(sentences(text)[-1], ledger.slots) and "?" not in text


def _scope(text: str, ledger: Ledger) -> str:
    """The stretch that names what is asked: the last clause, else the last sentence, else the utterance."""
    last = sentences(text)[-1]
    tail = _CONTRAST.split(last)[-1]
    for scope in (tail, last, text):
        asked = _EXCEPT.sub("그 외에 ", scope, count=1)
        if hits(asked, ledger.slots):
            return asked
    return last


def _particled(reading: Reading) -> Reading:
    if reading.proposition is None:
        return reading
    return replace(reading, particle=particle(reading.question, reading.proposition))
