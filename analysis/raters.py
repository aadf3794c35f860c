"""Rater by rater: who is severe, on which source, and whose absence changes how far the others agree."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from threadpoolctl import threadpool_limits

from analysis import display, tables
from analysis.reliability import POOLED, Agreement, pools
from analysis.stats import agreement
from analysis.stats import raters as statistics
from study.errors import StudyError

_HEAD = "Raters, the severest first: difference from the panel's mean on the same items; the panel without them"
MOST_SHOWN = 40  # raters of a panel shown whole
ONE_METRIC = "One metric rater by rater: --metric NAME"


@dataclass(frozen=True)
class Raters:
    """The raters of one metric, over all sources and on each.

    severity : `source` (the pool) and the columns of `stats.raters.severity`
    left_out : `source` and the columns of `stats.raters.leave_one_rater_out`
    ceilings : pool → why alpha is low there although raters agree
    refused : `source`, `table`, `reason`: the tables that a pool does not allow
    """

    metric_id: str
    severity: pd.DataFrame
    left_out: pd.DataFrame
    ceilings: dict[str, str]
    refused: pd.DataFrame

    def plain(self) -> dict[str, object]:
        """The tables by the names they have in a result."""
        return {"severity": self.severity, "leave_one_rater_out": self.left_out, "ceiling": self.ceilings,
                "refused": self.refused}  # fmt: skip


@threadpool_limits.wrap(limits=1)  # the matrices are small: threads would only wait for each other
def raters(found: Agreement) -> Raters:
    """Every rater of a metric beside the panel; a pool that allows no table keeps its reason."""
    severe, absent, ceilings, refused = [], [], {}, []
    for pool, rows in pools(found.selected.frame):
        matrix = agreement.rating_matrix(rows)
        asked = {
            "severity": (severe, lambda m=matrix: statistics.severity(m, found.bootstrap.level)),
            "leave_one_rater_out": (absent, lambda m=matrix: statistics.leave_one_rater_out(m)),
        }
        for name, (kept, table) in asked.items():
            made, reason = tried(table)
            if made is not None:
                kept.append(made.assign(source=pool))
            else:
                refused.append({"source": pool, "table": name, "reason": reason})
        note, _ = tried(lambda m=matrix: statistics.ceiling_note(m))
        if note:
            ceilings[pool] = note
    return Raters(found.metric_id, _joined(severe), _joined(absent), ceilings,
                  pd.DataFrame(refused, columns=["source", "table", "reason"]))  # fmt: skip


def tried(asked: Callable[[], pd.DataFrame | str | None]) -> tuple[pd.DataFrame | str | None, str | None]:
    """What was asked for, and the sentence in which it is refused."""
    try:
        return asked(), None
    except StudyError as error:
        return None, str(error)


def printed(found: Raters, *, full: bool) -> str:
    """The table of raters, or one line of it; what the scale and the size of the panel do not allow."""
    shown = _of(found.severity)
    if shown.empty:
        lines = []
    elif full:
        lines = ["", _HEAD, tables.as_text(_table(found, _ends(shown)), "  ")]
        if (hidden := len(shown) - len(_ends(shown))) > 0:
            lines.append(f"  {hidden} raters between them are not shown; --full and --json have all")
    else:
        lines = [_sentence(shown, _of(found.left_out))]
    return "\n".join([*lines, *notes(found, full=full)])


def notes(found: Raters, *, full: bool = True) -> list[str]:
    """Ceilings, and why a table or a row is missing; a reason that several pools share is said once."""
    said = [f"note: {pool}: {text}" for pool, text in found.ceilings.items()]
    if not full and len(said) > 1:
        where = display.several(list(found.ceilings))
        said = [f"note: {where}: nearly all ratings are equal, so that alpha is low though the raters agree"]
    names = {"severity": "no table of raters", "leave_one_rater_out": "nobody can be left out"}
    for (table, reason), rows in found.refused.groupby(["table", "reason"], sort=False):
        where = POOLED if POOLED in set(rows["source"]) else display.several(list(rows["source"]))
        said.append(f"note: {where}: {names[table]}: {reason}")
    if len(found.left_out):
        missing = _of(found.left_out).dropna(subset="reason")
        said += [f"note: without {r.left_out}: {r.reason}" for r in missing.itertuples()]
    return said


def _sentence(severe: pd.DataFrame, rest: pd.DataFrame) -> str:
    """Who is severest, who mildest, and without whom the others agree most."""
    text = f"Severest: {_named(severe.iloc[0])}; mildest: {_named(severe.iloc[-1])}"
    known = rest.iloc[1:].dropna(subset="change_alpha") if len(rest) else rest
    if known.empty:
        return text
    most, whole = known.loc[known["change_alpha"].idxmax()], rest["alpha"].iloc[0]
    beside = f"{display.number(most['alpha'])}, with {display.number(whole)}"
    return f"{text}; alpha without {most['left_out']} {beside}"


def _ends(severe: pd.DataFrame) -> pd.DataFrame:
    """The severest and the mildest of a panel too large to show whole."""
    return severe if len(severe) <= MOST_SHOWN else pd.concat([severe.head(10), severe.tail(10)])


def _of(table: pd.DataFrame, pool: str = POOLED) -> pd.DataFrame:
    return table[table["source"] == pool] if len(table) else table


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame()
    whole = pd.concat(parts, ignore_index=True)
    return whole[["source", *[c for c in whole.columns if c != "source"]]]


def _table(found: Raters, shown: pd.DataFrame) -> tables.Table:
    """Pooled severity with its interval, the sources at both ends, and the panel without the rater."""
    by_source = found.severity[found.severity["source"] != POOLED]
    rest = _of(found.left_out).set_index("left_out") if len(found.left_out) else None
    several = by_source["source"].nunique() > 1
    rows = []
    for row in shown.itertuples():
        cells = [str(row.term), display.estimate(row.estimate, row.low, row.high)]
        if several:
            own = by_source[by_source["term"] == row.term].sort_values("estimate")
            cells += [_on(own.iloc[0]), _on(own.iloc[-1])] if len(own) else [display.MISSING] * 2
        if rest is not None:
            left = rest.loc[str(row.term)]
            cells += [display.number(left["icc_1"]), display.number(left["alpha"]),
                      display.number(left["change_alpha"], 3)]  # fmt: skip
        rows.append(tuple(cells))
    columns = ["rater", "severity", *(["severest on", "mildest on"] if several else [])]
    columns += ["ICC(2,1) without", "alpha without", "change"] if rest is not None else []
    text = (0, 2, 3) if several else (0,)
    return tables.Table(f"raters-{found.metric_id}", f"Raters on {found.metric_id}", tuple(columns), tuple(rows),
                        text_columns=text)  # fmt: skip


def _on(row: pd.Series) -> str:
    return f"{row['source']} {display.number(row['estimate'])}"


def _named(row: pd.Series) -> str:
    return f"{row['term']} {display.estimate(row['estimate'], row['low'], row['high'])}"
