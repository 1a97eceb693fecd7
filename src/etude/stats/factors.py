"""When a stop rule on precision looks, and what it pays for looking so often.

A rule that stops once its interval is narrow stops most readily when chance made it narrow, so that the
plain interval covers too seldom. Each factor widens the interval, when stopping and when reporting, until
it covers again; the fewer trials a rule may stop at, the larger. Statistics by simulation, see
docs/calibration.md, which bench/calibrate.py writes and a test compares with this file.
"""

from __future__ import annotations

EACH_UP_TO = 100
"""Trials up to which the rule looks after each; beyond, when their number has grown by one in half as many (2 %)."""

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


def next_look(count: int, minimum: int) -> int:
    """The smallest number of trials (or pairs), from `count` on, at which a rule that begins at `minimum` looks.

    Every one up to `EACH_UP_TO`, then each 2 % more: the looks at a long series together read it about 50 times over,
    however long it is.
    """
    look = minimum
    while look < count:
        look += max(1, 2 * look // EACH_UP_TO)
    return look
