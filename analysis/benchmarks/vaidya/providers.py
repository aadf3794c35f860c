"""Who serves a model: VAIDYA's table of providers, and its rules for telling one from a model's name.

A name that no rule knows goes to OpenAI, as VAIDYA has it; the case's text then leaves for there. So what was told
from a name is printed, and `--strict` takes no provider that was not named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.strict_json import NotJson, parsed
from generation.settings import OPENAI, ModelSettings, Price, model_settings
from study.errors import StudyError

EMBEDDED = ("embedded", "oracle", "mute")  # speakers of this machine: no model, no key
LOCAL = "local"  # the small real model of this machine
_KEYLESS = "local_openai"


@dataclass(frozen=True)
class Provider:
    """One OpenAI-compatible address, with the variables that name its key and another address."""

    name: str
    address: str
    key: str
    other_address: str


PROVIDERS = {
    p.name: p
    for p in (
        Provider("openai", OPENAI, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY", "XAI_BASE_URL"),
        Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "TOGETHER_BASE_URL"),
        Provider(_KEYLESS, "http://localhost:8000/v1", "LOCAL_OPENAI_API_KEY", "LOCAL_OPENAI_BASE_URL"),
    )
}
_RULES = (("grok", "xai"), ("deepseek", "together"), ("qwen", _KEYLESS), ("medgemma", _KEYLESS),
          ("ii-medical", _KEYLESS))  # fmt: skip


@dataclass(frozen=True)
class Served:
    """A model with its provider; `how` says where the provider is known from: given, inferred, assumed or here."""

    model: str
    provider: str
    how: str

    @property
    def embedded(self) -> bool:
        """Whether it answers on this machine, without a server of somebody's."""
        return self.how == "here"

    def line(self, role: str) -> str:
        """What is printed of a provider that nobody named."""
        if self.how == "assumed":
            return (f"{role} {self.model}: no rule tells its provider, so it is asked at {self.provider}, and the "
                    f"cases' text goes there; name another with --{role}-provider")  # fmt: skip
        return f"{role} {self.model}: its provider is told from its name, {self.provider}"


def served(model: str, provider: str | None, role: str, *, strict: bool = False) -> Served:
    """A model with its provider, as given or as told from its name.

    >>> served("Qwen/Qwen3-8B", None, "doctor")
    Served(model='Qwen/Qwen3-8B', provider='local_openai', how='inferred')

    Raises
    ------
    StudyError : for an unknown provider, or in strict mode for one that was not named
    """
    if not model.strip():
        raise StudyError(f"--{role}-model is empty; name a model")
    if model in (*EMBEDDED, LOCAL):
        if provider not in (None, "embedded"):
            raise StudyError(f"--{role}-provider {provider}: {model} answers on this machine and has no provider")
        return Served(model, "embedded", "here")
    if provider is not None:
        if provider not in PROVIDERS:
            raise StudyError(f"--{role}-provider {provider}: no such provider; there are {', '.join(PROVIDERS)}")
        return Served(model, provider, "given")
    found = inferred(model)
    if strict:
        raise StudyError(
            f"{role} {model}: --strict wants its provider named, with --{role}-provider; "
            f"from its name it would be {found or 'openai'}"
        )
    return Served(model, found or "openai", "inferred" if found or _is_openai(model) else "assumed")


def inferred(model: str) -> str | None:
    """The provider that a model's name tells, whatever its letters' case and its organisation; None if none.

    >>> inferred("deepseek-ai/DeepSeek-V3"), inferred("qwen2.5-7b"), inferred("gpt-4o")
    ('together', 'local_openai', None)
    """
    name = model.rsplit("/", 1)[-1].lower()
    return next((provider for start, provider in _RULES if name.startswith(start)), None)


def settings(
    who: Served, price: Price | None, concurrency: int, more: Mapping[str, object], environment: Mapping[str, str]
) -> ModelSettings:
    """How a model is reached.

    Raises
    ------
    StudyError : if the provider's address is none
    """
    provider = PROVIDERS[who.provider]
    address = environment.get(provider.other_address, "").strip() or provider.address
    given = {"model": who.model, "base_url": address, "concurrency": concurrency, "price": price}
    given["api_key_env"] = provider.key
    if who.provider == _KEYLESS and not environment.get(provider.key, "").strip():
        given |= {"api_key_env": None, "keyless": True}
    return model_settings(given | dict(more), f"{who.model} at {who.provider}")


def given(words: Sequence[str], option: str) -> dict[str, object]:
    """Settings from KEY=VALUE words; a value is read as JSON where it is some, else as a text.

    >>> given(["max_tokens=900", 'unsupported=["temperature"]', "variant=plain"], "--doctor-setting")
    {'max_tokens': 900, 'unsupported': ['temperature'], 'variant': 'plain'}

    Raises
    ------
    StudyError : for a word without =, or a key that stands twice
    """
    found: dict[str, object] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or key in found:
            what = "stands twice" if key in found else "is no KEY=VALUE"
            raise StudyError(f"{option} {word}: {what}; say for example {option} max_tokens=900")
        try:
            found[key] = parsed(value)
        except NotJson:
            found[key] = value
    return found


def _is_openai(model: str) -> bool:
    """Whether a name looks like one of OpenAI's own; those have no organisation before them."""
    return "/" not in model and model.lower().startswith(("gpt-", "o1", "o3", "o4", "chatgpt", "ft:"))
