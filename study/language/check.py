"""An answer held against the question and the ledger: particle, contradiction, register.

Three faults stay apart (Park and Dubinsky 2019): a particle that does not go with its own clause, a clause that
contradicts the case, and a bare particle that leaves open what it means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from study.language.answer import Register, answered, mentions, register, without_particle
from study.language.clauses import Clause, clauses, stems
from study.language.ledger import asks_well
from study.language.morphology import sentences
from study.language.question import Particle
from study.language.reading import Reading
from study.language.words import words
from study.records import Fact

Fault = Literal["particle_mismatch", "fact_contradiction", "bare_particle"]

_FRAMES = ("적", "데", "거", "것", "분", "일", "점", "느낌", "증상", "사람", "약", "건")
_NO_CHANGE = ("그대로", "상관없", "상관", "관계없", "똑같", "여전하")


@dataclass(frozen=True)
class Check:
    """What an answer claims about the question's positive proposition, and how that sits with the ledger.

    `claim` is None where no clause decides; `contradiction` is then by the particle alone.
    """

    particle: Particle
    expected: Particle
    claim: bool | None
    faults: tuple[Fault, ...]
    mentioned: tuple[Fact, ...]
    missing: tuple[Fact, ...]
    register: Register


def check(question: str, reading: Reading, answer: str, facts: Sequence[Fact] | None = None) -> Check:
    """An answer's faults, given how its question reads against the case.

    Parameters
    ----------
    facts : what a complete answer conveys; the reading's own where not given
    """
    expected = tuple(reading.facts if facts is None else facts)
    given, said = answered(answer), clauses(without_particle(answer))
    claims = [c for clause in said if (c := _claim(question, reading, clause, expected)) is not None]
    truth = reading.proposition
    claim = None if not claims or truth is None else (truth if all(c == truth for c in claims) else not truth)
    mentioned = tuple(f for f in expected if mentions(answer, f.keywords))
    return Check(
        given,
        reading.particle,
        claim,
        _faults(reading, given, claim, bare=not said),
        mentioned,
        tuple(f for f in expected if f not in mentioned),
        register(answer),
    )


def _faults(reading: Reading, given: Particle, claim: bool | None, bare: bool) -> tuple[Fault, ...]:
    truth, question = reading.proposition, reading.question
    if truth is None or question.form == "open_ended" or question.alternative:
        return ("fact_contradiction",) if claim is not None and truth is not None and claim != truth else ()
    wrong = given != "none" and given != reading.particle
    if bare:
        return ("bare_particle",)
    if reading.purpose in ("reaction", "social"):  # no fact is at stake, only agreement
        return ("particle_mismatch",) if wrong and not question.ambiguous else ()
    if claim is None:
        return ("fact_contradiction",) if wrong and not question.ambiguous else ()
    if claim != truth:
        follows = given == "none" or (given == "네") == (question.judged_positive == claim)
        return ("fact_contradiction",) if follows else ("fact_contradiction", "particle_mismatch")
    return ("particle_mismatch",) if wrong and not question.ambiguous else ()


def _claim(question: str, reading: Reading, clause: Clause, facts: Sequence[Fact]) -> bool | None:
    """What one clause says of the question's proposition; None if it says nothing of it."""
    truth = reading.proposition
    if truth is None:
        return None
    asked = _asked_stems(question)
    for fact in facts:
        if (agrees := _agrees(clause, fact, reading, asked)) is not None:
            return truth if agrees else not truth
    if clause.stems & asked:
        return not clause.denies
    vague = not clause.stems or "그런" in clause.text or "다른" in clause.text
    if clause.denies and vague and _exists(question):
        return False
    if clause.denies and not clause.stems and any(n in words(clause.text).places for n in _FRAMES):
        return False
    return None


def _agrees(clause: Clause, fact: Fact, reading: Reading, asked: frozenset[str]) -> bool | None:
    """Whether a clause says what the fact says, or its contrary; None if it is not about the fact."""
    if fact.surface_polarity == "any":
        return _agrees_in_wording(clause, fact)
    if not mentions(clause.text, fact.keywords):
        return None
    topic = next((t for t in reading.topics if t in fact.slots), "")
    turned = asks_well(topic, clause.text, True, words(f"{fact.statement}. {fact.answer}")) or bool(
        words(clause.text).find(_NO_CHANGE)
    )
    return (clause.denies != turned) == (fact.surface_polarity == "neg")


def _agrees_in_wording(clause: Clause, fact: Fact) -> bool | None:
    for sentence in sentences(fact.answer):
        for told in clauses(sentence):
            same = told.stems & clause.stems
            if same and mentions(clause.text, fact.keywords):
                return told.denies == clause.denies
    unchanged = words(clause.text).find(_NO_CHANGE) and words(fact.answer).find(_NO_CHANGE)
    return True if unchanged else None


def _asked_stems(question: str) -> frozenset[str]:
    """The predicates of a question's last sentence: 나다 of 나지는 않으세요, 앓다 of 앓으신 적은 없으세요."""
    return stems(sentences(question)[-1])


def _exists(question: str) -> bool:
    """Whether a question asks for existence: 불편하신 데는 없으세요?"""
    return bool(words(sentences(question)[-1]).find(("있", "없")))
