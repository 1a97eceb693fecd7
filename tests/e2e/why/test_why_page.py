"""The page of causes in a browser: its functions zoom and are searched, offline, whatever they are called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chromium import Page, chromium
from support.made_why import write_made
from support.real import etude

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("chromium")]
SHOWN = """
[...document.querySelectorAll("#frames > g:not(.hide)")].filter((bar) => bar.checkVisibility())
  .map((bar) => bar.querySelector("title").textContent.replace(/ \\([^(]*\\)$/, ""))
"""
FOUND = """
[...document.querySelectorAll("#frames rect")].filter((bar) => bar.getAttribute("fill") === "#e600e6" ||
  bar.getAttribute("fill") === "rgb(230,0,230)").map((bar) => bar.parentElement.querySelector("title").textContent
  .replace(/ \\([^(]*\\)$/, ""))
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = write_made(tmp_path_factory.mktemp("why"))
    etude("why", ".", "-q", "--page", "why.html", cwd=place)
    return place / "why.html"


@pytest.fixture
def shown(browser: Page, file: Path) -> Page:
    browser.look(1200, "light", reduced_motion="reduce")
    browser.open(file.as_uri())
    return browser


def search(page: Page, words: str) -> list[str]:
    page.ask(f"document.getElementById('flame-search').value = {json.dumps(words)}")
    page.ask("document.getElementById('flame-search').dispatchEvent(new Event('input'))")
    found: list[str] = page.ask(FOUND)
    return found


def test_a_click_shows_a_function_alone_with_its_callers_and_the_button_all(shown: Page) -> None:
    everything = shown.ask(SHOWN)
    place = "[...document.querySelectorAll('#frames > g')].find((g) => /^fill_buffer/.test(g.textContent))"
    shown.ask(f"{place}.querySelector('rect').dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert set(shown.ask(SHOWN)) == {"all", "p", "main", "fill_buffer", "read", "do_syscall_64", "ksys_read"}
    width = "document.querySelector('#frames').getBoundingClientRect().width"
    assert shown.ask(f"{place}.querySelector('rect').getBoundingClientRect().width / {width}") > 0.98
    shown.ask("document.getElementById('flame-reset').click()")
    assert shown.ask(SHOWN) == everything


def test_the_keyboard_moves_zooms_and_returns(shown: Page) -> None:
    everything = shown.ask(SHOWN)
    shown.ask("document.getElementById('flame').focus()")
    reading = "document.getElementById('flame-reading').textContent"
    for name in ("p", "main", "quick_sort"):
        shown.key("ArrowUp")
        assert shown.ask(reading).startswith(f"{name} (")
    shown.key("Enter")
    assert set(shown.ask(SHOWN)) == {"all", "p", "main", "quick_sort"}
    shown.key("Escape")
    assert shown.ask(SHOWN) == everything


def test_a_search_marks_names_alone_and_takes_them_as_they_are(shown: Page) -> None:
    assert search(shown, "slow_") == ["slow_hash"]
    assert search(shown, "operator()(") == ["operator()(int) 7 7"]
    assert search(shown, "ms") == []
    assert search(shown, "</script>") == ["</script><script>window.broken=1</script>"]
    assert search(shown, "") == []


def test_names_do_nothing_and_nothing_is_loaded(shown: Page) -> None:
    search(shown, "[")
    assert shown.ask("window.broken") is None
    assert shown.complaints() == []
    assert shown.requests() == []


def test_stacks_are_exported_and_another_ending_is_refused(tmp_path: Path) -> None:
    write_made(tmp_path)
    etude("why", ".", "-q", "--export", "o.speedscope.json", cwd=tmp_path)
    told = json.loads((tmp_path / "o.speedscope.json").read_text())
    assert [profile["name"] for profile in told["profiles"]] == ["old", "new </script>"]
    refused = etude("why", ".", "-q", "--export", "o.svg", cwd=tmp_path, check=2)
    assert len(refused.stderr.splitlines()) == 1
    write_made(tmp_path / "older", stacks=False)
    lacking = etude("why", "older", "-q", "--export", "o.perf.txt", cwd=tmp_path, check=3)
    assert len(lacking.stderr.splitlines()) == 1
    assert not (tmp_path / "o.perf.txt").exists()
    for option, file in (("--page", "none/o.html"), ("--export", "none/o.perf.txt")):
        unwritable = etude("why", ".", "-q", option, file, cwd=tmp_path, check=5)
        assert len(unwritable.stderr.splitlines()) == 1


def test_paper_has_the_whole_drawing(shown: Page) -> None:
    """On paper, narrower than the window, the library lays nothing out anew."""
    inside = """
    (() => {
      const end = document.querySelector("#flame").getBoundingClientRect().right;
      const bars = [...document.querySelectorAll("#frames rect")];
      return bars.every((bar) => bar.getBoundingClientRect().right <= end + 1);
    })()
    """
    view = "document.querySelector('#flame > svg').getAttribute('viewBox')"
    before = shown.ask(view)
    assert shown.ask(inside)
    shown.ask("document.querySelector('#flame').style.width = '700px'")
    shown.ask("dispatchEvent(new Event('afterprint'))")
    assert not shown.ask(inside)
    shown.ask("document.querySelector('#flame').style.width = ''")
    shown.ask("dispatchEvent(new Event('beforeprint'))")
    shown.ask("document.querySelector('#flame').style.width = '700px'")
    assert shown.ask(inside)
    shown.ask("dispatchEvent(new Event('afterprint'))")
    assert shown.ask(view) == before
