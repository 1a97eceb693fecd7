"""How long the page of `etude report` takes to open in a browser: fifty tests beside one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from made import results
from rows import BUILD, ETUDE, ROOT, Row, interleave, ratios

sys.path.insert(0, str(ROOT / "tests"))
from support.chromium import chromium

TESTS, TRIALS = 50, 200
MOST = 5


def page(tests: int) -> Path:
    """The report of so many tests with 200 measurements each, made anew."""
    directory = results(BUILD / f"opening-{tests}", tests, TRIALS)
    subprocess.run([ETUDE, "report", str(directory)], check=True, stdout=subprocess.DEVNULL)
    return directory / "report.html"


def opened_s(file: Path) -> float:
    """Seconds from the navigation, in a browser that has just been started, until the charts in view are drawn.

    It goes to the first test's charts, so that there are some in view.
    """
    with chromium() as browser:
        browser.open(f"{file.as_uri()}#test-1-1")
        browser.until("drawn.has(document.querySelector('#test-1-1 [data-chart=course]'))")
        browser.until("performance.getEntriesByName('charts-drawn').length")
        return float(browser.ask("performance.getEntriesByName('charts-drawn').at(-1).startTime")) / 1000


def opening(rounds: int) -> list[Row]:
    """Pairs in random order; each opening is one of a new browser."""
    many, one = page(TESTS), page(1)
    found = interleave({"many": lambda: opened_s(many), "one": lambda: opened_s(one)}, rounds)
    ratio = ratios(found["many"], found["one"])
    what = f"etude report of {TESTS} tests and {TESTS * TRIALS:,} measurements opens, charts in view drawn"
    return [Row(what, "one test", f"{ratio} ×", f"≤ {MOST} ×", ratio.median <= MOST)]
