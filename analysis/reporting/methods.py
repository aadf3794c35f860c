"""The methods of a study as a paragraph for a paper: every clause from the study and its fits, none left blank."""

from analysis.reporting.analysed import Analysed
from analysis.reporting.facts import Facts
from analysis.reporting.section import Section, opening_capital

_WORDS = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven", 8: "Eight", 9: "Nine"}


def methods(made: Analysed, known: Facts) -> Section:
    """The paragraph, ready to be edited; what no file of the study tells is named below it."""
    parts = (_material(known), _rating(known), _models(made, known), _agreement(known), _tools(known))
    lead = tuple(text for part in parts if (text := " ".join(s for s in part if s)))
    unknown = _unknown(known)
    note = (f"Not recorded in the study, and for its authors to add: {unknown}.",) if unknown else ()
    return Section("methods", "Methods, for the paper", (*lead, *note))


def text(made: Analysed, known: Facts) -> str:
    """The paragraphs alone."""
    return "\n\n".join(methods(made, known).lead)


def _material(known: Facts) -> list[str]:
    asked = " in ".join(known[k] for k in ("n_prompts", "n_cases") if k in known)
    kinds = " and ".join(known[k] for k in ("n_categories", "n_forms") if k in known)
    first = f"{_number(known['n_sources'])} ({known['sources']}) answered {asked}" if asked else (
        f"Answers came from {known['n_sources']}: {known['sources']}")  # fmt: skip
    first += f", coded by {kinds} of question." if kinds else "."
    out = [first]
    if "models" in known:
        out.append(f"Models and settings: {known['models']}.")
    if "asked" in known:
        out.append(f"Models were asked on {known['asked']}." if "to" not in known["asked"] else
                   f"Models were asked from {known['asked']}.")  # fmt: skip
    if "responses_status" in known:
        out.append(f"Responses by status: {known['responses_status']}; a failed response is kept as such, and no "
                   "response was asked again for a better one.")  # fmt: skip
    return out


def _rating(known: Facts) -> list[str]:
    targets = [
        f"{known[n]} on {known[m]}"
        for n, m in (("n_answers", "answer_metrics"), ("n_encounters", "encounter_metrics"))
        if n in known and m in known
    ]
    out = [f"{_number(known['n_raters'])} rated {' and '.join(targets)}, {known['ratings_per_item']}."]
    if "design" in known:
        out.append(f"The design was {known['design']}; {known['order']}.")
    if "blinding" in known:
        out.append(f"Raters were blind: {known['blinding']}.")
    out.append(f"There are {known['n_ratings']}; {known['missing']}.")
    if "repeats" in known:
        out.append(f"For agreement of raters with themselves there are {known['repeats']}.")
    if "left_out" in known:
        out.append(f"Not analysed: {known['left_out']}.")
    return out


def _models(made: Analysed, known: Facts) -> list[str]:
    formulas = known["formulas"].split("; ")
    form = f"the model {formulas[0]}" if len(formulas) == 1 else f"the models {' and '.join(formulas)}"
    out = [
        f"For each metric a linear mixed model was fitted by {known['method']} ({form}, in lme4 notation); "
        f"{known['converged']}."
    ]
    if "df_method" in known:
        out.append(f"Tests and {known['confidence']} intervals of fixed effects use {known['df_method']}'s "
                   "degrees of freedom.")  # fmt: skip
    if "reference" in known:
        out.append(
            "Means are estimated marginal means, in which every level of the other factors counts the same; each "
            f"source was compared with {known['reference']}, p values adjusted by Holm within each metric."
        )
    return out


def _agreement(known: Facts) -> list[str]:
    out = [
        "Agreement is given as ICC(2,1) and ICC(2,k) (two-way random effects, absolute agreement; McGraw and "
        "Wong's intervals, variance components where cells are missing) and as Krippendorff's alpha, with "
        f"intervals from {known['bootstrap']}."
    ]
    if "icc_range" in known and "panel_range" in known:
        out.append(f"ICC(2,1) was {known['icc_range']} and ICC(2,k) {known['panel_range']} over the metrics.")
    return out


def _tools(known: Facts) -> list[str]:
    return [f"All numbers were computed with {known['software']}."]


def _unknown(known: Facts) -> str:
    """What a methods section needs and no file of the study tells."""
    asked = {
        "how raters were recruited, trained and paid": None,
        "how prompts and cases were chosen": None,
        "how the answers were made": "responses_status",
        "whether raters knew the sources": "blinding",
        "in which order they rated": "order",
        "ethical approval and consent": None,
    }
    return "; ".join(what for what, by in asked.items() if by not in known)


def _number(text: str) -> str:
    """A sentence does not open with a digit where the number is small."""
    digits, _, noun = text.partition(" ")
    word = _WORDS.get(int(digits)) if digits.isdigit() else None
    return f"{word} {noun}" if word else opening_capital(text)
