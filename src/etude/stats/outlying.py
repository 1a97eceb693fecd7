"""Pairs in which something else delayed a run: rows of a table that are far from the others in one of its columns.

Source: the generalized extreme Studentized deviate (Rosner 1983, Percentage points for a generalized ESD many-outlier
procedure), here of the largest deviate of all columns, with Bonferroni's inequality over rows and columns. The number
of outliers is the largest at which the test rejects, so that several do not hide each other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from etude.stats.intervals import t_quantile

LEVEL = 0.01
"""Probability that rows of normal values are said to have an outlier."""
MOST_OF = 5
"""At most one row of this many is an outlier, and at most one of fewer rows."""
LEAST_DEVIATION = 0.1
"""Deviation of a column, as a share of that of the row sums, below which its values do not matter to the sums."""

Floats = NDArray[np.float64]


def outlying_rows(table: Floats) -> NDArray[np.bool_]:
    """True for each outlier among the rows of a table, shape (rows, columns), by its sum and by its values.

    Columns in which most rows have one value, such as 0, are not looked at: there each other value is far away. All
    rows of a table with three rows or fewer are usual.
    """
    rows = len(table)
    outlying = np.zeros(rows, bool)
    varies = np.median(np.abs(table - np.median(table, axis=0)), axis=0) > 0.0
    values = np.column_stack([table.sum(axis=1), table[:, varies]])
    left, removed = np.arange(rows), list[int]()
    for _ in range(max(1, rows // MOST_OF) if rows > 3 else 0):
        deviate, place = _largest(values[left])
        removed.append(int(left[place]))
        if deviate > _critical(left.size, values.shape[1]):
            outlying[removed] = True
        left = np.delete(left, place)
    return outlying


def _largest(values: Floats) -> tuple[float, int]:
    """The largest deviate of any column, in standard deviations of that column, and its row."""
    deviations = values.std(axis=0, ddof=1)
    deviations = np.maximum(deviations, LEAST_DEVIATION * deviations[0])
    apart = np.abs(values - values.mean(axis=0))
    deviates = np.divide(apart, deviations, out=np.zeros_like(apart), where=deviations > 0.0).max(axis=1)
    return float(deviates.max()), int(deviates.argmax())


def _critical(rows: int, columns: int) -> float:
    t = t_quantile(1.0 - LEVEL / (rows * columns), rows - 2.0)
    return (rows - 1.0) * t / math.sqrt((rows - 2.0 + t * t) * rows)
