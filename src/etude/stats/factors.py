"""What a stop rule pays for looking after every trial.

A rule that stops once its interval is narrow stops most readily when chance made it narrow, so that the
plain interval covers too seldom. Each factor widens the interval, when stopping and when reporting, until
it covers again; the fewer trials a rule may stop at, the larger. Statistics by simulation, see
docs/calibration.md, which bench/calibrate.py writes and a test compares with this file.
"""

from __future__ import annotations

Factors = tuple[tuple[int, float], ...]
"""(smallest `minimum`, factor), the largest minimum first."""

MEAN_FACTORS: Factors = ((10, 1.08), (5, 1.16), (3, 1.30), (2, 1.64))
"""For MeanPrecision: those of the study that it was designed by, checked by bench/calibrate.py."""

RATIO_FACTORS: Factors = ((10, 1.12), (5, 1.16), (3, 1.31), (2, 1.65))
"""For RatioPrecision: found by bench/calibrate.py. Below ten pairs they hold on steady machines only."""


def factor_for(minimum: int, factors: Factors) -> float:
    """The factor of a rule that never stops before `minimum` trials (or pairs). ValueError below two."""
    for smallest, factor in factors:
        if minimum >= smallest:
            return factor
    raise ValueError(f"a stop rule on precision needs a minimum of at least {factors[-1][0]}, not {minimum}")
