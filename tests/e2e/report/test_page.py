"""The page of `etude report` in a real Chromium: drawn, quiet, without network, by keyboard, dark, on paper."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from etude.cli.main import main
from support import pages
from support.chromium import Page, chromium

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("chromium")]

DRAWN = "document.documentElement.dataset.charts"
CANVASES = """
(() => {
  const found = [];
  const look = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.tagName === "CANVAS") found.push(element);
      if (element.shadowRoot) look(element.shadowRoot);
    }
  };
  look(document);
  return found.filter((canvas) => canvas.width && canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data.some((value, place) => place % 4 === 3 && value > 0)).length;
})()
"""
"""How many canvases, also in shadow trees, hold something."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("reports")
    generator = np.random.default_rng(11)
    many = {
        f"size {n} {'odd' if n % 2 else 'even'}": (0.001 * n * generator.lognormal(0, 0.03, 40)).tolist()
        for n in range(1, 13)
    }
    made = {
        "plain": pages.plain(place / "plain"),
        "hostile": pages.hostile(place / "hostile"),
        "many": pages.results(place / "many", many),
        "empty": pages.results(place / "empty", {}),
    }
    for directory in made.values():
        assert main(["report", str(directory)]) == 0
    return {name: directory / "report.html" for name, directory in made.items()}


def opened(browser: Page, page: Path, width: int = 1200, scheme: str = "light") -> Page:
    browser.look(width, scheme)
    browser.open(page.as_uri())
    browser.until(DRAWN)
    return browser


def picture(browser: Page) -> np.ndarray[Any, np.dtype[np.uint8]]:
    data = base64.b64decode(browser.send("Page.captureScreenshot")["data"])
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.quick
@pytest.mark.parametrize("name", ["plain", "hostile", "many", "empty"])
def test_it_opens_without_a_complaint_and_without_network(
    browser: Page, reports: dict[str, Path], name: str
) -> None:
    page = opened(browser, reports[name])
    page.ask("drawAll()")
    charts = page.ask("CHARTS.length")
    assert charts == {"plain": 5, "hostile": 9, "many": 25, "empty": 0}[name]
    assert page.ask("drawn.size") == charts
    assert page.ask(CANVASES) >= charts
    assert page.complaints() == []
    assert page.requests() == []
    assert page.ask("window.broken === undefined")


def test_only_what_is_in_view_is_drawn_at_first(browser: Page, reports: dict[str, Path]) -> None:
    page = opened(browser, reports["many"])
    assert page.ask("drawn.size") < page.ask("CHARTS.length") / 2
    page.ask("document.getElementById('test-1-12').scrollIntoView()")
    page.until("drawn.has(document.querySelector('#test-1-12 .chart'))")


def test_the_policy_stops_a_script_that_is_put_in_afterwards(browser: Page, reports: dict[str, Path]) -> None:
    page = opened(browser, reports["plain"])
    page.ask(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.broken=1'}))"
    )
    page.ask("fetch('http://127.0.0.1:9/').catch(() => 0).then(() => 0)")
    assert page.ask("window.broken === undefined")
    assert any("Content Security Policy" in line for line in page.complaints())
    assert page.requests() == []


def column(page: Page, table: str, place: int) -> list[str]:
    found: list[str] = page.ask(
        f"[...document.querySelectorAll('#rows-{table} tr:not([hidden])')].map(r => r.cells[{place}].textContent)"
    )
    return found


@pytest.mark.quick
def test_a_table_sorts_on_a_click_and_by_keyboard(browser: Page, reports: dict[str, Path]) -> None:
    page = opened(browser, reports["many"])
    names = [f"size {n} {'odd' if n % 2 else 'even'}" for n in range(1, 13)]
    assert column(page, "tests", 0) == names
    heading = "document.querySelectorAll('#table-tests thead th')[3]"
    page.ask(f"{heading}.querySelector('button').click()")
    page.ask(f"{heading}.querySelector('button').click()")
    assert column(page, "tests", 0) == names[::-1]
    assert page.ask(f"{heading}.getAttribute('aria-sort')") == "descending"
    page.ask("document.querySelector('#table-tests thead button').focus()")
    page.key("Enter")
    assert column(page, "tests", 0) == names  # `size 2` before `size 10`
    assert page.ask(f"{heading}.hasAttribute('aria-sort')") is False


def test_a_filter_shows_the_rows_that_hold_its_words(browser: Page, reports: dict[str, Path]) -> None:
    page = opened(browser, reports["many"])
    page.ask("document.querySelector('#table-tests .filter input').focus()")
    page.send("Input.insertText", text="even ELAPSED")
    assert column(page, "tests", 0) == [f"size {n} even" for n in range(2, 13, 2)]
    assert page.ask("document.querySelector('#table-tests .count').textContent") == "6 of 12 rows"


def test_a_chart_is_read_and_zoomed_by_keyboard(browser: Page, reports: dict[str, Path]) -> None:
    page = opened(browser, reports["plain"])
    page.ask("drawAll()")
    chart = "document.querySelector('#test-1-1 [data-chart=course]')"
    page.ask(f"{chart}.focus()")
    said = f"{chart}.closest('figure').querySelector('.reading').textContent"
    page.key("ArrowRight")
    assert page.ask(said).startswith("trial 1: ")
    page.key("End")
    assert page.ask(said).startswith("trial 20: ")
    ranged = f"(({{start, end}}) => [start, end])(drawn.get({chart}).figure.x_range)"
    whole = page.ask(ranged)
    page.key("+")
    nearer = page.ask(ranged)
    assert nearer[1] - nearer[0] == pytest.approx((whole[1] - whole[0]) / 2)
    page.key("0")
    assert page.ask(ranged) == pytest.approx(whole)


def test_a_warning_leads_to_its_trial_in_the_chart(browser: Page, reports: dict[str, Path]) -> None:
    page = opened(browser, reports["plain"])
    page.ask("document.querySelector('#warnings .to-trial').click()")
    said = "document.querySelector('#test-1-1 .reading').textContent"
    page.until(said)
    assert page.ask(said).startswith("trial 9: 30 ms, kept")
    assert page.ask(said).endswith(": outliers")


def test_another_metric_and_the_table_of_trials(browser: Page, reports: dict[str, Path]) -> None:
    page = opened(browser, reports["plain"])
    page.ask("document.querySelector('#test-1-1 details.trials').open = true")
    page.until("document.querySelectorAll('#test-1-1 details.trials tbody tr').length === 20")
    row = "document.querySelectorAll('#test-1-1 details.trials tbody tr')[8].textContent"
    assert page.ask(row) == "930yesoutliers"


@pytest.mark.parametrize(
    ("kind", "holds"),
    [
        ("csv", "plain,A,N=1,9,9,1,true,,elapsed,0.03,s"),
        ("json", '"primary": "elapsed"'),
        ("experiment", '"name": "sorting"'),
    ],
)
def test_the_data_are_handed_out(
    browser: Page, reports: dict[str, Path], tmp_path: Path, kind: str, holds: str
) -> None:
    page = opened(browser, reports["plain"])
    page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.ask(f"document.querySelector('[data-download={kind}]').click()")
    name = {"csv": "measurements.csv", "json": "measurements.json", "experiment": "experiment.json"}[kind]
    for _ in range(500):
        page.ask("new Promise((done) => setTimeout(done, 20))")
        if (tmp_path / name).exists() and not list(tmp_path.glob("*.crdownload")):
            break
    assert holds in (tmp_path / name).read_text()
    assert page.complaints() == []


def test_it_is_dark_where_the_system_is_and_where_one_says_so(
    browser: Page, reports: dict[str, Path]
) -> None:
    page = opened(browser, reports["plain"], scheme="dark")
    assert np.median(picture(page)) < 60
    page.ask("drawAll()")
    assert page.ask("drawn.values().next().value.figure.background_fill_color") == "#17181c"
    page.ask("document.getElementById('theme').value = 'light'")
    page.ask("document.getElementById('theme').dispatchEvent(new Event('change'))")
    page.until("drawn.values().next().value.figure.background_fill_color === '#ffffff'")
    assert np.median(picture(page)) > 200
    assert page.complaints() == []


def test_nothing_sticks_out_of_a_narrow_window(browser: Page, reports: dict[str, Path]) -> None:
    for name in ("plain", "hostile", "many"):
        page = opened(browser, reports[name], width=400)
        page.ask("drawAll()")
        assert page.ask("document.documentElement.scrollWidth") <= 400, name


def test_it_prints_with_all_its_sections(browser: Page, reports: dict[str, Path], tmp_path: Path) -> None:
    page = opened(browser, reports["plain"], scheme="dark")
    page.ask("drawAll()")
    pdf = base64.b64decode(page.send("Page.printToPDF", printBackground=False)["data"])
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", pdf)) >= 2
    assert len(re.findall(rb"/Subtype /Image", pdf)) >= 5  # the charts
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.ask("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.send("Emulation.setEmulatedMedia", media="")


def test_the_words_are_there_without_scripts(browser: Page, reports: dict[str, Path]) -> None:
    browser.renew()
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(reports["plain"].as_uri())
    text = browser.ask("document.body.innerText")
    for question in (
        "What was compared?",
        "On what?",
        "How often?",
        "Is the difference real?",
        "How large is it?",
    ):
        assert question in text
    assert "ratio 1.09" in text
    assert "Scripts are off" in text
