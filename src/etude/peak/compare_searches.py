"""Comparison of several searches: ratio of each peak rate to the first one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from etude.peak.task import Answer, Task


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio of a peak rate to the first one, with an interval at their confidence."""

    value: float | None
    """None if one of them has no rate."""
    low: float
    high: float
    """0 and inf: no bound."""

    @property
    def differs(self) -> bool | None:
        """True if the interval excludes 1; None if it includes 1 and lacks a bound."""
        if self.low > 1.0 or self.high < 1.0:
            return True
        return None if self.low <= 0.0 or math.isinf(self.high) else False


def ratio(first: Answer, other: Answer) -> Ratio:
    """Ratio of the peak rates of two independent searches.

    The method of variance estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008, section 2), on logs: the
    distance of each end is the root of the sum of squares of how far the two ends that lead there are from their rates.
    No shape of either interval is assumed; both need the same confidence. Without a rate the result spans both
    intervals.
    """
    if first.rate is None or other.rate is None:
        low = other.low / first.high if first.high > 0 else 0.0
        high = other.high / first.low if first.low > 0 else math.inf
        return Ratio(None, low, high)
    value = other.rate / first.rate
    down = math.hypot(_log(other.rate, other.low), _log(first.high, first.rate))
    up = math.hypot(_log(other.high, other.rate), _log(first.rate, first.low))
    return Ratio(value, value * math.exp(-down), value * math.exp(up))


def _log(above: float, below: float) -> float:
    """Log of the ratio of two bounds, at least 0; infinite if there is no bound."""
    if below <= 0.0 or math.isinf(above):
        return math.inf
    return max(0.0, math.log(above / below))


def incomparable_reasons(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Reasons why the searches' rates are not comparable, a clause each; empty if they are."""
    first = tasks[0]
    found = {
        "their goals differ": any(task.goal != first.goal for task in tasks),
        "loads are requests/s of one and clients of another": any(
            task.closed != first.closed for task in tasks
        ),
        "the confidence of their intervals differs": any(
            task.confidence != first.confidence for task in tasks
        ),
    }
    return tuple(what for what, so in found.items() if so)
