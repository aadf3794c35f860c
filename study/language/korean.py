"""The form of a Korean question, from its last predicate.

The coding manual's rules: the last clause decides; a content word or a request to tell makes a question open;
a negated main predicate makes it negative. Particles follow Park and Dubinsky (2019, PLSA 4:19).
"""

from dataclasses import replace

from study.language import predicate as predicates
from study.language.morphology import morphemes, sentences
from study.language.openness import asks_content, tells
from study.language.predicate import Predicate, Sentence, has, last_stem
from study.language.question import Question

_ASKING = (
    "ᆫ가", "은가", "는가", "ᆫ가요", "은가요", "는가요", "나요", "나", "ᆯ까요", "을까요", "세요", "으세요",
    "어요", "아요", "습니까", "ᆸ니까", "죠", "지요",
)  # fmt: skip
_TAGS = ("맞", "그렇", "이해하")


def recognise(text: str) -> Question:
    """Form, negation and judged proposition of the final request of a Korean utterance."""
    *before, last = sentences(text) or [""]
    sentence = morphemes(last)
    predicate = predicates.main(sentence)
    if predicate is None or _is_topic_alone(sentence) or tells(sentence):
        return Question("open_ended")
    past = _past(sentence)
    if predicate.subtype is None and _gives_alternatives(sentence):
        return Question("affirmative", alternative=True, past=past)
    if asks_content(sentence, predicate):
        return Question("open_ended", past=past)
    if predicate.subtype is not None:
        return _negative(sentence, predicate, past)
    positive = _tagged_positive(sentence, predicate, before)
    return Question("affirmative", judged_positive=positive, past=past)


def negated(text: str) -> bool:
    """Whether the last predicate of a clause denies: 없어요, 안 아파요, 아프지는 않아요."""
    predicate = predicates.main(morphemes(text))
    return predicate is not None and predicate.negations % 2 == 1


def _negative(sentence: Sentence, predicate: Predicate, past: bool) -> Question:
    question = Question("negative", predicate.subtype, past=past)
    judged = predicate.negations - 1 if question.outer else predicate.negations
    ambiguous = predicate.subtype == "outer_long" and not _biased(sentence)
    return replace(question, judged_positive=judged % 2 == 0, ambiguous=ambiguous)


def _biased(sentence: Sentence) -> bool:
    """Whether a bare 않으세요 shows that a yes is expected: 혹시 …, 드시고 있지 않으세요, 그렇지 않나요."""
    pairs = zip(sentence, sentence[1:], strict=False)
    ongoing = any(a.form == "고" and b.form in ("있", "계시") for a, b in pairs)
    return ongoing or has(sentence, "혹시", "MAG") or has(sentence, "그렇", "VA")


def _tagged_positive(sentence: Sentence, predicate: Predicate, before: list[str]) -> bool:
    """Whether the proposition behind a tag (맞나요?, 그렇죠?) is positive; without a tag it is."""
    this = sentence[predicate.at]
    understood = this.tag == "XSV" and predicate.at > 0 and sentence[predicate.at - 1].form == "이해"
    if this.form not in _TAGS and not understood:
        return True
    inner = last_stem(sentence, predicate.at)
    while inner is not None and (sentence[inner].form in _TAGS or sentence[inner].form == "하"):
        inner = last_stem(sentence, inner)
    if inner is not None:
        return predicates.read(sentence, inner).negations % 2 == 0
    return not (before and negated(before[-1]))


def _gives_alternatives(sentence: Sentence) -> bool:
    """낮에 심한가요, 밤에 심한가요? Also one that opens with 아니면."""
    pairs = list(zip(sentence, sentence[1:], strict=False))
    joined = any(a.form == "아니" and b.form in ("면", "라면") for a, b in pairs)
    joined = joined or any(m.form in ("아니면", "혹은") and m.tag == "MAJ" for m in sentence)
    asked = [m for m in sentence if m.tag == "EF" and m.form in _ASKING]
    tag = sentence[last_stem(sentence, len(sentence)) or 0].form in (*_TAGS, "아니", "않")
    return joined or len(asked) > 1 and not tag


def _is_topic_alone(sentence: Sentence) -> bool:
    """다른 증상은요?: a topic held out, its predicate left to the patient."""
    tail = sentence[:-1] if sentence and sentence[-1].form == "요" else sentence
    return bool(tail) and tail[-1].tag == "JX" and tail[-1].form in ("은", "는", "ᆫ")


def _past(sentence: Sentence) -> bool:
    experience = has(sentence, "적", "NNB")
    return experience or any(m.form in ("었", "았", "였") and m.tag == "EP" for m in sentence[-6:])
