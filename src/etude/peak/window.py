"""A stretch of a trial: how many requests were due, answered and failed, and how long answers took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etude import codec
from etude.results.histograms import Histogram


@dataclass(frozen=True, slots=True)
class Window:
    """Counts and times of one stretch (design: windows; docs/formats.md, "Windows")."""

    duration_s: codec.Number
    offered: int
    """Requests that were due."""
    completed: int
    failed: int
    """Not answered, or wrongly."""
    mean_s: codec.Number | None = None
    """Mean response time of the completed; None where none was, or it is not known."""
    latency: Histogram | None = None
    """How long the completed took, ns; None where only the mean is known."""
    under_way: int | None = None
    """Requests that were due and not answered at its end; None where that is not known."""
    waited_s: codec.Number | None = None
    """For how long those had been due by then, summed, s; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Windows taken together."""

    duration_s: codec.Number
    offered: int
    completed: int
    failed: int
    mean_s: float | None
    windows: tuple[Window, ...]
    stuck: int = 0
    """Requests under way at the end, where they are more than the mean response explains (Little 1961) and have waited
    for longer than that; else 0."""
    stuck_s: float = 0.0
    """For how long these have waited by then, on average, s; at least, where the generator does not report it."""

    @property
    def mean_so_far_s(self) -> float | None:
        """The mean response time of the completed and of those that are stuck, s."""
        if self.mean_s is None or not self.stuck:
            return self.mean_s
        return (self.mean_s * self.completed + self.stuck_s * self.stuck) / (self.completed + self.stuck)

    @property
    def failed_share(self) -> float:
        """Of those that ended."""
        return self.failed / max(self.completed + self.failed, 1)

    @property
    def answered(self) -> Whole:
        """The same without what is stuck."""
        return replace(self, stuck=0, stuck_s=0.0)

    def percentile_s(self, percent: float) -> float | None:
        """The nearest-rank percentile of all responses and of those that are stuck, s; None where no window has a
        histogram."""
        counted = [window.latency for window in self.windows if window.latency is not None]
        if not counted:
            return None
        values = np.concatenate([*(each.values for each in counted), [self.stuck_s * 1e9]])
        order = np.argsort(values, kind="stable")
        counts = np.concatenate([*(each.counts for each in counted), [self.stuck]])[order].cumsum()
        place = int(np.searchsorted(counts, np.ceil(counts[-1] * percent / 100)))
        return float(values[order][min(place, len(counts) - 1)]) * 1e-9


def joined_windows(windows: Sequence[Window]) -> Whole:
    """Windows of one trial, one after the other. The mean is weighted by how many were completed."""
    timed = [window for window in windows if window.mean_s is not None and window.completed > 0]
    weight = sum(window.completed for window in timed)
    total = sum((window.mean_s or 0.0) * window.completed for window in timed)
    return Whole(
        sum(window.duration_s for window in windows),
        sum(window.offered for window in windows),
        sum(window.completed for window in windows),
        sum(window.failed for window in windows),
        total / weight if weight else None,
        tuple(windows),
        *_stuck(windows, total, weight),
    )


def _stuck(windows: Sequence[Window], total_s: float, completed: int) -> tuple[int, float]:
    """`total_s`: summed response times of the completed. Where the generator does not report how long those under way
    have waited, they are taken for the last that were due: what is under way between the ends of windows is not known,
    and a server that works at intervals, as under a quota of CPU time, may have most at each of these ends."""
    last = windows[-1] if windows else None
    if last is None or last.under_way is None or not completed:
        return 0, 0.0
    usual = total_s / sum(window.duration_s for window in windows)
    if last.under_way <= usual + 3 * math.sqrt(usual) + 1:
        return 0, 0.0
    waited_s = _least_waited_s(windows, last.under_way) if last.waited_s is None else last.waited_s
    each_s = waited_s / last.under_way
    return (last.under_way, each_s) if each_s > total_s / completed else (0, 0.0)


def _least_waited_s(windows: Sequence[Window], under_way: int) -> float:
    """For how long the last `under_way` requests had been due at the end, summed: evenly within each window."""
    waited_s, age_s, left = 0.0, 0.0, under_way
    for window in reversed(windows):
        part = min(left, window.offered)
        lasts_s = window.duration_s * part / max(window.offered, 1)
        waited_s += part * (age_s + lasts_s / 2)
        age_s, left = age_s + window.duration_s, left - part
        if not left:
            break
    return waited_s + left * age_s
