"""A Korean question read against a case: its purpose, its topics, the facts that answer it, and the particle."""

import re
from dataclasses import dataclass, replace

from study.language.ledger import Ledger, asks_well, holds, keyword_facts, of_relative, select
from study.language.lexicon import group
from study.language.morphology import sentences
from study.language.purpose import (
    Purpose,
    Reaction,
    asks_for_failure,
    asks_leave,
    greets,
    last_clause,
    needs_no_answer,
    reaction_to,
    sums_up,
)
from study.language.question import Particle, Question, particle, recognise
from study.language.summary import held_against
from study.language.topics import UNLISTED, aspects, claims, has_any, hits, topics
from study.records import Fact

_EXCEPT = re.compile(r"^.*?\S ?(말고도|말고는|말고|빼고는|빼고|이외에는|이외에|외에는|외에도|외에|제외하고)\s*")
_NAMED = re.compile(r"([가-힣]{2,4}) ?(님|씨|환자분)")
_OF_SYMPTOM = re.compile(r"증상|느낌|아프|불편|통증")
_MORE = ("더+아프", "더+힘들", "더+불편하", "더+나", "더+심하")
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
    """A student's utterance, read against a case's ledger.

    Raises
    ------
    StudyError : for an empty utterance
    """
    reading = _read(text, recognise(text), ledger)
    if reading.proposition is None:
        return reading
    return replace(reading, particle=particle(reading.question, reading.proposition))


def _read(text: str, question: Question, ledger: Ledger) -> Reading:
    if asks_leave(text, question, ledger.slots) or greets(text, ledger.slots):
        return Reading(question, "social", ("permission",), proposition=True)
    if needs_no_answer(text):
        return Reading(Question("affirmative"), "social", proposition=True)
    if sums_up(text) and question.form == "affirmative":
        summary = held_against(text, question, ledger)
        right = question.judged_positive == summary.right
        return Reading(question, "confirm", ("summary",), summary.facts, right)
    if (reaction := reaction_to(text)) is not None:
        return _reacting(text, question, reaction, ledger)
    return _asking(text, question, ledger)


def _asking(text: str, question: Question, ledger: Ledger) -> Reading:
    scope = _scope(text, ledger)
    found = _topics(scope, ledger)
    if not found:
        return _by_keyword(text, question, ledger)
    chosen = _chosen(found, scope, question, ledger)
    purpose: Purpose = "identity" if set(found) <= {"name", "birth"} else "fact"
    if not chosen:
        denies = any(t == UNLISTED or ledger.slots[t].default == "deny" for t in found)
        well = any(asks_well(t, scope, denies) for t in found)
        return Reading(question, purpose, found, (), well if denies else None, denies)
    truths = {f.fact_id: _holds(f, topic, scope, question, ledger) for topic, f in chosen}
    facts = _telling([f for _, f in chosen], truths, question)
    return Reading(question, purpose, found, facts, any(truths.values()))


def _chosen(
    found: tuple[str, ...], scope: str, question: Question, ledger: Ledger
) -> list[tuple[str, Fact]]:
    """The facts that answer, each with its topic."""
    chosen: list[tuple[str, Fact]] = []
    for topic in found:
        pool = _once([f for t in _siblings(topic, found, ledger) for f in _candidates(t, scope, ledger)])
        facts = select(scope, of_relative(scope, pool))
        if facts and question.form == "open_ended":
            facts += tuple(f for f in pool if f.polarity == "unknown" and f not in facts)
        chosen += [(topic, f) for f in facts if all(f is not known for _, known in chosen)]
    return chosen


def _holds(fact: Fact, topic: str, scope: str, question: Question, ledger: Ledger) -> bool:
    if topic == "name" and (named := _NAMED.search(scope)):
        return any(k in named[1] or named[1] in k for k in fact.keywords)
    slot = ledger.slots.get(topic)
    return holds(fact, topic, scope, question, slot is not None and slot.default == "deny")


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


def _by_keyword(text: str, question: Question, ledger: Ledger) -> Reading:
    """A question that no topic of the lexicon fits: by the facts' own keywords, or the case's default policy."""
    last = sentences(text)[-1]
    if facts := keyword_facts(last, ledger.case):
        return Reading(question, "fact", (), facts)
    symptom = _OF_SYMPTOM.search(last) is not None
    return Reading(question, "fact", (), (), False if symptom else None, symptom)


def _topics(scope: str, ledger: Ledger) -> tuple[str, ...]:
    """Topics of a scope; an aspect (언제부터, 얼마나) belongs to a symptom of its own if the ledger says so."""
    found = [h.topic for h in topics(scope, ledger.slots, ledger.known, ledger.given)]
    symptoms = [t for t in found if t not in ledger.given and t in ledger.slots]
    for aspect in aspects(scope, ledger.slots):
        if aspect.topic in ("chief_complaint", "other_symptoms") or not symptoms:
            continue
        if _candidates(aspect.topic, scope, ledger) and _goes_with(aspect.topic, symptoms, ledger):
            return (aspect.topic,)
    return tuple(dict.fromkeys(found))


def _goes_with(aspect: str, symptoms: list[str], ledger: Ledger) -> bool:
    """Whether the ledger's facts on an aspect speak of one of the symptoms, or nothing speaks of those."""
    associated = [t for t in symptoms if ledger.slots[t].category == "hpc_associated"]
    if any(claims(f.statement, t) for t in associated for f in ledger.facts(aspect)):
        return True
    return all(not ledger.facts(t) and ledger.slots[t].category == "hpc_precipitating" for t in symptoms)


def _candidates(topic: str, scope: str, ledger: Ledger) -> tuple[Fact, ...]:
    """A topic's facts; what makes it worse or better is told by every fact that says so."""
    facts = ledger.facts(topic)
    if topic != "aggravate_relieve":
        return facts
    asked = [g for g in ("worse", "better") if _directed(scope, g)]
    factors = [f for f in ledger.case.facts if f.category == "hpc_precipitating" and f.polarity == "present"]
    for pool in (facts, factors):
        told = [f for f in pool if any(_directed(f"{f.statement}. {f.answer}", g) for g in asked)]
        if told:
            return tuple(told)
    return facts


def _directed(text: str, direction: str) -> bool:
    return has_any(text, (*group(direction), *(_MORE if direction == "worse" else ())))


def _siblings(topic: str, found: tuple[str, ...], ledger: Ledger) -> list[str]:
    """Topics that ask of the same relatives, and so share one pool of facts."""
    if topic not in ledger.slots or ledger.slots[topic].category != "family_history":
        return [topic]
    return [t for t in found if t in ledger.slots and ledger.slots[t].category == "family_history"]


def _once(facts: list[Fact]) -> list[Fact]:
    return list({f.fact_id: f for f in facts}.values())


def _reacting(text: str, question: Question, reaction: Reaction, ledger: Ledger) -> Reading:
    concerns = ledger.facts("education") or ledger.facts("patient_ideas")
    facts = _habits(text, ledger) if reaction == "advice" else concerns[:1]
    true = reaction != "understanding" or not asks_for_failure(text)
    if reaction == "worry" and not facts:
        true = False
    return Reading(question, "reaction", ("education",), facts, true, reaction=reaction)


def _habits(text: str, ledger: Ledger) -> tuple[Fact, ...]:
    """The habit that advice is about: smoking, a cat."""
    return tuple(
        fact
        for hit in hits(text, ledger.slots)
        for fact in ledger.facts(hit.topic)
        if fact.category == "social_history" and fact.kind == "exposure" and fact.polarity == "present"
        and any(k in text for k in fact.keywords)
    )[:1]


def _scope(text: str, ledger: Ledger) -> str:
    """The stretch that names what is asked: the last clause, else the last sentence, else the utterance."""
    last = sentences(text)[-1]
    for scope in (last_clause(last), last, text):
        asked = _EXCEPT.sub("그 외에 ", scope, count=1)
        if hits(asked, ledger.slots):
            return asked
    return last
