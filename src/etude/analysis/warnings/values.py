"""The values that warnings are about."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.analysis.warnings.facts import Facts
from etude.analysis.warnings.thresholds import Thresholds
from etude.analysis.warnings.warning import DataWarning, warning

Floats = NDArray[np.float64]

_LARGE, _SMALL = 1e100, 1e-100  # squares and sums of values in between are finite


@dataclass(frozen=True, eq=False)
class About:
    """One metric of one test: its finite values over the included trials, in order of time."""

    test: str
    metric: str
    unit: str
    kind: str
    values: Floats
    """Shape (n,), n at least 1, in units of `unit` times `scale`."""
    scale: float
    """1 unless the values are too large or too small to be squared."""
    places: NDArray[np.int64]
    """Number of each trial."""
    thresholds: Thresholds
    sessions: int = 1
    """Number of sessions in which its trials were measured."""

    @property
    def count(self) -> int:
        """Number of values."""
        return int(self.values.size)

    def warn(self, kind: str, facts: Facts, trials: Iterable[int] = ()) -> DataWarning:
        """A warning about this metric, and these trials."""
        return warning(kind, self.test, self.metric, facts, trials)

    def plain(self, value: float) -> float:
        """A value in units of `unit`."""
        return float(value * self.scale)


def tamed(values: Floats) -> tuple[Floats, float]:
    """The values in a unit in which they can be squared and summed, and the scale of that unit."""
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    if largest == 0.0 or _SMALL < largest < _LARGE:
        return values, 1.0
    exponent = math.frexp(largest)[1] - 1
    return np.ldexp(values, -exponent), math.ldexp(1.0, exponent)
