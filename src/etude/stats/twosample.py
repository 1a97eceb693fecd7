"""Difference of the means of two independent samples: Welch's and Student's t, and the ratio of means.

Sample 1 is the first argument: differences are u1 - u2. Drift between the two samples and dependence within one are not
modelled: for trials in blocks use `ratio.paired_ratio`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import nctdtrinc, stdtr

from etude.stats.intervals import t_quantile
from etude.stats.moments import Moments, Sample, moments_of
from etude.stats.samples import check_confidence


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


@dataclass(frozen=True)
class MeansRatio:
    """mean 1 / mean 2 with its interval; the limits need not be symmetrical."""

    ratio: float
    low: float
    high: float
    confidence: float


def ratio_of_means(first: Sample, second: Sample, *, confidence: float = 0.95) -> MeansRatio:
    """u1 / u2, also from summaries; `compare.unpaired_ratio` is that of geometric means, from values only.

    Raises ValueError if the second mean is not significantly different from zero: every ratio would then be possible.
    Source: Fieller (1954), "Some problems in interval estimation", with Welch's degrees of freedom for u1 - ratio·u2.
    """
    check_confidence(confidence)
    a, b = moments_of(first), moments_of(second)
    if b.mean == 0.0:
        raise ValueError("a ratio needs a divisor other than zero")
    ratio = a.mean / b.mean
    scaled = Moments(b.count, b.mean, min(b.deviation * abs(ratio), 1e300))
    t = t_quantile(confidence, welch_degrees(a, scaled)) if a.deviation or b.deviation else 0.0
    doubt = (t * (b.standard_error / b.mean)) ** 2
    if doubt >= 1.0:
        raise ValueError(
            "the mean of the baseline is not distinguishable from zero: the ratio has no interval"
        )
    half = t * math.hypot(
        a.standard_error / b.mean * math.sqrt(1.0 - doubt), ratio * b.standard_error / b.mean
    )
    return MeansRatio(ratio, (ratio - half) / (1.0 - doubt), (ratio + half) / (1.0 - doubt), confidence)


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
