"""Power by simulation: what closed forms cannot say about rating scales, missing cells and incomplete blocks.

`simulate_balanced` draws whole crossed studies and tests them by mean squares, which is what a mixed model does to
balanced data, in milliseconds. `simulate_refits` fits the model to every simulated data set, whatever its layout.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import ndtri

from analysis.stats.chunks import Backend, in_chunks
from analysis.stats.estimates import two_sided
from analysis.stats.formula import parse
from analysis.stats.inference import contrast
from analysis.stats.mixed.crossproducts import CrossProducts, cross_products, outcome_sums
from analysis.stats.mixed.design import Design, design
from analysis.stats.mixed.fit import solve
from analysis.stats.mixed.many import solver, space, sums_of
from analysis.stats.mixed.objective import criterion
from analysis.stats.power import Size, Variances
from study.errors import StudyError

# Ratings drawn at once by `simulate_balanced`: half a million doubles stay near the processor's cache.
RATINGS_AT_ONCE = 500_000
# Fits per chunk of `simulate_refits`; fixed, so that the number of jobs changes nothing.
FITS_PER_CHUNK = 50
# A simulation in which more fits than this fail says nothing about power.
MOST_FAILURES = 0.05


@dataclass(frozen=True)
class Scale:
    """A rating scale: a latent value is rounded to the nearest step and cut off at the ends."""

    low: int
    high: int

    def rate(self, latent: np.ndarray) -> np.ndarray:
        return np.clip(np.rint(latent), self.low, self.high)


def simulate_balanced(
    variances: Variances,
    size: Size,
    differences: Sequence[float],
    *,
    mean: float = 0.0,
    scale: Scale | None = None,
    n_sim: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
) -> pd.DataFrame:
    """Power to find the first source `difference` below the second, in complete crossed studies.

    With a scale, ratings are latent values rounded to it around `mean`, and the differences are latent too:
    near the top of the scale the observed difference is smaller.

    Returns
    -------
    One row per difference: `difference`, `power` (share of all studies), `low`, `high` (its Monte Carlo interval,
    Wilson), `n_sim`, `n_failed` (studies without variation), `observed` (mean estimate), `std_error` (its mean).

    Raises
    ------
    StudyError : if more than one study in twenty has no variation
    """
    if size.cases is not None:
        raise StudyError("cases that hold prompts are simulated by simulate_refits")
    chunk = max(1, int(RATINGS_AT_ONCE // size.ratings))
    task = partial(_balanced_studies, variances, size, tuple(differences), mean, scale)
    found = np.concatenate(
        in_chunks(task, n_sim, seed=seed, size=chunk, jobs=jobs, backend=backend, scheduler=scheduler), axis=1
    )
    rows = [
        {"difference": d, **_rate(*found[i].T, alpha)} for i, d in enumerate(differences)
    ]
    return pd.DataFrame(rows)


def simulate_refits(
    frame: pd.DataFrame,
    formula: str,
    test: Mapping[str, float],
    *,
    coefficients: Mapping[str, float],
    variances: Mapping[str, float],
    residual: float,
    scale: Scale | None = None,
    n_sim: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
) -> pd.DataFrame:
    """Power of a contrast of coefficients in a study laid out as `frame`, every simulated study fitted by REML.

    Parameters
    ----------
    frame : one row per planned rating, with the formula's columns (the outcome need not be there)
    test : coefficient → weight; {"sourceB": 1} tests the difference of B from the reference source
    coefficients : true values by name; those not named are zero
    variances : true variance of each random term, by its group
    scale : round and cut the simulated ratings to a scale

    Returns
    -------
    One row: `power` (share of all studies), `low`, `high` (Wilson), `n_sim`, `n_failed` (fits that failed or did
    not converge; they count as not found), `n_singular`, `observed`, `std_error` (means over the fits).

    Raises
    ------
    StudyError : an unknown coefficient or group; more than one fit in twenty failed
    """
    plan = _plan(frame, formula, test, coefficients, variances, residual, scale)
    task = partial(_refitted, plan)
    found = np.concatenate(
        in_chunks(task, n_sim, seed=seed, size=FITS_PER_CHUNK, jobs=jobs, backend=backend, scheduler=scheduler)
    )
    row = _rate(*found[:, :3].T, alpha)
    return pd.DataFrame([row | {"n_singular": int(np.nansum(found[:, 3]))}])


def crossed_frame(size: Size, groups: Mapping[str, int] | None = None) -> pd.DataFrame:
    """One row per rating of a complete crossed study: source, prompt, rater, and case or form if asked for.

    Parameters
    ----------
    groups : form → number of prompts; the numbers must add up to the prompts
    """
    s, p, r = (part.ravel() for part in np.indices((size.sources, int(size.prompts), int(size.raters))))
    frame = pd.DataFrame({"source": s + 1, "prompt": p + 1, "rater": r + 1}).astype("category")
    if size.cases is not None:
        frame["case"] = pd.Categorical(p * int(size.cases) // int(size.prompts) + 1)
    if groups:
        forms = np.repeat(list(groups), list(groups.values()))
        if len(forms) != size.prompts:
            raise StudyError(f"the forms have {len(forms)} prompts together, the study has {size.prompts:g}")
        frame["form"] = pd.Categorical(forms[p], categories=list(groups))
    return frame


def incomplete_blocks(frame: pd.DataFrame, raters_per_prompt: int) -> pd.DataFrame:
    """The rows of a crossed study in which each prompt's answers go to that many raters, in turn."""
    rater, prompt = frame["rater"].cat.codes.to_numpy(), frame["prompt"].cat.codes.to_numpy()
    n = len(frame["rater"].cat.categories)
    if not 1 <= raters_per_prompt <= n:
        raise StudyError(f"{raters_per_prompt} raters per prompt of {n} raters")
    return frame[(rater - prompt * raters_per_prompt) % n < raters_per_prompt].reset_index(drop=True)


def some_missing(frame: pd.DataFrame, share: float, seed: int = 0) -> pd.DataFrame:
    """The rows that are left when that share of the ratings is lost at random."""
    if not 0 <= share < 1:
        raise StudyError(f"{share:g} of the ratings missing: give a share from 0 to below 1")
    kept = np.random.default_rng(seed).random(len(frame)) >= share
    return frame[kept].reset_index(drop=True)


@dataclass(frozen=True)
class _Plan:
    """A layout with its truth: the mean of every row, the sd of every random term, and what is tested."""

    model: Design
    sums: CrossProducts
    mean: np.ndarray
    sd: tuple[float, ...]
    residual_sd: float
    weights: np.ndarray
    scale: Scale | None


def _plan(
    frame: pd.DataFrame,
    formula: str,
    test: Mapping[str, float],
    coefficients: Mapping[str, float],
    variances: Mapping[str, float],
    residual: float,
    scale: Scale | None,
) -> _Plan:
    parsed = parse(formula)
    model, _ = design(frame.assign(**{parsed.outcome: 0.0}), parsed)
    names = model.fixed.names
    for kind, given in (("test", test), ("coefficients", coefficients)):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise StudyError(f"{kind}: the model has no coefficient {unknown[0]}; it has {', '.join(names)}")
    slopes = [grouping.term.text for grouping in model.groupings if grouping.values is not None]
    if slopes:
        raise StudyError(f"power is simulated with random intercepts; write {slopes[0]} as (1 | group)")
    groups = [grouping.term.name for grouping in model.groupings]
    if sorted(groups) != sorted(variances):
        raise StudyError(f"give a variance for each of {', '.join(groups)}; found {', '.join(variances)}")
    if residual <= 0 or min(variances.values()) < 0:
        raise StudyError("variances are zero or more, and the residual's is above zero")
    beta = np.array([coefficients.get(name, 0.0) for name in names])
    weights = np.array([[test.get(name, 0.0) for name in names]])
    if not weights.any():
        raise StudyError("test: every weight is zero")
    sd = tuple(float(np.sqrt(variances[name])) for name in groups)
    mean = (model.fixed.x @ beta)[model.fixed.cell]
    return _Plan(model, cross_products(model), mean, sd, float(np.sqrt(residual)), weights, scale)


def _refitted(plan: _Plan, n: int, rng: np.random.Generator) -> np.ndarray:
    """n × (estimate, standard error, p, singular) of fitted simulations; nan where the fit failed."""
    ratings = [_rated(plan, rng) for _ in range(n)]
    rows = np.full((n, 4), np.nan)
    outcomes = {}
    for i, y in enumerate(ratings):
        with suppress(StudyError):
            outcomes[i] = outcome_sums(plan.model, plan.sums.order, y)[0]
    if not outcomes:
        return rows
    truth = np.maximum(np.array(plan.sd) / plan.residual_sd, 0.05)[list(plan.sums.order)]
    first = criterion(plan.sums, next(iter(outcomes.values())), truth, "REML")
    together = solver(space(plan.sums), first).fit(sums_of(list(outcomes.values())))
    for i, theta in zip(outcomes, together.theta, strict=True):
        try:
            fitted = solve(plan.model, plan.sums, ratings[i], "REML", theta)
        except (StudyError, np.linalg.LinAlgError):
            continue
        if fitted.optimum.converged:
            estimate, error, df = (float(x[0]) for x in contrast(fitted, plan.weights, "satterthwaite"))
            rows[i] = estimate, error, float(two_sided(estimate / error, df)), fitted.optimum.singular
    return rows


def _rated(plan: _Plan, rng: np.random.Generator) -> np.ndarray:
    """One simulated study's ratings."""
    y = plan.mean + plan.residual_sd * rng.standard_normal(plan.model.n)
    for grouping, sd in zip(plan.model.groupings, plan.sd, strict=True):
        y += (sd * rng.standard_normal(grouping.n_levels))[grouping.codes]
    return plan.scale.rate(y) if plan.scale else y


def _balanced_studies(
    variances: Variances,
    size: Size,
    differences: tuple[float, ...],
    mean: float,
    scale: Scale | None,
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """difference × study × (estimate, standard error, p) of the second source against the first."""
    shape = n, size.sources, int(size.prompts), int(size.raters)
    y = np.sqrt(variances.residual) * rng.standard_normal(shape)
    y += np.sqrt(variances.source_prompt) * rng.standard_normal(shape[:3])[..., None]
    y += np.sqrt(variances.source_rater) * rng.standard_normal((n, shape[1], 1, shape[3]))
    y += np.sqrt(variances.prompt) * rng.standard_normal((n, 1, shape[2], 1))
    y += np.sqrt(variances.rater) * rng.standard_normal((n, 1, 1, shape[3]))
    y += mean
    if scale is None:
        estimate, error, df = balanced_test(y)
        return np.stack([_with_p(estimate + d, error, df) for d in differences])
    found = []
    for d in differences:
        shifted = y.copy()
        shifted[:, 0] -= d
        found.append(_with_p(*balanced_test(scale.rate(shifted))))
    return np.stack(found)


def balanced_test(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Difference of the first two sources, its standard error and df, in complete studies.

    What REML with (1|rater) + (1|prompt) + (1|source:rater) + (1|source:prompt) and Satterthwaite's df give:
    components that would be negative are zero, their mean squares pooled with the ones below.

    Parameters
    ----------
    y : study × source × prompt × rater
    """
    _, s, p, r = y.shape
    by_prompt, by_rater = y.mean(3), y.mean(2)
    by_source = by_prompt.mean(2)
    total = (y**2).sum((1, 2, 3)) - p * r * (by_source**2).sum(1)
    prompts = r * ((by_prompt - by_source[..., None]) ** 2).sum((1, 2))
    raters = p * ((by_rater - by_source[..., None]) ** 2).sum((1, 2))
    prompt_main, rater_main = s * r * _scatter(by_prompt.mean(1)), s * p * _scatter(by_rater.mean(1))
    squares = {
        "error": (np.maximum(total - prompts - raters, 0), s * (p - 1) * (r - 1)),
        "source_prompt": (prompts - prompt_main, (s - 1) * (p - 1)), "prompt": (prompt_main, p - 1),
        "source_rater": (raters - rater_main, (s - 1) * (r - 1)), "rater": (rater_main, r - 1),
    }  # fmt: skip
    (error, response, rater), (df_error, df_response, df_rater) = _ordered(squares)
    variance = response + rater - error
    # Two mean squares in one pool are one estimate, with the sum of their coefficients.
    with_error = [response == error, rater == error]
    in_error = -1.0 + with_error[0] + with_error[1]
    spread = in_error**2 * error**2 / df_error
    for own, df, pooled in ((response, df_response, with_error[0]), (rater, df_rater, with_error[1])):
        spread = spread + np.where(pooled, 0, own**2 / df)
    with np.errstate(divide="ignore", invalid="ignore"):
        return by_source[:, 1] - by_source[:, 0], np.sqrt(2 * variance / (p * r)), variance**2 / spread


def _scatter(means: np.ndarray) -> np.ndarray:
    return ((means - means.mean(1, keepdims=True)) ** 2).sum(1)


def _ordered(squares: dict[str, tuple[np.ndarray, int]]) -> tuple[tuple, tuple]:
    """Mean squares of error, source:prompt and source:rater under error ≤ interaction ≤ main effect.

    Isotonic regression on a tree of two branches, by its min–max formula; beside each, the df of its pool.
    """
    branches = ("source_prompt", "prompt"), ("source_rater", "rater")

    def pooled(*names: str) -> np.ndarray:
        return sum(squares[n][0] for n in names) / sum(squares[n][1] for n in names)

    prefixes = [[branch[:length] for length in range(3)] for branch in branches]
    roots = {(a, b): pooled("error", *a, *b) for a in prefixes[0] for b in prefixes[1]}
    error = np.min(list(roots.values()), axis=0)
    values, dfs = [error], [np.full(error.shape, float(squares["error"][1]))]
    for branch in branches:
        inner, outer = branch
        alone = np.minimum(pooled(inner), pooled(inner, outer))
        joined = alone <= error
        values.append(np.where(joined, error, alone))
        with_outer = pooled(outer) <= np.where(joined, error, pooled(inner))
        own = squares[inner][1] + with_outer * squares[outer][1]
        dfs[0] = dfs[0] + joined * own
        dfs.append(own)
    return tuple(values), tuple(dfs)


def _with_p(estimate: np.ndarray, error: np.ndarray, df: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        p = two_sided(estimate / error, df)
    return np.column_stack([estimate, error, np.where(error > 0, p, np.nan)])


def _rate(estimate: np.ndarray, error: np.ndarray, p: np.ndarray, alpha: float) -> dict[str, float]:
    """Share of all simulations that found the effect; those that failed did not find it."""
    n, failed = len(p), int(np.isnan(p).sum())
    if failed > MOST_FAILURES * n:
        raise StudyError(
            f"{failed} of {n} simulated studies could not be analysed: the design is too small or its ratings "
            "hardly vary; power from the rest would mislead"
        )
    found = int((p < alpha).sum())
    low, high = wilson(found, n)
    return {
        "power": found / n, "low": low, "high": high, "n_sim": n, "n_failed": failed,
        "observed": float(np.nanmean(estimate)), "std_error": float(np.nanmean(error)),
    }  # fmt: skip


def wilson(found: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a proportion: never of no width, never beyond 0 and 1."""
    z = ndtri((1 + level) / 2)
    share = found / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float(max(centre - half, 0.0)), float(min(centre + half, 1.0))
