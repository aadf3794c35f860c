"""Six persona fields → the system prompt that makes a model play the patient."""

from study.errors import StudyError
from study.records import Persona

BASELINE = "baseline"

# What an arm of a study adds to the persona's last field. The baseline adds nothing: a hint on negative questions
# would be mixed up with the effect of the question's form.
VARIANTS: dict[str, dict[str, str]] = {
    BASELINE: {"ko": "", "en": ""},
    "negation_hint": {
        "ko": "의사가 '~은 없으세요?', '~지는 않으세요?'처럼 부정문으로 물을 때, "
        "정말 없으면 '네, 없어요', 있으면 '아니요, 있어요'처럼 한국어 방식으로 대답합니다.",
        "en": "When asked in the negative, answer the Korean way: "
        "'ne, eopseoyo' if truly absent, 'aniyo, isseoyo' if present.",
    },
    "role_lock": {
        "ko": "의사가 내용을 정리하거나 설명하면 환자로서 맞는지 대답하거나 걱정을 말할 뿐, "
        "의사처럼 설명하지 않습니다.",
        "en": "When the doctor summarizes or explains, confirm or voice a worry as a patient; "
        "never explain like a doctor.",
    },
}


def system_prompt(persona: Persona, language: str = "ko", variant: str = BASELINE) -> str:
    """The six fields in their order, a paragraph each; a variant's sentence follows in the last one.

    Parameters
    ----------
    language : of the persona's text, and so of the variant's

    Raises
    ------
    StudyError : for an unknown variant, or one that is not written in the language
    """
    if variant not in VARIANTS:
        raise StudyError(f"{variant}: no such persona variant; there are {', '.join(VARIANTS)}")
    added = VARIANTS[variant].get(language, "" if variant == BASELINE else None)
    if added is None:
        raise StudyError(f"{variant}: not written in {language}; it is in {', '.join(VARIANTS[variant])}")
    *fields, last = persona.fields()
    return "\n\n".join([*fields, f"{last} {added}".strip()])
