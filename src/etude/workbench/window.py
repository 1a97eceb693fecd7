"""A stretch of a trial: how many requests were due, answered and failed, and how long answers took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etude.results.histograms import Counted


@dataclass(frozen=True, slots=True)
class Window:
    """Counts and times of one stretch (design: windows; docs/formats.md, "Windows")."""

    duration_s: float
    offered: int
    """Requests that were due."""
    completed: int
    failed: int
    """Not answered, or wrongly."""
    mean_s: float | None = None
    """Mean response time of the completed; None where none was, or it is not known."""
    latency: Counted | None = None
    """How long the completed took, ns; None where only the mean is known."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Windows taken together."""

    duration_s: float
    offered: int
    completed: int
    failed: int
    mean_s: float | None
    windows: tuple[Window, ...]

    @property
    def failed_share(self) -> float:
        """Of those that ended."""
        return self.failed / max(self.completed + self.failed, 1)

    def percentile_s(self, percent: float) -> float | None:
        """The nearest-rank percentile of all responses, s; None where no window has a histogram."""
        counted = [window.latency for window in self.windows if window.latency is not None]
        if not counted:
            return None
        values = np.concatenate([each.values for each in counted])
        order = np.argsort(values, kind="stable")
        counts = np.concatenate([each.counts for each in counted])[order].cumsum()
        place = int(np.searchsorted(counts, np.ceil(counts[-1] * percent / 100)))
        return float(values[order][min(place, len(counts) - 1)]) * 1e-9


def together(windows: Sequence[Window]) -> Whole:
    """The mean is weighted by how many were completed."""
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
    )
