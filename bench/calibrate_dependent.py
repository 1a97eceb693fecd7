"""Trials that depend on the one before: the interval of the median, and comparisons that are not paired."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from calibrate_tables import paragraph, share, table
from etude.stats.compare import Ratio, unpaired_mean_ratio, unpaired_ratio
from etude.stats.intervals import median_interval
from etude.stats.series import autoregressive, normal
from etude.stats.simulation import Floats

CV = 0.1
SERIES = (
    ("independent", normal(CV)),
    *((f"AR(1) {r:g}", autoregressive(r, CV)) for r in (0.3, 0.6, 0.8)),
)
COUNTS = (10, 20, 30, 50, 100)


def section(rng: Generator, replications: int) -> list[str]:
    """All lines on medians and unpaired ratios of dependent trials."""
    few = min(replications, 4000)  # these call the library one series at a time
    rows = []
    for name, draw in SERIES:
        for count in COUNTS:
            first, second = draw(rng, few, count), draw(rng, few, count)
            mixed = [rng.permuted(x, axis=1) for x in (first, second)]
            rows.append(
                [
                    name,
                    str(count),
                    _medians(mixed[0], few),
                    _medians(first, few),
                    _false(unpaired_mean_ratio, *mixed),
                    _false(unpaired_mean_ratio, first, second),
                    _false(unpaired_ratio, first, second),
                ]
            )
    return [
        "## 4. Dependent trials",
        "",
        *paragraph(
            f"Medians, and two identical tests one after the other, with trials of cv {100 * CV:g} % that depend",
            f"on the one before; {few} replications each. What the median's interval covers, in brackets the share",
            "of series too short for one; and how often an unpaired ratio of means, or of geometric means, excludes",
            "1, in %.",
            '"shuffled": the same trials in random order, which is what a method does that takes them for independent.',
        ),
        *table(
            ["trials", "n", "median, shuffled", "median", "means, shuffled", "means", "geometric means"], rows
        ),
    ]


def _medians(series: Floats, replications: int) -> str:
    found = [each for x in series if (each := median_interval(x)) is not None]
    none = f" ({100 * (1 - len(found) / replications):.0f})" if len(found) < replications else ""
    if not found:
        return f"–{none}"
    return share(float(np.mean([i.low <= 1.0 <= i.high for i in found])), len(found)) + none


def _false(ratio: Callable[[Floats, Floats], Ratio], base: Floats, other: Floats) -> str:
    found = [ratio(x, y) for x, y in zip(base, other, strict=True)]
    return f"{100 * np.mean([r.low > 1.0 or r.high < 1.0 for r in found]):.1f}"
