"""Sections and reports as HTML: a file that opens without network and without any other; tables for notebooks."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from etude.errors import MachineRefuses
from etude.escaping import delimited, escaped, one_line
from etude.present.section import Cell, Content, Paragraphs, Picture, Section, Sentence, Table, cell_text
from etude.present.sentences.comparison import with_full_stop

if TYPE_CHECKING:
    from jinja2 import Environment

    from etude.present.flame_graph import FlameGraph

LIBRARY = ("bokeh.min.js", "bokeh-api.min.js")
"""Files of Bokeh that are embedded: its core and the interface by which our script draws."""
SCRIPTS = ("tables.js", "data.js", "charts.js", "page.js")
"""Ours, in the order in which they run."""


def to_html(content: Content) -> str:
    """The page.

    Every text is escaped by the template. Scripts are named by their digest in the page's Content-Security-Policy, so
    that none that came in with a name or an output could run, and nothing may be loaded from anywhere.

    Raises:
        MachineRefuses: Jinja2 or Bokeh is not installed.
    """
    environment = _environment()
    scripts = [_script(text) for text in (*_library(), "\n".join(map(_asset, SCRIPTS)))]
    return environment.get_template("page.html.j2").render(
        c=content,
        style=_safe(_asset("page.css")),
        scripts=[_safe(text) for text in scripts],
        policy=policy(scripts),
        data=_safe(data_block(content.data)),
        metrics=metric_names(content.data),
    )


def to_page(template: str, *, flame: FlameGraph | None = None, **members: Any) -> str:
    """A smaller page, by another template: with our style and tables that sort, without charts. flame: a drawing whose
    script the page has too.

    Raises:
        MachineRefuses: Jinja2 is not installed.
    """
    library = [_script(flame.script)] if flame else []
    script = _script("\n".join(map(_asset, ("tables.js", *(["flame.js"] if flame else [])))))
    environment = _environment()
    safe = {"style": _safe(_asset("page.css")), "script": _safe(script), "policy": policy([*library, script])}
    if flame:
        safe |= {"drawing": _safe(flame.svg), "library": _safe(library[0])}
    return environment.get_template(template).render(**members, **safe)


def policy(scripts: list[str]) -> str:
    """The Content-Security-Policy: these scripts and no other, styles and pictures of the page itself, no network."""
    digests = " ".join(f"'sha256-{_digest(text)}'" for text in scripts)
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def data_block(data: Mapping[str, Any]) -> str:
    """JSON that may stand in a script element: `<` cannot end it, and U+2028 is no line end there."""
    text = orjson.dumps(
        data, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS, default=str
    ).decode()
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return escaped(text)


def metric_names(data: Mapping[str, Any]) -> list[str]:
    """All metrics in the page, in the order in which they are met."""
    tests = [test for result in data["results"] for test in result["tests"]]
    return list(dict.fromkeys(name for test in tests for name in test["columns"]))


def _environment() -> Environment:
    try:
        import jinja2
    except ImportError:
        raise MachineRefuses(
            "a report needs the Python package jinja2: install it (pip install jinja2)"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        finalize=_delimited,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "key": _key,
        "text": _shown,
        "code": _Code,
        "source": picture_source,
        "stop": with_full_stop,
    }
    return environment


def _delimited(value: Any) -> Any:
    """A text with control characters and marks of direction written out, as on a terminal; markup of ours unchanged."""
    if isinstance(value, _Code):
        return escaped(str(value))
    return one_line(value) if type(value) is str else value


class _Code(str):
    """A text of several lines, which stay so."""

    __slots__ = ()


def _shown(cell: Cell) -> str:
    """The text of a cell, in which its blanks are seen."""
    text = cell_text(cell)
    return delimited(text) if text else ""


def _key(cell: Cell) -> str:
    """Sort key of a cell, as an attribute; empty for an unknown value."""
    if isinstance(cell, str):
        return cell
    return repr(cell.value) if math.isfinite(cell.value) else ""


def picture_source(picture: Picture) -> str:
    """A figure as SVG, inside an address that loads nothing."""
    from etude.figures.save import render
    from etude.figures.style import Style

    drawn, _ = render(picture.figure, "svg", Style(*picture.size) if picture.size else Style())
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"


def html_table(table: Table) -> str:
    """A plain table of escaped texts, for a notebook."""
    head = "".join(f"<th>{escape(one_line(heading))}</th>" for heading in table.headings)
    rows = (map(escape, map(one_line, map(_shown, row))) for row in table.rows)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def notebook_html(section: Section) -> str:
    """A section for a notebook: its answer, its sentences and tables, without figures and scripts."""
    told, parts = [*section.answer], [html_lines(section.answer)]
    for block in section.blocks:
        if isinstance(block, Table) and block.room != "screen":
            caption = f"<p><b>{escape(block.caption)}</b></p>" if block.caption else ""
            parts.append(caption + html_table(block))
            continue
        lines: Sequence[str] = ()
        if isinstance(block, Paragraphs) and block.room != "screen":
            lines = block.lines
        elif isinstance(block, Sentence) and block.text:
            lines = [block.text]
        new = [line for line in lines if not any(line in each for each in told)]
        if new and isinstance(block, Paragraphs):
            parts.append(f"<p><b>{escape(block.heading)}</b></p>")
        parts.append(html_lines(new))
        told += new
    return "".join(parts)


def html_lines(lines: Iterable[str]) -> str:
    """Sentences, escaped, each a paragraph."""
    return "".join(f"<p>{escape(one_line(line))}</p>" for line in lines)


def _asset(name: str) -> str:
    return resources.files("etude.present.page").joinpath("assets", name).read_text(encoding="utf-8")


def _library() -> list[str]:
    """Bokeh's own files. The package is found, not imported, which would take a second."""
    found = importlib.util.find_spec("bokeh")
    places = list(found.submodule_search_locations or ()) if found else []
    try:
        directory = Path(places[0], "server", "static", "js")
        return [(directory / name).read_text(encoding="utf-8") for name in LIBRARY]
    except (IndexError, OSError):
        raise MachineRefuses(
            "a report needs the Python package bokeh: install it (pip install bokeh)"
        ) from None


def _script(text: str) -> str:
    """The text as it stands in a page: a browser reads every line end as a line feed before it computes the digest."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in text.lower() or "<!--" in text:
        raise MachineRefuses(
            "a script that would end its own element cannot be embedded: use the pinned bokeh"
        )
    return text


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)
