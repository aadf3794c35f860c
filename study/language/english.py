"""The form of an English question, by its first auxiliary and content word.

A negative tag on a positive statement (You smoke, don't you?) leaves the question affirmative. English particles
follow the answer's own polarity: `question.polarity_particle`.
"""

import re

from study.language.question import Question

_OPEN = re.compile(
    r"^(and |so |but |then |now |okay |ok |well |please |alright |,)*"
    r"(what|when|where|why|who|whom|whose|which|how|tell me|describe|explain|walk me|talk me|"
    r"can you (tell|describe|explain)|could you (please )?(tell|describe|"
    r"explain|share|say)|would you (tell|describe|explain)|i('d| would) like to hear)\b",
)
_TAG = re.compile(r",\s*(do|does|did|is|are|was|were|have|has|had|can|could|will|would|should)(n't| not)?\s+"
                  r"(you|it|he|she|they|there|that|we)\??$")
_NEGATED = re.compile(
    r"\b(do|does|did|is|are|was|were|have|has|had|ca|could|wo|would|should|ai)n't\b|\bnot\b|\bno\b|\bnever\b|"
    r"\bnone\b|\bnobody\b|\bnothing\b|\bwithout any\b",
)
_FRONTED = re.compile(
    r"^\W*(and |so |but )?(do|does|did|is|are|was|were|have|has|had|ca|could|wo|would)n't\b"
)
_SENTENCE = re.compile(r"(?<=[.?!])\s+")


def recognise(text: str) -> Question:
    """Form, negation and judged proposition of the final request of an English utterance."""
    last = [s for s in _SENTENCE.split(text.strip().lower().replace("\u2019", "'")) if s][-1]
    tag = _TAG.search(last)
    body = last[:tag.start()] if tag else re.sub(r",\s*(right|correct)\??$", "", last)
    request = body.rsplit(", ", 1)[-1] if not _OPEN.search(body) else body
    if not tag and (_OPEN.search(body) or _OPEN.search(request)):
        return Question("open_ended")
    if not _NEGATED.search(body):
        alternative = not tag and re.search(r"\bor (is|are|does|do|did|was|were|more|only)\b", body) is not None
        return Question("affirmative", alternative=alternative)
    if _FRONTED.match(body):  # Isn't there any pain? seeks the positive, and its answer follows its own polarity
        return Question("negative", "outer_long", judged_positive=True, ambiguous=True)
    return Question("negative", "inner_short", judged_positive=False)
