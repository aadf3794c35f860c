"""Who scores: a judge by its model and provider, or the rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from analysis.benchmarks.scoring import Scorer
from analysis.benchmarks.vaidya import providers
from analysis.benchmarks.vaidya.cases import Benchmark
from analysis.benchmarks.vaidya.judge import DEFAULTS, Judge, evaluator
from analysis.benchmarks.vaidya.pricing import Prices
from analysis.benchmarks.vaidya.providers import EMBEDDED, LOCAL, PROVIDERS, served
from analysis.benchmarks.vaidya.rule import Rule
from analysis.benchmarks.vaidya.survey import Survey
from generation.settings import ModelSettings, Price
from generation.sources.local import small_model
from study.errors import StudyError

KINDS = ("judge", "rule")


@dataclass(frozen=True)
class Asked:
    """Who is to score, as the flags say it; in a replay nobody is asked, and no key is wanted."""

    by: tuple[str, ...]
    model: str | None = None
    provider: str | None = None
    extractor: str | None = None
    threads: int = 128
    settings: Mapping[str, object] = field(default_factory=dict)
    replay: bool = False


def scorers(
    asked: Asked,
    benchmark: Benchmark,
    prices: Prices,
    environment: Mapping[str, str],
    *,
    strict: bool = False,
    tell: Callable[[str], object] = lambda line: None,
) -> list[Scorer]:
    """The raters that were asked for, each once.

    Parameters
    ----------
    tell : receives a line on every provider that was told from a model's name

    Raises
    ------
    StudyError : for another kind, a provider that is none, or a key that is not set
    """
    if strange := [k for k in asked.by if k not in KINDS]:
        raise StudyError(f"--by {strange[0]}: no such rater; there are {' and '.join(KINDS)}")
    found: list[Scorer] = []
    for kind in dict.fromkeys(asked.by):
        if kind == "rule":
            found.append(Rule(benchmark))
            continue
        model = evaluator(asked.model, environment)
        judge = _settings(model, asked, prices, environment, strict, tell)
        extract = asked.extractor is not None and benchmark == "diagbench"
        extractor = _settings(asked.extractor, asked, prices, environment, strict, tell) if extract else None
        found.append(Judge(benchmark, judge, extractor))
    return found


def speakers(found: Survey, prices: Prices) -> dict[str, Price | None]:
    """The prices of the doctor and the patient of a folder, by what its conversations say of them."""
    metadata = next((c.metadata for c in found.conversations.values()), {})
    return {
        role: prices.of(str(metadata.get(f"{role}_model")), str(metadata.get(f"{role}_provider")))
        for role in ("doctor", "patient")
    }


def _settings(
    model: str,
    asked: Asked,
    prices: Prices,
    environment: Mapping[str, str],
    strict: bool,
    tell: Callable[[str], object],
) -> ModelSettings:
    if model == LOCAL:
        return small_model({**DEFAULTS, **asked.settings}, "evaluator local")
    if model in EMBEDDED:
        raise StudyError(f"evaluator {model}: plays in encounters and judges none; name a model, or say --by rule")
    who = served(model, asked.provider, "evaluator", strict=strict)
    if who.how != "given":
        tell(who.line("evaluator"))
    assert who.provider in PROVIDERS
    price = prices.of(who.model, who.provider)
    found = providers.settings(who, price, asked.threads, {**DEFAULTS, **asked.settings}, environment)
    if not asked.replay:
        found.key()
    return found
