"""What a question is: its form, how it is negated, and what its particle would judge."""

from dataclasses import dataclass
from typing import Literal

from study.errors import StudyError
from study.records import Form

Language = Literal["ko", "ja", "en"]
Subtype = Literal["inner_lexical", "inner_short", "inner_long_neun", "inner_npi", "outer_long", "outer_copula"]
Particle = Literal["네", "아니요", "none"]


@dataclass(frozen=True)
class Question:
    """The form of one utterance's final request, by the coding manual.

    `judged_positive` tells which proposition a particle would judge: in "통증은 없으세요?" the negated one, in
    "수진 님 아니세요?" the positive one. `ambiguous` marks a bare 않으세요? without a cue to its bias: either
    particle is good Korean then. `bare` marks an utterance that asks by tag alone ("맞나요?").
    """

    form: Form
    subtype: Subtype | None = None
    judged_positive: bool = True
    ambiguous: bool = False
    alternative: bool = False
    past: bool = False

    @property
    def outer(self) -> bool:
        return self.subtype in ("outer_long", "outer_copula")


def recognise(text: str, language: Language = "ko") -> Question:
    """The form of an utterance's final request.

    Raises
    ------
    StudyError : for an empty text, or a language that has no rules
    """
    if not text.strip():
        raise StudyError("a question is empty; give it some words")
    match language:
        case "ko":
            from study.language import korean as rules
        case "ja":
            from study.language import japanese as rules
        case "en":
            from study.language import english as rules
        case _:
            raise StudyError(f"{language}: no rules for this language; there are ko, ja, en")
    return rules.recognise(text)


def particle(question: Question, proposition_true: bool) -> Particle:
    """What a truth-based answer starts with, given whether the positive proposition is true of the patient.

    Korean and Japanese agree or disagree with the proposition as asked: 네, 없어요 (Park and Dubinsky 2019,
    PLSA 4:19). English follows the answer's own polarity; see `polarity_particle`.
    """
    if question.form == "open_ended" or question.alternative:
        return "none"
    return "네" if question.judged_positive == proposition_true else "아니요"


def polarity_particle(question: Question, proposition_true: bool) -> Particle:
    """What an answer starts with when the particle follows the answer's clause, as yes and no do in English."""
    if question.form == "open_ended" or question.alternative:
        return "none"
    return "네" if proposition_true else "아니요"
