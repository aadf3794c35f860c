"""A small study whose truth is known: 3 sources × 9 prompts × 2 cases, 6 raters, simulated."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study import tables

STUDY = """
[study]
id = "small"
title = "작은 연구"
seed = 3

[[source]]
id = "expert"
kind = "expert"
title = "Expert"

[[source]]
id = "model_b"
kind = "openai_chat"

[[source]]
id = "model_a"
kind = "openai_chat"

[panel]
raters = 6

[[metric]]
id = "fluency"
item = "utterance"
low = 1
high = 5
question = "자연스럽습니까?"
anchors = ["아니다", "조금", "보통", "꽤", "그렇다"]

[[metric]]
id = "engagement"
item = "encounter"
low = 1
high = 5
"""
SOURCES = ("expert", "model_b", "model_a")
RATERS = tuple(f"rater-{i:02d}" for i in range(1, 7))
CATEGORIES = ("greeting", "history", "reasoning")
FORMS = ("affirmative", "negative", "open_ended")


def items_and_key() -> tuple[pd.DataFrame, pd.DataFrame]:
    """9 prompts in each of 2 cases, answered by 3 sources; one encounter per case and source."""
    rows, key = [], []
    for s, source in enumerate(SOURCES):
        for c in range(2):
            encounter = f"E{s}{c}"
            rows.append({"label": encounter, "kind": "encounter", "case_id": f"case-{c}"})
            key.append((encounter, source))
            for p in range(9):
                rows.append({
                    "label": f"U{s}{c}{p:02d}", "kind": "utterance", "case_id": f"case-{c}",
                    "prompt_id": f"case-{c}-{p:02d}", "encounter": encounter, "turn": p + 1,
                    "category": CATEGORIES[p % 3], "form": FORMS[p // 3], "text": "네, 있어요.",
                })  # fmt: skip
                key.append((f"U{s}{c}{p:02d}", source))
    items = pd.DataFrame(rows).astype({"turn": "Int64"})
    return items, pd.DataFrame(key, columns=["label", "source_id"])


def made_ratings(*, fault: float = -1.5, seed: int = 1) -> pd.DataFrame:
    """Every rater on every item; model_a is worse by `fault` on negative questions, and nowhere else."""
    items, key = items_and_key()
    known = items.merge(key, on="label")
    rng = np.random.default_rng(seed)
    severity = dict(zip(RATERS, rng.normal(0, 0.3, len(RATERS)), strict=True))
    frames = []
    for kind, metric in (("utterance", "fluency"), ("encounter", "engagement")):
        own = known[known["kind"] == kind].merge(pd.DataFrame({"rater_id": RATERS}), how="cross")
        response = dict(zip(known["label"], rng.normal(0, 0.2, len(known)), strict=True))
        hit = (own["source_id"] == "model_a") & (own["form"] == "negative")
        latent = 4 + own["rater_id"].map(severity) + own["label"].map(response) + fault * hit
        value = (latent + rng.normal(0, 0.5, len(own))).round().clip(1, 5)
        frames.append(pd.DataFrame({
            "rater_id": own["rater_id"], "rater_kind": "human", "label": own["label"], "metric_id": metric,
            "occasion": 1, "value": value, "status": "ok", "reason": None, "simulated": True,
        }))  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def without_value(ratings: pd.DataFrame, rows: list[int], status: str = "missing") -> pd.DataFrame:
    """The ratings with some rows not ok."""
    changed = ratings.copy()
    changed.loc[rows, ["value", "status"]] = [np.nan, status]
    return changed


Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write a study folder; any of its tables may be replaced."""

    def write(
        ratings: pd.DataFrame | None = None,
        items: pd.DataFrame | None = None,
        key: pd.DataFrame | None = None,
        toml: str = STUDY,
        name: str = "small",
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        own_items, own_key = items_and_key()
        (folder / "study.toml").write_text(toml, encoding="utf-8")
        tables.write(own_items if items is None else items, folder / "items.parquet", tables.ITEMS)
        tables.write(own_key if key is None else key, folder / "key.parquet", tables.KEY)
        rated = made_ratings() if ratings is None else ratings
        tables.write(rated, folder / "ratings.parquet", tables.RATINGS)
        return folder

    return write


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study, written once; tests that write into a study use `written`."""
    folder = tmp_path_factory.mktemp("small") / "small"
    folder.mkdir()
    items, key = items_and_key()
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    tables.write(items, folder / "items.parquet", tables.ITEMS)
    tables.write(key, folder / "key.parquet", tables.KEY)
    tables.write(without_value(made_ratings(), [0, 7]), folder / "ratings.parquet", tables.RATINGS)
    return folder


@pytest.fixture
def rating_maker() -> Callable[..., pd.DataFrame]:
    return made_ratings


@pytest.fixture
def table_maker() -> Callable[[], tuple[pd.DataFrame, pd.DataFrame]]:
    return items_and_key


@pytest.fixture
def blanked() -> Callable[..., pd.DataFrame]:
    return without_value


@pytest.fixture
def study_toml() -> str:
    return STUDY
