"""A benchmark's score as people would have given it, where a calibration of its rater says how; else why not.

The calibrated score is the panel's prediction-powered mean: the rater's mean over the conversations that no panel
rated, corrected by what rater and panel said of those that one did.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from analysis import calibration_use, judge_identity
from analysis.benchmarks.scoring import Scorer
from analysis.benchmarks.vaidya.evaluation import LEVEL, Evaluation
from analysis.benchmarks.vaidya.survey import Survey
from analysis.judge_card import folder as card_folder
from analysis.stats.clusters import t_interval
from analysis.stats.prediction_powered import of_moments
from study import tables
from study.errors import StudyError

CARD = "judge-card.json"


def twin(found: Evaluation, scorer: Scorer, known: Survey, card: Path | None) -> dict[str, object]:
    """The calibrated score; `word` says calibrated or uncalibrated, `why` by which ratings, or why not.

    Parameters
    ----------
    card : of `analysis calibrate`; if not given, results/calibration/RATER/judge-card.json in the folder

    Raises
    ------
    StudyError : if `card` is given and is no judge card
    """
    path = card or card_folder(known.folder / "results", scorer.rater_id) / CARD
    if card is None and not path.is_file():
        return _without("no calibration of this rater is in the folder (`analysis calibrate` makes one)")
    try:
        held = calibration_use.read_card(path)
    except StudyError as error:
        if card is not None:
            raise
        return _without(str(error))
    try:
        return _with(held, found, scorer, known) | {"card": path.name}
    except StudyError as error:
        return _without(str(error))


def about(found: Evaluation, scorer: Scorer, folder: Path) -> Path:
    """Write what `analysis calibrate --about` wants to know of a rater: its model and prompt."""
    lines = [f"model = {_quoted(m)}" for m in found.summary["models"][:1]]  # type: ignore[index]
    lines.append(f"prompt = {_quoted(scorer.prompt)}")
    path = folder / f"about-{scorer.rater_id}.toml"
    tables.replaced(path, lambda half: half.write_text("\n".join(lines) + "\n", encoding="utf-8"))
    return path


def _with(card: Mapping[str, object], found: Evaluation, scorer: Scorer, known: Survey) -> dict[str, object]:
    metric = scorer.metrics[0]
    named = card["judge"]["name"]  # type: ignore[index]
    if named != scorer.rater_id:
        raise StudyError(f"the card is of {named}, not of {scorer.rater_id}")
    part = calibration_use.part_of(card, metric.metric_id)
    then = part["holds_for"]
    calibration_use.check_holds(card, then, _now(found, scorer, then))
    use = part["apply"]
    doctor = str(known.doctor)
    if doctor not in use["moments"]:
        raise StudyError(f"{doctor} is not among the doctors of the calibration ({', '.join(use['moments'])})")
    taught = use.get("cases", {}).get(doctor)
    if not taught:
        raise StudyError("the card does not say which cases it was made on; calibrate again")
    simulated = bool(card["provenance"].get("simulated"))  # type: ignore[attr-defined]
    return {"word": "calibrated", "simulated": simulated} | _mean(
        use["moments"][doctor], _fresh(found, set(taught))
    )


def _now(found: Evaluation, scorer: Scorer, then: Mapping[str, object]) -> dict[str, object]:
    """What the rater is now. The content pack is the card's own study's; a benchmark's cases are no part of it."""
    return {
        "models": sorted(found.summary["models"]),  # type: ignore[call-overload]
        "prompt_sha256": hashlib.sha256(scorer.prompt.encode()).hexdigest(),
        "metric": judge_identity.named(scorer.metrics[0]),
        "content_sha256": then.get("content_sha256"),
    }


def _fresh(found: Evaluation, taught: set[str]) -> np.ndarray:
    """Scores of the conversations that taught the calibration nothing."""
    left = (row for row in found.rows if str(row["patient_id"]) not in taught)
    return np.array([row["score"] for row in left if row["score"] is not None], float)


def _mean(stored: Mapping[str, float], fresh: np.ndarray) -> dict[str, object]:
    """The panel's mean with its interval; of the panel's own ratings alone where no other conversation is left."""
    n = int(stored["n"])
    if len(fresh) < 2:
        error = float(np.sqrt(stored["variance"] / n))
        low, high = t_interval(stored["mean"], error, n - 1.0, LEVEL)
        why = f"the panel's own mean: it rated {n} conversations, and no others are left"
        return {"estimate": stored["mean"], "low": low, "high": high, "n_labelled": n, "n_new": 0, "why": why}
    powered = of_moments(calibration_use.with_new(stored, fresh), level=LEVEL)
    own = powered.estimate
    why = f"{n} conversations rated by the panel, {len(fresh)} by this rater alone"
    return {"estimate": own.estimate, "low": own.low, "high": own.high, "n_labelled": n, "n_new": len(fresh),
            "tuning": powered.tuning, "why": why}  # fmt: skip


def _without(why: str) -> dict[str, object]:
    return {"word": "uncalibrated", "why": why}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a TOML basic string
