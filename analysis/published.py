"""A study beside the published one: every printed number, and what comes out of the ratings at hand.

Sources are known by their titles, metrics by their ids. The published intervals of encounter means are those of a
percentile bootstrap of 51 ratings taken as independent; the same is computed here, exactly.
"""

import pandas as pd

from analysis import fitting, load, lowscores, means
from analysis.load import Loaded
from analysis.side_by_side import Pair, SideBySide
from analysis.stats import agreement, icc_incomplete
from analysis.stats.plain_interval import mean_interval
from study.errors import StudyError
from study.twin.published import Published, published

TITLE = "The published study and its reproduction, side by side"
_FLUENCY, _ACCURACY = "fluency", "accuracy"
_NOT_IN_CASE, _REGISTER = "contradicts the case", "register"  # tags of the rules
_NOTES = (
    "Intervals of encounter means take 51 ratings as independent, as the published ones do. They are too narrow: "
    "ratings of one encounter, and of one rater, go together.",
    "ICC(2,k) of encounters is of 90 targets, 15 encounters on 6 metrics pooled: the published interval fits 51 "
    "to 101 targets, and not 15. Pooling metrics whose means differ raises the coefficient.",
    "Reported items are 17 × (350 + 15 × 6) = 7,480, which counts an answer once though it has three ratings; "
    "rows of ratings are 17 × (350 × 3 + 15 × 6) = 19,380.",
    "The penalty of negative questions is affirmative minus negative, as a difference of plain means and as the "
    "contrast of the published model; which of them was printed is not known.",
)


def side_by_side(loaded: Loaded) -> SideBySide:
    """Every number of the published study beside the one that comes out of a study's ratings.

    Raises
    ------
    StudyError : if the study lacks a source or a metric of the published one
    """
    figures = published()
    spoken, whole = _ratings(loaded, figures)
    parts = [
        *_design(figures, spoken, whole), *_encounters(figures, whole), *_agreement(figures, spoken, whole),
        *_sentences(figures, spoken), *_model(figures, loaded), *_low(figures, loaded),
    ]  # fmt: skip
    return SideBySide(TITLE, loaded, tuple(parts), _NOTES)


def encounter_means(loaded: Loaded) -> pd.DataFrame:
    """The published table of encounter means beside its reproduction.

    Returns
    -------
    metric, source (its title), published, published_low, published_high, estimate, low, high, n; the intervals
    take ratings as independent
    """
    figures = published()
    return _means(figures, _ratings(loaded, figures)[1])


def _ratings(loaded: Loaded, figures: Published) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The ratings of utterances and of encounters, sources under their ids in the published figures."""
    titles = {s.title: s.source_id for s in loaded.study.sources} if loaded.study else {}
    rated = set(load.rated_metrics(loaded))
    lacking = [f"source titled {title}" for title in figures.sources.values() if title not in titles]
    lacking += [f"metric {m}" for m in (*figures.utterance_metrics, *figures.encounter_metrics) if m not in rated]
    lacking += [f"rated question of {f} form" for f in means.PENALTY if f not in set(loaded.frame["form"])]
    if lacking:
        raise StudyError(
            f"{loaded.name}: has no {lacking[0]}; only a study of the same sources and metrics can be held "
            "against the published one (study simulate --published makes one)"
        )
    ids = {titles[title]: name for name, title in figures.sources.items()}
    frames = [
        pd.concat([load.select(loaded, m).frame for m in metrics], ignore_index=True).assign(
            source=lambda f: f["source"].astype(str).map(ids)
        )
        for metrics in (figures.utterance_metrics, figures.encounter_metrics)
    ]
    return frames[0], frames[1]


def _design(figures: Published, spoken: pd.DataFrame, whole: pd.DataFrame) -> list[Pair]:
    rated = pd.concat([spoken, whole])
    answers = len(spoken[["rater", "label"]].drop_duplicates())
    found = {
        "raters": rated["rater"].nunique(),
        "cases": rated["case"].nunique(),
        "prompts": spoken["prompt"].nunique(),
        "sources": rated["source"].nunique(),
        "responses": spoken["label"].nunique(),
        "encounters": whole["label"].nunique(),
        "categories": spoken["category"].nunique(),
        "forms": spoken["form"].nunique(),
        "reported_items": answers + len(whole),
        "rating_rows": len(rated),
    }
    named = {"reported_items": "reported items", "rating_rows": "rows of ratings"}
    return [Pair("design", named.get(name, name), n, found[name], digits=0) for name, n in figures.design.items()]


def _means(figures: Published, whole: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (metric, source), printed in figures.encounter.items():
        scores = whole.loc[(whole["metric"] == metric) & (whole["source"] == source), "score"].to_numpy()
        own = (scores.mean(), *mean_interval(scores), len(scores))
        rows.append((metric, figures.sources[source], printed.value, printed.low, printed.high, *own))
    columns = ["published", "published_low", "published_high", "estimate", "low", "high", "n"]
    return pd.DataFrame(rows, columns=["metric", "source", *columns])


def _encounters(figures: Published, whole: pd.DataFrame) -> list[Pair]:
    part, pairs = "encounter means", []
    for row in _means(figures, whole).itertuples():
        name = f"{row.source}, {row.metric.replace('_', ' ')}"
        pairs += [
            Pair(part, name, row.published, row.estimate),
            Pair(part, name, row.published_low, row.low, 0.02, end="lower end"),
            Pair(part, name, row.published_high, row.high, 0.02, end="upper end"),
        ]
    away = _from_expert(figures, whole[whole["metric"].isin(figures.lag_metrics)])
    names = " and ".join(m.replace("_", " ") for m in figures.lag_metrics)
    expert = figures.sources[figures.expert]
    return pairs + [
        Pair(part, f"{size} lag behind {expert}, {names}", lag, value, digits=1)
        for size, lag, value in zip(("least", "largest"), figures.lag, (away.min(), away.max()), strict=True)
    ]


def _from_expert(figures: Published, rated: pd.DataFrame) -> pd.Series:
    """The expert's mean minus each other source's, on each metric."""
    wide = rated.groupby(["metric", "source"], observed=True)["score"].mean().unstack("source")
    return wide.rsub(wide[figures.expert], axis=0).drop(columns=figures.expert).stack()


def _agreement(figures: Published, spoken: pd.DataFrame, whole: pd.DataFrame) -> list[Pair]:
    found = _icc(whole)
    low, high = figures.source_icc
    fluency = spoken[spoken["metric"] == _FLUENCY]
    own = {s: _icc(fluency[fluency["source"] == s])["estimate"] for s in figures.sources}
    part, within = "agreement", {"tolerance": 0.005, "rule": "in full"}
    return [
        Pair(part, "ICC(2,k), encounters", figures.icc.value, found["estimate"], **within),
        Pair(part, "ICC(2,k), encounters", figures.icc.low, found["low"], **within, end="lower end"),
        Pair(part, "ICC(2,k), encounters", figures.icc.high, found["high"], **within, end="upper end"),
        Pair(part, "ICC(2,k), fluency, lowest source", low, min(own.values()), **within),
        Pair(part, "ICC(2,k), fluency, highest source", high, max(own.values()), **within),
    ]


def _icc(rated: pd.DataFrame) -> pd.Series:
    matrix = agreement.rating_matrix(rated.astype({"metric": str}), item=["metric", "label"])
    complete = matrix.notna().to_numpy().all()
    found = agreement.icc(matrix) if complete else icc_incomplete.icc_incomplete(matrix)
    return found.set_index("term").loc["ICC(2,k)"]


def _sentences(figures: Published, spoken: pd.DataFrame) -> list[Pair]:
    fluency = spoken[spoken["metric"] == _FLUENCY]
    mean = fluency.groupby("source")["score"].mean()
    form = fluency.groupby(["source", "form"], observed=True)["score"].mean().unstack("form")
    penalty = form["affirmative"] - form["negative"]
    dropping, drop = figures.fluency_drop
    away = _from_expert(figures, spoken[spoken["metric"] == _ACCURACY])
    part = "sentences"
    gap = "accuracy, largest distance from the expert"
    return [
        *[Pair(part, f"fluency, {figures.sources[s]}", m, mean[s]) for s, m in figures.fluency.items()],
        Pair(part, f"fluency, {figures.sources[dropping]}'s drop", drop, mean[figures.expert] - mean[dropping],
             rule="more"),
        *[
            Pair(part, f"negation penalty, {figures.sources[s]}", p, penalty[s], digits=3)
            for s, p in figures.penalty.items()
        ],
        Pair(part, gap, figures.accuracy_gap, away.abs().max(), rule="less"),
    ]  # fmt: skip


def _model(figures: Published, loaded: Loaded) -> list[Pair]:
    """What the published model makes of fluency: marginal means and contrasts."""
    found = fitting.fitted(loaded, _FLUENCY, kind="published")
    ids = {s.title: s.source_id for s in loaded.study.sources}
    mean = means.marginal(found, "source").set_index("source")["estimate"]
    penalty = means.negation_penalty(found).query("kind == 'penalty'").set_index("source")["estimate"]
    part, titles = "published model", figures.sources
    return [
        *[Pair(part, f"fluency, {titles[s]}", m, mean[ids[titles[s]]]) for s, m in figures.fluency.items()],
        *[
            Pair(part, f"negation penalty, {titles[s]}", p, penalty[ids[titles[s]]], digits=3)
            for s, p in figures.penalty.items()
        ],
    ]


def _low(figures: Published, loaded: Loaded) -> list[Pair]:
    """Answers whose fluency is low, with what the rules say of them."""
    found = lowscores.low(loaded, _FLUENCY)
    tagged = found.tags.set_index("tag")["low"] if found.tags is not None else {}
    shares = found.shares[found.shares["term"] == "category"].nlargest(len(figures.low.where), "estimate")
    part = f"answers with fluency below {found.below:g}"
    return [
        Pair(part, "all", figures.low.total, len(found.answers), digits=0),
        Pair(part, "in the clinician's register", figures.low.clinician_register, tagged.get(_REGISTER), digits=0),
        Pair(part, f"not in the case (tag: {_NOT_IN_CASE})", figures.low.not_in_case, tagged.get(_NOT_IN_CASE),
             digits=0),
        Pair(part, "categories with the highest share", ", ".join(sorted(figures.low.where)),
             ", ".join(sorted(shares["level"])), rule="same"),
    ]  # fmt: skip
