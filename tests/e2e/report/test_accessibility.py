"""Pages of each kind of report for readers who use no mouse, do not see, have a small screen, or print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etude.cli.main import main
from golden.corpus import lay_out
from support.accessibility import MOVING, NARROW, check_keyboard, contrast, findings
from support.chromium import Page, chromium
from support.made_why import write_made

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("chromium")]

REPORTS = {
    "bench": ["bench/plain"],
    "factors": ["bench/parameters"],
    "warnings": ["bench/markup"],
    "expectations": ["run/expected"],
    "monitor": ["run/watched"],
    "peak": ["peak/posterior"],
    "peaks": ["peak/posterior", "peak/bracket"],
    "map": ["surface/predicted"],
    "lab": ["io/buffers"],
    "replays": ["replays/faithful.json", "replays/changed.json"],
    "load": ["load/overloaded.jsonl"],
    "pool": ["surface/pooled"],
    "summaries": ["readers/hyperfine-1.json"],
}
"""Stored results that `etude report` makes a page of, by the kind of page."""
HISTORY = "stores/history.sqlite"
PAGES = [pytest.param(name, marks=pytest.mark.quick) if name == "bench" else name for name in REPORTS]
ALL = [*PAGES, "history", "claims", "why"]
CLAIMS = """\
[experiment.sizes]
output = "any"
trials = 10
commands.one = "echo 1"
commands.two = "echo 2"
metrics.size = "([0-9])"
[claim.twice]
text = "two is twice as large"
hold = "ratio(size, two/one) >= 1.5"
[claim.once]
text = "one is larger than four"
hold = "mean(size, one) >= 4"
"""
PAPER = 718
"""Width of an A4 page between its margins, pixels."""
FULL = """
(async () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  if (typeof drawAll === "function") await drawAll();
})()
"""
"""Opens and draws all that a page has."""

Shown = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    place = tmp_path_factory.mktemp("pages")

    def make(name: str) -> Path:
        page = place / f"{name}.html"
        if page.exists():
            return page
        if name == "history":
            store = str(lay_out(HISTORY, place))
            assert main(["history", "sort", "--page", str(page), "--store", store]) == 0
        elif name == "why":
            assert main(["why", str(write_made(place / "pairs")), "-q", "--page", str(page)]) == 0
        elif name == "claims":
            (place / "claims.toml").write_text(CLAIMS)
            results = str(place / "claims")
            assert main(["claims", "run", str(place / "claims.toml"), "-o", results]) == 1
            assert main(["claims", "report", results, "-o", str(page)]) == 0
        else:
            inputs = [str(lay_out(each, place / name)) for each in REPORTS[name]]
            assert main(["report", "-o", str(page), *inputs]) == 0
        return page

    return make


@pytest.fixture
def shown(browser: Page, made: Callable[[str], Path]) -> Shown:
    def show(name: str, width: int = 1200, scheme: str = "light", *, full: bool = True) -> Page:
        browser.look(width, scheme, reduced_motion="reduce")
        browser.open(made(name).as_uri())
        if full:
            browser.ask(FULL)
        return browser

    return show


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ALL)
def test_axe_finds_no_fault(shown: Shown, name: str, scheme: str) -> None:
    assert findings(shown(name, scheme=scheme)) == []


@pytest.mark.parametrize("name", ALL)
def test_every_control_is_reached_by_tab(shown: Shown, name: str) -> None:
    check_keyboard(shown(name))


@pytest.mark.parametrize("name", ALL)
def test_a_small_telephone_scrolls_tables_but_not_the_page(shown: Shown, name: str) -> None:
    page = shown(name, NARROW)
    assert page.ask("document.documentElement.scrollWidth") <= NARROW


def test_the_first_stop_leads_past_the_head_of_the_page(shown: Shown) -> None:
    page = shown("bench")
    page.key("Tab")
    page.key("Enter")
    assert page.ask("location.hash") == "#verdict"
    page.key("Tab")
    assert page.ask("document.querySelector('main').contains(document.activeElement)")


@pytest.mark.parametrize("name", ["map", "peak", "monitor", "history", "why"])
def test_a_figure_says_in_words_what_it_shows(shown: Shown, name: str) -> None:
    found = shown(name).ask(
        "[...document.querySelectorAll('.picture')]"
        ".map((each) => [each.querySelector('img').alt, each.querySelector('figcaption').textContent])"
    )
    assert found
    assert all(text and text == caption for text, caption in found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_the_charts_stand_out(shown: Shown, scheme: str) -> None:
    page = shown("bench", scheme=scheme, full=False)
    colours = {name: page.ask(f"colour('{name}')") for name in ("paper", "ink", "kept", "flagged", "aside")}
    paper = colours.pop("paper")
    assert contrast(colours["ink"], paper) >= 4.5
    assert {name: ratio for name, each in colours.items() if (ratio := contrast(each, paper)) < 3} == {}


@pytest.mark.parametrize("name", ["bench", "history"])
def test_nothing_moves_where_that_is_not_wanted(shown: Shown, name: str) -> None:
    assert shown(name).ask(MOVING) == []


@pytest.mark.quick
def test_a_chart_is_saved_by_keyboard(shown: Shown, tmp_path: Path) -> None:
    page = shown("bench")
    page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.ask("CHARTS[0].focus()")
    page.key("s")
    for _ in range(500):
        page.ask("new Promise((done) => setTimeout(done, 20))")
        if (tmp_path / "chart.png").exists():
            break
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ALL)
def test_paper_has_everything_and_cuts_nothing(shown: Shown, name: str) -> None:
    page = shown(name, scheme="dark", full=False)
    page.ask("typeof drawAll === 'function' ? drawAll() : 0")
    charts = page.ask("document.querySelectorAll('.chart').length")
    page.send("Emulation.setEmulatedMedia", media="print")
    page.send(
        "Emulation.setDeviceMetricsOverride", width=PAPER, height=1000, deviceScaleFactor=1, mobile=False
    )
    page.ask("dispatchEvent(new Event('beforeprint'))")
    assert page.ask("document.querySelectorAll('details:not([open]):not(.trials)').length") == 0
    assert page.ask("document.querySelectorAll('canvas.paper.dark').length") == charts
    sticking_out = page.ask(
        "[...document.querySelectorAll('main *')].filter((each) => each.checkVisibility()"
        f" && each.getBoundingClientRect().right > {PAPER + 1}).map((each) => each.outerHTML.slice(0, 200))"
    )
    assert sticking_out == []
    page.ask("dispatchEvent(new Event('afterprint'))")
    assert page.ask("document.querySelectorAll('.paper, details[open]').length") == 0
