"""Raters whose truth is known: ratings drawn from a stated model, and marked simulated in every row.

On the latent scale a rating is the mean, plus the stated effects, plus normal deviates of prompt, response,
rater (severity), rater × source and a residual; it is then rounded to the metric's scale, which makes the ceiling.
"""

import numpy as np
import pandas as pd

from study.config import SimulationSection
from study.errors import StudyError
from study.records import Metric

_STREAM = 10  # apart from the streams of the design
_COLUMNS = (
    "rater_id", "rater_kind", "label", "metric_id", "occasion", "value", "status", "reason", "simulated"
)  # fmt: skip


def ratings(
    items: pd.DataFrame,
    key: pd.DataFrame,
    assignment: pd.DataFrame,
    metrics: tuple[Metric, ...],
    truth: SimulationSection,
    seed: int,
) -> pd.DataFrame:
    """Simulated ratings of every assigned item on every metric of its kind, as the table `ratings`.

    Raises
    ------
    StudyError : if an effect names a metric, source, category, form or case that the study does not have
    """
    known = items.merge(key, on="label")
    _check_effects(truth, known, metrics)
    frames = []
    for number, metric in enumerate(metrics):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, number)))
        rated = assignment.merge(known[known["kind"] == metric.item], on="label")
        if len(rated):
            frames.append(_rated(rated, metric, truth, rng))
    return pd.concat(frames, ignore_index=True)


def latent_means(known: pd.DataFrame, metric: Metric, truth: SimulationSection) -> np.ndarray:
    """The expected latent score of each item: the mean plus every effect that applies to it."""
    mean = np.full(len(known), truth.mean)
    for effect in truth.effect:
        if metric.metric_id in effect.metrics:
            applies = np.ones(len(known), bool)
            for column, value in effect.conditions().items():
                applies &= (known[column] == value).to_numpy()
            mean[applies] += effect.shift
    return mean


def _rated(rated: pd.DataFrame, metric: Metric, truth: SimulationSection, rng: np.random.Generator):
    latent = latent_means(rated, metric, truth)
    unit = rated["prompt_id"].fillna(rated["case_id"]).astype(str)
    for parts, sd in (
        ([unit], truth.prompt_sd),
        ([rated["label"]], truth.response_sd),
        ([rated["rater_id"]], truth.severity_sd),
        ([rated["rater_id"], rated["source_id"]], truth.rater_source_sd),
    ):
        latent = latent + sd * _deviates(parts, rng)
    latent = latent + truth.noise_sd * rng.standard_normal(len(rated))
    step = metric.step or 0.0
    value = metric.low + step * np.round((latent - metric.low) / step) if step else latent
    skipped = rng.random(len(rated)) < truth.missing
    return pd.DataFrame(
        {
            "rater_id": rated["rater_id"],
            "rater_kind": "human",
            "label": rated["label"],
            "metric_id": metric.metric_id,
            "occasion": 1,
            "value": np.where(skipped, np.nan, np.clip(value, metric.low, metric.high)),
            "status": np.where(skipped, "missing", "ok"),
            "reason": np.where(skipped, "skipped by the simulated rater", None),
            "simulated": True,
        },
        columns=list(_COLUMNS),
    )


def _deviates(parts: list[pd.Series], rng: np.random.Generator) -> np.ndarray:
    """One standard normal deviate per level, the same for all rows of that level."""
    code, levels = pd.factorize(pd.MultiIndex.from_arrays(parts), sort=True)
    return rng.standard_normal(len(levels))[code]


def _check_effects(truth: SimulationSection, known: pd.DataFrame, metrics: tuple[Metric, ...]) -> None:
    names = {m.metric_id for m in metrics}
    for number, effect in enumerate(truth.effect, 1):
        where = f"study.toml: simulation.effect {number}"
        for name in effect.metrics:
            if name not in names:
                raise StudyError(f"{where}: no metric {name}; the metrics are {', '.join(sorted(names))}")
        for column, value in effect.conditions().items():
            if value not in set(known[column].dropna()):
                raise StudyError(f"{where}: no {column.removesuffix('_id')} {value} among the items")
