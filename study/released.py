"""What each table of a data package holds: its columns, with a sentence on each. The data card and Croissant
read it from here, and the check of a package compares with it."""

from dataclasses import dataclass

from study.tables import Column, Table, Type


@dataclass(frozen=True)
class Told:
    """A released column: `refers` names the table.column whose values it takes; `free` marks free text."""

    name: str
    says: str
    type: Type = "text"
    null: bool = False
    refers: str | None = None
    free: bool = False


@dataclass(frozen=True)
class Released:
    name: str
    says: str
    key: tuple[str, ...]
    columns: tuple[Told, ...]

    @property
    def table(self) -> Table:
        return Table(self.name, tuple(Column(c.name, c.type, c.null) for c in self.columns), self.key)

    @property
    def file(self) -> str:
        return f"{self.name}.parquet"


METRICS = Released(
    "metrics", "What was rated: each metric with its scale.", ("metric_id",),
    (
        Told("metric_id", "The metric's name."),
        Told("item", "What it is asked about: utterance or encounter."),
        Told("low", "Lowest point of the scale.", "real"),
        Told("high", "Highest point of the scale.", "real"),
        Told("level", "Level of measurement: nominal, ordinal, interval or ratio."),
        Told("question", "The question put to raters.", null=True),
        Told("anchors", "The words on the scale's points from low to high, separated by |.", null=True),
    ),
)  # fmt: skip
SOURCES = Released(
    "sources", "Who answered: models with their settings, rule patients, experts.", ("source_id",),
    (
        Told("source_id", "The source's name."),
        Told("kind", "What answers, as the toolkit names it."),
        Told("title", "The source's name in print."),
        Told("model", "The model that was asked for; null if none.", null=True),
        Told("settings", "Settings that were sent with each question, as JSON; null if none.", null=True),
    ),
)  # fmt: skip
PROMPTS = Released(
    "prompts", "The students' questions, in dialogue order within each case.", ("prompt_id",),
    (
        Told("prompt_id", "The question's name."),
        Told("case_id", "The clinical case that it belongs to."),
        Told("turn", "Its place in the case's dialogue, from 1.", "integer"),
        Told("category", "What kind of question it is."),
        Told("form", "affirmative, negative or open_ended."),
        Told("text", "The question.", free=True),
    ),
)  # fmt: skip
RESPONSES = Released(
    "responses", "What each source answered to each prompt. Failures keep their row and have no text.",
    ("prompt_id", "source_id"),
    (
        Told("prompt_id", "The question answered.", refers="prompts.prompt_id"),
        Told("case_id", "The clinical case."),
        Told("source_id", "Who answered.", refers="sources.source_id"),
        Told("status", "ok, or why there is no text."),
        Told("text", "The answer.", null=True, free=True),
        Told("replaced", "How many stretches of the text were replaced to protect people.", "integer"),
        Told("flags", "What was noticed of the answer, comma-separated; null if unknown.", null=True),
        Told("model", "The model as the server named it; null if none.", null=True),
        Told("finish", "Why the model stopped, as the server said; null if unknown.", null=True),
        Told("prompt_tokens", "Tokens of the question; null if unknown.", "real", null=True),
        Told("completion_tokens", "Tokens of the answer; null if unknown.", "real", null=True),
        Told("answered_on", "Day of the answer, UTC; null if unknown.", null=True),
    ),
)  # fmt: skip
ITEMS = Released(
    "items", "What was rated: utterances (one answer each) and encounters (all answers of a source to a case).",
    ("label",),
    (
        Told("label", "The name that the item was rated under."),
        Told("kind", "utterance or encounter."),
        Told("source_id", "Whose answer it is.", refers="sources.source_id"),
        Told("case_id", "The clinical case; null if there is none.", null=True),
        Told("prompt_id", "The question answered; null for encounters.", null=True, refers="prompts.prompt_id"),
        Told("encounter", "The encounter that an utterance is part of; null if there is none.", null=True,
             refers="items.label"),
        Told("category", "The question's category; null for encounters.", null=True),
        Told("form", "The question's form; null for encounters.", null=True),
        Told("text", "The answer as it was shown, but for replaced stretches.", null=True, free=True),
    ),
)  # fmt: skip
RATERS = Released(
    "raters", "Who rated. People have new names, in an order that does not follow their old ones.", ("rater_id",),
    (
        Told("rater_id", "The rater's name: R01 and on for people, the judge's own for models and rules."),
        Told("rater_kind", "human, judge (a model) or rule."),
        Told("simulated", "Whether the rater is simulated.", "boolean"),
        Told("ratings", "How many rows of ratings are the rater's.", "integer"),
        Told("attribute", "A coarse attribute that at least five people share; null if none is released.",
             null=True),
    ),
)  # fmt: skip
RATINGS = Released(
    "ratings", "One row for each rater, item, metric and occasion. What was not rated has a status and no value.",
    ("rater_id", "label", "metric_id", "occasion"),
    (
        Told("rater_id", "Who rated.", refers="raters.rater_id"),
        Told("rater_kind", "human, judge (a model) or rule."),
        Told("label", "The item rated.", refers="items.label"),
        Told("metric_id", "The metric rated on.", refers="metrics.metric_id"),
        Told("occasion", "1, or which repetition it is.", "integer"),
        Told("value", "The rating in the scale's own units; null unless the status is ok.", "real", null=True),
        Told("status", "ok, or why there is no value."),
        Told("reason", "Why a person could not judge (from a list), or a model's own words; else null.", null=True,
             free=True),
        Told("simulated", "Whether the rating was drawn from a model of raters.", "boolean"),
        Told("model", "The model that judged, as the server named it; null for people.", null=True),
    ),
)  # fmt: skip
COMMENTS = Released(
    "comments", "Comments and flags that people gave with their ratings, without their names.", ("comment_id",),
    (
        Told("comment_id", "The comment's number, in an order that follows nothing else.", "integer"),
        Told("label", "The item commented on.", refers="items.label"),
        Told("flag", "A flag from a list; null if none.", null=True),
        Told("text", "The comment, but for replaced stretches; null if none.", null=True, free=True),
    ),
)  # fmt: skip
ENCOUNTERS = Released(
    "encounters", "Dialogues of a doctor and a patient: who spoke, and how each ended.", ("encounter_id",),
    (
        Told("encounter_id", "The dialogue's name."),
        Told("case_id", "The clinical case."),
        Told("doctor_id", "Who played the doctor."),
        Told("patient_id", "Who played the patient."),
        Told("replicate", "Which repetition it is, from 1.", "integer"),
        Told("status", "How it ended."),
        Told("rounds", "How many rounds it had.", "integer"),
        Told("diagnosis", "The doctor's diagnosis; null if none was made.", null=True, free=True),
    ),
)  # fmt: skip
DIALOGUES = Released(
    "dialogues", "The turns of the dialogues, one row each.", ("encounter_id", "turn"),
    (
        Told("encounter_id", "The dialogue.", refers="encounters.encounter_id"),
        Told("turn", "The turn's place, from 1.", "integer"),
        Told("round", "The round that it belongs to, from 1.", "integer"),
        Told("speaker", "doctor or patient."),
        Told("text", "What was said, but for replaced stretches.", free=True),
        Told("flags", "What was noticed of the turn, comma-separated; null if nothing was.", null=True),
    ),
)  # fmt: skip
ALL = (METRICS, SOURCES, PROMPTS, RESPONSES, ITEMS, RATERS, RATINGS, COMMENTS, ENCOUNTERS, DIALOGUES)
