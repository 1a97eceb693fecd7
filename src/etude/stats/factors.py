"""What a stop rule pays for looking after every trial.

A rule that stops once its interval is narrow stops most readily when chance made it narrow, so that the
plain interval covers too seldom. Each factor widens the interval, when stopping and when reporting, until
it covers again; the fewer trials a rule may stop at, the larger. Statistics by simulation, see
docs/calibration.md: bench/calibrate.py finds the numbers, and a test holds them equal to what it wrote.
"""

from __future__ import annotations

Factors = tuple[tuple[int, float], ...]
"""(smallest `minimum`, factor), the largest minimum first."""

MEAN_FACTORS: Factors = ((10, 1.08), (5, 1.16), (3, 1.30), (2, 1.64))
"""For MeanPrecision."""

RATIO_FACTORS: Factors = ((10, 1.12), (5, 1.16), (3, 1.31), (2, 1.65))
"""For RatioPrecision. Below ten pairs they hold for steady machines, not for one that alternates in speed."""


def factor_for(minimum: int, factors: Factors) -> float:
    """The factor of a rule that never stops before `minimum` trials (or pairs). ValueError below two."""
    for smallest, factor in factors:
        if minimum >= smallest:
            return factor
    raise ValueError(f"a stop rule on precision needs a minimum of at least {factors[-1][0]}, not {minimum}")
