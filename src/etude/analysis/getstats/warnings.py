"""Warnings of Getstats' warnpass about a column: values far from its mean, and means that move with the epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from etude.analysis.getstats.options import Settings
from etude.stats.columns import RAW, metric_name
from etude.stats.predicate import Figures

FREE = ("free", "memory_free", "memory_available")
"""Names of columns of free memory. They are checked even where a table does not show them."""

REGRESSED = ("elapsed", "system", "user", *FREE)
"""Columns whose slope is checked: times, and free memory (Auto-pilot paper, section 3.3)."""


def raw_name(column: str) -> str:
    """Getstats' own name of a column, which its warnings use instead of the table's name."""
    return RAW.get(metric_name(column), column)


def high_scores(
    column: str, values: Iterable[float], places: Iterable[int | str], found: Figures, threshold: float
) -> Iterator[str]:
    """A sentence for each value more than `threshold` deviations from the mean; the sign is dropped.

    places: the epoch of each value, or another place in words.

    Source: the deviation is that with n-1, which reproduces the score printed in figure 2.
    """
    if found.count < 2 or not found.stddev > 0.0:
        return
    for value, place in zip(values, places, strict=True):
        score = abs(value - found.mean) / found.stddev
        if score > threshold:
            where = place if isinstance(place, str) else f"epoch {place}"
            yield f"High z-score of {score:.15g} for {raw_name(column)} in {where}."


def slopes(column: str, found: Figures, threshold: float) -> Iterator[str]:
    """A sentence if the least-squares slope per epoch is more than `threshold` percent of the mean.

    For free memory only a loss counts. The slope is a magnitude without a test of its significance.
    """
    if metric_name(column) not in REGRESSED or found.count < 2 or not found.mean:
        return
    percent = 100.0 * found.slope / abs(found.mean)
    if round(abs(percent), 9) > threshold and (percent < 0.0 or column not in FREE):
        yield f"Linear regression slope for {raw_name(column)} is: {percent:.3f}%."


def warnings_of(
    column: str, values: Iterable[float], places: Iterable[int | str], found: Figures, settings: Settings
) -> Iterator[str]:
    """The warnpass for one column."""
    yield from high_scores(column, values, places, found, settings.high_z)
    if settings.slope is not None:
        yield from slopes(column, found, settings.slope)
