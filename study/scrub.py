"""Personal data in free text: found, replaced by a placeholder, and counted by kind.

Two sorts are told apart. What is certain (an address, a telephone number, a resident registration number, a name
in a self-introduction) is replaced. What is doubtful (a long number, a postal address, a name with a title) is
only reported: a person decides. Clinical numbers stay: a blood pressure is no telephone number.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date

import pandas as pd

from study.language.morphology import morphemes

CERTAIN = ("email", "phone", "rrn", "student_number", "name")
PLACEHOLDERS = tuple(f"[{kind.upper()}]" for kind in (*CERTAIN, "redacted"))

# Korean particles stand right behind a number, so \b would miss; and a decimal or a fraction is no number's start.
_FREE, _ENDS = r"(?<![\d./])", r"(?!\d|[./]\d)"
_UNIT = r"(?!\s*(?:m[gLl]|k[gm]|[cmn]m|%|mmHg|IU|회|개|정|도|세|명)(?![a-z]))"
_SPOKEN = "공영일이삼사오육칠팔구"
_PATTERNS = {
    "email": re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"),
    "rrn": re.compile(rf"{_FREE}(\d{{6}})\s?[-–]?\s?[1-8](?:\d{{6}}|\*{{6}})(?![\d*])"),
    "phone": re.compile(
        rf"(?:\+82[-. ]?\(?0?\)?|{_FREE}0)1[016789][-. ]?\d{{3,4}}[-. ]?\d{{4}}{_ENDS}{_UNIT}"
        rf"|{_FREE}\(?0(?:2|[3-6]\d|70)\)?[-. ]\d{{3,4}}[-. ]\d{{4}}{_ENDS}{_UNIT}"
        rf"|\+(?!82)\d{{1,3}}[-. ]\d{{2,4}}[-. ]\d{{3,4}}[-. ]\d{{3,4}}{_ENDS}"
        rf"|[공영]일공[\s-]*[{_SPOKEN}]{{3,4}}[\s-]*[{_SPOKEN}]{{4}}"
    ),
    "student_number": re.compile(rf"학번[은이:\s]*(?:[가-힣]+\s)?([A-Za-z]?\d{{2,4}}-?\d{{3,8}}){_ENDS}"),
}
_DOUBTS = {
    "number": re.compile(
        rf"{_FREE}(?:\d{{8,}}|\d{{4}}(?:[- ]\d{{4}}){{3}}|1[016789]-\d{{3,4}}-\d{{4}}"
        rf"|\d{{3,6}}-\d{{2,6}}-\d{{3,8}}){_ENDS}"
    ),
    "address": re.compile(r"(?<![가-힣])[가-힣]+[시도]\s[가-힣]+[구군시]\s[가-힣\d]+(?:로|길|동)\s?\d+"),
    "handle": re.compile(
        r"(?:카톡|카카오톡|인스타(?:그램)?|텔레그램)\s?(?:아이디|계정|[Ii][Dd])?[는은:\s]*@?[A-Za-z][A-Za-z0-9_.]{3,}"
    ),
}
_SURNAME = (
    "(?:남궁|황보|제갈|선우|독고|사공|서문|동방|"
    "[가간강견경계고공곽구국권금기길김나남노단도동두라류마맹명모목문민박반방배백범변복봉부사서석선설성소손송신심"
    "안양어엄여연염예오옥온용우원위유육윤은음이인임장전정제조주증지진차창채천최추탁탄태편평표피하한함허현형호홍황])"
)
_NAME = rf"({_SURNAME}\s?[가-힣]{{1,2}}?)"
_BE = r"(?=\s*(?:입니다|이에요|예요|이예요|이라고|라고|이고요?|인데요?|이며|이야|야(?![가-힣])))"
_AFTER = r"(?=\s*(?:입니다|이에요|예요|이예요|이라고|라고|이고|고요|인데|이며|이야|야(?![가-힣])|[.,!?~]|$))"
_ROLE = (
    r"(?:(?:본과|예과|의학과|간호학과|의예과)?\s?[1-6]학년(?:\s학생)?|의대생|학생의사|학생 의사|실습\s?학생|"
    r"실습생|간호학생|간호사|인턴|레지던트|전공의|전문의|담당의|담당\s의사|교수|의사|학생|나온|맡은|맡게\s된)"
)
_NAMED = re.compile(rf"(?<![약병])(?<![약병]\s)(?:이름|성함|성명)(?:은|이|:)?\s*{_NAME}{_AFTER}")
_WITH_ROLE = re.compile(rf"{_ROLE}[,:]?\s{_NAME}{_BE}")
_SELF = re.compile(
    rf"(?:^|(?<=[\s,.!?]))(?:저는|저|전|나는|난|제가|안녕하세요|안녕하십니까)[,.!]?\s"
    rf"(?:[가-힣]+\s){{0,3}}?{_NAME}{_BE}"
)
_ENGLISH = re.compile(
    r"(?i:my name is|my name's) (?!(?i:dr\b))([A-Z][a-z'-]+(?: [A-Z][a-z'-]+){0,2})"
    r"|(?i:my name is|this is|i am|i'm) (?i:doctor|dr\.?) ([A-Za-z][a-z'-]+(?: [A-Z][a-z'-]+)?)"
)
_TITLED = re.compile(rf"(?<![가-힣]){_NAME}\s?(?:씨|님|교수|선생|환자|간호사|학생)(?![사])")
_COMMON = frozenset(("NNG", "XSN", "MM", "NNB", "JKG", "NP"))
_NO_NAME = frozenset(("NP", "VV", "VA", "JKS", "EC"))
_ILLNESS = re.compile(r".*[병증염암통압사]$")


@dataclass(frozen=True)
class Found:
    """A stretch of text that may tell who somebody is."""

    kind: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Scrubbed:
    """A text without what was found in it, and how much of each kind was replaced."""

    text: str
    counts: Counter[str]


def certain(text: str, cleared: Collection[str] = ()) -> list[Found]:
    """What tells who somebody is, in the order of the text. `cleared` are words that tell nothing, such as the
    names of fictional patients."""
    text = unicodedata.normalize("NFC", text)
    found = [
        Found(kind, *m.span(part := 1 if kind == "student_number" else 0), m.group(part))
        for kind, pattern in _PATTERNS.items()
        for m in pattern.finditer(text)
        if kind != "rrn" or _born(m[1])
    ]
    return _apart(found + list(_names(text)), cleared)


def doubtful(text: str, cleared: Collection[str] = ()) -> list[Found]:
    """What may tell who somebody is, and a person must look at; without what is certain."""
    text = unicodedata.normalize("NFC", text)
    sure = certain(text, cleared)
    found = [Found(kind, *m.span(), m.group()) for kind, p in _DOUBTS.items() for m in p.finditer(text)]
    found += [
        Found("titled_name", *m.span(1), m[1])
        for m in _TITLED.finditer(text)
        if len(m[1].replace(" ", "")) > 2 and _tags(m[1]) == ["NNP"] and not _ILLNESS.match(m[1])
    ]
    return [f for f in _apart(found, cleared) if all(f.end <= s.start or s.end <= f.start for s in sure)]


def scrub(text: str, cleared: Collection[str] = (), redact: Iterable[str] = ()) -> Scrubbed:
    """A text with placeholders such as [PHONE] for what is certain, and [REDACTED] for the words of `redact`.

    A text in which nothing is found comes back as it is.
    """
    counts: Counter[str] = Counter()
    clean = text
    for words in redact:
        counts["redacted"] += clean.count(words)
        clean = clean.replace(words, "[REDACTED]")
    found = certain(clean, cleared)
    if found:
        clean = unicodedata.normalize("NFC", clean)
    for f in reversed(found):
        clean = f"{clean[: f.start]}[{f.kind.upper()}]{clean[f.end :]}"
        counts[f.kind] += 1
    return Scrubbed(clean, +counts)


def _apart(found: Iterable[Found], cleared: Collection[str]) -> list[Found]:
    """Findings in order, the longer of two that overlap, without the cleared ones."""
    kept: list[Found] = []
    free = {"".join(words.split()) for words in cleared}
    for f in sorted(found, key=lambda f: (f.start, -f.end)):
        if "".join(f.text.split()) not in free and (not kept or f.start >= kept[-1].end):
            kept.append(f)
    return kept


def _born(digits: str) -> bool:
    """Whether six digits can be a birth date; a leap day is taken for one in any year."""
    try:
        date(2000, int(digits[2:4]), int(digits[4:]))
    except ValueError:
        return False
    return True


def _names(text: str) -> Iterable[Found]:
    """Names by which a speaker makes themselves known.

    Behind "my name is" anything that looks like a name is one. Behind "I am" a dictionary's noun is none:
    `저는 주부입니다` is an occupation, `저는 고혈압입니다` an illness.
    """
    for m in _NAMED.finditer(text):
        if not _NO_NAME & set(_tags(m[1])):
            yield Found("name", *m.span(1), m[1])
    for m in _ENGLISH.finditer(text):
        yield Found("name", *m.span(m.lastindex), m[m.lastindex])
    for m in _WITH_ROLE.finditer(text):
        if not set(_tags(m[1])) <= _COMMON and not _ILLNESS.match(m[1]):
            yield Found("name", *m.span(1), m[1])
    for m in _SELF.finditer(text):
        if _tags(m[1])[:1] == ["NNP"] and not _ILLNESS.match(m[1]):
            yield Found("name", *m.span(1), m[1])


def _tags(name: str) -> list[str]:
    """The tags of a candidate's morphemes, read in one and the same sentence wherever it was found."""
    before = "저는 "
    return [t.tag for t in morphemes(f"{before}{name}입니다.") if len(before) <= t.start < len(before) + len(name)]


class Scrubber:
    """Scrubs columns of tables, and keeps count: what was replaced, and what a person must look at."""

    def __init__(self, cleared: Collection[str] = (), redact: Collection[str] = ()) -> None:
        self.cleared, self.redact = cleared, redact
        self.counts: Counter[str] = Counter()
        self.doubts: list[str] = []
        self._seen: dict[str, Scrubbed] = {}
        self._doubted: set[str] = set()

    def column(self, texts: pd.Series, where: pd.Series, table: str) -> pd.DataFrame:
        """Texts as they may leave, and how many stretches of each were replaced.

        Parameters
        ----------
        where : names of the rows, for what is doubtful
        """
        rows = [self._one(t, f"{table} {w}") for t, w in zip(texts, where, strict=True)]
        return pd.DataFrame(rows, columns=["text", "replaced"], index=texts.index).astype({"text": object})

    def _one(self, text: object, where: str) -> tuple[str | None, int]:
        if not isinstance(text, str):
            return None, 0
        if text not in self._seen:
            self._seen[text] = scrub(text, self.cleared, self.redact)
        clean = self._seen[text]
        self.counts.update(clean.counts)
        for found in doubtful(clean.text, self.cleared):
            if found.text not in self._doubted:
                self._doubted.add(found.text)
                self.doubts.append(
                    f"{where} holds {found.text!r}, which may tell who somebody is ({found.kind}); "
                    "name it under [release] as redact or as cleared"
                )
        return clean.text, clean.counts.total()
