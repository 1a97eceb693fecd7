"""The documentation's site: without warnings, every page reachable, and a search that finds what users ask for."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support.chromium import Page, chromium
from support.places import DOCS

pytestmark = pytest.mark.beside

QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))["questions"]
FOUND_FIRST = 20
"""Questions of 25 whose answer has to be the first page found."""
WORDS = 75_000
"""Words of all pages but decisions."""


@pytest.fixture(scope="module")
def page(site: Path) -> Iterator[Page]:
    with chromium() as opened:
        yield opened


def test_every_page_is_reached_by_links_from_the_first(site: Path) -> None:
    reached, todo = set[Path](), [site / "index.html"]
    while todo:
        at = todo.pop()
        if at in reached:
            continue
        reached.add(at)
        for link in re.findall(r'<a [^>]*href="([^"#:]+)', at.read_text(encoding="utf-8")):
            target = Path(os.path.normpath(at.parent / link))
            if target.suffix == ".html":
                assert target.exists(), f"{at}: {link}"
                todo.append(target)
    pages = {path for path in site.rglob("*.html") if "_static" not in path.parts}
    assert {path.name for path in pages - reached} <= {"search.html", "py-modindex.html"}


def test_the_search_finds_the_page_that_answers_first(site: Path, page: Page) -> None:
    missed = []
    for question in QUESTIONS:
        page.open(f"file://{site}/search.html?q={quote(question['search'])}")
        page.until("/found|did not match/.test(document.querySelector('#search-results')?.textContent ?? '')")
        first = page.ask(
            "document.querySelector('#search-results ul.search li a')?.getAttribute('href') ?? ''"
        )
        if not any(first.startswith(f"{name}.html") for name in question["pages"]):
            missed.append((question["search"], first))
    print(json.dumps(missed, indent=1))
    assert len(QUESTIONS) - len(missed) >= FOUND_FIRST, missed


def test_the_documentation_is_short_enough_to_be_read() -> None:
    pages = [path for path in DOCS.rglob("*.md") if not {"decisions", "commands"} & set(path.parts)]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in pages) <= WORDS
