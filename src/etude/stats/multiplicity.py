"""Many tests at once: p-values adjusted so that the many do not find what is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Adjusted:
    """A p-value as it came and as it counts among the others; both None where there was none."""

    raw: float | None
    adjusted: float | None


def of_many(confidence: float, together: int) -> float:
    """Confidence of each of so many intervals at which all of them hold together at `confidence` (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / together


def holm(p: Sequence[float | None]) -> tuple[Adjusted, ...]:
    """For a few claims each of which matters (configurations): at most 5 % to find anything at all that is not there.

    p: one a test, in any order; None where a test could not be made, which then does not count.
    Reject where the adjusted value is below the level. Raises ValueError for what is no probability.
    Source: Holm (1979), "A simple sequentially rejective multiple test procedure"; as R's p.adjust("holm").
    """

    def steps(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
        left = ordered.size - np.arange(ordered.size)
        found: NDArray[np.float64] = np.maximum.accumulate(ordered * left)
        return found

    return _adjust(p, steps)


def benjamini_hochberg(p: Sequence[float | None]) -> tuple[Adjusted, ...]:
    """For many secondary metrics: at most 5 % of what is found is not there, on average.

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
