"""Multiple tests: p-values adjusted for their number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Adjusted:
    """A raw and an adjusted p-value; both None if there was no test."""

    raw: float | None
    adjusted: float | None


def bonferroni_confidence(confidence: float, together: int) -> float:
    """Confidence of each of `together` intervals that hold simultaneously at `confidence` (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / together


def holm(p: Sequence[float | None]) -> tuple[Adjusted, ...]:
    """Adjusted p-values for a few important claims (configurations): familywise error rate of 5 %.

    p: one per test, in any order; None for a test that could not be made, which does not count.
    Reject if the adjusted value is below the level. Raises ValueError for an invalid probability.
    Source: Holm (1979), "A simple sequentially rejective multiple test procedure"; as R's p.adjust("holm").
    """

    def steps(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
        left = ordered.size - np.arange(ordered.size)
        found: NDArray[np.float64] = np.maximum.accumulate(ordered * left)
        return found

    return _adjust(p, steps)


def benjamini_hochberg(p: Sequence[float | None]) -> tuple[Adjusted, ...]:
    """Adjusted p-values for many secondary metrics: false discovery rate of 5 %.

    Arguments and errors as for `holm`. Holds for independent and for positively dependent tests.
    Source: Benjamini and Hochberg (1995); as scipy.stats.false_discovery_control.
    """

    def steps(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
        place = np.arange(1, ordered.size + 1)
        found: NDArray[np.float64] = np.minimum.accumulate((ordered * (ordered.size / place))[::-1])[::-1]
        return found

    return _adjust(p, steps)


def _adjust(
    p: Sequence[float | None], steps: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> tuple[Adjusted, ...]:
    for value in p:
        if value is not None and not (math.isfinite(value) and 0.0 <= value <= 1.0):
            raise ValueError(f"a p-value must be between 0 and 1, not {value}")
    known = [(value, i) for i, value in enumerate(p) if value is not None]
    order = sorted(known)
    found = np.minimum(1.0, steps(np.array([value for value, _ in order], dtype=np.float64)))
    adjusted = {i: float(value) for (_, i), value in zip(order, found, strict=True)}
    return tuple(Adjusted(value, adjusted.get(i)) for i, value in enumerate(p))
