"""The same model by statsmodels, as the same kind of result: an independent second route to our numbers.

statsmodels finds the variances; estimates, standard errors and everything else are then read at them. Slow
beyond some thousand rows and not reliable with four crossed terms: use it to check, not to work.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.stats.formula import Formula, parse
from analysis.stats.mixed.crossproducts import CrossProducts, Outcome, cross_products, outcome_sums
from analysis.stats.mixed.design import Design, design
from analysis.stats.mixed.fit import MixedFit
from analysis.stats.mixed.objective import Method, criterion
from analysis.stats.mixed.optimum import SINGULAR, Optimum
from study.errors import StudyError


def fit(
    frame: pd.DataFrame,
    formula: str | Formula,
    *,
    method: Method = "REML",
    contrasts: Mapping[str, str] | None = None,
) -> MixedFit:
    """Fit random intercepts by statsmodels' MixedLM with variance components in one group.

    Raises
    ------
    StudyError : for random slopes, which this route does not know, or where statsmodels fails
    """
    model, y = design(frame, parse(formula) if isinstance(formula, str) else formula, contrasts)
    for grouping in model.groupings:
        if grouping.values is not None or grouping.columns != ["(Intercept)"]:
            raise StudyError(f"The statsmodels route knows random intercepts only; {grouping.term.text} is more.")
    sums = cross_products(model)
    outcome, residual = outcome_sums(model, sums.order, y)
    result = _statsmodels(model, residual, method)
    variances = np.asarray(result.vcomp, float) / float(result.scale)
    theta = np.sqrt(np.maximum(variances, 0.0))[list(sums.order)]
    return _at(model, sums, outcome, y, method, theta, bool(result.converged))


def _statsmodels(model: Design, residual: np.ndarray, method: Method) -> object:
    """Fit the residual on the fixed effects alone, in their orthonormal basis: the same variances."""
    from scipy import sparse
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    n = model.n
    names = [f"term{k}" for k in range(len(model.groupings))]
    matrices = [
        sparse.csr_matrix((np.ones(n), (np.arange(n), g.codes)), shape=(n, g.n_levels)).toarray()
        for g in model.groupings
    ]
    columns = [[f"{name}_{i}" for i in range(m.shape[1])] for name, m in zip(names, matrices, strict=True)]
    spec = VCSpec(names, [[c] for c in columns], [[m] for m in matrices])
    exog = model.fixed.basis[model.fixed.cell] * np.sqrt(n)
    scale = float(np.sqrt(residual @ residual / n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return MixedLM(residual / scale, exog, np.ones(n), exog_vc=spec).fit(
                reml=method == "REML", method=["bfgs", "lbfgs"]
            )
        except (np.linalg.LinAlgError, ValueError) as error:
            raise StudyError(f"statsmodels could not fit {model.formula}: {error}.") from error


def _at(
    model: Design,
    sums: CrossProducts,
    outcome: Outcome,
    y: np.ndarray,
    method: Method,
    theta: np.ndarray,
    converged: bool,
) -> MixedFit:
    best = criterion(sums, outcome, theta, method)
    if best is None:
        raise StudyError("statsmodels ended at variances for which the criterion has no value.")
    gradient, hessian = best.derivatives
    decrement = float(gradient @ np.linalg.lstsq(hessian, gradient, rcond=None)[0])
    record = Optimum(0, 0, float(np.abs(gradient).max()), decrement, converged, bool(theta.min() < SINGULAR))
    return MixedFit(model, sums, outcome, best, record, method, y)
