"""Whether two tests are the same within a margin: a verdict of its own, which "no difference was found" is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike
from scipy.special import stdtr

from etude.stats.intervals import t_quantile
from etude.stats.moments import Moments, Sample, effective_moments, moments_of
from etude.stats.samples import check_positive, exponential, positive_logarithms
from etude.stats.twosample import ratio_of_means, welch_degrees

MARGIN = 0.02
"""The same within a factor of 1.02 to either side."""


@dataclass(frozen=True)
class Equivalence:
    """other/base, judged against 1/(1 + margin) … 1 + margin."""

    ratio: float
    low: float
    high: float
    """Limits at 1 - 2·level (90 % for a test at 5 %): it is the same where they lie within the margin."""
    p: float
    """Of "they differ by the margin or more"."""
    verdict: Literal["the same", "different", "undecided"]
    """Within the margin; beyond it as a whole; or more trials are needed to tell."""
    margin: float
    level: float
    method: Literal["paired", "unpaired", "means"]


def equivalent_pairs(
    base: ArrayLike, other: ArrayLike, *, margin: float = MARGIN, level: float = 0.05, factor: float = 1.0
) -> Equivalence:
    """From pairs that ran side by side, shapes (n,), n >= 2, positive: on log ratios.

    factor: that of the stop rule which ended the series; it widens the interval and raises p.
    Raises ValueError for values at or below zero, unequal lengths, and where the ratio does not vary at all.
    Source: two one-sided t tests (Schuirmann 1987), ratio of geometric means.
    """
    lower, upper = positive_logarithms(base), positive_logarithms(other)
    if lower.size != upper.size:
        raise ValueError(f"pairs need equally many values, not {lower.size} and {upper.size}")
    found = moments_of(upper - lower)
    error = factor * found.standard_error
    return _on_logs(found.mean, error, found.count - 1.0, margin, level, factor, "paired")


def equivalent(
    base: ArrayLike, other: ArrayLike, *, margin: float = MARGIN, level: float = 0.05
) -> Equivalence:
    """From samples that did not run in pairs, shapes (n,) and (m,), at least 2 each, positive: on logarithms.

    Errors as for `equivalent_pairs`. Drift between the samples is not controlled. Values count as so
    many independent ones as they are worth. Source: two one-sided Welch tests.
    """
    lower, upper = effective_moments(positive_logarithms(base)), effective_moments(positive_logarithms(other))
    error = math.hypot(lower.standard_error, upper.standard_error)
    centre = upper.mean - lower.mean
    return _on_logs(centre, error, welch_degrees(upper, lower), margin, level, 1.0, "unpaired")


def equivalent_means(
    base: Sample, other: Sample, *, margin: float = MARGIN, level: float = 0.05
) -> Equivalence:
    """From summaries, or values of any sign: of the ratio of arithmetic means; the base's must lie above zero.

    Raises ValueError where it does not, where its mean cannot be told from zero, and where neither side varies.
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
    """p of "u2 is bound·u1 or more"."""
    scaled = Moments(a.count, a.mean * bound, a.deviation * bound)
    error = math.hypot(b.standard_error, scaled.standard_error)
    return float(stdtr(welch_degrees(b, scaled), (b.mean - scaled.mean) / error))


def _on_logs(
    centre: float,
    error: float,
    degrees: float,
    margin: float,
    level: float,
    factor: float,
    method: Literal["paired", "unpaired"],
) -> Equivalence:
    _check(margin, level)
    check_positive("factor", factor)
    if error == 0.0:
        raise ValueError("the ratio does not vary: there is no spread to judge it by")
    p = float(stdtr(degrees, (abs(centre) - math.log1p(margin)) / error))
    half = t_quantile(1.0 - 2.0 * level, degrees) * error
    low, ratio, high = (exponential(v) for v in (centre - half, centre, centre + half))
    return _judged(ratio, low, high, p, margin, level, method)


def _judged(
    ratio: float,
    low: float,
    high: float,
    p: float,
    margin: float,
    level: float,
    method: Literal["paired", "unpaired", "means"],
) -> Equivalence:
    verdict: Literal["the same", "different", "undecided"] = "undecided"
    if p < level:
        verdict = "the same"
    elif low > 1.0 + margin or high < 1.0 / (1.0 + margin):
        verdict = "different"
    return Equivalence(ratio, low, high, p, verdict, margin, level, method)


def _check(margin: float, level: float) -> None:
    check_positive("margin", margin)
    if not 0.0 < level < 0.5:
        raise ValueError(f"level must be between 0 and 0.5, not {level}")
