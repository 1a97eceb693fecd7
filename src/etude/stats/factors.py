"""Looks of stop rules on precision, and the widening factors that correct for repeated looks.

A rule that stops once its interval is narrow tends to stop when it is narrow by chance, so that the plain interval has
too low a coverage. Each factor widens the interval, for stopping and for reporting, to restore the coverage; it is
larger for rules that may stop after fewer trials. The factors are from simulations: bench/calibration/results.md,
which bench/calibrate.py writes and a test compares with this file.
"""

from __future__ import annotations

EACH_UP_TO = 100
"""Trials up to which the rule looks after each; beyond, after each increase by 2 %."""

Factors = tuple[tuple[int, float], ...]
"""(smallest `minimum`, factor), the largest minimum first."""

MEAN_FACTORS: Factors = ((10, 1.08), (5, 1.16), (3, 1.30), (2, 1.64))
"""Factors of MeanPrecision, from its design study, checked by bench/calibrate.py."""

RATIO_FACTORS: Factors = ((10, 1.12), (5, 1.16), (3, 1.31), (2, 1.65))
"""Factors of RatioPrecision, found by bench/calibrate.py. Below ten pairs they hold only on steady machines."""


def factor_for(minimum: int, factors: Factors) -> float:
    """Factor of a rule that never stops before `minimum` trials (or pairs). Raises ValueError below two."""
    for smallest, factor in factors:
        if minimum >= smallest:
            return factor
    raise ValueError(f"a stop rule on precision needs a minimum of at least {factors[-1][0]}, not {minimum}")


def next_look(count: int, minimum: int) -> int:
    """Smallest number of trials (or pairs), from `count` on, at which a rule that begins at `minimum` looks.

    Every one up to `EACH_UP_TO`, then each 2 % more: all looks at a long series together read it about 50 times,
    whatever its length.
    """
    look = minimum
    while look < count:
        look += max(1, 2 * look // EACH_UP_TO)
    return look
