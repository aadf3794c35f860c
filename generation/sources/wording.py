"""How a patient puts a fact: sentences joined, endings turned, denials and reactions in plain 해요체."""

import re
from collections.abc import Sequence

from study.language.clauses import clauses
from study.language.morphology import Morpheme, inflected, morphemes, sentences
from study.language.reading import Reading
from study.records import Fact

UNKNOWN = "글쎄요, 잘 모르겠어요."
_PAST = ("었", "았")
_LONGEST = 60  # Korean letters in one joined sentence; two facts beyond that stay two sentences


def told(facts: Sequence[Fact]) -> str:
    """Facts in the patient's words, two short ones as one sentence: 약을 먹고, 아스피린도 먹어요."""
    answers = [f.answer for f in facts]
    if len(answers) != 2:
        return " ".join(answers)
    first, second = answers
    short = len(first) + len(second) <= _LONGEST and _plain(first) and _plain(second)
    if not short or any(f.polarity == "unknown" for f in facts):
        return f"{first} {second}"
    if _denies(first) and _denies(second):
        second = _also(second)
    return f"{turned(first, 'and')}, {second}"


def turned(sentence: str, how: str) -> str:
    """A sentence's last predicate with another ending.

    Parameters
    ----------
    how : and (-고), so (-어서), while (-는데), or of (the adnominal form: 걱정돼요 → 걱정되는)
    """
    found = morphemes(sentence)
    last = max(i for i, m in enumerate(found) if m.tag == "EF")
    start = _word_start(sentence, found, last)
    stem = [m for m in found[:last] if m.start >= start]
    courtesy = [("시", "EP")] if found[last].form in ("세요", "으세요") else []
    ending = _ending(stem, how)
    if how == "of" and stem[-1].form in _PAST and ending[0] == "ᆫ":
        stem = stem[:-1]  # 빨개졌- has no adnominal of its own: 빨개진
    word = inflected(stem, [*courtesy, ending])
    spaced = " " in sentence[start:found[last].end]
    return sentence[:start] + (word if spaced else word.replace(" ", ""))


def denial(question: str) -> str:
    """A denial of what no fact speaks of, in the question's own frame."""
    last = sentences(question)[-1]
    found = morphemes(last)
    past = any(m.form in ("었", "았") for m in found[-5:])
    if any(m.form == "적" and m.tag == "NNB" for m in found):
        return "그런 적은 없어요."
    if re.search(r"(있|없|계시|안 계)[가-힣]*[?.]*$", last):
        return "그런 건 없었어요." if past else "그런 건 없어요."
    return "그렇지는 않았어요." if past else "그렇지는 않아요."


def reaction(reading: Reading) -> str:
    """What a patient answers to a plan: agreement, and the worry that goes with it."""
    worry = told(reading.facts)
    match reading.reaction:
        case "worry":
            return worry or "다른 건 없어요."
        case "understanding":
            return "이해했어요." + (f" 그런데 {worry}" if worry else "")
        case "advice":
            return f"{turned(worry, 'while')} 한번 해 볼게요." if worry else "그렇게 해 볼게요."
        case "opinion":
            return f"{worry} 그래도 그렇게 할게요." if worry else "그렇게 할게요."
        case _:
            return "그렇게 할게요." + (f" 그런데 {worry}" if worry else "")


def _ending(stem: Sequence[Morpheme], how: str) -> tuple[str, str]:
    if how in ("and", "so"):
        return ("고" if how == "and" else "어서", "EC")
    head = next(m for m in reversed(stem) if m.tag != "EP" or m.form in _PAST)
    auxiliary = next((m.tag for m in reversed(stem[:-1]) if m.tag in ("VV", "VA")), "VV")
    described = head.tag in ("VA", "XSA", "VCP") or head.tag == "VX" and head.form == "않" and auxiliary == "VA"
    past = head.form in _PAST
    if past:
        verb = next(m for m in reversed(stem) if m.tag != "EP")
        described = verb.tag in ("VA", "XSA", "VCP")
    if how == "while":
        return ("ᆫ데" if described and not past else "는데", "EC")
    if past:
        return ("던" if described else "ᆫ", "ETM")
    return ("ᆫ" if described else "는", "ETM")


def _word_start(sentence: str, found: Sequence[Morpheme], last: int) -> int:
    """Where the last predicate begins; an auxiliary counts as part of it (피우고 있어요)."""
    at = last
    while at > 0 and not (found[at].tag in ("VV", "VA", "VCP", "VCN", "XSV", "XSA", "VX") and _heads(found, at)):
        at -= 1
    return max(sentence.rfind(" ", 0, found[at].start) + 1, 0)


def _heads(found: Sequence[Morpheme], at: int) -> bool:
    return found[at].tag in ("VV", "VA", "VCP", "VCN", "XSV", "XSA") or found[at].tag == "VX"


def _plain(sentence: str) -> bool:
    """One clause, so that another may be joined to it."""
    return len(clauses(sentence)) == 1 and sentence.endswith("요.")


def _denies(sentence: str) -> bool:
    return clauses(sentence)[-1].denies


def _also(sentence: str) -> str:
    """수술은 안 받았어요 → 수술도 안 받았어요."""
    marks = [m for m in morphemes(sentence) if m.tag == "JX" and m.form in ("은", "는")]
    if not marks:
        return sentence
    return sentence[:marks[-1].start] + "도" + sentence[marks[-1].end:]
