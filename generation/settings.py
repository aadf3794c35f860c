"""How a model is reached and asked: the settings of a source or a judge in study.toml, checked."""

import datetime
import ipaddress
import os
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from study.errors import StudyError, joined

OPENAI = "https://api.openai.com/v1"
KEY_VARIABLES = {  # host → the variable that holds its key, where the source names none
    "api.openai.com": "OPENAI_API_KEY",
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "api.together.xyz": "TOGETHER_API_KEY",
    "clovastudio.stream.ntruss.com": "CLOVA_STUDIO_API_KEY",
}
_KEYLESS = "not-required"  # local servers ignore it; the openai client refuses an empty one

TokenLimit = Literal["max_tokens", "max_completion_tokens", "max_output_tokens"]
Sampling = Literal["temperature", "top_p", "seed", "max_tokens"]


class Price(BaseModel):
    """What a million tokens cost, and when that was true."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    as_of: datetime.date
    currency: str = "USD"


class ModelSettings(BaseModel):
    """One model behind one OpenAI-compatible address.

    `unsupported` names settings that the model refuses: they are not sent, and the manifest says so. `seed` is
    sent as seed + replicate - 1, so that replicates are different draws. `patience` is the longest single wait,
    in seconds, that a server may ask for. `keyless` says that a server elsewhere takes no key.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = Field(min_length=1)
    base_url: str = OPENAI
    api: Literal["chat", "responses"] = "chat"
    api_key_env: str | None = None
    temperature: float | None = Field(default=0.7, ge=0, le=2)
    top_p: float | None = Field(default=0.95, gt=0, le=1)
    max_tokens: int | None = Field(default=256, ge=1)
    token_limit_param: TokenLimit | None = None
    seed: int | None = None
    replicate: int = Field(default=1, ge=1)
    unsupported: tuple[Sampling, ...] = ()
    extra_body: dict[str, object] = {}
    variant: str = "baseline"
    concurrency: int = Field(default=4, ge=1, le=256)
    per_minute: float | None = Field(default=None, gt=0)
    timeout: float = Field(default=120, gt=0)
    attempts: int = Field(default=6, ge=1)
    first_wait: float = Field(default=1.0, ge=0)
    patience: float = Field(default=120, ge=0)
    price: Price | None = None
    demo: bool = False
    keyless: bool = False

    @model_validator(mode="after")
    def _address(self) -> Self:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url {self.base_url!r} is not an address such as {OPENAI}")
        if parts.username or parts.password or parts.query:
            raise ValueError("base_url holds a secret or a query; name the key's variable in api_key_env")
        if reserved := sorted({"model", "messages", "input", "stream", "n"} & set(self.extra_body)):
            raise ValueError(f"extra_body may not set {reserved[0]}")
        return self

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def local(self) -> bool:
        """Whether the server is on this machine; proxies do not apply to it, and it may need no key."""
        return is_local(self.base_url)

    @property
    def limit_name(self) -> str:
        """What the server calls the token limit."""
        if self.token_limit_param:
            return self.token_limit_param
        if self.api == "responses":
            return "max_output_tokens"
        return "max_completion_tokens" if self.base_url.rstrip("/") == OPENAI else "max_tokens"

    def key(self) -> str:
        """The key from the environment.

        Raises
        ------
        StudyError : if the variable is unset or empty, and the server is neither on this machine nor keyless
        """
        variable = self.api_key_env or KEY_VARIABLES.get(self.host)
        found = os.environ.get(variable, "").strip() if variable else ""
        if found:
            return found
        if self.api_key_env or not (self.local or self.keyless):
            raise StudyError(
                f"{variable} is empty: set it to the key of {self.host}"
                if variable
                else f"no key for {self.host}: name the variable that holds it in api_key_env"
            )
        return _KEYLESS

    def sampling(self) -> dict[str, object]:
        """What is sent about sampling, without what the model does not support."""
        seed = None if self.seed is None else self.seed + self.replicate - 1
        wanted = {
            "temperature": (self.temperature, "temperature"),
            "top_p": (self.top_p, "top_p"),
            "seed": (None if self.api == "responses" else seed, "seed"),
            "max_tokens": (self.max_tokens, self.limit_name),
        }
        return {
            sent: value
            for name, (value, sent) in wanted.items()
            if value is not None and name not in self.unsupported
        }

    def deviations(self) -> list[str]:
        """Settings asked for that the model cannot honour, in words for the methods section."""
        found = [
            f"{name} = {getattr(self, name):g} is not supported by {self.model} and was not sent"
            for name in self.unsupported
            if getattr(self, name) is not None
        ]
        if self.api == "responses" and self.seed is not None and "seed" not in self.unsupported:
            found.append(f"seed = {self.seed} was not sent: the Responses API has none")
        return found


def is_local(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def model_settings(settings: dict[str, object], place: str) -> ModelSettings:
    """The settings of a source or judge, checked.

    Raises
    ------
    StudyError : with all problems, one a line, each naming its place
    """
    try:
        return ModelSettings.model_validate(settings)
    except ValidationError as error:
        raise StudyError(joined([f"{place}{_problem(e)}" for e in error.errors()])) from None


def _problem(error: dict) -> str:
    name = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f" lacks {name}"
        case "extra_forbidden":
            known = Price if "." in name else ModelSettings
            return f" has an unknown key {name}; known are {', '.join(known.model_fields)}"
        case "value_error":
            return f": {error['ctx']['error']}"
    return f": {name} = {error['input']!r}: {error['msg']}"
