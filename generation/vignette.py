"""Cases told as running text: from a study's own cases, and the file that a benchmark keeps of them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from study.errors import StudyError
from study.records import Case, Persona, Vignette

FILE = "cases.json"


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


def write(vignettes: Sequence[Vignette], path: Path) -> None:
    """Vignettes into a JSON file, whole or not at all."""
    from study.tables import replaced

    rows = [asdict(v) for v in vignettes]
    text = json.dumps({"cases": rows}, ensure_ascii=False, indent=1, default=str)
    replaced(path, lambda half: half.write_text(text, encoding="utf-8"))


def read(path: Path) -> tuple[Vignette, ...]:
    """The vignettes of a file that `write` wrote.

    Raises
    ------
    StudyError : if there is none, or it is not such a file
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["cases"]
        return tuple(Vignette(**row | {"extra": _extra(row["extra"])}) for row in rows)
    except FileNotFoundError:
        raise StudyError(f"{path}: not found; a benchmark run writes it") from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise StudyError(f"{path}: is no file of a benchmark's cases; run the benchmark again") from None


def _extra(extra: dict[str, object]) -> dict[str, object]:
    persona = extra.get("persona")
    return extra | {"persona": Persona(**persona)} if isinstance(persona, dict) else extra
