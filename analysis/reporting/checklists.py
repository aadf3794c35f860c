"""Reporting checklists, filled from a study's data as far as they can be, and marked where a person must write.

The items lie in data/reporting, a TOML file for each checklist. A sentence of `fill` is used where everything that
it names in braces is known; `write` says what is left to a person.
"""

import itertools
import string
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.reporting import pages
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.facts import Facts, facts, metric_facts
from analysis.reporting.section import Entry, Fold, Section, counted, opening_capital
from study.content import shipped
from study.errors import StudyError

NAMES = ("grras", "heds", "chart")
_PER_METRIC = ("heds",)  # one sheet for each metric
_METRICS_OWN = "4"  # the sheet's part that differs from metric to metric
_NOT_KNOWN = "The study's files do not tell."
_KEYS = {"number", "section", "asks", "fill", "write"}


@dataclass(frozen=True)
class Item:
    """An item as its file has it."""

    number: str
    section: str
    asks: str
    fill: tuple[str, ...] = ()
    write: str = ""


@dataclass(frozen=True)
class Checklist:
    checklist_id: str
    title: str
    source: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Sheet:
    """A checklist answered for a study, or for one of its metrics."""

    name: str
    title: str
    source: str
    study: str
    simulated: bool
    entries: tuple[Entry, ...]

    def counts(self) -> dict[str, int]:
        """How many items are filled, in part, and still to write."""
        states = [e.state for e in self.entries]
        return {state: states.count(state) for state in ("filled", "in part", "to write")}


def load(name: str) -> Checklist:
    """A shipped checklist.

    Raises
    ------
    StudyError : if there is none of that name, or an item has a key that none has
    """
    if name not in NAMES:
        raise StudyError(f"no checklist {name}; the checklists are {', '.join(NAMES)}")
    path = shipped(f"reporting/{name}.toml")
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    for item in read["item"]:
        if strange := set(item) - _KEYS:
            raise StudyError(f"{path}: item {item.get('number')} has {', '.join(sorted(strange))}; an item has "
                             f"{', '.join(sorted(_KEYS))}")  # fmt: skip
    items = tuple(Item(**item | {"fill": tuple(item.get("fill", ()))}) for item in read["item"])
    return Checklist(read["id"], read["title"], read["source"], items)


def sheets(made: Analysed, name: str, known: Facts | None = None) -> list[Sheet]:
    """The answered sheets of a checklist: one, or one for each metric."""
    checklist = load(name)
    told = facts(made) if known is None else known
    if name not in _PER_METRIC:
        return [_sheet(made, checklist, name, checklist.title, told)]
    return [
        _sheet(
            made,
            checklist,
            f"{name}-{f.metric_id}",
            f"{checklist.title}: {metric_name(f)}",
            told | metric_facts(made, f.metric_id),
        )
        for f in made.fits
    ]


def checklists(made: Analysed, known: Facts) -> Section:
    """All checklists, folded; of a sheet for each metric, what is common stands once."""
    folds, points = [], []
    for name in NAMES:
        own = sheets(made, name, known)
        points.append(_count(load(name), own))
        if name not in _PER_METRIC:
            folds.append(Fold(own[0].title, (own[0].source + ".",), entries=own[0].entries, anchor=f"list-{name}"))
            continue
        common = tuple(e for e in own[0].entries if not e.number.startswith(_METRICS_OWN))
        title = load(name).title
        folds.append(
            Fold(f"{title}, for all metrics", (own[0].source + ".",), entries=common, anchor=f"list-{name}")
        )
        folds += [
            Fold(sheet.title, entries=tuple(e for e in sheet.entries if e.number.startswith(_METRICS_OWN)))
            for sheet in own
        ]
    lead = (
        "Items in our own words, filled where the study's files tell the answer; what is marked is for a person "
        "to write. The command `analysis checklist` writes each as a file of its own."
    )
    return Section("checklists", "Reporting checklists", (lead,), tuple(points), folds=tuple(folds))


def as_markdown(sheet: Sheet) -> str:
    """The sheet as Markdown; what a person must write is marked **To write**."""
    lines = [f"# {sheet.title}", "", f"{sheet.study}. {sheet.source}.", "", f"{_states(sheet.counts())}.", ""]
    if sheet.simulated:
        lines[3:3] = ["", "**The ratings are simulated.** They say nothing about any real source."]
    part = ""
    for entry in sheet.entries:
        if entry.part != part:
            part = entry.part
            lines += [f"## {part}", ""]
        lines += [f"**{entry.number}** {entry.asks}", "", *(f"- {text}" for text in entry.told)]
        lines += [f"- **To write:** {entry.write}"] if entry.write else []
        lines.append("")
    return "\n".join(lines)


def as_page(sheet: Sheet) -> str:
    """The sheet as an HTML page that needs nothing else."""
    parts = [(part, list(own)) for part, own in itertools.groupby(sheet.entries, key=lambda e: e.part)]
    return pages.rendered("checklist", sheet=sheet, parts=parts, states=_states(sheet.counts()))


def _sheet(made: Analysed, checklist: Checklist, name: str, title: str, known: Facts) -> Sheet:
    entries = tuple(_entry(item, known) for item in checklist.items)
    return Sheet(name, title, checklist.source, made.study.title, made.loaded.simulated, entries)


def _entry(item: Item, known: Facts) -> Entry:
    told = tuple(opening_capital(text.format_map(known)) for text in item.fill if _names(text) <= set(known))
    write = f"{_NOT_KNOWN} {item.write}".strip() if item.fill and not told else item.write
    return Entry(item.number, item.section, item.asks, told, write)


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def _count(checklist: Checklist, own: Iterable[Sheet]) -> str:
    every = list(own)
    several = f"{counted(len(every), 'sheet')}, each with " if len(every) > 1 else ""
    return f"{checklist.title}: {several}{_states(every[0].counts())}."


def _states(counts: dict[str, int]) -> str:
    filled, in_part, to_write = counts.values()
    total = counted(filled + in_part + to_write, "item")
    return f"{total}: {filled} filled from the data, {in_part} in part, {to_write} to be written by a person"
