"""Difference of the means of two independent samples, Welch's and Student's t; and tests of equal variances.

Sample 1 is the first argument: differences are u1 - u2. Drift between the two samples and dependence within one are not
modelled: for trials in blocks use `ratio.paired_ratio`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc, nctdtrinc, stdtr

from etude.stats.intervals import t_quantile
from etude.stats.moments import Moments, Sample, deviation_of, moments_of
from etude.stats.samples import check_confidence, finite_sample


@dataclass(frozen=True)
class Hypothesis:
    """One line of Getstats' t-test: null hypothesis, alternative, and the p-value."""

    null: str
    alternative: str
    p: float
    rejected: bool

    @property
    def result(self) -> str:
        """Result in the paper's words; ACCEPT only means that the data do not contradict it."""
        return "REJECT H_0" if self.rejected else "ACCEPT H_0"


@dataclass(frozen=True)
class Difference:
    """u1 - u2 with its interval, in the unit of the values."""

    difference: float
    low: float
    high: float
    standard_error: float
    degrees: float
    """Degrees of freedom of the t distribution; Welch's need not be whole."""
    p: float
    """Two-sided p-value of u1 = u2."""
    p_greater: float
    """p-value of u1 <= u2, the alternative being u1 > u2."""
    p_less: float
    """p-value of u1 >= u2, the alternative being u1 < u2."""
    method: Literal["Welch", "Student"]
    confidence: float

    @property
    def hypotheses(self) -> tuple[Hypothesis, Hypothesis, Hypothesis]:
        """The three lines of Getstats' output (Auto-pilot paper, figure 3), at 1 - confidence."""
        lines = (
            ("u1 <= u2", "u1 >  u2", self.p_greater),
            ("u1 >= u2", "u1 <  u2", self.p_less),
            ("u1 == u2", "u1 != u2", self.p),
        )
        first, second, third = (Hypothesis(*line, line[2] < 1.0 - self.confidence) for line in lines)
        return first, second, third

    def smallest_found(self, power: float = 0.8) -> float:
        """Smallest true difference that this many trials of this spread detect with probability `power`.

        Detected: significant in the two-sided test. In the unit of the values.
        Source: noncentral t; scipy.special.nctdtrinc. It does not depend on the observed difference.
        """
        return smallest_found(self.standard_error, self.degrees, 1.0 - self.confidence, power)


def welch(first: Sample, second: Sample, *, confidence: float = 0.95) -> Difference:
    """Difference of means with possibly different spreads: the default for samples that did not run in pairs.

    first, second: values, shapes (n,) and (m,), both at least 2, or their `Moments`.
    Raises ValueError if neither sample varies.
    Source: Welch (1947), degrees of freedom of Satterthwaite; as scipy.stats.ttest_ind(equal_var=False).
    """
    a, b = moments_of(first), moments_of(second)
    error = math.hypot(a.standard_error, b.standard_error)
    return _difference(a, b, error, welch_degrees(a, b), "Welch", confidence)


def student(first: Sample, second: Sample, *, confidence: float = 0.95) -> Difference:
    """Difference of means with one pooled spread: Getstats' `--twosamplet`, to reproduce published figures.

    Wrong by a factor of five if the noisier of two tests has fewer trials (10 of 30: 24 % false positives at 5 %).
    Arguments and errors as for `welch`. Source: Student's t, n + m - 2 degrees of freedom; Auto-pilot paper, figure 3.
    """
    a, b = moments_of(first), moments_of(second)
    degrees = a.count + b.count - 2
    pooled = math.hypot(
        a.deviation * math.sqrt((a.count - 1) / degrees), b.deviation * math.sqrt((b.count - 1) / degrees)
    )
    error = pooled * math.sqrt(1.0 / a.count + 1.0 / b.count)
    return _difference(a, b, error, float(degrees), "Student", confidence)


def welch_degrees(a: Moments, b: Moments) -> float:
    """Satterthwaite's degrees of freedom of a difference of means; n + m - 2 without variation."""
    total = math.hypot(a.standard_error, b.standard_error)
    if total == 0.0:
        return float(a.count + b.count - 2)
    shares = [(x.standard_error / total) ** 2 for x in (a, b)]
    return 1.0 / (shares[0] ** 2 / (a.count - 1) + shares[1] ** 2 / (b.count - 1))


def smallest_found(standard_error: float, degrees: float, level: float, power: float) -> float:
    """Difference that a two-sided t test at `level` detects with probability `power`, in the unit of the standard
    error."""
    check_confidence(power)
    if power <= level:
        raise ValueError(f"power must be above the level of the test ({level:g}), not {power}")
    noncentrality = float(nctdtrinc(degrees, 1.0 - power, t_quantile(1.0 - level, degrees)))
    return noncentrality * standard_error


def _difference(
    a: Moments,
    b: Moments,
    error: float,
    degrees: float,
    method: Literal["Welch", "Student"],
    confidence: float,
) -> Difference:
    check_confidence(confidence)
    difference = a.mean - b.mean
    if error == 0.0:
        raise ValueError("neither sample varies: there is no spread to judge their difference by")
    if not (math.isfinite(difference) and math.isfinite(error)):
        raise ValueError("the values are too large to be compared; give them in a larger unit")
    t = difference / error
    half = t_quantile(confidence, degrees) * error
    return Difference(
        difference=difference,
        low=difference - half,
        high=difference + half,
        standard_error=error,
        degrees=degrees,
        p=min(1.0, 2.0 * float(stdtr(degrees, -abs(t)))),
        p_greater=float(stdtr(degrees, -t)),
        p_less=float(stdtr(degrees, t)),
        method=method,
        confidence=confidence,
    )


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
