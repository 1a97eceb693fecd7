"""Comparison of results of different sessions, with the variance between sessions included.

Effects that change between sessions (memory layout, temperature, neighbours, the state of a disk) are the same in all
trials of a session, so no number of trials shows them. Their variance must be known from other sessions, or be given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from etude.stats.intervals import t_quantile
from etude.stats.means import ADDING_UP, Kind
from etude.stats.moments import Moments, deviation_of, effective_moments, mean_of
from etude.stats.multiplicity import bonferroni_confidence
from etude.stats.ratio import Ratio
from etude.stats.samples import check_confidence, exponential, positive_logarithms

FEWEST = 3
"""Minimum number of stored sessions for an estimate of the spread between sessions."""


@dataclass(frozen=True)
class SessionSpread:
    """Spread between sessions of one test on one machine."""

    deviation: float
    """Relative standard deviation of a session's level (0.03: 3 %; strictly, that of its logarithm)."""
    degrees: float
    """Degrees of freedom; infinite for a given value."""
    sessions: int | None
    """Number of sessions of the estimate; None for a given value."""


@dataclass(frozen=True)
class NotSupported:
    """A comparison that the data cannot support, and the remedy."""

    reason: str
    have: int
    """Stored sessions of that test and machine."""
    needed: int
    """Number of further sessions needed."""
    remedy: str


@dataclass(frozen=True)
class CrossSessionRatio:
    """other/base of the means that fit the metric, widened by the variance between sessions."""

    ratio: float
    low: float
    high: float
    p: float
    """Two-sided p-value of a ratio of 1."""
    between: SessionSpread
    within_share: float
    """Share of the variance of the log ratio that comes from trials within the two sessions."""
    confidence: float
    standard_error: float = math.nan
    """Standard error of the log ratio."""
    degrees: float = math.nan
    """Degrees of freedom of the t distribution."""
    together: int = 1
    """Number of ratios judged simultaneously: all their intervals hold together at `confidence`."""

    @property
    def adjusted_p(self) -> float:
        """p adjusted for all ratios judged simultaneously (Bonferroni): below 1 - confidence if the interval excludes
        1."""
        return min(1.0, self.together * self.p)

    def among(self, together: int) -> CrossSessionRatio:
        """The same ratio as one of `together` that are judged simultaneously."""
        if together == self.together:
            return self
        half = (
            t_quantile(bonferroni_confidence(self.confidence, together), self.degrees) * self.standard_error
        )
        centre = math.log(self.ratio)
        return replace(
            self, low=exponential(centre - half), high=exponential(centre + half), together=together
        )


@dataclass(frozen=True)
class Overall:
    """other/base of a whole suite: the geometric mean of its tests' ratios."""

    ratio: float
    low: float
    high: float
    p: float
    """Two-sided p-value of a ratio of 1."""
    tests: int
    confidence: float


def overall_ratio(ratios: Sequence[Ratio | CrossSessionRatio]) -> Overall | None:
    """Geometric mean of the tests' ratios, each weighted equally; the interval holds for these tests. None for fewer
    than two tests, or a ratio without spread.

    Session effects may be common to all tests of a session, so that their errors do not average out: the standard error
    of the mean logarithm is the mean of theirs, with the smallest of their degrees of freedom. This is exact for fully
    correlated errors, and conservative otherwise.
    """
    known = [each for each in ratios if each.standard_error > 0.0 and 0.0 < each.ratio < math.inf]
    if len(known) < 2 or len(known) < len(ratios):
        return None
    centre = math.fsum(math.log(each.ratio) for each in known) / len(known)
    error = math.fsum(each.standard_error for each in known) / len(known)
    degrees, confidence = min(each.degrees for each in known), known[0].confidence
    half = t_quantile(confidence, degrees) * error
    low, ratio, high = (exponential(v) for v in (centre - half, centre, centre + half))
    p = min(1.0, 2.0 * float(stdtr(degrees, -abs(centre) / error)))
    return Overall(ratio, low, high, p, len(known), confidence)


def between_sessions(sessions: Sequence[ArrayLike]) -> SessionSpread | NotSupported:
    """Spread between stored sessions of one test on one machine: one sample of positive values each, at least three.

    It is the standard deviation of the sessions' mean logarithms; the contribution of trial noise is not subtracted,
    which is slightly conservative, and never negative. Raises ValueError for values at or below zero, or an empty
    session.
    """
    levels = [float(np.mean(_logs(x))) for x in sessions]
    if len(levels) < FEWEST:
        return _refused(len(levels))
    return SessionSpread(deviation_of(levels), len(levels) - 1.0, len(levels))


def stated_session_spread(percent: float) -> SessionSpread:
    """Spread between sessions as given: their standard deviation in percent of their mean.

    The standard deviation of the logarithm of log-normal levels is √ln(1 + (percent/100)²). Raises ValueError for a
    negative or infinite one.
    """
    if not (math.isfinite(percent) and percent >= 0.0):
        raise ValueError(f"the spread between sessions must be 0 % or more, not {percent}")
    relative = percent / 100.0
    variance = math.log1p(relative * relative) if relative < 1e100 else 2.0 * math.log(relative)
    return SessionSpread(math.sqrt(variance), math.inf, None)


def compare_sessions(
    base: ArrayLike,
    other: ArrayLike,
    between: SessionSpread | NotSupported | None,
    *,
    kind: Kind = "ratio",
    confidence: float = 0.95,
) -> CrossSessionRatio | NotSupported:
    """Ratio of two samples, shapes (n,) and (m,), at least 2 each, positive, from one session each.

    It is the ratio of the means that fit the metric's kind: arithmetic for costs and counts, harmonic for rates, else
    geometric. The variance of the log ratio is that of both means and twice that between sessions, with Satterthwaite's
    degrees of freedom. If the latter is unknown, the comparison is refused: the samples alone gave 60 % false alarms in
    one public data set (15 % between sessions, 3 % within).
    """
    check_confidence(confidence)
    if between is None:
        return _refused(0)
    if isinstance(between, NotSupported):
        return between
    (before, lower), (after, upper) = (_log_mean(x, kind) for x in (base, other))
    parts = [
        (lower.standard_error**2, lower.count - 1.0),
        (upper.standard_error**2, upper.count - 1.0),
        (2.0 * between.deviation**2, between.degrees),
    ]
    total = math.fsum(part for part, _ in parts)
    centre = after - before
    if total == 0.0:
        raise ValueError(
            "neither sample varies, nor do sessions: there is no spread to judge their difference by"
        )
    degrees = 1.0 / max(math.fsum((part / total) ** 2 / d for part, d in parts), 1e-9)
    half = t_quantile(confidence, degrees) * math.sqrt(total)
    low, ratio, high = (exponential(v) for v in (centre - half, centre, centre + half))
    p = min(1.0, 2.0 * float(stdtr(degrees, -abs(centre) / math.sqrt(total))))
    within = (parts[0][0] + parts[1][0]) / total
    return CrossSessionRatio(ratio, low, high, p, between, within, confidence, math.sqrt(total), degrees)


def _log_mean(x: ArrayLike, kind: Kind) -> tuple[float, Moments]:
    """Logarithm of the fitting mean, and moments that give its standard error (delta method)."""
    logs = _logs(x)
    if kind not in ADDING_UP:
        moments = effective_moments(logs)
        return moments.mean, moments
    sign = -1.0 if kind == "rate" else 1.0  # equal work takes times proportional to the inverse rates
    origin = float(np.max(sign * logs))
    values = np.exp(sign * logs - origin)
    mean = mean_of(values)
    return sign * (math.log(mean) + origin), effective_moments(values / mean)


def _refused(have: int) -> NotSupported:
    return NotSupported(
        reason=f"the variation between sessions is unknown from {have} stored session{'' if have == 1 else 's'}",
        have=have,
        needed=FEWEST - have,
        remedy="run both tests interleaved in one experiment, or state the spread between sessions",
    )


def _logs(x: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    logs = positive_logarithms(x)
    if logs.size == 0:
        raise ValueError("a session without values")
    return logs
