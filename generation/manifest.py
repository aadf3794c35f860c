"""generation.json: the conditions under which a study's responses were made, for the methods section."""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from generation.answers import Answers, Attempts, Sums
from generation.prompt import system_prompt
from generation.settings import ModelSettings
from generation.sources.openai_chat import Model
from generation.sources.speaker import Speaker
from study.config import FILE, Study
from study.records import Content

MANIFEST = "generation.json"
_LIBRARIES = ("crossed-raters", "openai", "httpx2", "pydantic", "pyarrow", "kiwipiepy")


def write(
    study: Study, content: Content, speakers: Mapping[str, Speaker], answers: Answers, sums: Mapping[str, Sums]
) -> None:
    """Write the manifest, whole or not at all."""
    from study import tables

    document = manifest(study, content, speakers, answers, sums)
    text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    tables.replaced(study.path(MANIFEST), lambda half: half.write_text(text, encoding="utf-8"))


def manifest(
    study: Study, content: Content, speakers: Mapping[str, Speaker], answers: Answers, sums: Mapping[str, Sums]
) -> dict[str, object]:
    """The conditions as plain data. No key, and nothing that names a rater, is in it."""
    files = study.content_files
    named = {FILE: study.folder / FILE} | (
        {n: study.path(n) for n in (files.cases, files.prompts)} if files else {}
    )
    return {
        "study": study.study_id,
        "files": {name: _digest(path) for name, path in named.items()},
        "personas": {
            case_id: _sha(system_prompt(case.persona, content.language)) for case_id, case in content.cases.items()
        },
        "prompts": len(content.prompts),
        "window": {"days": study.generation.window_days, "waiver": study.generation.waiver},
        "sources": {
            s.source_id: {"kind": s.kind, "title": s.title}
            | _asked_of(speakers[s.source_id])
            | _got_from(sums[s.source_id], answers.attempts.get(s.source_id, Attempts()))
            for s in study.sources
        },
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Python and the libraries that a question passes through."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _asked_of(speaker: Speaker) -> dict[str, object]:
    if not isinstance(speaker, Model):
        return {}
    settings: ModelSettings = speaker.settings
    sent = ("model", "base_url", "api", "replicate", "variant", "extra_body")
    return {
        "settings": settings.model_dump(include=set(sent)) | settings.sampling(),
        "deviations": settings.deviations(),
        "price": settings.price.model_dump(mode="json") if settings.price else None,
        "demo": settings.demo,
    }


def _got_from(sums: Sums, attempts: Attempts) -> dict[str, object]:
    found: dict[str, object] = {"statuses": dict(sums.statuses), "flags": dict(sums.flags)}
    if not attempts.sent and not sums.models:
        return found
    return found | {
        "models": dict(sums.models),
        "fingerprints": dict(sums.fingerprints),
        "first_answer": sums.first,
        "last_answer": sums.last,
        "prompt_tokens": sums.prompt_tokens,
        "completion_tokens": sums.completion_tokens,
        "answers_without_token_counts": sums.uncounted,
        "cost": sums.cost,
        "answers_without_cost": sums.unpriced,
        "requests": {
            "sent": attempts.sent,
            "answered": attempts.answered,
            "failed": attempts.missed,
            "lost_when_killed": attempts.lost,
        },
    }


def _digest(path: Path) -> str:
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
