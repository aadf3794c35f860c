"""What is noteworthy about an answer. A flagged answer is still the answer: it is kept, counted and rated."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from generation.reply import Reply

FLAGS: dict[str, str] = {
    "refusal": "declines to answer",
    "empty": "holds no text",
    "whitespace": "holds nothing but white space",
    "truncated": "was cut at the token limit",
    "filtered": "was touched by the provider's content filter",
    "mojibake": "holds characters that no decoding explains",
    "thinking_leak": "shows the model's reasoning",
    "markup_leak": "shows tokens of the chat template",
    "prompt_leak": "repeats its instructions",
    "wrong_language": "is not in the study's language",
    "register": "is not spoken as the patient speaks",
    "role_drift": "speaks as a clinician or an assistant",
    "over_limit": "is longer than the limit that was sent: the server ignored it",
    "prompt_cut": "rests on a prompt that the server seems to have cut",
}

_REFUSAL = re.compile(
    r"^(i'?m|i am) (really |very )?sorry,? but|as an ai( language)? model"
    r"|i (can'?t|cannot|can not|am unable to|won'?t) (help|assist|provide|do that|play|answer|continue|comply)"
    r"|(도와|답변|대답|제공|말씀)(해 |을 |를 )?(드릴|할|해드릴) 수 (가 )?(없|어렵)"
    r"|요청(을|에는?) .{0,10}(수 없|어렵)|AI (언어 )?모델",
    re.IGNORECASE,
)
_THINKING = re.compile(
    r"</?think(ing)?>|◁/?think▷|<\|channel\|>|</?reasoning>|^(Thinking Process|Reasoning):", re.I
)
_MARKUP = re.compile(r"<\|[a-z_0-9]+\|>|\[/?INST\]|<</?SYS>>|</?s>|<(start|end)_of_turn>|^#{1,4} ", re.I | re.M)
_MOJIBAKE = re.compile(
    r"\ufffd|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|[ìëêíã][\u0080-\u00bf]{1,2}|Ã[\u0080-\u00bf]"
)
_DRIFT = re.compile(
    r"무엇을 도와\s?드릴까요|도움이 (필요하|되)시면|환자분|진료(해|를 시작)|처방(해|을) ?드리"
    r"|검사(를|해) ?(해 )?(보겠|드리겠|권)|의사로서|(저는|제가) (의사|AI|인공지능|챗봇)"
    r"|학생의사입니다|어디가 불편하(세요|신가요|십니까)\?"
    r"|how can i (help|assist) you|as (a|your) doctor|i'?m (a|the) doctor|i'?m not a (doctor|patient)"
    r"|i would (recommend|prescribe)",
    re.IGNORECASE,
)
_SCRIPTS = {  # beginnings of the Unicode names of a language's letters
    "ko": ("HANGUL",),
    "ja": ("HIRAGANA", "KATAKANA", "CJK"),
    "en": ("LATIN",),
}
_OWN_SHARE = 0.6  # of an answer's letters
_SHARED_RUN = {"ko": 12, "ja": 12}  # characters without spaces that count as repeating the instructions
_LONG_RUN = 30
_CHARACTERS_A_TOKEN = 8  # more than any tokenizer puts into one token on average


def flags(
    reply: Reply,
    *,
    language: str,
    instructions: Sequence[str] = (),
    sent: str = "",
    limit: int | None = None,
) -> tuple[str, ...]:
    """What is noteworthy about a reply, in the order of FLAGS.

    Parameters
    ----------
    instructions : parts of the prompt that an answer may not repeat (what is said of the patient, it may)
    sent : everything that was sent, to hold against the server's count of prompt tokens
    limit : the limit of tokens that was sent
    """
    found = set(reply.flags)
    usage = reply.usage
    if limit is not None and usage.completion is not None and usage.completion > limit:
        found.add("over_limit")
    if usage.prompt is not None and usage.prompt < len(sent) / _CHARACTERS_A_TOKEN:
        found.add("prompt_cut")
    if reply.text is not None:
        found |= of_text(reply.text, language=language, instructions=instructions)
    return tuple(name for name in FLAGS if name in found)


def of_text(text: str, *, language: str, instructions: Sequence[str] = ()) -> set[str]:
    """What is noteworthy about an answer's text alone."""
    patterns = {
        "refusal": _REFUSAL,
        "thinking_leak": _THINKING,
        "markup_leak": _MARKUP,
        "mojibake": _MOJIBAKE,
        "role_drift": _DRIFT,
    }
    found = {name for name, pattern in patterns.items() if pattern.search(text)}
    if _repeats(text, instructions, _SHARED_RUN.get(language, _LONG_RUN)):
        found.add("prompt_leak")
    if not _in_language(text, language):
        found.add("wrong_language")
    elif language == "ko" and not _as_a_patient(text):
        found.add("register")
    return found


def _in_language(text: str, language: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    own = _SCRIPTS.get(language)
    if own is None or not letters:
        return True
    return sum(unicodedata.name(c, "").startswith(own) for c in letters) >= _OWN_SHARE * len(letters)


def _as_a_patient(text: str) -> bool:
    from study.language.answer import register

    return register(text).patient


def _repeats(text: str, instructions: Iterable[str], run: int) -> bool:
    said = _runs(text, run)
    return any(said & _runs(part, run) for part in instructions)


@lru_cache(maxsize=256)
def _runs(text: str, length: int) -> frozenset[str]:
    close = "".join(text.split())
    return frozenset(close[i : i + length] for i in range(len(close) - length + 1))
