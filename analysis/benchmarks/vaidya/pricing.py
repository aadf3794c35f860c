"""VAIDYA's table of prices: what a million tokens of a model cost. A model that is not in it has no price."""

import datetime
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from generation.settings import Price
from study.errors import StudyError, joined


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: str
    input_cost_per_million_tokens: float = Field(ge=0, allow_inf_nan=False)
    output_cost_per_million_tokens: float = Field(ge=0, allow_inf_nan=False)
    cached_input_cost_per_million_tokens: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    models: dict[str, _Row]
    as_of: datetime.date | None = None
    currency: str = "USD"


class Prices:
    """Prices by model and provider; an empty table knows none."""

    def __init__(self, rows: Mapping[tuple[str, str], Price] | None = None) -> None:
        self._rows = dict(rows or {})

    def of(self, model: str, provider: str) -> Price | None:
        """A model's price at a provider; None if the table has none, since nothing is known then."""
        return self._rows.get((model, provider))


def load(path: Path | None) -> Prices:
    """A table of prices from a YAML or JSON file: models.<name>.{provider, input_cost_per_million_tokens, …}.

    Raises
    ------
    StudyError : with all problems, one a line
    """
    if path is None:
        return Prices()
    from analysis.benchmarks.vaidya.yaml_file import document

    try:
        file = _File.model_validate(document(path))
    except ValidationError as error:
        raise StudyError(joined([f"{path}: {_problem(e)}" for e in error.errors()])) from None
    as_of = file.as_of or datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date()
    return Prices(
        {
            (name, row.provider): Price(
                input=row.input_cost_per_million_tokens,
                output=row.output_cost_per_million_tokens,
                cached_input=row.cached_input_cost_per_million_tokens,
                as_of=as_of,
                currency=file.currency,
            )
            for name, row in file.models.items()
        }
    )


def _problem(error: Mapping[str, object]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "model_type":
        return f"{place} has no keys; it needs provider and costs" if place else "is no table of prices by models"
    return f"lacks {place}" if error["type"] == "missing" else f"{place}: {error['msg']}"
