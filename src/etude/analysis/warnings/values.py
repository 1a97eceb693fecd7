"""The values that warnings are about, and words for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.analysis.warnings.thresholds import Thresholds
from etude.analysis.warnings.warning import DataWarning, warning
from etude.units.formatting import quantity

Floats = NDArray[np.float64]

NAMED = 5
"""Of so many trials the numbers are named."""

_LARGE, _SMALL = 1e100, 1e-100  # squares and sums of what lies between are numbers, too


@dataclass(frozen=True, eq=False)
class About:
    """One metric of one test: its finite values over the kept trials, in order of time."""

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
    """In how many its trials were made."""

    @property
    def count(self) -> int:
        """Of the values."""
        return int(self.values.size)

    def warn(
        self, kind: str, text: str, advice: str, trials: Iterable[int] = (), **numbers: float | str
    ) -> DataWarning:
        """A warning about this metric, and these trials."""
        return warning(kind, self.test, self.metric, text, advice, trials, **numbers)

    def plain(self, value: float) -> float:
        """A value in units of `unit`."""
        return float(value * self.scale)

    def shown(self, value: float) -> str:
        """A value with its unit."""
        return quantity(self.plain(value), self.unit)


def tamed(values: Floats) -> tuple[Floats, float]:
    """The values in a unit in which they can be squared and summed, and that unit."""
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    if largest == 0.0 or _SMALL < largest < _LARGE:
        return values, 1.0
    exponent = math.frexp(largest)[1] - 1
    return np.ldexp(values, -exponent), math.ldexp(1.0, exponent)


def named(trials: Sequence[int]) -> str:
    """`trial 4`, `trials 4, 9 and 17`, `trials 4, 9, 17, 18, 20 and 3 more`."""
    first = [str(t) for t in trials[:NAMED]]
    if len(trials) == 1:
        return f"trial {first[0]}"
    if len(trials) > NAMED:
        return f"trials {', '.join(first)} and {len(trials) - NAMED} more"
    return f"trials {', '.join(first[:-1])} and {first[-1]}"


def signed(relative: float) -> str:
    """`23 % above`, `4.1 % below`; `2.1 times`, from twice as much on."""
    if 1 <= relative < math.inf:
        return f"{1 + relative:.3g} times"
    return f"{size(relative)} {'above' if relative > 0 else 'below'}"


def size(relative: float) -> str:
    """A change without its sign, as percent; beyond ten times as such."""
    value = abs(relative)
    if not value < 10:
        return f"{value:.3g} times the median" if math.isfinite(value) else "any number of %"
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"
