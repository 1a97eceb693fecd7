"""Test of equal variances, and the choice of a t test by it: an option, never the default.

Choosing a test by a preliminary test is known to be harmful: at ten trials per side the F test rarely detects a
relevant difference, and reacts to non-normal shapes as to spreads. Welch's test needs no such choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc

from etude.stats.moments import Moments, Sample, deviation_of, moments_of
from etude.stats.samples import check_confidence, finite_sample
from etude.stats.twosample import Difference, student, welch


@dataclass(frozen=True)
class VarianceTest:
    """F statistic with its degrees of freedom, and p-value of "both have the same variance"."""

    statistic: float
    degrees: tuple[float, float]
    p: float
    method: Literal["F", "Levene"]


def f_test(first: Sample, second: Sample) -> VarianceTest:
    """Ratio of the variances of two samples, two-sided; sensitive to non-normality.

    first, second: values, shapes (n,) and (m,), both at least 2, or their `Moments`.
    Raises ValueError if neither varies. Source: Fisher's F, n - 1 and m - 1 degrees of freedom; as R's var.test.
    """
    a, b = moments_of(first), moments_of(second)
    if a.deviation == 0.0 and b.deviation == 0.0:
        raise ValueError("neither sample varies: their spreads cannot be compared")
    times = a.deviation / b.deviation if b.deviation else math.inf
    statistic = times * times
    above = _upper(a.count - 1, b.count - 1, statistic)
    below = _upper(b.count - 1, a.count - 1, 1.0 / statistic if statistic > 1e-300 else math.inf)
    p = min(1.0, 2.0 * min(above, below))
    return VarianceTest(statistic, (a.count - 1.0, b.count - 1.0), p, "F")


def levene(
    first: ArrayLike, second: ArrayLike, *, centre: Literal["median", "mean"] = "median"
) -> VarianceTest:
    """Test of equal distances of the values of both samples from their centre; valid also for skewed values.

    first, second: shapes (n,) and (m,), both at least 2. Raises ValueError if no distance varies.
    centre: the median is Brown's and Forsythe's (1974) form, scipy.stats.levene's default; the mean is Levene's own.
    """
    samples = [finite_sample(x) for x in (first, second)]
    if min(x.size for x in samples) < 2:
        raise ValueError("a comparison of spreads needs two or more values of either test")
    scale = max(float(np.max(np.abs(x))) for x in samples) or 1.0
    middle = np.median if centre == "median" else np.mean
    distances = [np.abs(x / scale - middle(x / scale)) for x in samples]
    together = np.concatenate(distances)
    between = sum(d.size * (float(d.mean()) - float(together.mean())) ** 2 for d in distances)
    within = sum((d.size - 1) * deviation_of(d) ** 2 for d in distances)
    if within == 0.0:
        raise ValueError("the values lie equally far from their centres: their spreads cannot be compared")
    degrees = float(together.size - 2)
    statistic = between / (within / degrees)
    return VarianceTest(statistic, (1.0, degrees), _upper(1.0, degrees, statistic), "Levene")


def t_test_by_variance(
    first: Sample, second: Sample, *, confidence: float = 0.95, by: Literal["F", "Levene"] = "F"
) -> tuple[Difference, VarianceTest]:
    """The automatic choice planned by Auto-pilot's authors: Welch's t for different spreads, else Student's.

    The spreads count as different at 1 - confidence. `by` Levene needs values, not Moments.
    Source: Auto-pilot paper, section 4.1 (future work).
    """
    check_confidence(confidence)
    if by == "F":
        found = f_test(first, second)
    elif isinstance(first, Moments) or isinstance(second, Moments):
        raise ValueError("Levene's test needs the values themselves, not their summary")
    else:
        found = levene(first, second)
    test = welch if found.p < 1.0 - confidence else student
    return test(first, second, confidence=confidence), found


def _upper(numerator: float, denominator: float, statistic: float) -> float:
    return 0.0 if math.isinf(statistic) else float(fdtrc(numerator, denominator, statistic))
