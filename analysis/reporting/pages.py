"""Pages that need nothing but themselves: styles and figures are inside."""

import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from analysis.tables import as_html

_PAGE = Path(__file__).parent.parent / "page"


def rendered(name: str, **told: object) -> str:
    """The page of a template, with the house's style as `style`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    environment.filters["table"] = lambda table: Markup(as_html(table))
    environment.filters["figure"] = lambda figure: Markup(figure.drawing.svg)
    style = Markup((_PAGE / "report.css").read_text(encoding="utf-8"))
    return environment.get_template(f"{name}.html.jinja").render(style=style, **told)


def prose(text: str) -> Markup:
    """Text whose estimates stay on one line with their intervals, and whose `commands` look like such.

    >>> prose("a 0.50 [0.40, 0.60].").count("\\u00a0")
    2
    """
    joined = re.sub(r"(?:\S+ )?\[[^\[\]]*, [^\[\]]*\]", lambda found: found[0].replace(" ", "\u00a0"), text)
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(joined))))
