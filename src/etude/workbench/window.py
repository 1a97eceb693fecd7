"""A stretch of a trial: how many requests were due, answered and failed, and how long answers took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etude import codec
from etude.results.histograms import Counted


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
    latency: Counted | None = None
    """How long the completed took, ns; None where only the mean is known."""
    under_way: int | None = None
    """Requests that were due and not answered at its end; None where that is not known."""


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
    """Requests under way at the end, where they are more than the mean response explains (Little 1961); else 0."""
    stuck_s: float = 0.0
    """For how long these have waited by then, on average and at least, s."""

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


def together(windows: Sequence[Window]) -> Whole:
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
    """`total_s`: summed response times of the completed. Time under way that these do not account for is that of the
    others."""
    at_ends = [window.under_way for window in windows]
    if not completed or None in at_ends:
        return 0, 0.0
    usual = total_s / sum(window.duration_s for window in windows)
    at_end = at_ends[-1] or 0
    if at_end <= usual + 3 * math.sqrt(usual) + 1:
        return 0, 0.0
    under_way_s, before = 0.0, at_ends[0] or 0
    for window, now in zip(windows, at_ends, strict=True):
        under_way_s += (before + (now or 0)) / 2 * window.duration_s
        before = now or 0
    return at_end, max((under_way_s - total_s) / at_end, total_s / completed)
