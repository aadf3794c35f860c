"""Means and differences of sources as a fit estimates them, in the words of a study: source, category, form."""

import numpy as np
import pandas as pd

from analysis.fitting import Fitted
from analysis.stats import adjust, contrasts

FACTORS = ("source", "category", "form")
PENALTY = {"affirmative": 1.0, "negative": -1.0}


def factors(found: Fitted) -> dict[str, list[str]]:
    """The study's factors that the model holds, with their levels in the study's order."""
    variables = {name: contrasts.fit_factor(found.fit, name) for name in FACTORS}
    return {name: [str(v) for v in variable.levels] for name, variable in variables.items() if variable}


def marginal(found: Fitted, *by: str) -> pd.DataFrame:
    """Estimated marginal means by the given factors, the others averaged with equal weight.

    Columns: the factors, then the broom columns.
    """
    return contrasts.means(found.fit, by, ddf=found.ddf, level=found.level)


def versus_reference(found: Fitted, *within: str) -> pd.DataFrame:
    """Each source minus the first, over all or within each level of a factor.

    Columns: the factors of `within`, source, then the broom columns with unadjusted p, then p_holm over all rows.
    """
    table = contrasts.contrasts(
        found.fit, "source", "reference", by=within, adjust="none", ddf=found.ddf, level=found.level
    )
    others = factors(found)["source"][1:]
    table.insert(len(within), "source", np.tile(others, len(table) // len(others)))
    return table.assign(p_holm=holm(table["p_value"]))


def negation_penalty(found: Fitted) -> pd.DataFrame:
    """Affirmative minus negative questions: for each source, then each source's beyond the reference's.

    Columns: source, kind ("penalty", "beyond"), the broom columns, p_holm within each kind.
    """
    how = {"adjust": "none", "ddf": found.ddf, "level": found.level}
    own = contrasts.contrasts(found.fit, "form", {"penalty": PENALTY}, by="source", **how)
    sources = factors(found)["source"]
    own = own.assign(term=[f"{s}: affirmative - negative" for s in sources], kind="penalty")
    parts = [own.assign(p_holm=holm(own["p_value"]))]
    if len(sources) > 1:
        beyond = contrasts.interaction(found.fit, {"source": "reference", "form": {"penalty": PENALTY}}, **how)
        terms = [f"{s}: beyond {sources[0]}" for s in sources[1:]]
        beyond = beyond.assign(source=sources[1:], term=terms, kind="beyond")
        parts.append(beyond.assign(p_holm=holm(beyond["p_value"])))
    return pd.concat(parts, ignore_index=True)


def interactions(found: Fitted) -> pd.DataFrame:
    """The interaction coefficients of the model in the broom columns, with p_holm over all of them."""
    estimates = found.coefficients()
    own = estimates[estimates["term"].str.contains(":", regex=False)].reset_index(drop=True)
    return own.assign(p_holm=holm(own["p_value"]))


def has_forms(found: Fitted) -> bool:
    """Whether negative and affirmative questions can be compared for each source."""
    held = factors(found)
    return "source" in held and set(PENALTY) <= set(held.get("form", []))


def holm(p: pd.Series) -> np.ndarray:
    """Holm's adjustment of one family; missing p values stay missing and are not counted."""
    values = p.to_numpy(float, copy=True)
    known = np.isfinite(values)
    values[known] = adjust.adjusted(values[known], "holm")
    return values
