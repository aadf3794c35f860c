"""The judge card: one page that says how far a judge can be trusted, and a file that says it to machines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd

from analysis import display, judge_figures, judge_identity, load, results, tables
from analysis.calibrations import Judged, plain
from analysis.stats.alternative_test import AlternativeTest
from analysis.stats.calibration import Calibration, Options, Refused
from analysis.stats.clusters import Estimate
from analysis.stats.prediction_powered import moments
from analysis.tables import Table
from study import tables as study_tables
from study.errors import StudyError

KIND = "judge-card"
_PAGE = Path(__file__).parent / "page"
_NOT_STATED = "not stated"


@dataclass(frozen=True)
class Part:
    """One metric of a card: its verdict, and questions with their tables and figures."""

    metric: str
    anchor: str
    verdict: str
    facts: tuple[tuple[str, str], ...]
    questions: tuple["Question", ...]


@dataclass(frozen=True)
class Question:
    title: str
    lead: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    title: str
    simulated: bool
    facts: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    origin: tuple[tuple[str, str], ...]
    void_when: str = (
        "This card is void when the judge's model, its prompt, a metric or the content pack changes. A "
        "calibration holds for items like those it was made on; a new source is read worse than a new prompt."
    )


def folder(root: Path, name: str) -> Path:
    """Where a judge's card lies."""
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    return root / "calibration" / safe


def result(loaded: load.Loaded, judged: Judged, options: Options) -> results.Result:
    """The whole calibration in full precision, with what it holds for and what `--apply` needs."""
    metrics = {}
    for metric_id, found in judged.calibrations.items():
        metrics[metric_id] = {
            "verdict": judged.verdicts[metric_id],
            "holds_for": judge_identity.fingerprint(loaded, judged.identity, loaded.metric(metric_id)),
            **plain(found),
        }
        if not isinstance(found, Refused):
            metrics[metric_id]["apply"] = _to_apply(judged, metric_id, found)
    source = results.provenance(loaded, seed=options.seed)
    return results.Result(KIND, source, {"judge": judged.identity.plain(), "metrics": metrics})


def write(loaded: load.Loaded, judged: Judged, options: Options, root: Path) -> Path:
    """judge-card.json and judge-card.html in the judge's folder under `root`; the path of the page."""
    if root.is_file():
        raise StudyError(f"{root}: is a file; results go into a folder")
    place = folder(root, judged.identity.name)
    results.write_json(result(loaded, judged, options), place / "judge-card.json")
    page = rendered(card(loaded, judged, options))
    study_tables.replaced(place / "judge-card.html", lambda half: half.write_text(page, encoding="utf-8"))
    return place / "judge-card.html"


def rendered(made: Card) -> str:
    """The card as one self-contained page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGE), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["table"] = lambda t: jinja2.utils.markupsafe.Markup(tables.as_html(t))
    environment.filters["drawn"] = lambda svg: jinja2.utils.markupsafe.Markup(svg)
    style = jinja2.utils.markupsafe.Markup((_PAGE / "report.css").read_text(encoding="utf-8"))
    return environment.get_template("judge-card.html.jinja").render(card=made, style=style)


def card(loaded: load.Loaded, judged: Judged, options: Options) -> Card:
    """What the page shows, numbers written."""
    who = judged.identity
    dates = " to ".join(dict.fromkeys(d for d in (who.first_date, who.last_date) if d))
    facts = (
        ("judge", who.name),
        ("kind", who.kind),
        ("model", ", ".join(who.models) or _NOT_STATED),
        ("prompt, SHA-256", who.prompt_sha256[:16] + "…" if who.prompt_sha256 else _NOT_STATED),
        ("date", dates or _NOT_STATED),
        ("temperature", f"{who.temperature:g}" if who.temperature is not None else _NOT_STATED),
        ("judgements per item", str(who.repeats)),
        ("own family", ", ".join(who.own_family) or "none named"),
    )
    origin = results.provenance(loaded, seed=options.seed)
    shown = [("study", str(origin["study"] or loaded.name)), ("seed", str(options.seed)),
             ("bootstrap draws", str(options.n_boot)),
             ("advantage granted (ε)", f"{options.epsilon:g}")]  # fmt: skip
    shown += [(name, digest) for name, digest in origin["inputs"].items()]
    shown += [(name, version) for name, version in origin["versions"].items()]
    parts = tuple(
        _part(loaded, metric, found, judged.verdicts[metric]) for metric, found in judged.calibrations.items()
    )
    return Card(f"Judge card: {who.name}", loaded.simulated, facts, parts, tuple(shown))


def _part(loaded: load.Loaded, metric: str, found: Calibration | Refused, verdict: str) -> Part:
    anchor = "".join(c if c.isalnum() else "-" for c in metric)
    if isinstance(found, Refused):
        return Part(metric, anchor, verdict, (), ())
    overlap = display.share(found.n_labelled, found.n_labelled + found.n_judged_only)
    facts = [
        ("items both rated", display.count(found.n_labelled)),
        (f"{'items' if found.unit == 'label' else found.unit + 's'}, the units", display.count(found.n_clusters)),
        ("panel", display.several(found.raters)),
        ("judged items in this calibration", overlap),
    ]
    if found.not_ok:
        facts.append(("judgements without a value", ", ".join(f"{n} {s}" for s, n in found.not_ok.items())))
    writer = _Writer(metric, found, loaded.metric(metric).low, loaded.metric(metric).high, loaded.simulated)
    questions = tuple(_in_sentences(ask()) for ask in writer.questions())
    return Part(metric, anchor, verdict, tuple(facts), questions)


def _in_sentences(asked: Question) -> Question:
    """The same with every paragraph from a capital to a full stop."""
    lead = (text[0].upper() + text[1:] for text in asked.lead if text)
    return replace(asked, lead=tuple(text if text.endswith(".") else f"{text}." for text in lead))


class _Writer:
    """The questions of one metric, in the order in which a reader asks them."""

    def __init__(self, metric: str, found: Calibration, low: float, high: float, simulated: bool):
        self.metric, self.found, self.scale, self.simulated = metric, found, (low, high), simulated

    def questions(self) -> tuple[Callable[[], Question], ...]:
        return (self.as_good, self.explained, self.bias, self.reading, self.said, self.ranking, self.repeats)

    def as_good(self) -> Question:
        rows = [_test_row(name, test) for name, test in self.found.alternative.items()]
        pooled = self.found.alternative["pooled"]
        lead = [*self.found.notes, pooled.reason] if isinstance(pooled, Refused) else [
            *self.found.notes,
            f"A judge passes if it beats half the raters or more, each by a test that grants it "
            f"{pooled.epsilon:g}. Ties count for both sides; a ceiling makes many "
            f"({display.percent(pooled.tie)} here).",
            *pooled.notes,
        ]  # fmt: skip
        made = [self._table("as-good", "Alternative annotator test", ("items", "beats", "ω", "ρ", "wins", "loses",
                                                                     "ties", ""), rows, text=(0, 7))]  # fmt: skip
        ceiling = self.found.ceiling
        if isinstance(ceiling, Refused):
            lead.append(ceiling.reason)
        else:
            made.append(self._ceiling(ceiling.estimates))
            lead += ceiling.notes
        return Question("Is it as good as a rater?", tuple(lead), tuple(made))

    def explained(self) -> Question:
        names = {"absolute": "as it is", "consistency": "as it is, severity taken out", "calibrated": "calibrated"}
        rows = []
        for key, found in self.found.prmse.items():
            if isinstance(found, Refused):
                rows.append((f"PRMSE, {names[key]}", display.MISSING, found.reason))
            else:
                rows.append((f"PRMSE, {names[key]}", _written(found.estimate),
                             "" if found.status == "ok" else found.status))  # fmt: skip
        inside = self.found.in_panel
        lead = ["PRMSE is the share of the true score's variance that the judge explains: 1 for a judge that "
                "knows the true score, 0 for one that knows its mean."]  # fmt: skip
        if isinstance(inside, Refused):
            lead.append(inside.reason)
        else:
            rows += [(e.term, _written(e), "") for e in inside.estimates]
            lead += inside.notes
        limits = self.found.limits
        if not isinstance(limits, Refused):
            rows += [("judge − panel, mean", _written(limits.difference), ""),
                     ("judge − panel, limits of one item", f"{display.number(limits.low)} to "
                      f"{display.number(limits.high)}", ""),
                     ("judge − panel, slope on level", _written(limits.slope), "")]  # fmt: skip
        table = self._table("explained", "What the judge knows", ("", "estimate", ""), rows, text=(0, 2))
        return Question("How much of the true score does it know?", tuple(lead), (table,))

    def bias(self) -> Question:
        lead = ["Excess of the judge at the same true score, against the average level. Judge minus panel would "
                "mix this with regression to the mean."]  # fmt: skip
        made, drawn = [], []
        for part, found in self.found.bias.items():
            if isinstance(found, Refused):
                lead.append(f"{part}: {found.reason}")
                continue
            lead += [n for n in found.notes if n not in lead]
            wanted = {"source": ("source", "own family"), "length": ("length",),
                      "length by source": ("length × source",)}.get(part, (part,))  # fmt: skip
            rows = found.table[found.table["factor"].isin(wanted)]
            made.append(self._bias_table(part, rows))
            levels = rows[rows["factor"] == wanted[0]]
            if part in ("source", "category", "form") and len(levels) > 1:
                drawn.append(
                    judge_figures.bias(levels, title=f"Bias by {part}",
                                       axis=f"judge's excess, points of {self.metric}", simulated=self.simulated)
                )  # fmt: skip
        model = self.found.model_bias
        if isinstance(model, Refused):
            lead.append(f"mixed model: {model.reason}")
        else:
            made.append(self._model_table(model.table, model.formula))
        return Question("Where is it biased?", tuple(lead), tuple(made), tuple(drawn))

    def reading(self) -> Question:
        found = self.found.maps
        if isinstance(found, Refused):
            return Question("What does a score mean?", (found.reason,))
        note = found.notes[0]
        gap = f"{display.number(found.gap)} between the best and the worst source by the panel, " \
              f"{display.number(found.gap_read)} by the map"  # fmt: skip
        error = found.error
        lead = [
            f"{note} (gap {gap})",
            f"Calibration error (ECE) {_written(error.ece)}; a judge without any would show "
            f"{display.number(error.expected)} on as many items (p {display.p_value(error.p_value)}). After the "
            f"map: {_written(found.error_read.ece)}.",
            *found.notes[1:], *error.notes,
        ]  # fmt: skip
        rows = [
            (r.map.replace("_", " "), r.left_out, display.estimate(r.rmse, r.low, r.high), display.number(r.mae),
             display.number(r.bias), display.count(r.n_clipped))
            for r in found.errors.itertuples()
        ]  # fmt: skip
        made = [
            self._table("maps", "Error of each map on items that it was not fitted on",
                        ("map", "left out", "RMSE", "mean |error|", "read − panel", "clipped"), rows, text=(0, 1)),
            self._table("reliability", "Panel's mean for each score of the judge",
                        ("judge", "panel", "read as", "items"),
                        [(f"{r.score:g}", display.estimate(r.panel, r.low, r.high),
                          display.number(s.read_as), display.count(r.n))
                         for r, s in zip(error.table.itertuples(), found.error_read.table.itertuples(),
                                         strict=True)], text=()),
            self._table("sources", "Means by source", ("source", "panel", "judge", "read as", "items"),
                        [(r.source, *(display.number(v) for v in (r.panel, r.judge, r.read_as)),
                          display.count(r.n))
                         for r in found.sources.itertuples()]),
        ]  # fmt: skip
        scores = np.linspace(error.table["score"].min(), error.table["score"].max(), 60)
        best = found.fitted[found.best](scores)
        figure = judge_figures.reading(error.table, (scores.tolist(), best.tolist()), self.scale,
                                       title=f"What a score on {self.metric} means",
                                       simulated=self.simulated)  # fmt: skip
        return Question("What does a score mean?", tuple(lead), tuple(made), (figure,))

    def said(self) -> Question:
        found, low = self.found.panel_said, self.found.low_rate
        lead: list[str] = []
        made: list[Table] = []
        if isinstance(found, Refused):
            lead.append(found.reason)
        else:
            lead += found.notes
            head = ("", "panel and judge", "panel alone", "weight of judge", "r", "effective n")
            made.append(self._table("said", "Panel's mean, prediction-powered", head, _said_rows(found.means)))
            if len(found.differences):
                made.append(self._table("differences", "Paired differences", head, _said_rows(found.differences)))
            gain = found.gain[found.gain["times"] == 10]
            rows = [(r.term, display.number(r.correlation), display.count(r.n_labelled),
                     display.number(r.n_effective, 0), _count(r.needed_alone), _count(r.needed))
                    for r in gain.itertuples()]  # fmt: skip
            title = f"Were ten times as many judged: panel {self._units()} for an interval {found.width:g} wide"
            head = ("", "r", "rated", "worth", "needed alone", "needed with judge")
            made.append(self._table("gain", title, head, rows))
        if isinstance(low, Refused):
            lead.append(low.reason)
        else:
            made.append(self._low_table(low))
            lead.append(_corrected(low))
        return Question("What would the panel have said?", tuple(lead), tuple(made))

    def ranking(self) -> Question:
        found = self.found.ranking
        if isinstance(found, Refused):
            return Question("Does it rank as the panel does?", (found.reason,))
        lead = ["With ties, chance is not one half: compare accuracy with a judge that always ties and with one "
                "whose scores are dealt out at random.", *found.notes]  # fmt: skip
        if np.isfinite(found.tied):
            lead.append(f"With a tie threshold learnt on other {self._units()}: {display.number(found.tied)}.")
        if found.soft is not None:
            lead.append(f"Soft pairwise accuracy of sources: {_written(found.soft)}.")
        rows = [
            (r.grouping, display.estimate(r.accuracy, r.low, r.high), display.number(r.always_tie),
             display.number(r.permuted), display.number(r.tau_eq), display.number(r.tau_b),
             display.number(r.gamma), display.count(r.n_pairs))
            for r in found.pairs.itertuples()
        ]  # fmt: skip
        head = ("pairs", "accuracy", "always tie", "dealt out", "τ eq", "τ b", "γ", "n pairs")
        made = [self._table("pairs", "Pairs of items ordered alike", head, rows)]
        if len(found.order):
            order = [(r.source, display.number(r.panel), display.number(r.judge), f"{r.panel_rank:g}",
                      f"{r.judge_rank:g}") for r in found.order.itertuples()]  # fmt: skip
            head = ("source", "panel", "judge", "panel's rank", "judge's rank")
            made.append(self._table("order", "Sources", head, order))
        return Question("Does it rank as the panel does?", tuple(lead), tuple(made))

    def repeats(self) -> Question:
        found = self.found.flips
        title = "Does it repeat itself?"
        if isinstance(found, Refused):
            return Question(title, (found.reason,))
        return Question(title, (f"Of {found.n_pairs:,} judgements made again, {_written(found.rate)} changed; the "
                                f"mean change is {_written(found.size)} points.",))  # fmt: skip

    def _ceiling(self, estimates: Sequence[Estimate]) -> Table:
        names = {"r": "r", "mae": "mean |error|", "kappa": "quadratic κ", "pairwise_accuracy": "pairwise accuracy"}
        by_term = {e.term: e for e in estimates}
        rows = [
            (title, *(_written(by_term[f"{m}: {who}"]) for who in ("raters", "judge", "judge − raters")))
            for m, title in names.items()
            if f"{m}: judge" in by_term
        ]
        return self._table("ceiling", "Judge and raters against the same targets: the mean of the other raters",
                           ("", "a rater", "judge", "judge − rater"), rows)  # fmt: skip

    def _bias_table(self, part: str, rows: pd.DataFrame) -> Table:
        written = [
            (str(r.level) + (" (own family)" if r.own_family and r.factor == "source" else ""),
             display.estimate(r.estimate, r.low, r.high), display.df(r.df), display.p_value(r.p_holm))
            for r in rows.itertuples()
        ]  # fmt: skip
        return self._table(f"bias-{part}", f"Bias by {part}", ("", "excess", "df", "p (Holm)"), written)

    def _model_table(self, table: pd.DataFrame, formula: str) -> Table:
        rows = [(str(r.term), display.estimate(r.estimate, r.low, r.high), display.df(r.df),
                 display.p_value(r.p_holm)) for r in table.itertuples()]  # fmt: skip
        return self._table(
            "model", "Judge − panel by source, against raters' own tastes (mixed with regression to the mean)",
            ("source", "excess", "df", "p (Holm)"), rows, note=f"Model: {formula}",
        )  # fmt: skip

    def _low_table(self, low: object) -> Table:
        rows = [(r.term, f"{r.low_answers}/{r.n}", display.estimate(r.estimate, r.low, r.high),
                 display.estimate(e.sensitivity, e.sensitivity_low, e.sensitivity_high),
                 display.estimate(e.specificity, e.specificity_low, e.specificity_high))
                for r, e in zip(low.panel.itertuples(), low.errors.itertuples(), strict=True)]  # fmt: skip
        return self._table("low", f"Answers below {low.threshold:g}",
                           ("", "by the panel", "share", "judge finds them", "judge spares the others"), rows,
                           note="Exact intervals; those over all sources take items as independent.")  # fmt: skip

    def _table(
        self,
        name: str,
        caption: str,
        columns: tuple[str, ...],
        rows: Sequence[tuple[str, ...]],
        *,
        note: str = "",
        text: tuple[int, ...] = (0,),
    ) -> Table:
        if self.simulated:
            caption += " (simulated)"
        made = f"{self.metric}-{name}".replace(" ", "-")
        return Table(made, caption, columns, tuple(rows), note=note, text_columns=text)

    def _units(self) -> str:
        return "items" if self.found.unit == "label" else f"{self.found.unit}s"


def _test_row(name: str, test: AlternativeTest | Refused) -> tuple[str, ...]:
    if isinstance(test, Refused):
        return (name, *[display.MISSING] * 6, test.reason)
    shares = (display.percent(v) for v in (test.win, test.lose, test.tie))
    return (name, f"{int(test.beaten.sum())}/{len(test.raters)}", display.number(test.omega), _written(test.rho),
            *shares, "passes" if test.passed else "fails")  # fmt: skip


def _written(found: Estimate) -> str:
    return display.estimate(found.estimate, found.low, found.high)


def _said_rows(table: pd.DataFrame) -> list[tuple[str, ...]]:
    return [
        (str(r.term), display.estimate(r.estimate, r.low, r.high),
         display.estimate(r.panel_estimate, r.panel_low, r.panel_high), display.number(r.tuning),
         display.number(r.correlation), display.number(r.n_effective, 0))
        for r in table.itertuples()
    ]  # fmt: skip


def _corrected(low: object) -> str:
    if low.corrected is None:
        return low.refused
    rate = low.corrected
    ends = f"{display.percent(rate.estimate)} [{display.percent(rate.low)}, {display.percent(rate.high)}]"
    text = f"Among {rate.n:,} answers that the panel did not see, the judge's rate of " \
           f"{display.percent(rate.rate_of_judge)} corrects to {ends}"  # fmt: skip
    return text + (f" (unclipped {display.percent(rate.unclipped)})." if rate.clipped else ".")


def _count(value: float | None) -> str:
    return "more than there are" if value is None or value != value else display.count(int(value))


def _to_apply(judged: Judged, metric: str, found: Calibration) -> dict[str, object]:
    """What reading new scores needs: the map with its error, and the moments of the labelled units by source.

    Means need no map; where there is none, `refused` says why.
    """
    data = judged.comparisons[metric].labelled()
    if not data.sources:
        data = replace(data, items=data.items.assign(source="all"))
    panel, judge = data.crossed(data.panel_mean), data.crossed(data.score)
    stored = {}
    for i, source in enumerate(data.codes("source")[1]):
        there = np.isfinite(panel[i])
        if there.sum() > 1:
            stored[source] = plain(moments(panel[i, there], judge[i, there], judge[i, there]))
    means = {"labels": data.items["label"].astype(str).tolist(), "moments": stored, "unit": data.unit,
             "cases": _cases(data.items)}  # fmt: skip
    if isinstance(found.maps, Refused):
        return {"refused": found.maps.reason} | means
    best = found.maps.fitted[found.maps.best]
    return {"map": found.maps.best, "parameters": best.parameters(), "residual_sd": found.maps.residual_sd} | means


def _cases(items: pd.DataFrame) -> dict[str, list[str]]:
    """The cases of the labelled items by source; none where cases are not known."""
    if not {"source", "case"} <= set(items):
        return {}
    by = items.dropna(subset=["case"]).groupby("source", observed=True)["case"]
    return {str(source): sorted({str(c) for c in cases}) for source, cases in by}
