"""A summary held against the ledger: it fails as soon as one of its clauses contradicts a fact."""

from dataclasses import dataclass, replace

from study.language.clauses import clauses
from study.language.ledger import Ledger, holds, relevance, select
from study.language.question import Question
from study.language.topics import Hit, hits, topics
from study.records import Fact

_FRAMES = ("summary", "education", "chief_complaint", "previous_episode", "other_symptoms")


@dataclass(frozen=True)
class Summary:
    """The fact that contradicts a summary, or the one to confirm it with."""

    right: bool
    facts: tuple[Fact, ...]


def held_against(text: str, question: Question, ledger: Ledger) -> Summary:
    """Whether every clause of a summary agrees with the ledger."""
    mentioned: list[Fact] = []
    experienced = replace(question, past=True)
    for clause in clauses(text):
        for hit in _topics(clause.text, ledger):
            for fact in select(clause.text, ledger.facts(hit.topic)):
                if not _counts(fact, hit, ledger):
                    continue
                true = holds(fact, hit.topic, clause.text, experienced)
                if true == clause.denies and _at_stake(clause.text, hit, ledger):
                    return Summary(False, (fact,))
                mentioned.append(fact)
    return Summary(True, _confirming(text, mentioned, ledger))


def _topics(clause: str, ledger: Ledger) -> list[Hit]:
    found = [h for h in hits(clause, ledger.slots) if h.topic not in _FRAMES]
    strong = [h for h in found if not h.weak and h.topic not in ledger.given]
    return [h for h in found if not h.weak or not strong]


def _counts(fact: Fact, hit: Hit, ledger: Ledger) -> bool:
    apart = ("clinical_reasoning", "greeting_identity", "past_medical")
    return fact.category not in apart or hit.topic in ledger.declared and fact.category == "past_medical"


def _at_stake(clause: str, hit: Hit, ledger: Ledger) -> bool:
    """Whether a clause is about a topic, rather than sharing a word with it."""
    asked = topics(clause, ledger.slots, ledger.known, ledger.given)
    return hit.topic in ledger.declared and any(h.topic == hit.topic for h in asked)


def _confirming(text: str, mentioned: list[Fact], ledger: Ledger) -> tuple[Fact, ...]:
    """What a patient adds to a yes: the worry that the case keeps for it, else the best-matching fact."""
    if kept := ledger.facts("summary"):
        return kept[:1]
    details = [f for f in mentioned if f.category != "chief_complaint"] or mentioned
    return (max(details, key=lambda f: relevance(text, f)),) if details else ()
