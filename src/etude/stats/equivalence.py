"""Equivalence of two tests within a margin, as opposed to the absence of a significant difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtr

from etude.stats.intervals import t_quantile
from etude.stats.moments import Moments, Sample, moments_of
from etude.stats.ratio import Ratio
from etude.stats.samples import check_positive, exponential
from etude.stats.twosample import ratio_of_means, welch_degrees

MARGIN = 0.02
"""Equivalence margin: within a factor of 1.02 to either side."""


@dataclass(frozen=True)
class Equivalence:
    """other/base, judged against 1/(1 + margin) … 1 + margin."""

    ratio: float
    low: float
    high: float
    """Limits at 1 - 2·level/together (90 % for one test at 5 %): equivalent if they are within the margin."""
    p: float
    """p-value of "they differ by the margin or more", adjusted for all simultaneous comparisons (Bonferroni)."""
    verdict: Literal["the same", "different", "undecided"]
    """Within the margin; entirely beyond it; or inconclusive."""
    margin: float
    level: float
    method: Literal["paired", "unpaired", "means"]
    together: int = 1
    """Number of simultaneous comparisons."""

    @property
    def confidence(self) -> float:
        """Confidence of the limits."""
        return 1.0 - 2.0 * self.level / self.together


def equivalence_of(ratio: Ratio, *, margin: float = MARGIN, level: float = 0.05) -> Equivalence:
    """Equivalence from a ratio and its error.

    The ratio's error includes the stop rule's factor, which widens the interval and raises p, and so does a ratio that
    is one of many (`among`).
    Raises ValueError for a ratio without variation.
    Source: two one-sided t tests on the logarithm (Schuirmann 1987).
    """
    _check(margin, level)
    if not (0.0 < ratio.standard_error < math.inf and 0.0 < ratio.ratio < math.inf):
        raise ValueError("the ratio does not vary: there is no spread to judge it by")
    centre, error, degrees = math.log(ratio.ratio), ratio.standard_error, ratio.degrees
    together = ratio.together
    p = min(1.0, together * float(stdtr(degrees, (abs(centre) - math.log1p(margin)) / error)))
    half = t_quantile(1.0 - 2.0 * level / together, degrees) * error
    low, high = exponential(centre - half), exponential(centre + half)
    return _judged(ratio.ratio, low, high, p, margin, level, ratio.method, together)


def equivalent_means(
    base: Sample, other: Sample, *, margin: float = MARGIN, level: float = 0.05
) -> Equivalence:
    """Equivalence from summaries, or values of any sign: of the ratio of arithmetic means; the base's must be above
    zero.

    Raises ValueError if it is not, if its mean is not significantly different from zero, and if neither side varies.
    Source: two one-sided Welch tests of u2 - bound·u1; the interval is Fieller's.
    """
    _check(margin, level)
    a, b = moments_of(base), moments_of(other)
    if a.mean <= 0.0:
        raise ValueError("the same within a margin needs a base whose mean is above zero")
    if a.deviation == 0.0 and b.deviation == 0.0:
        raise ValueError("neither sample varies: there is no spread to judge their difference by")
    found = ratio_of_means(b, a, confidence=1.0 - 2.0 * level)
    above = _one_sided(a, b, 1.0 + margin)
    below = 1.0 - _one_sided(a, b, 1.0 / (1.0 + margin))
    return _judged(found.ratio, found.low, found.high, max(above, below), margin, level, "means")


def _one_sided(a: Moments, b: Moments, bound: float) -> float:
    """p-value of "u2 is bound·u1 or more"."""
    scaled = Moments(a.count, a.mean * bound, a.deviation * bound)
    error = math.hypot(b.standard_error, scaled.standard_error)
    return float(stdtr(welch_degrees(b, scaled), (b.mean - scaled.mean) / error))


def _judged(
    ratio: float,
    low: float,
    high: float,
    p: float,
    margin: float,
    level: float,
    method: Literal["paired", "unpaired", "means"],
    together: int = 1,
) -> Equivalence:
    verdict: Literal["the same", "different", "undecided"] = "undecided"
    if p < level:
        verdict = "the same"
    elif low > 1.0 + margin or high < 1.0 / (1.0 + margin):
        verdict = "different"
    return Equivalence(ratio, low, high, p, verdict, margin, level, method, together)


def _check(margin: float, level: float) -> None:
    check_positive("margin", margin)
    if not 0.0 < level < 0.5:
        raise ValueError(f"level must be between 0 and 0.5, not {level}")
