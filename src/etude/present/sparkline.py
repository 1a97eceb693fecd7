"""A sample as a line of bars in the order of its trials, outliers marked below."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from etude.analysis.verdict import MetricSummary
from etude.analysis.verdict_options import VerdictOptions
from etude.results.series import Series
from etude.units.formatting import counted, quantity

LEVELS = "▁▂▃▄▅▆▇█"
MARK = "^"
MOST_NAMED = 6
"""Outliers whose trials are named."""


def bar_lines(
    name: str, series: Series, m: MetricSummary, verdict_options: VerdictOptions, width: int
) -> tuple[str, str, str]:
    """Heading of a sample's sparkline of that width, the sparkline, and the marks below it.

    Outliers are those of which `etude stats` warns: kept, counted, only marked.
    """
    from etude.stats.shape import outlier_places

    values = series.sample(m.metric) - m.corrected_s
    trials = series.places(m.metric)
    far = outlier_places(values, level=verdict_options.thresholds.outliers).tolist()
    bars, marks, each = sparkline(values.tolist(), frozenset(far), width)
    like = m.summary.median or m.summary.mean or None if m.summary else None
    low, high = (quantity(float(end), m.unit, like) for end in (values.min(), values.max()))
    told = f"{name}: {counted(values.size, 'trial')} in order, {low.partition(' ')[0]} … {high}"
    if low == high:
        return f"{name}: {counted(values.size, 'trial')}, all {high}", "", ""
    if each > 1:
        told += f", {each} to a bar (their median)"
    if far:
        named = ", ".join(
            f"{trials[place]} ({quantity(float(values[place]), m.unit, like)})" for place in far[:MOST_NAMED]
        )
        more = f" and {len(far) - MOST_NAMED} more" if len(far) > MOST_NAMED else ""
        told += f"; {MARK} {'outlier: trial' if len(far) == 1 else 'outliers: trials'} {named}{more}"
    return told, bars, marks


def sparkline(values: Sequence[float], outliers: Collection[int], most: int) -> tuple[str, str, int]:
    """The bars, the marks below them, and how many trials each bar stands for.

    values: in order; outliers: the indices of those that do not belong with the rest. The scale goes from the lowest
    to the highest of the others, so that they can still be told apart; an outlier beyond is drawn at its end. Of more
    than `most` values several share a bar: their median, or the outlier where there is one.
    """
    each = -(-len(values) // most)
    others = [value for place, value in enumerate(values) if place not in outliers] or list(values)
    low, high = min(others), max(others)
    bars, marks = [], []
    for begin in range(0, len(values), each):
        places = range(begin, min(begin + each, len(values)))
        far = [place for place in places if place in outliers]
        group = sorted(values[place] for place in far or places)
        bars.append(_bar(group[len(group) // 2], low, high))
        marks.append(MARK if far else " ")
    return "".join(bars), "".join(marks).rstrip(), each


def _bar(value: float, low: float, high: float) -> str:
    if value > high:
        return LEVELS[-1]
    if value < low:
        return LEVELS[0]
    if low == high:
        return LEVELS[len(LEVELS) // 2 - 1]
    return LEVELS[min(len(LEVELS) - 1, int((value - low) / (high - low) * len(LEVELS)))]
