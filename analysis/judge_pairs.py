"""Judges against each other: whose scores follow the panel's more closely (PERM-BOTH)."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from analysis import display, tables
from analysis.calibrations import Judged, found_of
from analysis.load import Loaded
from analysis.results import Result, provenance
from analysis.stats.adjust import adjusted
from analysis.stats.calibration import Options
from analysis.stats.comparison import Comparison
from analysis.stats.rank_report import crossed_scores
from analysis.stats.ranking import PermutationTest, perm_both
from analysis.tables import Table
from study.errors import StudyError

LEVEL = 0.05
# The smallest p of n draws is about 2/n; times the number of pairs it must stay well below the level.
_DRAWS_PER_PAIR = 200


def compared(judged: Sequence[Judged], metric: str, options: Options) -> pd.DataFrame:
    """Every pair of judges on one metric, the one that correlates better with the panel first.

    Returns
    -------
    `first`, `second`, `n_sources`, `n_prompts` (that both judged), `r_first`, `r_second` (with the panel's means,
    over items), `difference`, `p_value` (two-sided, whole prompts swapped), `p_holm` (over the metric's pairs),
    `n_permutations`, `reason` (why two judges cannot be compared)
    """
    able = {j.identity.name: j.comparisons[metric].labelled() for j in judged if metric in found_of(j)}
    pairs = list(combinations(able, 2))
    n = max(options.n_boot, _DRAWS_PER_PAIR * len(pairs))
    rows = [_pair(one, two, able, n, options.seed) for one, two in pairs]
    found = pd.DataFrame(rows, columns=["first", "second", "n_sources", "n_prompts", "r_first", "r_second",
                                        "difference", "p_value", "n_permutations", "reason"])  # fmt: skip
    tested = found["p_value"].notna().to_numpy()
    holm = np.full(len(found), np.nan)
    holm[tested] = adjusted(found["p_value"].to_numpy(float)[tested], "holm")
    found.insert(8, "p_holm", holm)
    return found


def result(loaded: Loaded, metric: str, pairs: pd.DataFrame, options: Options) -> Result:
    """The pairs of a metric in full precision, with their provenance."""
    about = {"metric": metric, "test": "PERM-BOTH, whole prompts, two-sided", "adjust": "holm"}
    return Result("judge-pairs", provenance(loaded, seed=options.seed), about | {"estimates": pairs})


def printed(metric: str, pairs: pd.DataFrame, *, simulated: bool = False) -> str:
    """The table of pairs, and which judge is above which others."""
    marked = " (simulated ratings)" if simulated else ""
    head = f"Judges on {metric} against each other{marked}: r with the panel's means (PERM-BOTH, whole prompts)"
    refused = [f"  note: {r.first} and {r.second}: {r.reason}" for r in pairs.dropna(subset="reason").itertuples()]
    said = _best(metric, pairs)
    return "\n".join([head, tables.as_text(table(metric, pairs), "  "), *([said] if said else []), *refused])


def table(metric: str, pairs: pd.DataFrame) -> Table:
    """One row per pair: prompts, both correlations, their difference, p and p by Holm."""
    rows = tuple(
        (r.first, r.second, display.count(r.n_prompts), display.number(r.r_first), display.number(r.r_second),
         display.number(r.difference, 3), display.p_value(r.p_value), display.p_value(r.p_holm))
        for r in pairs.itertuples()
    )  # fmt: skip
    columns = ("judge", "other", "prompts", "r", "other's r", "difference", "p", "p (Holm)")
    return Table(f"judge-pairs-{metric}", f"Judges on {metric}", columns, rows, text_columns=(0, 1))


def _pair(first: str, second: str, able: dict[str, Comparison], n: int, seed: int) -> dict[str, object]:
    row: dict[str, object] = {"first": first, "second": second, "reason": None}
    shared = set(able[first].items["label"]) & set(able[second].items["label"])
    try:
        (panel, one, _), (_, two, _) = (
            crossed_scores(c.keep(c.items["label"].isin(shared).to_numpy())) for c in (able[first], able[second])
        )
        test = _swapped(panel, one, two, n, seed)
        if test.difference < 0:
            row |= {"first": second, "second": first}
            test = _swapped(panel, two, one, n, seed)
    except StudyError as error:
        return row | {"reason": str(error)}
    # The side was chosen after it was seen, so the p of that side counts twice.
    return row | {
        "n_sources": panel.shape[0], "n_prompts": panel.shape[1], "r_first": test.first, "r_second": test.second,
        "difference": test.difference, "p_value": min(1.0, 2 * test.p_value),
        "n_permutations": test.n_permutations,
    }  # fmt: skip


def _swapped(panel: np.ndarray, one: np.ndarray, two: np.ndarray, n: int, seed: int) -> PermutationTest:
    rng = np.random.default_rng(seed)
    return perm_both(panel, one, two, whole_prompts=True, n_permutations=n, rng=rng)


def _best(metric: str, pairs: pd.DataFrame) -> str | None:
    """Which judge correlates best with the panel, and which others it is not shown to exceed."""
    tested = pairs.dropna(subset="p_value")
    if tested.empty:
        return None
    best = tested.loc[tested["r_first"].idxmax(), "first"]
    mine = tested[tested["first"] == best]
    level = list(mine.loc[mine["p_holm"] > LEVEL, "second"])
    beaten = list(mine.loc[mine["p_holm"] <= LEVEL, "second"])
    said = [f"above {display.several(beaten)}"] if beaten else []
    said += [f"not shown to exceed {display.several(level)}"] if level else []
    r = display.number(mine["r_first"].iloc[0])
    return f"  {best} correlates best with the panel on {metric} (r {r}): {'; '.join(said)}"
