"""How soon there is something to see: on the screen of `etude bench`, and of a report in a browser."""

from __future__ import annotations

import os
import pty
import re
import sys
import tempfile
import time
from pathlib import Path

from costs.made import results
from rows import BUILD, ETUDE, Row, at_most, interleave, printed, ratios, wall_s
from support.chromium import chromium

MEAN, INTERVAL = re.compile(rb"mean"), re.compile("±.* %".encode())
TESTS, TRIALS = 50, 200
"""Of the report that is opened."""


def seen_s(pattern: re.Pattern[bytes]) -> float:
    """Seconds until a terminal shows `pattern` during `etude bench true`."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(ETUDE, [ETUDE, "bench", "-o", f"{directory}/r", "true"])
        shown, found = b"", None
        while True:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
            if found is None and pattern.search(shown):
                found = time.perf_counter() - start
        os.waitpid(pid, 0)
        os.close(terminal)
    if found is None:
        raise RuntimeError(f"{pattern.pattern!r} was never shown; the terminal saw {shown[-500:]!r}")
    return found


def starting(rounds: int) -> list[Row]:
    """`etude --help`, the first mean and the first interval, each against this interpreter doing nothing."""
    parties = {
        "python": lambda: wall_s([sys.executable, "-c", "pass"]),
        "help": lambda: wall_s([ETUDE, "--help"]),
        "mean": lambda: seen_s(MEAN),
        "interval": lambda: seen_s(INTERVAL),
    }
    found = interleave(parties, rounds)
    return [
        at_most(what, "python3 -c pass", ratios(found[name], found["python"]), limit)
        for name, what, limit in (
            ("help", "etude --help", 5),
            ("mean", "first mean on the screen of etude bench true", 15),
            ("interval", "first interval on that screen", 35),
        )
    ]


def page(tests: int) -> Path:
    """The report of so many tests with 200 measurements each, made anew."""
    directory = results(BUILD / f"opening-{tests}", tests, TRIALS)
    printed(ETUDE, "report", directory)
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
    """The page of `etude report` with fifty tests beside one; each opening is one of a new browser."""
    many, one = page(TESTS), page(1)
    found = interleave({"many": lambda: opened_s(many), "one": lambda: opened_s(one)}, rounds)
    what = f"etude report of {TESTS} tests and {TESTS * TRIALS:,} measurements opens, charts in view drawn"
    return [at_most(what, "one test", ratios(found["many"], found["one"]), 5)]
