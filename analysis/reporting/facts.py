"""What is known of a study, as short texts by name: for its methods paragraph and its reporting checklists.

What is not known has no entry, so that nothing is ever filled with a blank.
"""

import pandas as pd

from analysis import display, results
from analysis.reporting import comparison
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.section import counted, listed
from analysis.stats.formula import parse
from study import tables
from study.records import Source

_SETTINGS = ("model", "temperature", "top_p", "max_tokens", "seed", "reasoning_effort")
_DF_NAMES = {"satterthwaite": "Satterthwaite", "kenward-roger": "Kenward–Roger"}
_KINDS = ("encounter", "utterance")
Facts = dict[str, str]


def facts(made: Analysed) -> Facts:
    """Every fact that the study's files and fits tell."""
    found: Facts = {"study": made.study.title, "study_id": made.study.study_id, "seed": str(made.study.seed)}
    for part in (_sources, _items, _panel, _answers, _design, _models, _agreement, _software):
        found |= part(made)
    found["results"] = " ".join(comparison.standing(f) for k in _KINDS for f in made.of(k, compared=True))
    return {name: text for name, text in found.items() if text}


def metric_facts(made: Analysed, metric_id: str) -> Facts:
    """What is known of one metric."""
    rated = made.metric(metric_id)
    found = next(f for f in made.fits if f.metric_id == metric_id)
    agreement = next(a for a in made.agreements if a.metric_id == metric_id)
    steps = f"{round((rated.high - rated.low) / rated.step) + 1} points" if rated.step else "continuous"
    values = f"{rated.low:g} to {rated.high:g}" + (f" in steps of {rated.step:g}" if rated.step else "")
    anchors = "; ".join(
        f"{rated.low + i * (rated.step or 1):g} = {anchor}" for i, anchor in enumerate(rated.anchors)
    )
    told = {
        "metric": metric_name(found),
        "rated_item": "a single answer" if rated.item == "utterance" else "a whole encounter",
        "question": rated.question,
        "scale_size": steps,
        "scale_values": values,
        "anchors": anchors,
        "level": rated.level,
        "metric_ratings": counted(found.fit.n_rows, "rating"),
        "metric_formula": str(found.fit.formula),
        "metric_agreement": _coefficients(agreement.estimates),
    }
    return {name: text for name, text in told.items() if text}


def _sources(made: Analysed) -> Facts:
    names, settings = list(made.names.values()), []
    for source in made.study.sources:
        told = _settings(source)
        kind = [source.kind] if source.kind != made.names[source.source_id] else []
        about = ", ".join([*kind, *([told] if told else [])])
        settings.append(made.names[source.source_id] + (f" ({about})" if about else ""))
    models = [s for s in made.study.sources if "model" in s.settings]
    return {
        "n_sources": counted(len(names), "source"),
        "sources": listed(names),
        "reference": names[0] if len(names) > 1 else "",
        "source_settings": "; ".join(settings),
        "models": "; ".join(f"{made.names[s.source_id]}: {_settings(s)}" for s in models),
        "people": listed([made.names[s.source_id] for s in made.study.sources if s.kind == "expert"]),
        "judges": listed([j.judge_id for j in made.study.judges]),
    }


def _settings(source: Source) -> str:
    return ", ".join(f"{name} {source.settings[name]}" for name in _SETTINGS if name in source.settings)


def _items(made: Analysed) -> Facts:
    frame = made.loaded.frame
    rated = frame.drop_duplicates("label")
    kinds = {m.metric_id: m.item for m in made.loaded.metrics}
    per = {item: frame[frame["metric"].astype(str).map(kinds) == item] for item in ("utterance", "encounter")}
    levels = {
        name: int(rated[name].nunique())
        for name in ("prompt", "case", "category", "form")
        if name in rated.columns
    }
    return {
        "n_answers": _counted_items(per["utterance"], made.noun("utterance")),
        "n_encounters": _counted_items(per["encounter"], "encounter"),
        "n_items": counted(len(rated), "item"),
        "items_of_each": _of_each(rated),
        "n_prompts": counted(levels.get("prompt", 0), "prompt") if levels.get("prompt") else "",
        "n_cases": counted(levels.get("case", 0), "case") if levels.get("case") else "",
        "n_categories": counted(levels.get("category", 0), "category") if levels.get("category", 0) > 1 else "",
        "n_forms": counted(levels.get("form", 0), "form") if levels.get("form", 0) > 1 else "",
        "answer_metrics": _scales(made, "utterance"),
        "encounter_metrics": _scales(made, "encounter"),
        "metrics": listed([metric_name(f) for f in made.fits]),
        "n_metrics": counted(len(made.fits), "metric"),
    }


def _of_each(rated: pd.DataFrame) -> str:
    """How many items each source has, where the ratings name sources."""
    if "source" not in rated.columns or rated["source"].isna().all():
        return ""
    counts = rated.groupby("source", observed=True).size()
    if counts.min() == counts.max():
        return f"{counted(int(counts.min()), 'item')} of each source"
    return f"{counts.min()} to {counts.max()} items of a source"


def _counted_items(frame: pd.DataFrame, what: str) -> str:
    return counted(int(frame["label"].nunique()), what) if len(frame) else ""


def _scales(made: Analysed, item: str) -> str:
    """Metrics of a kind with their scales: `fluency and accuracy (1 to 5)`."""
    groups: dict[str, list[str]] = {}
    for found in made.of(item):
        rated = found.selected.metric
        groups.setdefault(f"{rated.low:g} to {rated.high:g}", []).append(metric_name(found))
    return "; ".join(f"{listed(names)} ({scale})" for scale, names in groups.items())


def _panel(made: Analysed) -> Facts:
    frame = made.loaded.frame
    used = pd.concat([f.selected.frame for f in made.fits])
    kinds = [str(k) for k in pd.unique(used["rater_kind"])]
    n_raters = int(used["rater"].nunique())
    named = {"human": "human rater", "judge": "LLM judge", "rule": "rule"}
    noun = named.get(kinds[0], "rater") if len(kinds) == 1 else "rater"
    simulated = made.loaded.simulated
    ok = int((frame["status"] == "ok").sum())
    lost = len(frame) - ok
    reasons = frame.loc[frame["status"] != "ok", "status"].value_counts()
    per_item = used.groupby(["metric", "label"], observed=True)["rater"].nunique()
    again = int((frame["occasion"] > 1).sum())
    spread = (
        f"each by {counted(int(per_item.min()), 'rater')}"
        if per_item.min() == per_item.max()
        else f"each by {per_item.min()} to {counted(int(per_item.max()), 'rater')}"
    )
    return {
        "n_raters": counted(n_raters, f"simulated {noun}" if simulated else noun),
        "rater_kind": "simulated raters" if simulated else listed([f"{named.get(k, k)}s" for k in kinds]),
        "n_ratings": counted(ok, "simulated rating" if simulated else "rating"),
        "n_used": counted(len(used), "rating"),
        "ratings_per_item": spread,
        "missing": f"{display.share(lost, len(frame))} without a value "
        f"({listed([f'{n:,} {status}' for status, n in reasons.items()])})"
        if lost
        else "no rating is missing",
        "repeats": f"{counted(again, 'rating')} on a second occasion" if again else "",
        "left_out": listed([f"{part.rows:,} {part.reason}" for part in made.loaded.left_out]),
    }


def _answers(made: Analysed) -> Facts:
    """How the answers were made, where responses.parquet is there."""
    if not made.study.responses.is_file():
        return {}
    rows = tables.read(made.study.responses, tables.RESPONSES)
    status = rows["status"].value_counts()
    failed = [f"{n:,} {name}" for name, n in status.items() if name != "ok"]
    found = {
        "n_responses": counted(len(rows), "response"),
        "responses_status": f"all {len(rows):,} ok" if not failed else f"{listed(failed)} of {len(rows):,}",
    }
    if "asked_at" in rows and rows["asked_at"].notna().any():
        first, last = rows["asked_at"].min(), rows["asked_at"].max()
        found["asked"] = (
            f"{first:%Y-%m-%d}" if first.date() == last.date() else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
        )
    if "model" in rows and rows["model"].notna().any():
        served = rows[rows["model"].notna()].groupby("source_id")["model"].unique()
        found["served"] = "; ".join(f"{made.names.get(s, s)}: {listed(sorted(m))}" for s, m in served.items())
    if "prompt_hash" in rows and rows["prompt_hash"].notna().any():
        found["prompt_hash"] = "of every request, by SHA-256, in responses.parquet"
    return found


def _design(made: Analysed) -> Facts:
    study = made.study
    content = {}
    if study.content_files is not None:
        content = {"language": study.content().language, "content": "cases and prompts lie in the study folder"}
    if not study.assignment.is_file():
        return content
    crossed = study.design.kind == "crossed"
    known = content | {
        "design": "fully crossed: every rater is given every item"
        if crossed
        else f"balanced incomplete blocks: {study.design.raters_per_encounter} raters per encounter",
        "order": f"each rater has an order of their own, drawn from the study's seed ({study.seed})",
    }
    if made.loaded.simulated:  # who is drawn by chance was not trained, and could not be blind
        return known
    return known | {
        "blinding": "items wear labels without meaning; what raters see holds no source, and the key from label "
        "to source is opened by the analysis only",
        "app_language": {"ko": "Korean", "en": "English"}[study.app.language],
        "training": {"none": "none", "shipped": "the shipped rated examples"}.get(
            study.app.training, f"rated examples ({study.app.training})"
        ),
    }


def _models(made: Analysed) -> Facts:
    first = made.fits[0]
    formulas = list(dict.fromkeys(str(f.fit.formula) for f in made.fits))
    terms = list(dict.fromkeys(t.text for text in formulas for t in parse(text).random))
    lost = [metric_name(f) for f in made.fits if not f.fit.optimum.converged]
    return {
        "formulas": "; ".join(formulas),
        "random_terms": ", ".join(terms),
        "method": first.fit.method,
        "df_method": _DF_NAMES.get(first.ddf, ""),
        "converged": f"not converged: {listed(lost)}" if lost else "all models converged",
        "confidence": f"{100 * first.level:g}%",
    }


def _agreement(made: Analysed) -> Facts:
    how = made.agreements[0].bootstrap
    told = [f"{metric_name(a.selected.metric)}: {_coefficients(a.estimates)}" for a in made.agreements]
    return {
        "agreement": "; ".join(told),
        "bootstrap": f"{how.n:,} bootstrap draws over raters and whole prompts (cases, for encounters), "
        f"seed {how.seed}",
        "icc_range": _span(made, "ICC(2,1)"),
        "panel_range": _span(made, "ICC(2,k)"),
    }


def _coefficients(estimates: pd.DataFrame) -> str:
    """The pooled coefficients with their intervals; those that could not be estimated are left out."""
    pooled = estimates[(estimates["source"] == "all sources") & estimates["estimate"].notna()]
    written = (display.estimate(r.estimate, r.low, r.high) for r in pooled.itertuples())
    return ", ".join(f"{_plain(term)} {text}" for term, text in zip(pooled["term"], written, strict=True))


def _plain(term: str) -> str:
    """`alpha, ordinal` as it stands in a list."""
    name, _, level = term.partition(", ")
    return f"{name} ({level})" if level else name


def _span(made: Analysed, term: str) -> str:
    values = [
        r.estimate
        for a in made.agreements
        for r in a.estimates.itertuples()
        if r.term == term and r.source == "all sources" and r.estimate == r.estimate
    ]
    if not values:
        return ""
    low, high = display.number(min(values)), display.number(max(values))
    return low if low == high else f"{low} to {high}"


def _software(made: Analysed) -> Facts:
    versions = results.versions()
    own = versions.pop("crossed-raters")
    return {
        "software": f"Crossed {own} (" + ", ".join(f"{name} {v}" for name, v in versions.items()) + ")",
        "study_hash": made.study.digest,
    }
