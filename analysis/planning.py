"""How large a study must be: variance decomposed, precision of other sizes, power of contrasts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import pandas as pd

from analysis import display, results, tables
from analysis.fitting import Fitted
from analysis.load import Loaded, select
from analysis.results import Answer, Result
from analysis.stats import generalizability, power, power_simulation
from analysis.stats.power import Size, Variances
from study.errors import StudyError

_REFITTED = "score ~ source + (1|rater) + (1|prompt) + (1|source:prompt) + (1|source:rater)"
_IN_CASES = " + (1|source:case)"


@dataclass(frozen=True)
class Sizes:
    """Numbers of raters, prompts and cases to look at; where none is given, the study's own, halved, doubled
    and fourfold. An encounter study has cases in the place of prompts."""

    raters: tuple[int, ...] = ()
    prompts: tuple[int, ...] = ()
    cases: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cost:
    """What a rating costs, and each rater, prompt or case besides; in any currency."""

    rating: float = 0.0
    level: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Simulation:
    """How power is simulated: n studies, on which scale around which mean, with what missing."""

    n: int = 1000
    mean: float = 0.0
    scale: tuple[float, float] | None = None
    missing: float = 0.0
    raters_per_prompt: int | None = None
    seed: int = 0
    jobs: int = 1
    backend: Literal["loky", "dask"] = "loky"
    scheduler: str | None = None


def gstudy(loaded: Loaded, metric_id: str, sizes: Sizes, cost: Cost, raters: str = "auto") -> Answer:
    """Variance of raters, prompts and sources, and what studies of other sizes would measure.

    Raises
    ------
    StudyError : without two sources, prompts or cases, and raters
    """
    selected = select(loaded, metric_id, raters)
    for column in ("rater", "source"):
        if column not in selected.frame.columns:
            raise StudyError(f"{loaded.name}: has no column of {column}s; name it with --{column}")
    frame, item = _with_items(selected.frame)
    try:
        study = generalizability.g_study(frame, ("source", item, "rater"))
    except StudyError as error:
        raise StudyError(f"{metric_id}: {error}") from None
    grid_sizes = {
        item: (sizes.prompts or sizes.cases) or _around(study.sizes[item]),
        "rater": sizes.raters or _around(study.sizes["rater"]),
    }
    grid = generalizability.d_study(study, grid_sizes, cost_per_rating=cost.rating, cost_per_level=cost.level)
    limit = generalizability.bottleneck(study)
    source = results.provenance(loaded, selected)
    values = {
        "metric": metric_id, "object": "source", "sizes": study.sizes, "method": study.method, "limit": limit,
        "components": study.components, "notes": study.notes, "estimates": grid,
    }  # fmt: skip
    simulated = "simulated " if selected.simulated else ""
    lines = [
        f"Generalizability of {metric_id}: source × {item} × rater, {study.n_ratings:,} {simulated}ratings, "
        f"by {study.method}",
        "",
        "Variance components, as estimated and as used",
        tables.as_text(_components(study.components), "  "),
        "",
        "What studies of other sizes would measure",
        tables.as_text(_grid(grid, item, bool(cost.rating or cost.level)), "  "),
        "",
        limit,
        *(f"note: {note}" for note in (*selected.notes, *study.notes)),
    ]
    return Answer(Result("gstudy", source, values), "\n".join(lines), loaded)


def pilot(found: Fitted) -> tuple[Variances, Size]:
    """Components and size of a fitted study, as the start of planning the next one."""
    frame, item = _with_items(found.selected.frame)
    try:
        variances = power.from_fit(found.fit)
    except StudyError as error:
        raise StudyError("; ".join([f"{found.metric_id}: {error}", *found.model.notes])) from None
    cases = frame["case"].nunique() if variances.source_case and item == "prompt" else None
    return variances, Size(frame["source"].nunique(), frame[item].nunique(), frame["rater"].nunique(), cases)


def power_of(
    variances: Variances,
    size: Size,
    sizes: Sizes,
    differences: Sequence[float],
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    called: str = "prompt",
    simulation: Simulation | None = None,
    found: Fitted | None = None,
) -> Answer:
    """Power of a difference between two sources over a grid of sizes, in closed form or by simulation.

    Where the items are encounters, cases are the items; elsewhere cases hold the prompts.
    """
    given = (sizes.cases or sizes.prompts) if called == "case" else sizes.prompts
    prompts, raters = given or _around(size.prompts), sizes.raters or _around(size.raters)
    cases = () if called == "case" else sizes.cases or ((int(size.cases),) if size.cases else ())
    if cases and size.cases is None and found is None:
        size = replace(size, cases=cases[0])
    if simulation is None:
        grid = power.power_grid(variances, size.sources, prompts, raters, differences,
                                cases=cases or None, alpha=alpha, target=target)  # fmt: skip
    else:
        grid = _simulated(variances, (size.sources, prompts, raters, cases), differences, alpha, simulation)
    last = differences[-1]
    sentence = power.plateau(variances, size, last, target=target, alpha=alpha, called=called)
    source = (
        results.provenance(found.loaded, found.selected, formula=str(found.fit.formula),
                           seed=simulation.seed if simulation else None)
        if found
        else {"versions": results.versions(), "seed": simulation.seed if simulation else None}
    )  # fmt: skip
    values = {
        "metric": found.metric_id if found else None, "variances": vars(variances), "size": vars(size),
        "target": target, "alpha": alpha, "plateau": sentence, "estimates": grid,
        "simulation": vars(simulation) if simulation else None,
    }  # fmt: skip
    return Answer(Result("power", source, values), _power_text(values, grid, found, called),
                  found.loaded if found else None)  # fmt: skip


def _power_text(values: dict, grid: pd.DataFrame, found: Fitted | None, called: str) -> str:
    origin = f"the fit of {found.metric_id}" if found else "the assumed components"
    simulated = " (simulated ratings)" if found and found.selected.simulated else ""
    parts = [f"{name} {display.number(v, 3)}" for name, v in values["variances"].items() if v]
    how = (
        "closed form" if values["simulation"] is None else f"{values['simulation']['n']:,} simulated studies each"
    )
    lines = [
        f"Power from {origin}{simulated}: two-sided test at {values['alpha']:g}, {how}",
        f"Variances: {', '.join(parts)}",
        "",
        tables.as_text(_power_table(grid, called), "  "),
        "",
        values["plateau"],
    ]
    return "\n".join(lines)


def _simulated(
    variances: Variances,
    sizes: tuple[int, Sequence[int], Sequence[int], Sequence[int]],
    differences: Sequence[float],
    alpha: float,
    how: Simulation,
) -> pd.DataFrame:
    """Power at every number of prompts, raters and cases that hold the prompts."""
    sources, prompts, raters, cases = sizes
    if variances.source_case and not cases:
        raise StudyError(
            "answers to one case share variance (source_case): say with --n-cases how many cases hold the prompts"
        )
    parts = []
    for p, r, c in product(prompts, raters, cases or [None]):
        size, spread = Size(sources, p, r, c), variances
        if c == p:  # each prompt is a case of its own: what its answers share is the prompt's
            size = replace(size, cases=None)
            spread = replace(spread, source_prompt=spread.source_prompt + spread.source_case, source_case=0.0)
        whole = size.cases is None and not how.missing and how.raters_per_prompt is None
        found = (_complete if whole else _refitted)(spread, size, differences, alpha, how)
        parts.append(found.assign(prompts=p, raters=r, cases=float("nan") if c is None else c))
    grid = pd.concat(parts, ignore_index=True)
    first = ["prompts", "raters", "cases"]
    return grid[[*first, *[c for c in grid.columns if c not in first]]]


def _complete(
    variances: Variances, size: Size, differences: Sequence[float], alpha: float, how: Simulation
) -> pd.DataFrame:
    return power_simulation.simulate_balanced(
        variances, size, differences, mean=how.mean, scale=_scale(how), n_sim=how.n, alpha=alpha, seed=how.seed,
        jobs=how.jobs, backend=how.backend, scheduler=how.scheduler,
    )  # fmt: skip


def _refitted(
    variances: Variances, size: Size, differences: Sequence[float], alpha: float, how: Simulation
) -> pd.DataFrame:
    """Studies with missing cells, incomplete blocks or cases that hold prompts, each fitted anew."""
    frame = power_simulation.crossed_frame(size)
    if how.raters_per_prompt is not None:
        frame = power_simulation.incomplete_blocks(frame, how.raters_per_prompt)
    if how.missing:
        frame = power_simulation.some_missing(frame, how.missing, how.seed)
    truth = {"rater": variances.rater, "prompt": variances.prompt, "source:prompt": variances.source_prompt,
             "source:rater": variances.source_rater}  # fmt: skip
    if size.cases is not None:
        truth["source:case"] = variances.source_case
    parts = [
        power_simulation.simulate_refits(
            frame, _REFITTED + (_IN_CASES if size.cases is not None else ""), {"source2": 1.0},
            coefficients={"(Intercept)": how.mean, "source2": d},
            variances=truth, residual=variances.residual, scale=_scale(how), n_sim=how.n, alpha=alpha,
            seed=how.seed, jobs=how.jobs, backend=how.backend, scheduler=how.scheduler,
        ).assign(difference=d, n_ratings=len(frame))
        for d in differences
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def _scale(how: Simulation) -> power_simulation.Scale | None:
    return power_simulation.Scale(int(how.scale[0]), int(how.scale[1])) if how.scale else None


def _power_table(grid: pd.DataFrame, called: str) -> tables.Table:
    rows, in_cases = [], bool(grid["cases"].notna().any())
    for r in grid.to_dict("records"):
        value = display.estimate(r["power"], r.get("low"), r.get("high"))
        row = [display.count(r["prompts"]), *([display.count(r["cases"])] if in_cases else []),
               display.count(r["raters"]), display.number(r["difference"]), value]  # fmt: skip
        row.append(display.number(r["std_error"], 3))
        row.append(display.number(r["detectable"]) if "detectable" in r else display.count(r["n_failed"]))
        rows.append(tuple(row))
    last = "detectable" if "detectable" in grid else "failed"
    columns = (f"{called}s", *(["in cases"] if in_cases else []), "raters", "difference", "power", "SE", last)
    return tables.Table("power", "", columns, tuple(rows), text_columns=())


def _components(components: pd.DataFrame) -> tables.Table:
    rows = tuple(
        (r.term, display.number(r.estimate, 4), display.number(r.used, 4), display.percent(r.share))
        for r in components.itertuples()
    )
    return tables.Table("components", "", ("term", "estimate", "used", "share"), rows)


def _grid(grid: pd.DataFrame, item: str, costs: bool) -> tables.Table:
    rows = tuple(
        (display.count(r[item]), display.count(r["rater"]), display.count(r["n_ratings"]),
         display.number(r["e_rho2"]), display.number(r["phi"]), display.number(r["se_difference"], 3),
         *([display.number(r["cost"])] if costs else []))
        for r in grid.to_dict("records")
    )  # fmt: skip
    columns = (f"{item}s", "raters", "ratings", "Eρ²", "Φ", "SE of a difference", *(["cost"] if costs else []))
    return tables.Table("dstudy", "", columns, rows, text_columns=())


def _with_items(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The frame with prompts named apart in every case, and what its items are: prompts or cases."""
    if "prompt" in frame.columns and frame["prompt"].notna().all():
        parts = [c for c in ("case", "prompt") if c in frame.columns and frame[c].notna().all()]
        names = frame[parts[-1]].astype(str) if len(parts) == 1 else frame[parts].astype(str).agg(":".join, axis=1)
        return frame.assign(prompt=names.to_numpy()), "prompt"
    if "case" in frame.columns and frame["case"].notna().all():
        return frame, "case"
    raise StudyError(
        "the ratings name no prompt and no case to plan by; name a bare file's column of prompts with --prompt"
    )


def _around(n: float) -> tuple[int, ...]:
    """A size halved, itself, doubled and fourfold; never below two."""
    return tuple(sorted({max(2, round(n * factor)) for factor in (0.5, 1, 2, 4)}))
