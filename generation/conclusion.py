"""How an encounter comes to its diagnosis: a line of its own that says so, and nothing less.

    Diagnosis: Myasthenia gravis
    Considered: Myasthenia gravis 85; Lambert-Eaton syndrome 10

The text around it is delivered as it is; a question ("Diagnosis: could it be asthma?") concludes nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from study.records import Turn

_NAMED = {"en": "Diagnosis", "ko": "진단"}
_WEIGHED = {"en": "Considered", "ko": "고려한 진단"}
_LINE = re.compile(
    r"^[\s*#>_-]*(?:final\s+diagnosis|diagnosis(?:\s+ready)?|최종\s*진단명?|진단명?)[\s*_]*[:：][\s*_]*(.+?)[\s*_.。]*$",
    re.I | re.M,
)
_OTHERS = re.compile(r"(?:^|[\s*#>_.;,-])(?:considered|고려한\s*진단)[\s*_]*[:：][\s*_]*(.+)$", re.I | re.M)
_GLUED = re.compile(r"[\s*_.;,]+(?:considered|고려한\s*진단)[\s*_]*[:：]", re.I)
_ONE = re.compile(r"^(.*?)[\s(:]*(\d+(?:\.\d+)?)\s*%?\s*\)?$")
_NONE = re.compile(
    r"(?:unknown|unclear|uncertain|undetermined|pending|none|n/?a|tbd|to be (?:determined|confirmed)|no|not|"
    r"cannot|insufficient|more (?:information|tests|data)|deferred)\b|미정|모름|불명|보류|아직|알 수 없",
    re.I,
)


@dataclass(frozen=True)
class Conclusion:
    """A doctor's last word: the diagnosis, and what was weighed, each with 0 to 100."""

    diagnosis: str
    candidates: tuple[tuple[str, float], ...] = ()


def concluded(turns: Sequence[Turn]) -> Conclusion | None:
    """The conclusion in the last turn, if it is the doctor's and holds one."""
    if not turns or turns[-1].speaker != "doctor":
        return None
    return read(turns[-1].text)


def read(text: str) -> Conclusion | None:
    """
    >>> read("Thank you.\\nDiagnosis: Asthma\\nConsidered: Asthma 80; Bronchitis 15")
    Conclusion(diagnosis='Asthma', candidates=(('Asthma', 80.0), ('Bronchitis', 15.0)))
    >>> read("Has anyone made a diagnosis: asthma, say?") is None
    True
    """
    found = [_GLUED.split(m[1])[0].strip(" *_.。") for m in _LINE.finditer(text)]
    named = [name for name in found if name and not name.endswith(("?", "？")) and not _NONE.match(name)]
    if not named:
        return None
    others = _OTHERS.search(text)
    return Conclusion(named[-1], _weighed(others[1]) if others else ())


def line(diagnosis: str, candidates: Sequence[tuple[str, float]] = (), language: str = "en") -> str:
    """A conclusion as a doctor says it.

    >>> print(line("천식", [("천식", 80)], "ko"))
    진단: 천식
    고려한 진단: 천식 80
    """
    key = language if language in _NAMED else "en"
    lines = [f"{_NAMED[key]}: {diagnosis}"]
    if candidates:
        lines.append(f"{_WEIGHED[key]}: " + "; ".join(f"{name} {weight:g}" for name, weight in candidates))
    return "\n".join(lines)


def _weighed(text: str) -> tuple[tuple[str, float], ...]:
    """Names with a weight from 0 to 100; what has none, or another, is left out."""
    parts = [_ONE.match(part.strip()) for part in text.split(";")]
    return tuple((m[1].strip(), float(m[2])) for m in parts if m and m[1].strip() and float(m[2]) <= 100)
