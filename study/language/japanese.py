"""The form of a Japanese question, by its ending. Answers are truth-based as in Korean: はい、ありません."""

import re

from study.language.question import Question, Subtype

_OPEN = re.compile(
    r"どう|どの|どん|どこ|どれ|どちら|いつ|なに|何|なぜ|誰|だれ|いくつ|いくら|おいくつ"
    r"|教えて|聞かせて|お話し?(ください|いただ)|話して"
)
_OUTER = re.compile(r"(じゃ|では)(ない|ありません)(です)?(か|でしょうか)?[？?。]?$")
_EXPERIENCE = re.compile(r"(ことは|ことが|ことも|こと)(ない|ありません|なかった|ございません)")
_LONG = re.compile(r"(ては|では|たりは|くは|もし|りは|きは|みは)(い)?(ない|ません|しません|なかった)")
_ABSENT = re.compile(
    r"(な(い|かった)|ありません|ございません|おりません|いません)"
    r"(でした)?(です)?(か|よね|ね|でしょうか)*[？?。]?$"
)
_VERB = re.compile(r"(ません|ない)(でした)?(です)?(か|よね|ね|でしょうか)*[？?。]?$")
_ASSURING = re.compile(r"(よね|ね)[？?。]?$")
_SENTENCE = re.compile(r"(?<=[。？！?!])\s*")


def recognise(text: str) -> Question:
    """Form, negation and judged proposition of the final request of a Japanese utterance."""
    last = [s for s in _SENTENCE.split(text.strip()) if s][-1]
    subtype = _subtype(last)
    if subtype is None and _OPEN.search(last):
        return Question("open_ended")
    if subtype is None:
        alternative = "それとも" in last or len(re.findall(r"か[、？?]", last)) > 1
        return Question("affirmative", alternative=alternative)
    if _OPEN.search(last) and not re.search(r"(何|どこ)か|誰か|いつか", last):
        return Question("open_ended")
    return Question("negative", subtype, judged_positive=subtype == "outer_copula")


def _subtype(last: str) -> Subtype | None:
    if _OUTER.search(last) and not _ASSURING.search(last) and not re.search(r"(わけ|の)(じゃ|では)", last):
        return "outer_copula"
    if _EXPERIENCE.search(last):
        return "inner_npi"
    if not _VERB.search(last):
        return None
    if _LONG.search(last):
        return "inner_long_neun"
    absent = _ABSENT.search(last) and re.search(r"[はがも](な|あり|ござい|おり|い)", last)
    return "inner_lexical" if absent else "inner_short"
