"""Calls over time: how much was in them up to a moment, and when a program was in none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.reader import Whole

Floats = NDArray[np.float64]


def cumulative_s(start_ns: Whole, duration_ns: Whole, at_ns: Whole) -> Floats:
    """Time spent in calls up to each moment, s; calls side by side count each. Shape of `at_ns`."""
    starts, ends = np.sort(start_ns), np.sort(start_ns + duration_ns)
    found: Floats = (_integral(starts, at_ns) - _integral(ends, at_ns)).astype(np.float64) * 1e-9
    return found


def _integral(sorted_ns: Whole, at_ns: Whole) -> Whole:
    """The sum of `at - each` over those that are not after it; it may wrap round, the difference of two does not."""
    sums = np.concatenate(([0], np.cumsum(sorted_ns)))
    many = np.searchsorted(sorted_ns, at_ns, side="right")
    found: Whole = many * at_ns - sums[many]
    return found


def covered(start_ns: Whole, duration_ns: Whole) -> tuple[Whole, Whole]:
    """The stretches in which at least one call was under way: starts and durations, ns, in order, apart."""
    if start_ns.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(start_ns, kind="stable")
    starts = start_ns[order]
    ends = np.maximum.accumulate(starts + duration_ns[order])
    fresh = np.flatnonzero(np.concatenate(([True], starts[1:] > ends[:-1])))
    lasts = np.concatenate((fresh[1:] - 1, [starts.size - 1]))
    return starts[fresh], ends[lasts] - starts[fresh]
