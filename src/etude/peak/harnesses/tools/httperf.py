"""httperf --rate: one window at the end, with a histogram of 1 ms classes if `-v -v` is given.

httperf sends by the clock whatever the server does, so its duration shows if it sent in time; its response times are
those of whole connections from their begin. It spins, so CPU utilisation says nothing.
Source: output of httperf 0.9.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from etude.peak.harnesses.load_report import LoadReport, Run, Unreadable, bounded_text, excerpt
from etude.peak.window import Window
from etude.results.histograms import Histogram

_N = r"([0-9.]+)"
_TOTAL = re.compile(rf"Total: connections (\d+) requests (\d+) replies (\d+) test-duration {_N} s")
_TIMES = re.compile(rf"Connection time \[ms\]: min {_N} avg {_N} max {_N}")
_STATUS = re.compile(r"Reply status: 1xx=(\d+) 2xx=(\d+) 3xx=(\d+) 4xx=(\d+) 5xx=(\d+)")
_THEIRS = re.compile(
    r"Errors: total \d+ client-timo (\d+) socket-timo (\d+) connrefused (\d+) connreset (\d+)"
)
_OURS = re.compile(r"Errors: fd-unavail (\d+) addrunavail (\d+) ftab-full (\d+) other (\d+)")
_TIMEOUT = re.compile(rf"--timeout[= ]{_N}")
_CLASS = re.compile(r"(?m)^ +([0-9]+\.5) ([0-9]+)$")


@dataclass
class Httperf:
    """The reader of one run."""

    run: Run
    text: str = ""

    def feed(self, text: str) -> list[LoadReport]:
        self.text += text
        bounded_text(len(self.text), "a summary of httperf")
        return []

    def end(self) -> list[LoadReport]:
        total, status = _TOTAL.search(self.text), _STATUS.search(self.text)
        if total is None or status is None:
            raise Unreadable(f"what httperf printed ends with {excerpt(self.text)!r}: expected its summary")
        ran_s = float(total[4])
        times, theirs, ours = (p.search(self.text) for p in (_TIMES, _THEIRS, _OURS))
        answered = sum(int(status[n]) for n in (1, 2, 3))
        late = sum(map(int, theirs.groups())) if theirs else 0
        refused = sum(map(int, ours.groups())) if ours else 0
        failed = int(status[4]) + int(status[5]) + late
        sent = answered + failed
        waited_s = float(times[3]) * 1e-3 if times else 0.0
        given_up = _TIMEOUT.search(self.text)
        if late and given_up:
            waited_s = max(waited_s, float(given_up[1]))
        # The last request was sent no earlier than this before the end: a slow response does not make the generator
        # late.
        sending_s = max(ran_s - waited_s, sent / self.run.load)
        due = sent if self.run.closed else round(self.run.load * sending_s)
        mean_s = float(times[2]) * 1e-3 if times and answered else None
        window = Window(sending_s, due, answered, failed, mean_s, histogram(self.text))
        return [LoadReport(window, sent, None, refused)]


def histogram(text: str) -> Histogram | None:
    """Lifetimes of connections, each class at its upper end. None if it was not requested."""
    found = [(float(ms), int(count)) for ms, count in _CLASS.findall(text)]
    if not found:
        return None
    upper = (np.array([ms for ms, _ in found]) + 0.5) * 1e6
    return Histogram(upper.astype(np.int64), np.array([count for _, count in found], dtype=np.int64))
