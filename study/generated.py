"""What generation.json says of the conditions under which answers were made, as far as others may read it."""

import json
from pathlib import Path

from study.config import Study
from study.records import Source

FILE = "generation.json"
# Addresses, keys, prices and server details stay; these say how the answers were drawn.
_SHOWN = (
    "api", "temperature", "top_p", "max_tokens", "max_completion_tokens", "max_output_tokens", "seed", "replicate",
    "variant",
)  # fmt: skip


def sent_settings(study: Study, source: Source) -> tuple[str | None, dict[str, object]]:
    """The model asked for, and the sampling settings sent; from study.toml where there is no generation.json."""
    told = _sources(study.path(FILE)).get(source.source_id, {}).get("settings") or source.settings
    model = told.get("model")
    return (str(model) if model else None), {k: told[k] for k in _SHOWN if told.get(k) is not None}


def _sources(path: Path) -> dict[str, dict]:
    return json.loads(path.read_text(encoding="utf-8")).get("sources", {}) if path.is_file() else {}
