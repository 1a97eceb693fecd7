"""A bound decided at a few planned looks at growing results, with a stated probability of a wrong decision.

Each look tests at the level of all divided by their number (a union bound): the level holds whatever the dependence
between looks. bench/claims/results.md has the simulated error rates and the trials that it saves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri, stdtr

from etude.stats.intervals import Interval, t_quantile
from etude.stats.multiplicity import holm
from etude.stats.samples import exponential

GROWTH = 1.5
"""Trials at a look, over those at the look before."""


@dataclass(frozen=True)
class Estimate:
    """A result with its error, on a logarithmic scale if `logarithmic`."""

    value: float
    low_error: float
    """Standard error towards lower values, and …"""
    high_error: float
    """… towards higher ones; relative on a logarithmic scale. Infinite: that side is unknown."""
    degrees: float
    """Degrees of freedom of Student's distribution; infinite: normal."""
    logarithmic: bool
    count: int
    """Number of trials, or pairs, that it rests on."""
    unit: str = ""

    def interval(self, level: float) -> Interval:
        """Two-sided interval that is wrong with probability `level`."""
        t = (
            t_quantile(1.0 - level, self.degrees)
            if math.isfinite(self.degrees)
            else -float(ndtri(level / 2.0))
        )
        low, high = t * self.low_error, t * self.high_error
        if self.logarithmic:
            centre = math.log(self.value) if self.value > 0.0 else -math.inf
            return Interval(exponential(centre - low), exponential(centre + high))
        return Interval(self.value - low, self.value + high)

    def p_above(self, limit: float) -> float:
        """One-sided p of the hypothesis that the true value is above `limit`: small if the estimate is far below."""
        return self._p(self._distance(limit), self.high_error)

    def p_below(self, limit: float) -> float:
        """One-sided p of the hypothesis that the true value is below `limit`."""
        return self._p(-self._distance(limit), self.low_error)

    def _distance(self, limit: float) -> float:
        """The limit less the value, on the scale of the errors."""
        if math.isinf(limit) or not self.logarithmic:
            return limit - self.value
        if limit <= 0.0 or self.value <= 0.0:
            return -math.inf if limit <= 0.0 < self.value else math.inf
        return math.log(limit / self.value)

    def _p(self, distance: float, error: float) -> float:
        if math.isinf(distance):
            return 0.0 if distance > 0.0 else 1.0
        if math.isinf(error):
            return 1.0
        if error == 0.0:
            return 0.0 if distance > 0.0 else 1.0
        return float(stdtr(self.degrees if math.isfinite(self.degrees) else 1e9, -distance / error))


@dataclass(frozen=True)
class Evidence:
    """Two-sided p-values of one statement."""

    supported: float
    """Small if the statement holds."""
    refuted: float
    """Small if it does not."""

    @property
    def p(self) -> float:
        """The smaller one."""
        return min(self.supported, self.refuted)

    @property
    def towards(self) -> bool:
        """True if it speaks for the statement."""
        return self.supported <= self.refuted


NOTHING_KNOWN = Evidence(1.0, 1.0)


def evidence_within(estimate: Estimate, low: float, high: float, margin: float = 0.0) -> Evidence:
    """Evidence that the true value lies in `low` … `high`.

    margin: share of an end within which a value is on neither side of it.
    """
    inside = max(
        estimate.p_above(_moved(high, -margin)),
        estimate.p_below(_moved(low, margin)),
    )
    outside = min(
        estimate.p_below(_moved(high, margin)),
        estimate.p_above(_moved(low, -margin)),
    )
    return Evidence(min(1.0, 2.0 * inside), min(1.0, 2.0 * outside))


def _moved(end: float, by: float) -> float:
    """The end, farther from or nearer to minus infinity by a share of its size."""
    if math.isinf(end) or by == 0.0:
        return end
    return end + abs(end) * by if end <= 0.0 else end * (1.0 + by) if by > 0.0 else end / (1.0 - by)


def all_of(found: Sequence[Evidence]) -> Evidence:
    """Evidence that all of several statements hold; refuted if any is (Bonferroni)."""
    if not found:
        return NOTHING_KNOWN
    return Evidence(
        max(each.supported for each in found), min(1.0, len(found) * min(each.refuted for each in found))
    )


def at_a_look(found: Evidence, looks: int) -> Evidence:
    """Evidence at one of so many planned looks, whichever it is (union bound)."""
    return Evidence(min(1.0, looks * found.supported), min(1.0, looks * found.refuted))


def planned_looks(first: int, last: int) -> tuple[int, ...]:
    """Numbers of trials at which results are looked at, from `first` to `last`, each `GROWTH` times the one before."""
    found = [last]
    while (before := math.floor(found[0] / GROWTH)) >= first and before < found[0]:
        found.insert(0, before)
    return tuple(found)


@dataclass(frozen=True)
class Decision:
    """The decision on one statement of a family."""

    supported: bool | None
    """None: undecided."""
    p: float
    """Two-sided p, adjusted for the family (Holm)."""
    level: float
    """Level of the interval that decides: that of the family over the statements that are not yet decided by it."""


def decide(family: Sequence[Evidence], level: float) -> tuple[Decision, ...]:
    """The decision on each statement: the probability that any is wrong is at most `level`.

    Source: Holm (1979). Both p-values of a statement are two-sided, so that either wrong decision is counted.
    """
    adjusted = [a.adjusted if a.adjusted is not None else 1.0 for a in holm([each.p for each in family])]
    order = sorted(range(len(family)), key=lambda i: family[i].p)
    left = {i: len(family) - place for place, i in enumerate(order)}
    undecided = sum(p > level for p in adjusted)
    return tuple(
        Decision(
            each.towards if p <= level else None, p, level / (left[i] if p <= level else max(undecided, 1))
        )
        for i, (each, p) in enumerate(zip(family, adjusted, strict=True))
    )


def trials_needed(estimate: Estimate, distance: float, level: float, power: float = 0.9) -> float:
    """Number of trials with which a value `distance` from its bound, on the scale of the errors, is decided with
    probability `power`; infinite without a distance. Spread and precision are those of the estimate, as a normal
    approximation."""
    error = max(estimate.low_error, estimate.high_error)
    if distance <= 0.0 or not math.isfinite(error):
        return math.inf
    z = -float(ndtri(level / 2.0)) + float(ndtri(power))
    return max(2.0, estimate.count * (error * z / distance) ** 2)
