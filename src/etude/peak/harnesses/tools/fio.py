"""fio with rate_iops: windows are differences of the reports that `--status-interval` prints, all since the start.

`--output-format=json+` holds every class of latency, so windows have histograms. fio measures latency from the time of
issue: a thread behind its schedule issues less but shows no latency, so use many threads with a small rate each
(`numjobs`, `thread`, `group_reporting`). Source: output of fio 3.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from etude.errors import EDITED
from etude.peak.harnesses.load_report import LoadReport, Run, Unreadable, bounded_text, excerpt, histogram_of
from etude.peak.window import Window


@dataclass
class Fio:
    """The reader of one run."""

    run: Run
    _text: str = ""
    _seen: str = ""
    _last: Totals | None = None
    _began_s: float | None = None
    """Begin of the run by the clock of the reports."""

    def feed(self, text: str) -> list[LoadReport]:
        self._text += text
        self._seen = (self._seen + text)[-4096:]
        found = []
        for report in self._reports():
            now, before = self._timed(report, totals(report)), self._last or Totals(0.0, 0, 0, 0.0, {})
            if now.ran_s - before.ran_s >= 0.25 * self.run.window_s:
                found.append(self._window(before, now))
                self._last = now
        bounded_text(len(self._text), "reports of fio, json or json+")
        return found

    def end(self) -> list[LoadReport]:
        found = self.feed("")
        if self._last is None and not found:
            raise Unreadable(f"what fio printed ends with {excerpt(self._seen)!r}: expected json or json+")
        return found

    def _timed(self, report: Mapping[str, Any], now: Totals) -> Totals:
        """Totals with the time at which they were counted. fio first takes its runtime, then waits until each thread
        has woken up from between two requests, and counts then; the report's time of day is taken after that."""
        try:
            at_s = float(report["timestamp_ms"]) * 1e-3
        except EDITED:
            return now
        if self._began_s is None:  # only the runtime of the first window is known: it should be warm-up
            self._began_s = at_s - now.ran_s
        return replace(now, ran_s=at_s - self._began_s)

    def _reports(self) -> Iterator[Mapping[str, Any]]:
        """Complete documents; each begins and ends with a brace in the first column."""
        while (begins := _line(self._text, "{")) is not None and (
            ends := _line(self._text, "}", begins)
        ) is not None:
            document, self._text = self._text[begins : ends + 1], self._text[ends + 1 :]
            try:
                yield json.loads(document)
            except EDITED:
                raise Unreadable(f"a report of fio is no JSON: {document[:60]!r}") from None

    def _window(self, before: Totals, now: Totals) -> LoadReport:
        done = now.done - before.done
        sum_ns = now.sum_ns - before.sum_ns
        bins = {ns: count - before.bins.get(ns, 0) for ns, count in now.bins.items()}
        left = sorted((ns, count) for ns, count in bins.items() if count > 0)
        latency = histogram_of(
            np.array([ns for ns, _ in left], dtype=float), np.array([c for _, c in left], dtype=np.int64)
        )
        window = Window(
            now.ran_s - before.ran_s,
            self.run.due(before.ran_s, now.ran_s, done),
            done,
            now.failed - before.failed,
            max(sum_ns, 0.0) / done * 1e-9 if done else None,
            latency,
        )
        return LoadReport(window, done + window.failed)


@dataclass(frozen=True)
class Totals:
    """Totals since the start, over all jobs and directions."""

    ran_s: float
    done: int
    failed: int
    sum_ns: float
    bins: Mapping[int, int] = field(default_factory=dict)


def totals(report: Mapping[str, Any]) -> Totals:
    """Totals of one report. Raises Unreadable for output that is not fio's."""
    ran, done, failed, sum_ns = 0.0, 0, 0, 0.0
    bins: dict[int, int] = {}
    try:
        for job in report["jobs"]:
            failed += int(job.get("total_err", 0) or 0)
            for part in (job[way] for way in ("read", "write", "trim") if way in job):
                ran = max(ran, float(part["runtime"]) * 1e-3)
                latency = part["lat_ns"]
                done += int(latency["N"])
                sum_ns += float(latency["mean"]) * int(latency["N"])
                for ns, count in (latency.get("bins") or part["clat_ns"].get("bins") or {}).items():
                    bins[int(ns)] = bins.get(int(ns), 0) + int(count)
    except EDITED:
        raise Unreadable(
            "a report of fio lacks jobs with runtime and lat_ns: expected json of fio 3"
        ) from None
    return Totals(ran, done, failed, sum_ns, bins)


def _line(text: str, brace: str, begin: int = 0) -> int | None:
    """Position of the first line that consists of this brace."""
    if begin == 0 and text.startswith(brace):
        return 0
    place = text.find("\n" + brace, begin)
    return None if place < 0 else place + 1
