"""Do the rules see what was planted? Their word on the embedded sources, whose faults are known by prompt."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from analysis import display
from analysis.rules import TAGS
from analysis.stats.misclassification import clopper_pearson
from analysis.tables import Table
from study.errors import StudyError
from study.records import RULE_METRICS, Content, Prompt, Source

SHARED = (
    "Sources and rules read questions and the ledger by the same code: this says that the rules see these faults, "
    "not how often they see those of a model."
)


@dataclass(frozen=True)
class Fault:
    """What an embedded source does wrong, which rule should say so, and on which prompts."""

    rule: str
    where: Callable[[Prompt], bool]


def _judged_negative(prompt: Prompt) -> bool:
    """A negative question that 네 affirms in Korean and denies in English; the outer ones ask for the positive."""
    outer = prompt.negation is not None and prompt.negation.subtype.startswith("outer")
    return prompt.form == "negative" and not outer


FAULTS: dict[str, tuple[Fault, ...]] = {
    "draft_reference": (),
    "ledger": (),
    "ledger_polarity": (Fault("rule_particle", _judged_negative),),
    "ledger_clinician": (
        Fault("rule_register", lambda prompt: prompt.category in ("clinical_reasoning", "patient_education")),
    ),
    "ledger_stiff": (Fault("rule_register", lambda _: True),),
}


def planted(kind: str, prompt: Prompt) -> set[str]:
    """The rules that an embedded source's answer to a prompt should break."""
    return {fault.rule for fault in FAULTS[kind] if fault.where(prompt)}


def agreement(
    rated: pd.DataFrame,
    items: pd.DataFrame,
    key: pd.DataFrame,
    sources: Iterable[Source],
    content: Content,
    level: float = 0.95,
) -> pd.DataFrame:
    """The rules' word against the plan, by rule and embedded source.

    Returns
    -------
    `rule`, `tag`, `source`; `planted` (answers with the fault that the rule applies to), `detected`, `detection`
    with `detection_low` and `detection_high`; `clean` (answers without it), `false`, `false_alarm` with its ends;
    `abstained` (answers to which the rule does not apply), `missing` (it could not look). Shares have Clopper and
    Pearson's exact interval; a share of nothing is nan.

    Raises
    ------
    StudyError : if no source is an embedded one
    """
    kinds = {s.source_id: s.kind for s in sources if s.kind in FAULTS}
    if not kinds:
        raise StudyError(f"no source has planted faults; those that do are {', '.join(FAULTS)}")
    prompts = {p.prompt_id: p for p in content.prompts}
    known = items[["label", "prompt_id"]].merge(key, on="label")
    known = known[known["source_id"].isin(list(kinds))]
    frame = rated.merge(known, on="label")
    frame["broken"] = [
        metric in planted(kinds[source], prompts[prompt])
        for metric, source, prompt in zip(frame["metric_id"], frame["source_id"], frame["prompt_id"], strict=True)
    ]
    by_place = dict(list(frame.groupby(["metric_id", "source_id"])))
    places = product((rule.metric_id for rule in RULE_METRICS), kinds)
    return pd.DataFrame([_row(*place, by_place[place], level) for place in places if place in by_place])


def table(found: pd.DataFrame) -> Table:
    """One row per rule and source, with both shares and their intervals."""
    rows = tuple(
        (r.tag, r.source, _share(r.detected, r.planted, r.detection_low, r.detection_high),
         _share(r.false, r.clean, r.false_alarm_low, r.false_alarm_high), display.count(r.abstained))
        for r in found[found["planted"] + found["clean"] > 0].itertuples()
    )  # fmt: skip
    columns = ("rule", "source", "planted faults found", "false alarms", "does not apply")
    return Table("rules-planted", "Rules and planted faults", columns, rows, note=SHARED, text_columns=(0, 1))


def _row(rule: str, source: str, own: pd.DataFrame, level: float) -> dict[str, object]:
    ok = own[own["status"] == "ok"]
    flagged, broken = ok["value"] == 0, ok["broken"]
    row: dict[str, object] = {"rule": rule, "tag": TAGS[rule], "source": source}
    for among, whole, part, share in (
        (broken, "planted", "detected", "detection"), (~broken, "clean", "false", "false_alarm")
    ):  # fmt: skip
        n, k = int(among.sum()), int((flagged & among).sum())
        low, high = clopper_pearson(k, n, level) if n else (np.nan, np.nan)
        row |= {whole: n, part: k, share: k / n if n else np.nan, f"{share}_low": low, f"{share}_high": high}
    statuses = own["status"].value_counts()
    return row | {"abstained": int(statuses.get("not_applicable", 0)), "missing": int(statuses.get("missing", 0))}


def _share(k: int, n: int, low: float, high: float) -> str:
    return f"{display.share(k, n)} [{display.percent(low)}, {display.percent(high)}]" if n else display.MISSING
