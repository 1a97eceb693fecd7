"""Equivalence of two tests within a margin, as opposed to the absence of a significant difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtr

from etude.stats.intervals import t_quantile
from etude.stats.ratio import Ratio
from etude.stats.samples import check_positive, exponential

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
    method: Literal["paired", "unpaired"]
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
    check_positive("margin", margin)
    if not 0.0 < level < 0.5:
        raise ValueError(f"level must be between 0 and 0.5, not {level}")
    if not (0.0 < ratio.standard_error < math.inf and 0.0 < ratio.ratio < math.inf):
        raise ValueError("the ratio does not vary: there is no spread to judge it by")
    centre, error, degrees = math.log(ratio.ratio), ratio.standard_error, ratio.degrees
    together = ratio.together
    p = min(1.0, together * float(stdtr(degrees, (abs(centre) - math.log1p(margin)) / error)))
    half = t_quantile(1.0 - 2.0 * level / together, degrees) * error
    low, high = exponential(centre - half), exponential(centre + half)
    verdict: Literal["the same", "different", "undecided"] = "undecided"
    if p < level:
        verdict = "the same"
    elif low > 1.0 + margin or high < 1.0 / (1.0 + margin):
        verdict = "different"
    return Equivalence(ratio.ratio, low, high, p, verdict, margin, level, ratio.method, together)
