"""Pages of each type of the site for readers who use no mouse, do not see, have a small screen, or print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.accessibility import MOVING, NARROW, check_keyboard, findings
from support.chromium import Page, chromium

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("chromium")]

PAGES = {
    "start": "index.html",
    "tutorial": "tutorials/guide.html",
    "how-to": "howto/peak.html",
    "parser": "reference/commands/etude-bench.html",
    "docstrings": "reference/python.html",
    "tables": "reference/formats.html",
    "search": "search.html?q=peak",
    "index": "genindex.html",
}
"""A page of each type."""
SERIOUS = ("serious", "critical")
PAPER = 718
"""Width of an A4 page between its margins, pixels."""

Shown = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture
def shown(browser: Page, site: Path) -> Shown:
    def show(name: str, width: int = 1200, scheme: str = "light") -> Page:
        browser.look(width, scheme, reduced_motion="reduce")
        browser.open(f"file://{site}/{PAGES[name]}")
        if name == "search":
            browser.until("/found/.test(document.querySelector('#search-results').textContent)")
        return browser

    return show


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (NARROW, "light")])
def test_axe_finds_no_serious_fault(shown: Shown, name: str, width: int, scheme: str) -> None:
    assert [found for found in findings(shown(name, width, scheme)) if found[0] in SERIOUS] == []


@pytest.mark.parametrize("name", [name for name in PAGES if name != "index"])
@pytest.mark.parametrize("width", [1200, NARROW])
def test_every_control_is_reached_by_tab(shown: Shown, name: str, width: int) -> None:
    check_keyboard(shown(name, width))


@pytest.mark.parametrize("name", PAGES)
def test_a_small_telephone_scrolls_tables_but_not_the_page(shown: Shown, name: str) -> None:
    page = shown(name, NARROW)
    assert page.ask("document.documentElement.scrollWidth") <= NARROW
    assert page.ask(MOVING) == []


def test_the_pages_open_by_keyboard_on_a_small_telephone(shown: Shown) -> None:
    page = shown("tutorial", NARROW)
    shown_links = "each.checkVisibility({visibilityProperty: true})"
    links = f"[...document.querySelectorAll('.sidebar-tree a')].filter((each) => {shown_links}).length"
    assert page.ask(links) == 0
    page.key("Tab")
    page.key(" ")
    assert page.ask(links) > 40


@pytest.mark.parametrize("name", PAGES)
def test_paper_has_the_whole_width(shown: Shown, name: str) -> None:
    page = shown(name, PAPER)
    page.send("Emulation.setEmulatedMedia", media="print")
    sticking_out = page.ask(
        "[...document.querySelectorAll('article *')].filter((each) => each.checkVisibility()"
        f" && each.getBoundingClientRect().right > {PAPER + 1}).map((each) => each.outerHTML.slice(0, 200))"
    )
    assert sticking_out == []
