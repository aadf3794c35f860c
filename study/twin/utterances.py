"""The twin's ratings of sentences: the published fluency, negation penalties, low answers and agreement.

First the total of each answer over the raters: a latent mean (source, prompt, answer; low answers low), moved to
whole totals that print as published (`study.twin.totals`). Then its ratings: as even as the total allows, the odd
points given by the more lenient raters, and from there spread on the scale until ICC(2,k) of the source's answers
is the one aimed at (`study.twin.agreement`), which keeps every total.
"""

import numpy as np
import pandas as pd

from study.twin import agreement
from study.twin.published import Published, low_answers
from study.twin.totals import Start, totals

FLUENCY, ACCURACY, RELEVANCE = "fluency", "accuracy", "contextual_relevance"
NOT_IN_CASE = "fact_contradiction"  # the fault of an answer that tells what is not in the case
_LOWEST, _HIGHEST = 1, 5
_LOW_BELOW = 3
_SHIFTS = 30  # until the mean on the scale, with its ceiling, is the wanted one

# Not published, so free. Means on the two other metrics (published: accuracy less than 0.09 from the expert).
_MEANS = {
    ACCURACY: {"human": 4.80, "claude": 4.76, "gpt4o": 4.77, "hyperclova": 4.78, "llama": 4.72},
    RELEVANCE: {"human": 4.86, "claude": 4.48, "gpt4o": 4.55, "hyperclova": 4.63, "llama": 4.08},
}
# ICC(2,k) of each source's answers (published: 0.80 to 0.92), and how far the answers differ, in points.
_ICC = {
    FLUENCY: {"human": 0.80, "claude": 0.88, "gpt4o": 0.92, "hyperclova": 0.83, "llama": 0.85},
    ACCURACY: {"human": 0.83, "claude": 0.84, "gpt4o": 0.84, "hyperclova": 0.83, "llama": 0.81},
    RELEVANCE: {"human": 0.82, "claude": 0.86, "gpt4o": 0.86, "hyperclova": 0.84, "llama": 0.81},
}
_ANSWER_SD = {
    FLUENCY: {"human": 0.50, "claude": 0.28, "gpt4o": 0.28, "hyperclova": 0.25, "llama": 0.30},
    ACCURACY: {"human": 0.40, "claude": 0.40, "gpt4o": 0.40, "hyperclova": 0.40, "llama": 0.40},
    RELEVANCE: {"human": 0.40, "claude": 0.35, "gpt4o": 0.35, "hyperclova": 0.35, "llama": 0.35},
}
_PROMPT_SD, _RATER_SOURCE_SD, _NOISE_SD = 0.10, 0.10, 0.40
_LOW_MEAN, _LOW_SD = 2.65, 0.15  # of a low answer's fluency
_FALSE_MEAN, _FALSE_SD = 3.4, 0.15  # of the accuracy of an answer that is not in the case


def ratings(
    figures: Published, prompts: pd.DataFrame, severity: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Whole ratings, metric × source × prompt × rater.

    Parameters
    ----------
    prompts : prompt_id, category, form, in the order of the result
    severity : of each rater, in points
    """
    raters, given = len(severity), []
    for metric in figures.utterance_metrics:
        ease = _PROMPT_SD * rng.standard_normal(len(prompts))
        for source in figures.sources:
            own = {answer.prompt_id: answer.fault for answer in low_answers() if answer.source_id == source}
            fault = np.array([own.get(name, "") for name in prompts["prompt_id"]])
            mean = figures.fluency[source] if metric == FLUENCY else _MEANS[metric][source]
            penalty = figures.penalty[source] if metric == FLUENCY else None
            answers = ease + _ANSWER_SD[metric][source] * rng.standard_normal(len(prompts))
            latent = _latent(answers + mean, fault, metric, mean, rng)
            found = totals(_start(latent, fault, metric, raters), prompts, raters, mean, penalty, rng)
            leniency = severity + _RATER_SOURCE_SD * rng.standard_normal(raters)
            given.append(agreement.spread(_even(found, leniency, rng), _ICC[metric][source], rng))
    return np.stack(given).reshape(len(figures.utterance_metrics), len(figures.sources), len(prompts), raters)


def _latent(
    answers: np.ndarray, fault: np.ndarray, metric: str, mean: float, rng: np.random.Generator
) -> np.ndarray:
    """The mean of each answer before rounding: low where it is at fault, with this mean over all on the scale."""
    deviates = rng.standard_normal(len(answers))
    fixed = {FLUENCY: fault != "", ACCURACY: fault == NOT_IN_CASE}.get(metric, np.zeros(len(answers), bool))
    centre, sd = (_LOW_MEAN, _LOW_SD) if metric == FLUENCY else (_FALSE_MEAN, _FALSE_SD)
    answers = np.where(fixed, centre + sd * deviates, answers)
    for _ in range(_SHIFTS):
        short = mean - np.clip(answers, _LOWEST, _HIGHEST).mean()
        answers = np.where(fixed, answers, answers + short)
    return answers


def _start(latent: np.ndarray, fault: np.ndarray, metric: str, raters: int) -> Start:
    """Rounded totals: a low answer's fluency stays where it is, below 3 a rater, and all else stays above."""
    totals, edge = np.round(raters * latent).astype(int), raters * _LOW_BELOW
    low = (fault != "") & (metric == FLUENCY)
    held = np.clip(totals, raters * _LOWEST, edge - 1)
    return Start(totals, np.where(low, held, edge + 1), np.where(low, held, raters * _HIGHEST))


def _even(totals: np.ndarray, leniency: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ratings as even as their totals allow; who gives the odd points is a matter of leniency and chance."""
    whole, odd = np.divmod(totals, len(leniency))
    inclined = leniency + _NOISE_SD * rng.standard_normal((len(totals), len(leniency)))
    rank = (-inclined).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    return whole[:, None] + (rank < odd[:, None])
