"""Where a curve bends: sizes between those of a sweep that are worth measuring, too."""

from __future__ import annotations

import numpy as np

from etude.io.points import Points, swept_of
from etude.io.sweeps import Sweep
from etude.report.subject import subject_of
from etude.results.reader import Results

PAGE = 4096


def bends(results: Results, what: Sweep, count: int) -> list[int]:
    """Up to `count` new sizes beside the points where the slope, of logarithms, changes most; rising, bytes."""
    swept = swept_of(subject_of(results, (("bandwidth" if what.over == "buffer" else "elapsed"),)))
    found: dict[int, float] = {}
    for curve in swept.curves:
        for size, change in between(curve):
            found[size] = max(change, found.get(size, 0.0))
    chosen = sorted(found, key=lambda size: -found[size])[:count]
    return sorted(chosen)


def between(curve: Points) -> list[tuple[int, float]]:
    """Sizes halfway, by logarithms, to either side of each inner point, with how much the slope changes there."""
    if curve.sizes.size < 3:
        return []
    x, y = np.log2(curve.sizes), np.log2(curve.medians)
    slopes = np.diff(y) / np.diff(x)
    changes = np.abs(np.diff(slopes))
    found = []
    for point, change in enumerate(changes, 1):
        for side in (point - 1, point):
            size = _round(float(np.exp2((x[side] + x[side + 1]) / 2)))
            if curve.sizes[side] < size < curve.sizes[side + 1]:
                found.append((size, float(change)))
    return found


def _round(size: float) -> int:
    """To whole pages, or, of what is smaller, to eight bytes: nobody has buffers of 5793 bytes."""
    step = PAGE if size > 2 * PAGE else 8
    return max(1, round(size / step) * step)
