"""The documentation's site: `make docs` writes it into build/docs, to be opened without a server."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "site"))

from command_pages import write_command_pages  # noqa: E402

from etude.version import __version__  # noqa: E402

project = "Étude"
author = "the Étude team"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["man", "README.md", "site"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"Étude {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_search_scorer = str(DOCS / "site" / "scorer.js")
html_static_path = ["site/static"]
html_css_files = ["etude.css"]
html_show_search_summary = False  # a page from a file may not read others
html_js_files = ["etude.js"]
autodoc_typehints = "signature"

LANGUAGES = ("ap", "inc", "jsonl", "script")
"""Languages of code blocks that have no colours."""


LINK = re.compile(r"\[([^\]]+)\]\(([^):#\s]+)(#[^)\s]*)?\)")
INCLUDED = "```{include} README.md\n```"


def without_outer_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Names files of the source code in place of links to them, which a site does not hold."""

    def named(link: re.Match[str]) -> str:
        text, target = link[1], (DOCS / page).parent.joinpath(link[2]).resolve()
        if target.is_relative_to(DOCS) and not target.is_dir():
            return link[0]
        path = f"`{target.relative_to(ROOT)}`"
        return path if "/" in text or "." in text else f"{text} ({path})"

    text = source[0].replace(INCLUDED, (DOCS / "README.md").read_text(encoding="utf-8"))
    source[0] = LINK.sub(named, text)


ENTRIES = tomllib.loads((DOCS / "site" / "index_entries.toml").read_text(encoding="utf-8"))


def with_index_entries(app: Sphinx, page: str, source: list[str]) -> None:
    """Puts a page's entries of the index at its beginning."""
    if entries := ENTRIES.get(page):
        source[0] = f"```{{index}} {', '.join(f'! {entry}' for entry in entries)}\n```\n\n{source[0]}"


def setup(app: Sphinx) -> None:
    """Adds what the pages need."""
    app.connect("source-read", without_outer_links)
    app.connect("source-read", with_index_entries)
    for name in LANGUAGES:
        app.add_lexer(name, TextLexer)
    write_command_pages(ROOT / "docs" / "reference" / "commands")
