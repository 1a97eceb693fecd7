"""sysbench --rate: windows from the reports of `--report-checkpoints={checkpoints}`, one histogram at the end.

A checkpoint covers the time since the previous one. Latencies include the wait in sysbench's own queue. Checkpoints
report only means: with `--histogram` and no checkpoints there is one window at the end, with percentiles.
Source: output of sysbench 1.0.20.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from etude.peak.harnesses.load_report import LoadReport, Run, Unreadable, bounded_text, excerpt
from etude.peak.window import Window
from etude.results.histograms import Histogram

_N = r"([0-9.]+)"
_REPORT = re.compile(
    rf"total time: +{_N}s\s+total number of events: +(\d+)\s+Latency \(ms\):\s+min: +{_N}\s+avg: +{_N}\s+max: +{_N}"
    r".*?Threads fairness:.*?execution time[^\n]*\n",
    re.DOTALL,
)
_ERRORS = re.compile(r"ignored errors: +(\d+)")
_CLASS = re.compile(rf"(?m)^ +{_N} \|[* ]* (\d+)$")


@dataclass
class Sysbench:
    """The reader of one run."""

    run: Run
    _text: str = ""
    _until_s: float = 0.0

    def feed(self, text: str) -> list[LoadReport]:
        self._text += text
        found = []
        while match := _REPORT.search(self._text):
            report, self._text = self._text[: match.end()], self._text[match.end() :]
            if told := self._window(match, report):
                found.append(told)
        bounded_text(len(self._text), "reports of sysbench")
        return found

    def end(self) -> list[LoadReport]:
        found = self.feed("")
        if not found and not self._until_s:
            raise Unreadable(f"what sysbench printed ends with {excerpt(self._text)!r}: expected its report")
        return found

    def _window(self, match: re.Match[str], report: str) -> LoadReport | None:
        until_s, done = float(match[1]), int(match[2])
        from_s, lasted = self._until_s, until_s - self._until_s
        if lasted < 0.25 * self.run.window_s:
            return None
        self._until_s = until_s
        errors = _ERRORS.search(report)
        failed = int(errors[1]) if errors else 0
        mean_s = float(match[4]) * 1e-3 if done else None
        latency = histogram(report, done)
        due = self.run.due(from_s, until_s, done + failed)
        return LoadReport(Window(lasted, due, done, failed, mean_s, latency), done + failed)


def histogram(report: str, done: int) -> Histogram | None:
    """Histogram of a report; None if it has none, or one of more than this report's events."""
    found = [(float(ms), int(count)) for ms, count in _CLASS.findall(report)]
    counts = np.array([count for _, count in found], dtype=np.int64)
    if not found or int(counts.sum()) != done:
        return None
    values = np.array([max(round(ms * 1e6), 1) for ms, _ in found], dtype=np.int64)
    return Histogram(values, counts)
