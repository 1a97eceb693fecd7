"""A time window of a trial: counts of due, answered and failed requests, and their response times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etude import codec
from etude.results.histograms import Histogram


@dataclass(frozen=True, slots=True)
class Window:
    """Counts and times of one window (docs/reference/formats.md, "Windows")."""

    duration_s: codec.From0
    offered: codec.Count
    """Requests that were due."""
    completed: codec.Count
    failed: codec.Count
    """Requests without an answer, or with a wrong one."""
    mean_s: codec.From0 | None = None
    """Mean response time of completed requests, s; None if there is none, or if it is unknown."""
    latency: Histogram | None = None
    """Response times of completed requests, ns; None if only the mean is known."""
    under_way: codec.Count | None = None
    """Requests due and not answered at its end; None if unknown."""
    waited_s: codec.From0 | None = None
    """Summed age of those requests at its end, s; None if unknown."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Joined windows."""

    duration_s: codec.Number
    offered: int
    completed: int
    failed: int
    mean_s: float | None
    windows: tuple[Window, ...]
    stuck: int = 0
    """Requests outstanding at the end, if they are more than the mean response explains (Little 1961) and older than
    that; else 0."""
    stuck_s: float = 0.0
    """Mean age of the stuck requests at the end, s; a lower bound if the generator does not report it."""

    @property
    def mean_so_far_s(self) -> float | None:
        """Mean response time of completed and stuck requests, s."""
        if self.mean_s is None or not self.stuck:
            return self.mean_s
        return (self.mean_s * self.completed + self.stuck_s * self.stuck) / (self.completed + self.stuck)

    @property
    def failed_share(self) -> float:
        """Failed requests as a share of the ended ones."""
        return self.failed / max(self.completed + self.failed, 1)

    def percentile_s(self, percent: float) -> float | None:
        """Nearest-rank percentile of completed and stuck requests, s; None if no window has a histogram."""
        return percentile_of_all_s([self], percent)


def percentile_of_all_s(trials: Sequence[Whole], percent: float) -> float | None:
    """Nearest-rank percentile of the completed and stuck requests of several trials, s; None if none has a
    histogram."""
    counted = [window.latency for each in trials for window in each.windows if window.latency is not None]
    if not counted:
        return None
    values = np.concatenate([*(each.values for each in counted), [each.stuck_s * 1e9 for each in trials]])
    order = np.argsort(values, kind="stable")
    numbers = np.concatenate([*(each.counts for each in counted), [each.stuck for each in trials]])
    counts = numbers[order].cumsum()
    place = int(np.searchsorted(counts, np.ceil(counts[-1] * percent / 100)))
    return float(values[order][min(place, len(counts) - 1)]) * 1e-9


def joined_windows(windows: Sequence[Window]) -> Whole:
    """Consecutive windows of one trial, joined. The mean is weighted by completed requests."""
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
    """Number and mean age, s, of the stuck requests. `total_s`: summed response times of the completed. If the
    generator does not report the ages, the outstanding requests are taken for the last ones due: their number is known
    only at the ends of windows, and a server that works at intervals, as under a CPU quota, may have a peak at each of
    these."""
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
    """Summed age at the end of the last `under_way` requests due, s, assuming even spacing within each window."""
    waited_s, age_s, left = 0.0, 0.0, under_way
    for window in reversed(windows):
        part = min(left, window.offered)
        lasts_s = window.duration_s * part / max(window.offered, 1)
        waited_s += part * (age_s + lasts_s / 2)
        age_s, left = age_s + window.duration_s, left - part
        if not left:
            break
    return waited_s + left * age_s
