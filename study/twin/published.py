"""What the published study printed: facts, from data/published/study.json."""

import json
from dataclasses import dataclass
from functools import cache

from study.content import shipped

Cell = tuple[str, str]  # metric, source_id


@dataclass(frozen=True)
class Printed:
    """A number as printed, with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Low:
    """The answers that the panel rated below 3: how many, of which kinds, and where their share is highest."""

    total: int
    clinician_register: int
    not_in_case: int
    where: tuple[str, ...]


@dataclass(frozen=True)
class Published:
    """The published figures.

    `sources` maps a source's id in the twin to its printed name, the expert first; `design` counts what the study
    was made of; `encounter` has the printed mean of each metric and source; `icc` is of all encounter ratings,
    `source_icc` the lowest and highest of the sources' own on sentences; `fluency` and `penalty` (affirmative
    minus negative questions) go by source; `accuracy_gap` is above every source's distance from the expert;
    `lag` are the least and the largest distance from the expert on the metrics `lag_metrics`.
    """

    sources: dict[str, str]
    design: dict[str, int]
    utterance_metrics: tuple[str, ...]
    encounter_metrics: tuple[str, ...]
    encounter: dict[Cell, Printed]
    icc: Printed
    source_icc: tuple[float, float]
    fluency: dict[str, float]
    fluency_drop: tuple[str, float]
    penalty: dict[str, float]
    accuracy_gap: float
    lag: tuple[float, float]
    lag_metrics: tuple[str, ...]
    low: Low
    model: str
    stated: dict[str, dict[str, object]]

    @property
    def expert(self) -> str:
        return next(iter(self.sources))


@dataclass(frozen=True)
class LowAnswer:
    """An answer that the twin's panel rates low: its fault, and its text where it is no contrast answer."""

    source_id: str
    prompt_id: str
    fault: str
    text: str | None = None


@cache
def published() -> Published:
    """The figures of the published study."""
    raw = json.loads(shipped("published/study.json").read_text(encoding="utf-8"))
    ids = {title: name for name, title in raw["sources"].items()}
    encounter, sentence, design = raw["encounter"], raw["sentence"], raw["design"]
    cells = {
        (metric, ids[title]): Printed(cell["mean"], cell["low"], cell["high"])
        for title, row in encounter["table"].items()
        for metric, cell in row.items()
    }
    lag, low = encounter["lag_behind_human"], sentence["low_responses_below_3"]
    drop = sentence["fluency_drop_more_than"]
    return Published(
        sources=raw["sources"],
        design={name: n for name, n in design.items() if isinstance(n, int)},
        utterance_metrics=tuple(design["sentence_metrics"]),
        encounter_metrics=tuple(design["encounter_metrics"]),
        encounter=cells,
        icc=Printed(**encounter["icc_2k"]),
        source_icc=tuple(sentence["icc_2k_per_model"]),
        fluency={ids[title]: mean for title, mean in sentence["fluency"].items()},
        fluency_drop=(ids[drop["source"]], drop["value"]),
        penalty={ids[title]: points for title, points in sentence["negation_penalty"].items()},
        accuracy_gap=sentence["accuracy_gap_less_than"],
        lag=(lag["low"], lag["high"]),
        lag_metrics=tuple(lag["metrics"]),
        low=Low(low["total"], low["clinician_register"], low["not_in_case"], tuple(low["where"])),
        model=raw["model"],
        stated={"generation": raw["generation"], "platform": raw["platform"]},
    )


@cache
def low_answers() -> tuple[LowAnswer, ...]:
    """The answers that are rated low in the twin; which they were was not published."""
    raw = json.loads(shipped("published/low_responses.json").read_text(encoding="utf-8"))
    return tuple(
        LowAnswer(row["source"], row["prompt_id"], fault, row.get("text"))
        for fault, rows in raw.items()
        if not fault.startswith("_")
        for row in rows
    )
