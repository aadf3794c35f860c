"""How fast judges are calibrated. `make bench` prints it.

CPU seconds, as a busy machine stretches the clock on the wall and not the work.
"""

from time import process_time

import numpy as np
import pandas as pd
import pytest

from analysis import bare, calibrations, load
from analysis.judge_card import card as card_of
from analysis.judge_card import rendered
from analysis.stats.calibration import Options
from study.records import Metric

pytestmark = pytest.mark.benchmark_only
METRICS, PROMPTS, SOURCES, RATERS, JUDGES = 4, 100, 16, 3, 6


def loaded() -> load.Loaded:
    """Simulated: 100 prompts × 16 sources × 4 metrics, 6,400 items, by 3 people and 6 judges."""
    rng = np.random.default_rng(1)
    source, prompt = np.tile(np.arange(SOURCES), PROMPTS), np.repeat(np.arange(PROMPTS), SOURCES)
    frames = []
    for m in range(METRICS):
        truth = 3.5 + rng.normal(0, 0.4, SOURCES)[source] + rng.normal(0, 0.7, len(source))
        for r in range(RATERS + JUDGES):
            score = truth + rng.normal(0, 0.3) + rng.normal(0, 0.7, len(source))
            frames.append(pd.DataFrame({
                "rater": f"r{r}", "rater_kind": "human" if r < RATERS else "judge", "kind": "utterance", "turn": 0,
                "label": [f"{s}:{p}" for s, p in zip(source, prompt, strict=True)], "case": None, "category": None,
                "form": None, "prompt": [f"p{p}" for p in prompt], "source": [f"s{s}" for s in source],
                "metric": f"m{m}", "occasion": 1, "score": score.round().clip(1, 5), "status": "ok",
                "simulated": True,
            }))  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.assign(**{name: bare.factor(frame[name], ()) for name in bare.FACTORS})
    metrics = tuple(Metric(f"m{m}", "utterance", 1, 5) for m in range(METRICS))
    return load.Loaded(frame, metrics, {}, "simulated")


def test_six_judges_of_6400_items_are_calibrated_in_20_seconds():
    data, options = loaded(), Options()
    judges, panel = calibrations.judges_of(data)
    calibrations.calibrations(data, judges[:1], panel, ["m0"], options)
    start = process_time()
    judged = calibrations.calibrations(data, judges, panel, [m.metric_id for m in data.metrics], options)
    middle = process_time()
    pages = [rendered(card_of(data, one, options)) for one in judged]
    end = process_time()
    print(f"\n24 calibrations {middle - start:.1f} s, 6 cards {end - middle:.1f} s of CPU")
    assert len(pages) == JUDGES
    assert end - start < 20
