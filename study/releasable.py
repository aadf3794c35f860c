"""Whether a study may be released: whole grids, nothing from a demonstration, all models asked in one window."""

import pandas as pd

from study.config import FILE, Study
from study.records import Content

REQUIRED = (  # of [rai]; conferences ask for them, and only the study's people can write them
    "data_limitations", "data_biases", "personal_sensitive_information", "data_use_cases", "data_social_impact",
)  # fmt: skip
_DAY = 86_400
_SHOWN = 5


def problems(responses: pd.DataFrame, window_days: float, waiver: str | None = None) -> list[str]:
    """What keeps responses from being released, each as one sentence; empty if nothing does.

    Parameters
    ----------
    responses : the table of that name
    window_days : within how many days all models must have been asked
    waiver : the reason why answers from further apart are accepted
    """
    found = []
    failed = int((responses["status"] == "failed").sum())
    if failed:
        found.append(f"{failed} responses failed and were not asked for again; `generation run` asks")
    if "demo" in responses.columns:
        for source in responses.loc[responses["demo"].fillna(False).astype(bool), "source_id"].unique():
            found.append(f"source {source} is for demonstration only; take it out of study.toml and run again")
    days = span(responses)
    if days is not None and days > window_days and not waiver:
        found.append(
            f"the models were asked over {days:.1f} days, and the study allows {window_days:g}; "
            "ask again within the window, or give the reason as waiver under [generation]"
        )
    return found


def span(responses: pd.DataFrame) -> float | None:
    """Days between the first and the last answer of a model; None if no model answered."""
    if "answered_at" not in responses.columns:
        return None
    answered = responses.loc[responses["status"] != "failed", "answered_at"].dropna()
    if answered.empty:
        return None
    return (answered.max() - answered.min()).total_seconds() / _DAY


def unsaid(study: Study) -> list[str]:
    """What study.toml must still say of the data, each as one sentence."""
    where = study.folder / FILE
    found = []
    if study.release is None:
        found.append(
            f"{where}: has no [release]; it says whose the data are: date, description, license, creators, url"
        )
    blank = [name for name in REQUIRED if not (getattr(study.rai, name) or "").strip()]
    return found + [f"{where}: [rai] lacks {name}, which every data set must say of itself" for name in blank]


def gaps(study: Study, content: Content | None, responses: pd.DataFrame | None) -> list[str]:
    """Cells of prompts × sources without a row, and rows of no cell."""
    if responses is None:
        return [] if content is None else [f"{study.responses}: not found; `generation run` writes it"]
    prompts = [p.prompt_id for p in content.prompts] if content else sorted(set(responses["prompt_id"]))
    wanted = {(p, s.source_id) for p in prompts for s in study.sources}
    there = set(zip(responses["prompt_id"], responses["source_id"], strict=True))
    found = []
    if lacking := sorted(wanted - there):
        found.append(f"{study.responses}: lacks {_rows(lacking)}; `generation run` asks for what is missing")
    if strange := sorted(there - wanted):
        found.append(f"{study.responses}: has {_rows(strange)}, which the study does not ask for")
    return found


def trial_judges(study: Study, ratings: pd.DataFrame) -> list[str]:
    """Judges that are models for trying things out, and have ratings."""
    trial = [j.judge_id for j in study.judges if j.settings.get("kind") == "local" or j.settings.get("demo")]
    return [
        f"{study.ratings}: judge {name} is for demonstration only; take its rows and its [[judge]] out"
        for name in trial if (ratings["rater_id"] == name).any()
    ]  # fmt: skip


def unrated(
    study: Study, items: pd.DataFrame, assignment: pd.DataFrame | None, ratings: pd.DataFrame, out: set[str]
) -> list[str]:
    """Assigned cells without a row, of raters who have rows and do not stay out."""
    if assignment is None:
        return []
    main = assignment[(assignment["role"] == "main") & ~assignment["rater_id"].isin(out)]
    metrics = pd.DataFrame([(m.metric_id, m.item) for m in study.metrics], columns=["metric_id", "kind"])
    wanted = main[["rater_id", "label"]].merge(items[["label", "kind"]], on="label").merge(metrics, on="kind")
    cell = ["rater_id", "label", "metric_id"]
    found = wanted.merge(ratings[cell].drop_duplicates(), on=cell, how="left", indicator=True)
    lacking = found.loc[found["_merge"] == "left_only"]
    return [
        f"{study.ratings}: {rater} has no row for {len(rows)} assigned ratings ({rows['metric_id'].iloc[0]} of "
        f"{rows['label'].iloc[0]} the first); what was not rated must say why in its status"
        for rater, rows in list(lacking.groupby("rater_id"))[:_SHOWN]
    ]


def _rows(cells: list[tuple[str, str]]) -> str:
    first = f"{cells[0][0]} by {cells[0][1]}"
    return f"a row for {first}" if len(cells) == 1 else f"rows for {len(cells)} cells ({first} the first)"
