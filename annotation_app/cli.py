"""annotation_app: serve the rating pages, invite people, watch, lock, export."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from study.terminal import command, dump, main, say

if TYPE_CHECKING:
    from study.config import Study
    from study.store.database import Database

app = command("annotation_app", "People rate in the browser: serve the pages, invite, watch, lock, export.")

Folder = Annotated[Path, typer.Argument(help="The study folder, with its study.toml.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]
Url = Annotated[str, typer.Option(help="Where the pages are reached from outside; links begin with it.")]

Whom = Annotated[str, typer.Option("--person", help="Whose.")]

_WHO = "command line"


def run() -> None:
    main(app)


@app.command()
def serve(
    folder: Folder = Path("."),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8501,
    base_path: Annotated[str, typer.Option(help="Serve below this path, behind a proxy.")] = "",
    url: Annotated[str | None, typer.Option(help="What people reach, such as https://rate.example.org.")] = None,
    links: Annotated[bool, typer.Option(help="Print one link per role, for trying things out.")] = False,
) -> None:
    """Serve a study's rating pages until stopped.

    The ratings live in ratings.db in the study folder, or where CROSSED_DATABASE says (postgresql://…).

    Example: annotation_app serve demo-study --links
    """
    import os
    import sys
    from urllib.parse import urlsplit

    study, database = _open(folder)
    public = (url or f"http://{host}:{port}/{base_path.strip('/')}").rstrip("/")
    if links:
        for role, link in _trial_links(database, public):
            say(f"{role:<12} {link}")
    database.close()
    arguments = ["--host", host, "--port", str(port), "--base-path", base_path]
    if url:
        arguments += ["--allowed-host", urlsplit(url).hostname or ""]
        arguments += ["--secure"] if url.startswith("https:") else []
    say(f"serving {study.study_id} at {public}/ (Ctrl+C stops)")
    sys.stdout.flush()
    environment = os.environ | {"CROSSED_DATABASE": _url(study)}
    os.execve(sys.executable, [sys.executable, "-m", "annotation_app.server", *arguments], environment)


@app.command()
def invite(
    folder: Folder = Path("."),
    person: Annotated[list[str] | None, typer.Option(help="Whom; may be given again. Default: raters.")] = None,
    role: Annotated[str | None, typer.Option(help="expert or coordinator, for people beside the panel.")] = None,
    language: Annotated[str | None, typer.Option(help="ko or en.")] = None,
    days: Annotated[int, typer.Option(min=1, help="How long the link works.")] = 90,
    url: Url = "http://127.0.0.1:8501",
    as_json: Json = False,
) -> None:
    """Make a fresh link for people; earlier links of theirs end. Links are shown once and not kept.

    Example: annotation_app invite my-study --person expert-01 --role expert --url https://rate.example.org
    """
    from annotation_app.catalogue import LANGUAGES
    from study.errors import StudyError
    from study.store import people

    if language is not None and language not in LANGUAGES:
        raise StudyError(f"--language {language}: there are {', '.join(LANGUAGES)}")
    study, database = _open(folder)
    found = {
        name: f"{url.rstrip('/')}/enter/"
        + people.invite(database, name, role=role, locale=language, days=days, who=_WHO)
        for name in person or study.raters
    }
    if as_json:
        dump(found)
        return
    for name, link in found.items():
        say(f"{name:<16} {link}")


@app.command()
def preview(folder: Folder = Path("."), url: Url = "http://127.0.0.1:8501", as_json: Json = False) -> None:
    """Make a rater for trying things out, whose ratings never enter the study.

    Example: annotation_app preview my-study
    """
    from study.store import people

    _, database = _open(folder)
    name = people.preview(database, _WHO).person_id
    link = f"{url.rstrip('/')}/enter/{people.invite(database, name, who=_WHO)}"
    dump({name: link}) if as_json else say(f"{name:<16} {link}")


@app.command()
def status(
    folder: Folder = Path("."),
    by_code: Annotated[bool, typer.Option(help="Also by masked source; needs the key.")] = False,
    as_json: Json = False,
) -> None:
    """Say who has come how far, and how far raters agree, without telling any source.

    Example: annotation_app status my-study --by-code
    """
    from annotation_app import masking, quality
    from study.store import overview, people, ratings, seals

    study, database = _open(folder)
    with database.reading() as connection:
        everybody = [p for p in people.everybody(connection) if p.role == "rater"]
        progress = {p.person_id: (p, ratings.progress(connection, p.person_id)) for p in everybody}
        metrics = [m.metric_id for m in ratings.metrics(connection, "main")]
        agreements = quality.agreements(overview.given(connection), metrics)
        lock = seals.sealed(connection, "lock")
    coded = masking.by_code(database, _key(study)) if by_code else []
    if as_json:
        raters = {n: {"status": p.status, "rated": g.rated, "cells": g.cells} for n, (p, g) in progress.items()}
        dump({"raters": raters, "agreement": [vars(a) for a in agreements], "by_code": coded, "lock": lock})
        return
    for name, (person, so_far) in progress.items():
        say(f"{name:<16} {person.status:<10} {so_far.rated:>6} of {so_far.cells}")
    say()
    for a in agreements:
        iccs = f"ICC(2,1) {_shown(a.icc_single)}  ICC(2,k) {_shown(a.icc_mean)}"
        say(f"{a.metric_id:<24} {iccs}  alpha {_shown(a.alpha)}")
    for row in coded:
        say(f"{row['code']}  {row['metric']:<24} mean {_shown(row['mean'])}  n {row['count']}")
    say("locked" if lock else "not locked")


@app.command()
def replace(
    folder: Folder = Path("."),
    old: Annotated[str, typer.Option(help="Who leaves.")] = ...,
    new: Annotated[str, typer.Option(help="Who comes.")] = ...,
    as_json: Json = False,
) -> None:
    """Let a new rater take the order of one who dropped out.

    Example: annotation_app replace my-study --old rater-03 --new rater-03b
    """
    from study.store import people

    _, database = _open(folder)
    people.replace(database, old, new, _WHO)
    dump({"old": old, "new": new}) if as_json else say(f"{new} has the order of {old}; now: annotation_app invite")


@app.command()
def admit(folder: Folder = Path("."), person: Whom = ..., as_json: Json = False) -> None:
    """Let a rater in who did not pass the training.

    Example: annotation_app admit my-study --person rater-03
    """
    from study.store import training

    _, database = _open(folder)
    training.admit(database, person, _WHO)
    dump({"admitted": person}) if as_json else say(f"{person}: admitted")


@app.command()
def excuse(
    folder: Folder = Path("."),
    person: Whom = ...,
    reason: Annotated[str, typer.Option(help="Why the rest is missing, such as ill.")] = ...,
    as_json: Json = False,
) -> None:
    """Let a rater's unrated items be missing for a stated reason, so that the study can be locked.

    Example: annotation_app excuse my-study --person rater-03 --reason ill
    """
    from study.store import seals

    _, database = _open(folder)
    seals.excuse(database, person, reason, _WHO)
    dump({"excused": person, "reason": reason}) if as_json else say(f"{person}: excused ({reason})")


@app.command()
def lock(folder: Folder = Path("."), as_json: Json = False) -> None:
    """Close the study for good. Refused, with the list of gaps, until everything is rated or excused.

    Example: annotation_app lock my-study
    """
    from study.store import seals

    _, database = _open(folder)
    manifest = seals.lock(database, _WHO)
    if as_json:
        dump(manifest)
        return
    say(f"locked at {manifest['locked_at']}: {manifest['rating_events']} rating events, chain {manifest['chain']}")


@app.command()
def export(
    folder: Folder = Path("."),
    to: Annotated[Path | None, typer.Option(help="The file. Default: ratings.parquet in the study.")] = None,
    as_json: Json = False,
) -> None:
    """Write the ratings as the analysis reads them, and beside them everything else that was given.

    Example: annotation_app export my-study
    """
    from study.store import export as exporting

    study, database = _open(folder)
    rows = exporting.write(database, to or study.ratings)
    if as_json:
        dump(rows)
        return
    for name, n in rows.items():
        say(f"{name:<32} {n:>7} rows")


@app.command()
def unblind(folder: Folder = Path("."), as_json: Json = False) -> None:
    """Say which source each masked code is. Possible once locked, and written down for all to see.

    Example: annotation_app unblind my-study
    """
    import hashlib

    from annotation_app import masking
    from study.store import seals

    study, database = _open(folder)
    source_of = _key(study)
    manifest = seals.unblind(database, hashlib.sha256(study.key.read_bytes()).hexdigest(), _WHO)
    codes = {code: source for source, code in masking.codes(database, sorted(set(source_of.values()))).items()}
    if as_json:
        dump({"codes": codes, **manifest})
        return
    for code, source in sorted(codes.items()):
        say(f"{code}  {source}")
    say(f"unblinded at {manifest['unblinded_at']}, key {manifest['key']}, lock {manifest['lock']}")


@app.command()
def withdraw(
    folder: Folder = Path("."),
    person: Whom = ...,
    yes: Annotated[bool, typer.Option(help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase everything that a person gave, and print a receipt.

    Example: annotation_app withdraw my-study --person rater-03 --yes
    """
    from study.store import withdrawal

    _, database = _open(folder)
    if not yes:
        typer.confirm(f"Erase everything that {person} gave? This cannot be undone", abort=True)
    receipt = withdrawal.withdraw(database, person, _WHO)
    if as_json:
        dump(vars(receipt))
        return
    say(f"{receipt.person_id} withdrew at {receipt.at}")
    for name, n in receipt.erased.items():
        say(f"  {n:>6} rows of {name} erased")
    for path in receipt.backups:
        say(f"  still in the backup {path}: delete it, or withdraw there too")
    say("  exports made before still hold the rows: export again")


@app.command()
def rehearse(
    folder: Folder = Path("."),
    url: Url = "http://127.0.0.1:8501",
    raters: Annotated[int, typer.Option(min=1, help="How many rate at once.")] = 20,
    seconds: Annotated[float, typer.Option(min=1, help="For how long.")] = 60,
    think: Annotated[float, typer.Option(min=0, help="Mean seconds between two clicks of a rater.")] = 3.0,
    as_json: Json = False,
) -> None:
    """Let scripted preview raters rate on the running server, and measure how fast it answers.

    Example: annotation_app rehearse my-study --raters 20 --seconds 60
    """
    import asyncio

    from annotation_app import rehearsal

    _, database = _open(folder)
    rehearsal.check_served(url)
    tokens = [rehearsal.ready_rater(database) for _ in range(raters)]
    found = asyncio.run(rehearsal.rehearse(url, tokens, seconds=seconds, think=think))
    if as_json:
        dump(found)
        return
    for name, value in found.items():
        say(f"{name:<16} {value}")


@app.command()
def backup(
    folder: Folder = Path("."),
    to: Annotated[Path | None, typer.Option(help="The file to write. Default: backups/ in the study.")] = None,
    as_json: Json = False,
) -> None:
    """Copy the whole database, while people rate, into one new SQLite file.

    Example: annotation_app backup my-study
    """
    from study.store import database as store

    study, database = _open(folder)
    stamp = database.now()[:19].replace(":", "").replace("-", "")
    path = to or study.path(f"backups/ratings-{stamp}.db")
    store.backup(database, path)
    dump({"backup": str(path)}) if as_json else say(f"{path}: written")


@app.command()
def verify(folder: Folder = Path("."), as_json: Json = False) -> None:
    """Check that nothing given was changed, added or taken away behind the database's back.

    Example: annotation_app verify my-study
    """
    from study.errors import StudyError, joined
    from study.store import chain

    _, database = _open(folder)
    found = chain.problems(database)
    if as_json:
        dump({"problems": found})
    if found and not as_json:
        raise StudyError(joined(found))
    if found:
        raise typer.Exit(1)
    if not as_json:
        with database.reading() as connection:
            say(f"the chain holds; its head is {chain.head(connection)}")


def _open(folder: Path) -> "tuple[Study, Database]":
    from annotation_app.founding import open_study
    from study.config import load

    study = load(folder)
    return study, open_study(study)


def _url(study: "Study") -> str:
    from study.store.address import database_url

    return database_url(study)


def _key(study: "Study") -> dict[str, str]:
    from study import tables

    key = tables.read(study.key, tables.KEY)
    return dict(zip(key["label"], key["source_id"], strict=True))


def _trial_links(database: "Database", public: str) -> list[tuple[str, str]]:
    """A link each for a preview rater, an expert and a coordinator."""
    from study.store import people

    with database.reading() as connection:
        tried = people.find(connection, "preview-1")
    rater = (tried or people.preview(database, _WHO)).person_id
    roles = ((rater, "rater"), ("expert-01", "expert"), ("coordinator-01", "coordinator"))
    return [(role, f"{public}/enter/{people.invite(database, p, role=role, who=_WHO)}") for p, role in roles]


def _shown(value: float | None) -> str:
    return "   —" if value is None else f"{value:z.2f}"
