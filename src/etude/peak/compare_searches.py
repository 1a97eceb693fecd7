"""Several searches beside each other: how many times the first one's peak rate each of the others found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from etude.peak.task import Answer, Task


@dataclass(frozen=True, slots=True)
class Ratio:
    """A peak rate over the first one's, with an interval of their confidence."""

    value: float | None
    """None where one of them has no rate."""
    low: float
    high: float
    """0 and inf where there is no bound."""

    @property
    def differs(self) -> bool | None:
        """Whether the interval leaves out 1; None where it has not both bounds and holds it."""
        if self.low > 1.0 or self.high < 1.0:
            return True
        return None if self.low <= 0.0 or math.isinf(self.high) else False


def ratio(first: Answer, other: Answer) -> Ratio:
    """Of two searches that know nothing of each other.

    The method of variance estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008, section 2), on logs: the
    distance of each end is the root of the sum of squares of how far the two ends that lead there are from their rates.
    It needs no shape of either interval; both have to have the same confidence. Without a rate only the worst of both
    intervals can be said.
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
    """How many times one is the other, as a log; infinite where there is no bound, and never below 0."""
    if below <= 0.0 or math.isinf(above):
        return math.inf
    return max(0.0, math.log(above / below))


def differing_questions(tasks: Sequence[Task]) -> tuple[str, ...]:
    """What makes rates of searches no answers to one question: a clause each; empty where they are."""
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
