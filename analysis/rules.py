"""Rules as raters: what can be told of a Korean answer without judgement, against the question and the ledger.

Each rule answers yes (1) or no (0) where it applies and abstains where it does not. Rules are precise about what
they look at and blind to all else: they tag answers for people, and do not stand in for them.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec

import pandas as pd

from study.errors import StudyError
from study.language.answer import mentions
from study.language.check import Check, check
from study.language.ledger import Ledger, index
from study.language.reading import Reading, read
from study.records import RULE_METRICS, Content, Fact, Prompt

RATER = "rules"
LONGEST = 35  # tokens of o200k_base: the cap of the practice chat
TAGS = {  # metric → the tag of an answer that fails it
    "rule_told": "not told",
    "rule_true": "contradicts the case",
    "rule_reserved": "volunteers",
    "rule_particle": "wrong particle",
    "rule_clear": "bare particle",
    "rule_register": "register",
    "rule_short": "too long",
}
_ENCODING = "o200k_base"


@dataclass(frozen=True)
class Finding:
    """One rule's word on one answer: 1 it keeps to the rule, 0 it does not, None the rule does not apply."""

    metric_id: str
    value: float | None
    reason: str | None = None
    missing: bool = False

    @property
    def status(self) -> str:
        if self.value is not None:
            return "ok"
        return "missing" if self.missing else "not_applicable"


class Rules:
    """The rules for a study's cases and prompts.

    Raises
    ------
    StudyError : if the study's prompts are not Korean
    """

    def __init__(self, content: Content) -> None:
        if content.language != "ko":
            raise StudyError(f"the rules read Korean; this study's prompts are {content.language}")
        self._content = content
        self._prompts = {p.prompt_id: p for p in content.prompts}
        self._ledgers: dict[str, Ledger] = {}

    def findings(self, prompt_id: str, answer: str) -> list[Finding]:
        """Every rule's word on an answer to a prompt."""
        prompt = self._prompts[prompt_id]
        ledger = self._ledger(prompt.case_id)
        facts = {f.fact_id: f for f in ledger.case.facts}
        expected = tuple(facts[name] for name in prompt.expected_facts)
        reading = read(prompt.text, ledger)
        if prompt.expected_particle != "none":
            reading = replace(reading, particle=prompt.expected_particle)
        found = check(prompt.text, reading, answer, expected)
        allowed = (*expected, *(facts[name] for name in prompt.optional_facts), *reading.facts)
        return [
            _told(found, expected),
            _true(found),
            _reserved(prompt, answer, ledger, allowed),
            *_particle(found, reading),
            _register(found),
            _short(answer),
        ]

    def _ledger(self, case_id: str) -> Ledger:
        if case_id not in self._ledgers:
            self._ledgers[case_id] = index(self._content.cases[case_id], self._content.slots)
        return self._ledgers[case_id]


def rows(items: pd.DataFrame, content: Content) -> pd.DataFrame:
    """The rules' rating rows on every utterance that has a text: one for each item and rule.

    Raises
    ------
    StudyError : if an item's prompt is not the study's, or there is nothing to rate
    """
    rules = Rules(content)
    known = {p.prompt_id for p in content.prompts}
    spoken = items[(items["kind"] == "utterance") & items["text"].notna()]
    if strangers := sorted(set(spoken["prompt_id"]) - known):
        raise StudyError(f"items: prompt {strangers[0]} is not among the study's prompts")
    if spoken.empty:
        raise StudyError("items: no utterance has a text; the rules have nothing to rate")
    return pd.DataFrame(
        {
            "rater_id": RATER,
            "rater_kind": "rule",
            "label": item.label,
            "metric_id": finding.metric_id,
            "occasion": 1,
            "value": finding.value,
            "status": finding.status,
            "reason": finding.reason,
            "simulated": False,
        }
        for item in spoken.itertuples()
        for finding in rules.findings(item.prompt_id, item.text)
    )


def tags(findings: list[Finding]) -> list[str]:
    """What an answer is tagged with: the rules that it does not keep to."""
    return [TAGS[f.metric_id] for f in findings if f.value == 0]


def shares(rated: pd.DataFrame, key: pd.DataFrame, sources: tuple[str, ...]) -> pd.DataFrame:
    """How many of each source's answers fail each rule, of those that it applies to."""
    frame = rated[rated["status"] == "ok"].merge(key, on="label").assign(failed=lambda f: f["value"] == 0)
    every = pd.MultiIndex.from_product([sources, [m.metric_id for m in RULE_METRICS]], names=["source", "rule"])
    counted = (
        frame.groupby(["source_id", "metric_id"])["failed"].agg(["sum", "count"]).reindex(every, fill_value=0)
    )
    counted = counted.rename(columns={"sum": "failed", "count": "n"}).astype(int).reset_index()
    return counted.assign(tag=counted["rule"].map(TAGS))


def _told(found: Check, expected: tuple[Fact, ...]) -> Finding:
    if not expected:
        return Finding("rule_told", None, "no fact is expected")
    missing = ", ".join(f.fact_id for f in found.missing)
    return Finding("rule_told", float(not missing), f"lacks {missing}" if missing else None)


def _true(found: Check) -> Finding:
    wrong = "fact_contradiction" in found.faults
    return Finding("rule_true", float(not wrong), "says the contrary of the case" if wrong else None)


def _particle(found: Check, reading: Reading) -> Iterator[Finding]:
    """The particle against the question's form, and whether it stands alone."""
    if reading.question.form == "open_ended" or reading.particle == "none":
        yield Finding("rule_particle", None, "the question asks for no particle")
        yield Finding("rule_clear", None, "the question asks for no particle")
        return
    bare, wrong = "bare_particle" in found.faults, "particle_mismatch" in found.faults
    # A lone particle says nothing that it could be wrong about.
    if bare:
        yield Finding("rule_particle", None, "the particle stands alone")
    else:
        instead = f"{found.particle} for {found.expected}" if wrong else None
        yield Finding("rule_particle", float(not wrong), instead)
    yield Finding("rule_clear", float(not bare), "nothing follows the particle" if bare else None)


def _register(found: Check) -> Finding:
    heard = [*found.register.terms, *(level for level in found.register.levels if level != "haeyo")]
    return Finding("rule_register", float(found.register.patient), ", ".join(dict.fromkeys(heard)) or None)


def _reserved(prompt: Prompt, answer: str, ledger: Ledger, allowed: tuple[Fact, ...]) -> Finding:
    """Whether the answer keeps to what was asked: no other fact of the ledger is in it."""
    if prompt.category in ("clinical_reasoning", "patient_education") or prompt.answer_type == "reaction":
        return Finding("rule_reserved", None, "worries and plans may touch on anything")
    said_already = " ".join([prompt.text, *(f"{f.statement} {f.answer} {' '.join(f.keywords)}" for f in allowed)])
    told = [f for f in ledger.case.facts if _volunteered(f, answer, said_already, allowed)]
    return Finding("rule_reserved", float(not told), ", ".join(f.fact_id for f in told) or None)


def _volunteered(fact: Fact, answer: str, said_already: str, allowed: tuple[Fact, ...]) -> bool:
    if fact in allowed or fact.category in ("greeting_identity", "chief_complaint", "physical_exam"):
        return False
    long = (k for k in fact.keywords if len(k) > 1 and k not in said_already)
    own = tuple(k for k in long if not mentions(said_already, (k,)))
    return bool(own) and mentions(answer, own)


def _short(answer: str) -> Finding:
    n = tokens(answer)
    if n is None:
        return Finding("rule_short", None, 'needs `pip install "crossed-raters[tokens]"`', missing=True)
    return Finding("rule_short", float(n <= LONGEST), f"{n} tokens" if n > LONGEST else None)


def tokens(text: str) -> int | None:
    """Tokens of a text as o200k_base counts them; None where its package is not installed."""
    encoding = _encoding()
    return None if encoding is None else len(encoding.encode(text))


@cache
def _encoding() -> "object | None":
    if find_spec("bpe_openai") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the package's own way to its data
        import bpe_openai

        encoding = bpe_openai.get_encoding(_ENCODING)
        encoding.encode(".")  # it reads its data only now
        return encoding
