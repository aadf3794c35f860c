"""README.md of a data package: what is in it, how it came about, and what may be done with it."""

from typing import TYPE_CHECKING

from study import croissant

if TYPE_CHECKING:
    from study.release import Package

_HEADINGS = {
    "data_limitations": "Limitations",
    "data_biases": "Biases",
    "personal_sensitive_information": "Personal and sensitive information",
    "data_use_cases": "Uses",
    "data_social_impact": "Social impact",
}


def card(made: "Package") -> str:
    """The data card as Markdown."""
    study, release = made.study, made.study.release
    lines = [f"# {study.title}", ""]
    for sentence in croissant.simulation(made):
        lines += [f"> **{sentence}** Simulated ratings say nothing about any model or person.", ""]
    lines += [
        release.description, "",
        f"Version {release.version}, {release.date.isoformat()}. By {', '.join(release.creators)}. "
        f"Licence: {release.license}. {release.url}",
    ]  # fmt: skip
    lines += ["", f"To cite: {croissant.citation(made)}"]
    lines += ["", "## Files", "", "| file | rows | what |", "|---|---|---|"]
    lines += [f"| `{t.file}` | {len(made.frames[t.name]):,} | {t.says} |" for t in made.tables]
    lines += [
        "", "`croissant.json` describes every column (Croissant 1.1 with Responsible AI 1.0). "
        "`sha256sum -c SHA256SUMS` checks the files. A null is unknown, never zero.",
    ]  # fmt: skip
    lines += ["", "## How it came about", "", *_history(made)]
    for name, heading in _HEADINGS.items():
        lines += ["", f"## {heading}", "", str(getattr(study.rai, name))]
    lines += ["", "## Withdrawal", "", croissant.responsible(made)["dataReleaseMaintenancePlan"]]
    return "\n".join(lines) + "\n"


def _history(made: "Package") -> list[str]:
    told = croissant.responsible(made)
    lines = [f"- {told['dataCollection']}"]
    if span := croissant.timeframe(made):
        lines.append(f"- The models answered from {span[0]} to {span[1]}.")
    if waiver := made.study.generation.waiver:
        lines.append(
            f"- That is accepted although the study allows {made.study.generation.window_days:g} days: {waiver}"
        )
    lines += _sources(made)
    told_of_ratings = f"{told['annotationsPerItem']}. {told['dataCollectionMissingData']}"
    lines.append(f"- {told_of_ratings[0].upper()}{told_of_ratings[1:]}")
    lines.append(f"- {croissant.demographics(made)}")
    return lines + [f"- {sentence}" for sentence in croissant.protection(made)]


def _sources(made: "Package") -> list[str]:
    """The sources as a nested list, in the study's order."""
    rows = []
    for r in made.frames["sources"].itertuples():
        model = f", model {r.model}" if r.model else ""
        settings = f", settings `{r.settings}`" if r.settings else ""
        rows.append(f"  - `{r.source_id}`: {r.title} (kind {r.kind}{model}{settings})")
    return rows
