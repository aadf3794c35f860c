"""Using a calibration on new judgements, as long as it holds: same model, prompt, metric and content."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from analysis import display, judge_identity, load, results
from analysis.judge_card import KIND
from analysis.stats.calibration_map import of_parameters
from analysis.stats.comparison import Comparison
from analysis.stats.prediction_powered import Moments, of_moments
from study.errors import StudyError


@dataclass(frozen=True)
class Applied:
    """New judgements of one metric, read by a calibration.

    `scores` : label, source, judge, read_as, low, high (where a panel's mean of that item may lie), clipped,
    calibrated_on (the item taught the map). `means` : prediction-powered panel means by source, of new items only.
    """

    judge: str
    metric: str
    scores: pd.DataFrame
    means: pd.DataFrame
    notes: tuple[str, ...]


def read_card(path: Path) -> dict[str, object]:
    """A judge card's JSON.

    Raises
    ------
    StudyError : if it is none
    """
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StudyError(f"{path}: cannot be read as a judge card ({error})") from None
    if not isinstance(card, dict) or card.get("kind") != KIND:
        raise StudyError(f"{path}: is no judge card; `analysis calibrate` writes judge-card.json")
    return card


def apply(
    card: Mapping[str, object],
    loaded: load.Loaded,
    metric_id: str,
    comparison: Comparison,
    identity: judge_identity.Identity,
    level: float = 0.95,
) -> Applied:
    """Judge scores as the panel would have given them, and what the panel would have said of new items.

    Raises
    ------
    StudyError : if the calibration is void, does not say what it holds for, or never covered the metric
    """
    part = part_of(card, metric_id)
    check_holds(card, part["holds_for"], judge_identity.fingerprint(loaded, identity, loaded.metric(metric_id)))
    use = part["apply"]
    if "refused" in use:
        raise StudyError(f"{metric_id}: this card has no map ({use['refused']})")
    mapped = of_parameters(use["map"], use["parameters"])
    judged = comparison.keep(np.isfinite(comparison.score))
    labels = judged.items["label"].astype(str)
    old = labels.isin(set(use["labels"])).to_numpy()
    read = mapped(judged.score)
    reach = float(stats.norm.ppf((1 + level) / 2)) * use["residual_sd"]
    scores = pd.DataFrame(
        {
            "label": labels, "source": judged.items.get("source", "all"),
            "judge": judged.score, "read_as": read, "low": np.maximum(read - reach, comparison.scale[0]),
            "high": np.minimum(read + reach, comparison.scale[1]), "clipped": mapped.outside(judged.score),
            "calibrated_on": old,
        }
    )  # fmt: skip
    notes = ["read_as is for reading a score, not for comparing sources: a pooled map shrinks their gaps"]
    if old.any():
        notes.append(f"{int(old.sum())} of {len(old)} items taught this calibration: left out of the means below, "
                     "as labels may not be used twice")  # fmt: skip
    means, more = _means(judged.keep(~old), use["moments"], level)
    return Applied(identity.name, metric_id, scores, means, (*notes, *more))


def printed(found: Applied) -> str:
    """What was read, and the means of new items."""
    lines = [f"{found.judge} on {found.metric}: {len(found.scores):,} judgements read"]
    lines += [
        f"  {r.term}: {display.estimate(r.estimate, r.low, r.high)}  ({r.n_labelled} + {r.n_unlabelled} units)"
        for r in found.means.itertuples()
    ]
    return "\n".join([*lines, *(f"  note: {note}" for note in found.notes)])


def write(found: Applied, folder: Path) -> Path:
    """The scores and the means as CSV; the path of the scores."""
    path = folder / f"calibrated-{found.metric}.csv"
    results.write_csv(found.scores, path)
    results.write_csv(found.means, folder / f"panel-means-{found.metric}.csv")
    return path


def part_of(card: Mapping[str, object], metric_id: str) -> Mapping[str, object]:
    """A card's part on one metric.

    Raises
    ------
    StudyError : if it has none, or none to apply
    """
    metrics = card["metrics"]
    if metric_id not in metrics:
        raise StudyError(f"this card does not cover {metric_id}; it covers {', '.join(metrics)}")
    if "apply" not in metrics[metric_id]:
        raise StudyError(f"{metric_id}: {metrics[metric_id]['verdict']}; there is nothing to apply")
    return metrics[metric_id]


def check_holds(card: Mapping[str, object], then: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Refuse a calibration that is not of this judge as it is now.

    Raises
    ------
    StudyError : if the card does not say what it holds for, or something of it changed
    """
    needed = (("model", "models"), ("prompt", "prompt_sha256"))
    unknown = [what for what, key in needed if not then.get(key)]
    name = card["judge"]["name"]
    if unknown:
        raise StudyError(
            f"this card does not say which {' and '.join(unknown)} {name} had, so nobody can tell whether it "
            "still holds; calibrate again with --about FILE that says it"
        )
    if void := judge_identity.changed(then, now):
        raise StudyError(f"the calibration of {name} is void: {'; '.join(void)}; calibrate again")


def _means(
    new: Comparison, stored: Mapping[str, Mapping[str, float]], level: float
) -> tuple[pd.DataFrame, list[str]]:
    """Prediction-powered means of sources with both stored and new units."""
    rows, notes = [], []
    for source in (new.sources or ["all"]) if new.n else []:
        part = new.of_source(source) if new.sources else new
        units = pd.Series(part.score).groupby(part.cluster).mean().to_numpy()
        if source not in stored:
            notes.append(f"{source} was not in the calibration: no panel mean can be given for it")
        elif len(units) < 2:
            notes.append(f"{source}: fewer than two new {part.unit}s, no panel mean")
        else:
            found = of_moments(with_new(stored[source], units), level=level, term=source)
            rows.append({**found.estimate.record(), "tuning": found.tuning, "n_labelled": found.n_labelled,
                         "n_unlabelled": found.n_unlabelled})  # fmt: skip
    return pd.DataFrame(rows), notes


def with_new(stored: Mapping[str, float], units: np.ndarray) -> Moments:
    """The labelled units' moments with those of new units in the place of the unlabelled."""
    n, more = int(stored["n"]), len(units)
    own = float(units.var(ddof=1))
    gap = stored["judge"] - float(units.mean())
    pooled = ((n - 1) * stored["judge_variance"] + (more - 1) * own + n * more / (n + more) * gap**2) / (
        n + more - 1
    )
    return Moments(
        n=n, n_unlabelled=more, mean=stored["mean"], judge=stored["judge"], judge_unlabelled=float(units.mean()),
        variance=stored["variance"], judge_variance=stored["judge_variance"], covariance=stored["covariance"],
        judge_unlabelled_variance=own, judge_pooled_variance=pooled,
    )  # fmt: skip
