"""What a sample says, as far as it is exported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from etude.export.document import Figures
from etude.stats.describe import Summary, describe
from etude.stats.means import Kind


def figures_of(
    values: Sequence[float], kind: str, *, confidence: float, factor: float = 1.0
) -> Figures | None:
    """Of the values; None where there are none."""
    if not values:
        return None
    return of_summary(describe(values, cast(Kind, kind), confidence=confidence, factor=factor))


def of_summary(summary: Summary) -> Figures:
    """Of a summary that is there already."""
    interval = summary.mean_interval
    return Figures(
        summary.count,
        _finite(summary.mean),
        _finite(interval.low) if interval else None,
        _finite(interval.high) if interval else None,
        summary.median,
        summary.minimum,
        summary.maximum,
        summary.deviation,
    )


def _finite(value: float) -> float | None:
    """No format has a word for an open end, as the interval of a harmonic mean may have."""
    return value if math.isfinite(value) else None
