"""Merge of the reports of several load generators in one run into one stream of windows.

The generators start at one instant, so a window begins at the sum of the durations before it. Counts and histograms are
added, means are weighted by completed requests, and lateness is the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from etude.peak.harnesses.load_report import LoadReport
from etude.peak.window import Window, joined_windows
from etude.results.histograms import joined


@dataclass
class _Part:
    """Unmerged windows of one generator, and the begin of the first, s."""

    waiting: list[LoadReport]
    begins_s: float = 0.0

    def ends_s(self) -> float:
        """End of its last reported window, s."""
        return self.begins_s + sum(each.window.duration_s for each in self.waiting)

    def reaches(self, until_s: float) -> bool:
        """True if its next window belongs after an instant, assuming the last one's length."""
        return self.ends_s() + self.waiting[-1].window.duration_s / 2 >= until_s

    def take(self, until_s: float) -> list[LoadReport]:
        """Remove and return its windows up to an instant: the first, and those whose middle is before it."""
        taken: list[LoadReport] = []
        while self.waiting:
            length_s = self.waiting[0].window.duration_s
            if taken and self.begins_s + length_s / 2 >= until_s:
                break
            self.begins_s += length_s
            taken.append(self.waiting.pop(0))
        return taken


class MergeReports:
    """Merges the reports of one run, window by window."""

    def __init__(self, generators: int) -> None:
        self._parts = [_Part([]) for _ in range(generators)]

    def add(self, generator: int, found: Sequence[LoadReport]) -> list[LoadReport]:
        """Add new reports of one generator; returns the windows that all have now reported, each with its `parts`."""
        self._parts[generator].waiting += found
        return self._merged(whole=False)

    def end(self) -> list[LoadReport]:
        """Windows that are left when all have ended; those that only some reported are dropped."""
        return self._merged(whole=True)

    def _merged(self, *, whole: bool) -> list[LoadReport]:
        merged = []
        while all(part.waiting for part in self._parts):
            until_s = max(part.begins_s + part.waiting[0].window.duration_s for part in self._parts)
            if not whole and not all(part.reaches(until_s) for part in self._parts):
                break
            merged.append(side_by_side([in_sequence(part.take(until_s)) for part in self._parts]))
        return merged


def in_sequence(reports: Sequence[LoadReport]) -> LoadReport:
    """Consecutive windows of one generator, joined."""
    if len(reports) == 1:
        return reports[0]
    return _added(reports, math.fsum(each.window.duration_s for each in reports), reports[-1:])


def side_by_side(reports: Sequence[LoadReport]) -> LoadReport:
    """Windows of several generators for the same time span, joined into one of their mean duration."""
    durations_s = [each.window.duration_s for each in reports]
    alike = min(durations_s) == max(durations_s)
    duration_s = durations_s[0] if alike else math.fsum(durations_s) / len(durations_s)
    return replace(_added(reports, duration_s, reports), parts=tuple(reports))


def _added(reports: Sequence[LoadReport], duration_s: float, last: Sequence[LoadReport]) -> LoadReport:
    """`last`: reports that contain the requests outstanding at the end."""
    windows = [each.window for each in reports]
    whole = joined_windows(windows)
    answering = [window for window in windows if window.completed]
    counted = [window.latency for window in answering if window.latency is not None]
    latency = joined(counted) if counted and len(counted) == len(answering) else None
    mean_s = whole.mean_s if all(window.mean_s is not None for window in answering) else None
    under_way = [each.window.under_way for each in last if each.window.under_way is not None]
    waited_s = [each.window.waited_s for each in last if each.window.waited_s is not None]
    sent = [each.sent for each in reports if each.sent is not None]
    late_s = [each.lateness_p99_s for each in reports if each.lateness_p99_s is not None]
    return LoadReport(
        Window(
            duration_s,
            whole.offered,
            whole.completed,
            whole.failed,
            mean_s,
            latency,
            sum(under_way) if len(under_way) == len(last) else None,
            math.fsum(waited_s) if len(waited_s) == len(last) else None,
        ),
        sum(sent) if len(sent) == len(reports) else None,
        math.fsum(each.waited_s for each in reports),
        sum(each.refused for each in reports),
        max(late_s, default=None),
    )
