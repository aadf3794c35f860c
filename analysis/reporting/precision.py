"""What limits precision: more raters or more prompts. From a study's own variance components."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import display, models, panel_figures
from analysis.drawing import Drawing, write
from analysis.fitting import Fitted
from analysis.reporting.analysed import Analysed, metric_name
from analysis.reporting.pictures import by_scale
from analysis.reporting.section import Figure, Section, counted, opening_capital, spaced
from analysis.results import Answer
from analysis.stats import power
from analysis.stats.power import Size
from analysis.tables import Table
from study.errors import StudyError

_RATERS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60, 80, 100)
_TIMES = (0.5, 1, 2, 4)  # how many prompts or cases a line stands for, in the study's own
_KINDS = ("utterance", "encounter")


@dataclass(frozen=True)
class Curve:
    """The standard error of a difference of two sources, as a function of the numbers of items and raters.

    item : what is sampled beside raters: prompt or case
    """

    metric: str
    item: str
    n_items: int
    n_raters: int
    std_error: Callable[[float, float], float]

    @property
    def own(self) -> float:
        return self.std_error(self.n_items, self.n_raters)

    def gain(self, *, items: float = 1, raters: float = 1) -> float:
        """By which share the standard error falls with so many times the items, or raters."""
        return 1 - self.std_error(items * self.n_items, raters * self.n_raters) / self.own

    def lines(self) -> pd.DataFrame:
        """Curves over raters, one for half, all, twice and four times the items."""
        sizes = sorted({max(2, round(self.n_items * times)) for times in _TIMES})
        rows = [(self.metric, n, r, self.std_error(n, r)) for n in sizes for r in _RATERS]
        return pd.DataFrame(rows, columns=["metric", "items", "raters", "se_difference"])


def precision(made: Analysed) -> Section | None:
    """The standard error of a difference over numbers of raters and prompts, for every metric."""
    lead = (
        "The standard error of the difference of two sources, in studies of other sizes. More raters take away "
        "the error of raters only; what an answer has of its own goes away with more prompts (or cases). "
        "Categories and forms of question stay as they are."
    )
    points, drawn, rows, numbers = [], [], [], []
    for kind in _KINDS:
        title, curves = made.title(kind), []
        for found in made.of(kind, compared=True):
            try:
                curves.append(of_fit(found))
            except StudyError as error:
                points.append(f"{opening_capital(metric_name(found))}: not told ({error}).")
        if not curves:
            continue
        drawn.append(Figure(f"precision-{kind}", _caption(curves[0].item),
                            picture(curves, f"precision-{kind}", f"{title}: what limits precision",
                                    one_scale=1 == len(by_scale(made.of(kind, compared=True))),
                                    simulated=made.loaded.simulated)))  # fmt: skip
        rows += [_row(c) for c in curves]
        numbers += [c.lines() for c in curves]
        points.append(_gains(title, curves))
    if not rows:
        return None
    columns = ("metric", "study", "SE of a difference", "with raters × 2", "with prompts or cases × 2")
    table = Table(
        "precision", "What twice as many would do to the standard error of a difference", columns, tuple(rows),
        "In points of the scale; from the variance components of each metric's model.", text_columns=(0, 1),
        numbers=pd.concat(numbers, ignore_index=True),
    )  # fmt: skip
    return Section("precision", "What limits precision", (lead,), tuple(points), tuple(drawn), (table,))


def of_fit(found: Fitted) -> Curve:
    """The curve that a fit's variance components give.

    Raises
    ------
    StudyError : if its model lacks the terms without which precision is overstated
    """
    variances, frame = power.from_fit(found.fit), found.selected.frame
    unit = models.response_columns(frame)
    if not unit:
        raise StudyError("the ratings name no prompt and no case")
    n_sources, n_raters, n_items = (models.levels(frame, *c) for c in (("source",), ("rater",), unit))

    def std_error(items: float, raters: float) -> float:
        return power.source_contrast(variances, Size(n_sources, items, raters)).std_error

    return Curve(metric_name(found), unit[-1], n_items, n_raters, std_error)


def of_gstudy(answer: Answer) -> Curve:
    """The curve that the components of a G-study give."""
    values = answer.result.values
    item = next(name for name in values["sizes"] if name not in ("source", "rater"))
    components = values["components"]
    shared = components[components["term"].str.contains("source") & (components["term"] != "source")]

    def std_error(n_items: float, n_raters: float) -> float:
        size = {item: n_items, "rater": n_raters, "source": 1}
        error = sum(r.used / math.prod(size[name] for name in r.term.split(":")) for r in shared.itertuples())
        return (2 * error) ** 0.5

    n_items, n_raters = (round(values["sizes"][name]) for name in (item, "rater"))
    return Curve(spaced(values["metric"]), item, n_items, n_raters, std_error)


def kept(answers: Sequence[Answer], folder: Path) -> list[Path]:
    """The picture of each G-study as precision-METRIC.svg and .pdf in a folder; of one metric a panel."""
    paths = []
    for answer in answers:
        curve, name = of_gstudy(answer), f"precision-{answer.result.values['metric']}"
        drawn = picture([curve], name, f"{opening_capital(curve.metric)}: what limits precision",
                        simulated=bool(answer.result.provenance["simulated"]))  # fmt: skip
        paths += write(drawn, folder / name)
    return paths


def picture(curves: Sequence[Curve], name: str, title: str, *, simulated: bool, one_scale: bool = True) -> Drawing:
    """The curves of metrics whose items are of one kind, a panel each."""
    own = [{"metric": c.metric, "raters": c.n_raters, "se_difference": c.own} for c in curves]
    return panel_figures.precision(
        pd.concat([c.lines() for c in curves], ignore_index=True), pd.DataFrame(own), item=curves[0].item,
        name=name, title=title, axis="SE of a difference", simulated=simulated,
        one_scale=one_scale,
    )  # fmt: skip


def _caption(item: str) -> str:
    return (
        f"Standard error of the difference of two sources: raters along, a line for each number of {item}s, the "
        "study itself as a dot. Where a line is flat, more raters do not help."
    )


def _row(curve: Curve) -> tuple[str, ...]:
    study = f"{counted(curve.n_items, curve.item)}, {counted(curve.n_raters, 'rater')}"
    sizes = ((1, 1), (1, 2), (2, 1))
    errors = (curve.std_error(i * curve.n_items, r * curve.n_raters) for i, r in sizes)
    return (curve.metric, study, *(display.number(e, 3) for e in errors))


def _gains(title: str, curves: Sequence[Curve]) -> str:
    items, raters = [c.gain(items=2) for c in curves], [c.gain(raters=2) for c in curves]
    what = f"{curves[0].item}s"
    which = what if min(items) > max(raters) else "raters" if min(raters) > max(items) else None
    gains = (
        f"twice as many {what} would narrow the standard error of a difference by {_range(items)}, twice as many "
        f"raters by {_range(raters)}"
    )
    return f"{title}: {gains}" + (f"; {which} limit precision on every metric." if which else ".")


def _range(shares: Sequence[float]) -> str:
    low, high = display.percent(min(shares)), display.percent(max(shares))
    return low if low == high else f"{low} to {high}"
