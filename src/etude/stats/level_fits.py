"""Components of level fits: design matrices of segments and a line, and scales of the noise that are robust to
steps."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from etude.stats.means import BEND

Floats = NDArray[np.float64]


def scale_of(values: Floats, dependence: float) -> float:
    """Robust standard deviation of the noise, from differences of neighbours."""
    steps = np.abs(np.diff(values))
    found = float(np.median(steps)) * 1.4826 if steps.size else 0.0
    if found == 0.0 and steps.size:
        found = float(np.mean(steps)) * math.sqrt(math.pi / 2.0)
    return found / math.sqrt(2.0 * (1.0 - dependence))


def time_of(n: int) -> Floats:
    """Indices of n values, centred."""
    found: Floats = np.arange(n, dtype=np.float64) - (n - 1) / 2.0
    return found


def design_of(bounds: list[int], sloping: bool) -> Floats:
    """Design matrix with a column per segment, and the time as the last one if `sloping`."""
    n, lengths = bounds[-1], np.diff(bounds)
    found = np.zeros((n, lengths.size + sloping))
    found[np.arange(n), np.repeat(np.arange(lengths.size), lengths)] = 1.0
    if sloping:
        found[:, -1] = time_of(n)
    return found


def winsorised(values: Floats) -> Floats:
    """Values winsorised at `BEND` standard deviations of the noise from the median of five neighbours."""
    middle: Floats = np.median(
        np.lib.stride_tricks.sliding_window_view(np.pad(values, 2, mode="edge"), 5), axis=1
    )
    reach = BEND * scale_of(values, 0.0)
    found: Floats = middle + np.clip(values - middle, -reach, reach)
    return found


def spread_of(values: Floats, bounds: list[int]) -> float:
    """Robust standard deviation around the medians of the segments."""
    medians = [np.median(values[a:b]) for a, b in pairwise(bounds)]
    return 1.4826 * float(np.median(np.abs(values - np.repeat(medians, np.diff(bounds)))))
