"""The web server: Streamlit's own application under uvicorn, with a door, security headers and no gossip.

It is started with a database and nothing else of the study: it never opens study.toml, responses or the key.
"""

import argparse
import html
import json
import logging
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from subprocess import run

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from annotation_app import session
from annotation_app.catalogue import LANGUAGES, catalogue
from study.store import people, ratings, references, traces
from study.store.database import Connection, Database, Refused, StoreError, ping
from study.store.identity import identity

log = logging.getLogger("crossed.app")

_HERE = Path(__file__).parent
_LARGEST_BODY = 100_000  # bytes of a draft or a time report
_CLOSED = ("/_stcore/metrics", "/_stcore/agent", "/_stcore/upload_file", "/_stcore/script-health-check")
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}

OPTIONS: dict[str, object] = {
    "server.headless": True,
    "server.fileWatcherType": "none",
    "server.enableXsrfProtection": True,
    "server.websocketPingInterval": 20,
    "server.disconnectedSessionTTL": 900,
    "server.maxUploadSize": 1,
    "server.maxMessageSize": 10,
    "server.enableStaticServing": False,
    "runner.postScriptGC": False,  # a full collection after every click costs two thirds of the server's time
    "runner.magicEnabled": False,
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "viewer",
    "client.disableDataExport": True,
    "client.showSidebarNavigation": False,
    "browser.gatherUsageStats": False,
    "logger.level": "warning",
    "theme.base": "light",
    "theme.primaryColor": "#0b5cad",
}


def application(base_path: str = "", secure: bool = False, script: Path | None = None) -> st.App:
    """The ASGI application. `secure` marks the cookie for https only; `script` replaces the page script."""
    base = f"/{base_path.strip('/')}" if base_path.strip("/") else ""
    door = _Door(base, secure)
    routes = [
        Route(f"{base}/", door.index),
        Route(f"{base}/enter/{{token}}", door.enter),
        Route(f"{base}/language/{{code}}", door.language),
        Route(f"{base}/draft", door.draft, methods=["POST"]),
        Route(f"{base}/dwell", door.dwell, methods=["POST"]),
        Route(f"{base}/export/ratings.csv", door.export),
        Route(f"{base}/client.js", door.script),
        Route(f"{base}/client.css", door.style),
        Route(f"{base}/readyz", door.ready),
        *([Route(base, lambda request: RedirectResponse(f"{base}/", 308))] if base else []),
    ]
    return st.App(
        script or _HERE / "script" / "page.py",
        routes=routes,
        middleware=[Middleware(Guard, base=base)],
        on_script_error=_logged,
    )


class Guard:
    """Security headers on every answer, and no way to Streamlit's metrics, uploads and agent interface."""

    def __init__(self, app: Callable, base: str = "") -> None:
        self.app, self.base = app, base

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"].removeprefix(self.base).startswith(_CLOSED):
            await PlainTextResponse("not here", 404, _HEADERS)(scope, receive, send)
            return

        async def dressed(message: dict) -> None:
            if message["type"] == "http.response.start":
                names = {n.lower() for n, _ in message["headers"]}
                extra = [(k.lower().encode(), v.encode()) for k, v in _HEADERS.items()]
                if b"cache-control" not in names:
                    extra.append((b"cache-control", b"no-store"))
                dropped = {n for n, _ in extra} | {b"server"}
                message["headers"] = [h for h in message["headers"] if h[0].lower() not in dropped] + extra
            await send(message)

        await self.app(scope, receive, dressed)


class _Door:
    """The routes beside Streamlit's own."""

    def __init__(self, base: str, secure: bool) -> None:
        self.base, self.secure = base, secure

    async def index(self, request: Request) -> Response:
        return HTMLResponse(_index(await run_in_threadpool(_language_of, request)))

    async def enter(self, request: Request) -> Response:
        try:
            cookie = await run_in_threadpool(people.enter, session.database(), request.path_params["token"])
        except Refused:
            log.warning("a link was refused")
            return _sentence("sign_in.link_refused", 403)
        except StoreError:
            return _sentence("common.store_error", 503)
        answer = RedirectResponse(f"{self.base}/", 303)
        answer.set_cookie(
            session.COOKIE, cookie, max_age=people.VISIT_HOURS * 3600, path=f"{self.base}/", httponly=True,
            samesite="strict", secure=self.secure,
        )  # fmt: skip
        return answer

    async def language(self, request: Request) -> Response:
        code = request.path_params["code"]
        if code in LANGUAGES:
            await run_in_threadpool(_speak, request, code)
        return RedirectResponse(f"{self.base}/", 303)

    async def draft(self, request: Request) -> Response:
        return await _taken(request, _keep_draft)

    async def dwell(self, request: Request) -> Response:
        return await _taken(request, _stay)

    async def export(self, request: Request) -> Response:
        content = await run_in_threadpool(_csv, request)
        if content is None:
            return PlainTextResponse("not here", 404)
        return Response(
            content, media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="ratings.csv"'},
        )  # fmt: skip

    async def script(self, request: Request) -> Response:
        return Response((_HERE / "client" / "client.js").read_bytes(), media_type="text/javascript; charset=utf-8")

    async def style(self, request: Request) -> Response:
        return Response((_HERE / "client" / "client.css").read_bytes(), media_type="text/css; charset=utf-8")

    async def ready(self, request: Request) -> Response:
        try:
            await run_in_threadpool(ping, session.database())
        except StoreError:
            return JSONResponse({"database": "unreachable"}, 503)
        return JSONResponse({"database": "ok"})


def main() -> None:
    """Serve until stopped. The database comes in the environment, so that no list of processes shows it."""
    parser = argparse.ArgumentParser(prog="annotation_app.server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--base-path", default="")
    parser.add_argument("--allowed-host", action="append", default=[])
    parser.add_argument("--secure", action="store_true")
    parser.add_argument("--script", type=Path)
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for name in ("httpx", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
    session.database()
    sys.argv = [str(_HERE / "script" / "page.py")]
    options = OPTIONS | {
        "server.address": chosen.host,
        "server.port": chosen.port,
        "server.baseUrlPath": chosen.base_path.strip("/"),
    }
    if chosen.allowed_host:
        options["server.allowedHosts"] = chosen.allowed_host
    application(chosen.base_path, chosen.secure, chosen.script).run(config=options)


@cache
def _index(language: str) -> str:
    """Streamlit's page in the visitor's language, with our script and style, without inline script and gossip."""
    static = Path(find_spec("streamlit").origin).parent / "static" / "index.html"
    page = static.read_text(encoding="utf-8")
    page = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    page = re.sub(r'<link rel="service-desc"[^>]*>', "", page)
    page = re.sub(r"<noscript>.*?</noscript>", "<noscript>JavaScript</noscript>", page, flags=re.DOTALL)
    page = page.replace('<html lang="en">', f'<html lang="{language}">')
    page = page.replace("<title>Streamlit</title>", f"<title>{catalogue(language)('common.title')}</title>")
    ours = '<link rel="stylesheet" href="./client.css"><script defer src="./client.js"></script>'
    return page.replace("</head>", f"{ours}</head>").strip()


def _sentence(key: str, status: int) -> Response:
    """One sentence in every language, for whoever is not in the study's pages."""
    words = "".join(f"<p lang='{code}'>{html.escape(catalogue(code)(key))}</p>" for code in LANGUAGES)
    title = html.escape(" · ".join(catalogue(code)("common.title") for code in LANGUAGES))
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{title}</title>"
    page = f"<html lang='{next(iter(LANGUAGES))}'><head>{head}</head><body><main>{words}</main></body></html>"
    return HTMLResponse(f"<!DOCTYPE html>{page}", status)


def _visitor(request: Request, connection: Connection, database: Database) -> people.Person | None:
    return people.visitor(connection, request.cookies.get(session.COOKIE), database.now())


def _language_of(request: Request) -> str:
    database = session.database()
    try:
        with database.reading() as connection:
            person = _visitor(request, connection, database)
            return person.locale if person else identity(connection).language
    except StoreError:
        return next(iter(LANGUAGES))


def _speak(request: Request, code: str) -> None:
    database = session.database()
    try:
        with database.reading() as connection:
            person = _visitor(request, connection, database)
        if person is not None:
            people.speak(database, person.person_id, code)
    except StoreError:
        log.error("the language could not be kept")


async def _taken(request: Request, keep: Callable[[Database, people.Person, dict], None]) -> Response:
    """A small JSON report from a visitor's own page; anything else is refused."""
    origin = request.headers.get("Sec-Fetch-Site", "same-origin")
    if request.headers.get("X-Crossed") != "1" or origin != "same-origin":
        return PlainTextResponse("refused", 403)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            return PlainTextResponse("too large", 413)
    try:
        return await run_in_threadpool(_keep, request, json.loads(body), keep)
    except (ValueError, KeyError, TypeError):
        return PlainTextResponse("refused", 400)


def _keep(request: Request, report: dict, keep: Callable[[Database, people.Person, dict], None]) -> Response:
    database = session.database()
    try:
        with database.reading() as connection:
            person = _visitor(request, connection, database)
        if person is None:
            return PlainTextResponse("refused", 403)
        keep(database, person, report)
    except Refused:
        return PlainTextResponse("refused", 403)
    except StoreError:
        return PlainTextResponse("try again", 503)
    return Response(status_code=204)


def _keep_draft(database: Database, person: people.Person, report: dict) -> None:
    place = _place(database, person, str(report["item"]))
    traces.keep_draft(database, person.person_id, place, str(report["text"]), str(report.get("window", ""))[:32])


def _stay(database: Database, person: people.Person, report: dict) -> None:
    place = _place(database, person, str(report["item"]))
    if place.startswith("note "):
        traces.stay(
            database, person.person_id, int(place.removeprefix("note ")), int(report["visible_ms"]),
            int(report["focused_ms"]),
        )  # fmt: skip


def _place(database: Database, person: people.Person, name: str) -> str:
    """What a page's meaningless name stands for: a position near the rater's cursor, or the author's question.

    Raises
    ------
    Refused : for any other name
    """
    with database.reading() as connection:
        if person.role == "expert":
            question = references.next_question(connection, person.person_id)
            given, _ = references.counts(connection, person.person_id)
            if question and name == ratings.opaque(connection, person.person_id, given):
                return f"reference {question.prompt_id}"
        else:
            cursor = ratings.position_of(connection, person.person_id)
            for position in (cursor, cursor - 1, cursor + 1):  # a report may come just after a step
                if name == ratings.opaque(connection, person.person_id, position):
                    return f"note {position}"
    raise Refused("no such place")


def _csv(request: Request) -> bytes | None:
    """The ratings as CSV, for coordinators; made by a process of its own, so that this one stays small."""
    database = session.database()
    with database.reading() as connection:
        person = _visitor(request, connection, database)
    if person is None or person.role != "coordinator":
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = run([sys.executable, "-m", "annotation_app.download", folder], capture_output=True, timeout=300)
        path = Path(folder) / "ratings.csv"
        if made.returncode or not path.exists():
            log.error("export failed: %s", made.stderr.decode(errors="replace")[-500:])
            return None
        return path.read_bytes()


def _logged(error: Exception) -> bool:
    """A page failed: the person reads one sentence, the log has the rest."""
    log.error("a page failed", exc_info=error)
    from annotation_app.pages import parts

    parts.store_error()
    return True


if __name__ == "__main__":
    main()
