"""Whether responses may go into a release: none from a demonstration, and all models asked in one window."""

import pandas as pd

_DAY = 86_400


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
