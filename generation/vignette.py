"""A study's case as a vignette: what its ledger says in the patient's words, as running text."""

from study.records import Case, Vignette


def of_case(case: Case, language: str = "ko") -> Vignette:
    """A case of a study, told as text, so that benchmarks can use it; its persona is kept for models to play."""
    persona = case.persona
    told = [f.answer for f in case.facts] or [persona.demographic_context, persona.clinical_state, persona.history]
    return Vignette(
        case_id=case.case_id,
        text="\n".join(t for t in told if t),
        diagnosis=case.diagnosis,
        language=language,
        extra={"chief_complaint": case.chief_complaint, "persona": persona},
    )
