"""The first page: what was asked, of how much, and what came out."""

from analysis import display, results
from analysis.load import Loaded
from analysis.reporting import comparison
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.facts import Facts
from analysis.reporting.section import Section, listed, opening_capital


def asked(known: Facts) -> tuple[str, ...]:
    """What the study is, in two sentences."""
    where = " in ".join(known[k] for k in ("n_prompts", "n_cases") if k in known)
    first = f"{known['n_sources'].capitalize()} ({known['sources']})" + (f" answered {where}." if where else ".")
    rated = [
        f"{known[n]} on {known[m]}"
        for n, m in (("n_answers", "answer_metrics"), ("n_encounters", "encounter_metrics"))
        if n in known and m in known
    ]
    return (first, f"{known['n_raters'].capitalize()} rated {' and '.join(rated)}, {known['ratings_per_item']}.")


def found(made: Analysed, known: Facts, pair: Section | None, precision: Section | None) -> tuple[str, ...]:
    """The key numbers, a line each, its subject before a colon: sources, agreement, and what limits them."""
    lines, alike = [], []
    for own in (f for f in made.fits if f in made.of(f.selected.metric.item, compared=True)):
        (lines if comparison.differing(own) else alike).append(own)
    told = [comparison.standing(f) for f in lines]
    if alike:
        reference = known["reference"]
        names = opening_capital(listed([metric_name(f) for f in alike]))
        told.append(f"{names}: no source is shown to differ from {reference}.")
    if "icc_range" in known and "panel_range" in known:
        one, panel = known["icc_range"], known["panel_range"]
        told.append(f"Agreement: ICC(2,1) of one rater {one}, ICC(2,k) of the panel's mean {panel}.")
    if precision is not None:
        told += [f"Precision, {line[:1].lower()}{line[1:]}" for line in precision.points if "twice" in line]
    if pair is not None:
        told.append(f"Model: {pair.points[0][:1].lower()}{pair.points[0][1:]}")
    return (*told, *(f"Not in this report: {reason}." for reason in made.refused))


def facts(loaded: Loaded) -> tuple[tuple[str, str], ...]:
    """What the study is made of, and how many responses and ratings are missing."""
    frame, n = loaded.frame, results.sizes(loaded.frame)
    kind = "simulated ratings" if loaded.simulated else "ratings"
    told = [(what, display.count(n[what])) for what in ("sources", "cases", "prompts", "raters") if what in n]
    told.append(("metrics", display.count(len(loaded.metrics))))
    if loaded.responses:
        failed = {status: count for status, count in loaded.responses.items() if status != "ok"}
        told.append(("responses", display.count(sum(loaded.responses.values()))))
        told.append(("without an answer", _reasons(failed)))
    told.append((kind, display.count(n["ratings"])))
    told.append(
        ("without a value", _reasons(frame.loc[frame["status"] != "ok", "status"].value_counts().to_dict()))
    )
    return (*told, *((f"left out: {part.reason}", display.count(part.rows)) for part in loaded.left_out))


def _reasons(counts: dict[str, int]) -> str:
    """A total with its reasons: `3 (2 failed, 1 refused)`."""
    total = sum(counts.values())
    return f"{total:,} ({', '.join(f'{n:,} {status}' for status, n in counts.items())})" if total else "0"
