"""When a load is too much: criteria on response times and errors, each as a share of its limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etude import codec
from etude.peak.window import Window, joined_windows

WORST = 50.0
"""The highest reading: so far beyond its limit nothing more is to be learnt."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One limit; a load is too much when the reading is above it."""

    of: Literal["mean", "percentile", "errors"]
    limit: codec.Above0
    """s for response times; a share of the requests for errors."""
    percent: codec.Percent | None = None
    """Of a percentile: 95 is the 95th."""

    def __post_init__(self) -> None:
        if (self.of == "percentile") != (self.percent is not None):
            raise ValueError(f"a criterion of {self.of} has percent {self.percent!r}")

    def reading(self, windows: Sequence[Window]) -> float | None:
        """What was measured over the limit; None where windows do not tell."""
        whole = joined_windows(windows)
        if self.of == "errors":
            ended = whole.completed + whole.failed
            return min(whole.failed_share / self.limit, WORST) if ended else None
        value = whole.mean_so_far_s if self.percent is None else whole.percentile_s(self.percent)
        if value is None:
            # Nothing came back although something was asked for.
            return WORST if whole.offered and not whole.completed else None
        return min(value / self.limit, WORST)

    def __str__(self) -> str:
        if self.of == "errors":
            return f"errors ≤ {100 * self.limit:g} %"
        what = "mean response" if self.percent is None else f"{self.percent:g} % of responses"
        return f"{what} ≤ {1e3 * self.limit:g} ms"


@dataclass(frozen=True, slots=True)
class Goal:
    """All criteria have to be met."""

    criteria: tuple[Criterion, ...]

    def reading(self, windows: Sequence[Window]) -> float:
        """The worst of the criteria's readings: 1 is the limit; NaN where nothing is known yet."""
        known = [r for c in self.criteria if (r := c.reading(windows)) is not None]
        return max(known, default=math.nan)
