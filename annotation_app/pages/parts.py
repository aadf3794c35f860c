"""Pieces that several pages are made of. All text from outside is escaped here before it becomes HTML."""

import html
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

import streamlit as st

from annotation_app.catalogue import LANGUAGES, Catalogue, catalogue
from study.store.ratings import Turn

_SHEET = (
    ("common.complaint", "chief_complaint"),
    ("common.door_note", "door_note"),
    ("common.who", "demographic_context"),
    ("common.now", "clinical_state"),
    ("common.history", "history"),
    ("common.style", "conversational_style"),
)


def header(say: Catalogue, title: str, *, below: str = "", switch: bool = True, **state: object) -> None:
    """The page's head: its heading, the way to the other language, and for the browser's script where it is.

    `below` is HTML already. `switch` false leaves the way to the other language out.
    """
    marks = "".join(f' data-{k}="{html.escape(str(v))}"' for k, v in {"locale": say.language, **state}.items())
    others = "".join(
        f'<a href="./language/{code}" lang="{code}" hreflang="{code}">{name}</a>'
        for code, name in LANGUAGES.items()
        if code != say.language
    )
    choice = f'<nav aria-label="{html.escape(say("common.language"))}">{others}</nav>' if switch else ""
    st.html(
        f'<div class="cr-head"><div class="cr-state" data-title="{html.escape(title)}"{marks}></div>'
        f'<div class="cr-top"><h1 tabindex="-1">{html.escape(title)}</h1>'
        f"{choice}</div>{below}</div>"
    )


def told(say: Catalogue, page: str, settings: Mapping[str, object]) -> str:
    """The text of a page such as `consent`: the study's own, else ours for who is rated, patient or doctor."""
    ours = "text_doctor" if settings.get("asker") == "doctor" else "text"
    return str(settings.get(f"{page}_{say.language}") or say(f"{page}.{ours}"))


def local(at: str) -> datetime:
    """A moment of the database in the reader's own time zone, as the browser tells it."""
    minutes_west = st.context.timezone_offset or 0
    return datetime.fromisoformat(at).astimezone(timezone(-timedelta(minutes=minutes_west)))


def day(at: str) -> str:
    """The same with its date, to the minute."""
    return f"{local(at):%Y-%m-%d %H:%M}"


def plain(text: str) -> str:
    """Text that Streamlit's labels show as it is, though they read Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|~<>$:" else c for c in text)


def case(say: Catalogue, sheet: tuple[str, Mapping[str, str]], language: str, opened: bool = False) -> str:
    """The case as a block that folds."""
    title, entries = sheet
    rows = "".join(
        f"<dt>{html.escape(say(key))}</dt><dd lang='{language}'>{_lines(entries[name])}</dd>"
        for key, name in _SHEET
        if entries.get(name)
    )
    state = " open" if opened else ""
    return (
        f"<details class='cr-case'{state}><summary>{html.escape(say('common.case'))}: "
        f"<span lang='{language}'>{html.escape(title)}</span></summary><dl>{rows}</dl></details>"
    )


def story(say: Catalogue, text: str, language: str) -> str:
    """A case told in one paragraph, as the training's examples have it."""
    return (
        f"<details class='cr-case' open><summary>{html.escape(say('common.case'))}</summary>"
        f"<p lang='{language}'>{html.escape(text)}</p></details>"
    )


def turns(
    say: Catalogue,
    told: Iterable[tuple[str, str]],
    language: str,
    marked: int | None = None,
    asker: str = "student",
) -> str:
    """Questions and answers; the answer of the turn `marked` stands out. A side that said nothing is left out."""
    lines = []
    for number, (question, answer) in enumerate(told):
        here = " cr-here" if number == marked else ""
        asked = _said(say(f"common.{asker}"), "cr-q", language, _lines(question)) if question else ""
        answered = _said(say("common.patient"), "cr-a", language, _lines(answer)) if answer else ""
        lines.append(f"<div class='cr-turn{here}'>{asked}{answered}</div>")
    return "".join(lines)


def _said(who: str, kind: str, language: str, words: str) -> str:
    return (
        f"<p class='{kind}'><span class='cr-who'>{html.escape(who)}</span>"
        f"<span lang='{language}'>{words}</span></p>"
    )


def dialogue(
    say: Catalogue,
    told: Sequence[Turn],
    language: str,
    *,
    whole: bool,
    recent: int = 2,
    asker: str = "student",
) -> str:
    """An encounter so far. For one answer, earlier turns but the latest few fold away; for the whole, none do."""
    pairs = [(t.question, t.answer) for t in told]
    if whole:
        return f"<div class='cr-dialogue'>{turns(say, pairs, language, asker=asker)}</div>"
    folded, near = pairs[: -recent - 1], pairs[-recent - 1 :]
    fold = ""
    if folded:
        fold = (
            f"<details class='cr-earlier'><summary>{html.escape(say('rate.earlier', count=len(folded)))}</summary>"
            f"{turns(say, folded, language, asker=asker)}</details>"
        )
    return f"<div class='cr-dialogue'>{fold}{turns(say, near, language, len(near) - 1, asker)}</div>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str, kind: str = "") -> str:
    """A plain table: what is not in its cells is not on the wire."""
    top = "".join(f"<th scope='col'>{html.escape(h)}</th>" for h in head)
    body = "".join(
        "<tr>" + "".join(
            f"<th scope='row'>{html.escape(str(c))}</th>" if i == 0 else f"<td>{html.escape(str(c))}</td>"
            for i, c in enumerate(row)
        ) + "</tr>"
        for row in rows
    )  # fmt: skip
    return (
        f"<div class='cr-table {kind}' tabindex='0' role='region' aria-label='{html.escape(caption)}'><table>"
        f"<caption>{html.escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def stranger() -> None:
    """For whoever has no valid visit: the same words for all of them, in both languages."""
    header(catalogue("ko"), catalogue("ko")("sign_in.title"), switch=False, page="sign_in")
    for language in LANGUAGES:
        say = catalogue(language)
        st.html(f"<p lang='{language}'>{html.escape(say('sign_in.body'))}</p>")


def store_error() -> None:
    """One sentence for a database that does not answer; pressing again tries again."""
    for language in LANGUAGES:
        words = html.escape(catalogue(language)("common.store_error"))
        st.html(f"<p class='cr-error' role='alert' lang='{language}'>{words}</p>")
    st.button(" · ".join(catalogue(language)("common.try_again") for language in LANGUAGES), key="again")


def _lines(text: str) -> str:
    return "<br>".join(html.escape(line) for line in text.splitlines())
