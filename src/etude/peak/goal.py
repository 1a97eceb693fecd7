"""The service level objective (SLO): limits of response times and errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etude import codec
from etude.peak.window import Window, joined_windows

WORST = 50.0
"""Upper bound of SLO ratios: beyond it, more load gives no information."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One limit; a load fails when its SLO ratio is above 1."""

    of: Literal["mean", "percentile", "errors"]
    limit: codec.Above0
    """s for response times; share of requests for errors."""
    percent: codec.Percent | None = None
    """Percentile, for criteria of response time: 95 is the 95th."""

    def __post_init__(self) -> None:
        if (self.of == "percentile") != (self.percent is not None):
            raise ValueError(f"a criterion of {self.of} has percent {self.percent!r}")

    def reading(self, windows: Sequence[Window]) -> float | None:
        """SLO ratio: measured value over limit; None if the windows do not contain it."""
        whole = joined_windows(windows)
        if self.of == "errors":
            ended = whole.completed + whole.failed
            return min(whole.failed_share / self.limit, WORST) if ended else None
        value = whole.mean_so_far_s if self.percent is None else whole.percentile_s(self.percent)
        if value is None:
            # No response although requests were due.
            return WORST if whole.offered and not whole.completed else None
        return min(value / self.limit, WORST)

    def __str__(self) -> str:
        if self.of == "errors":
            return f"errors ≤ {100 * self.limit:g} %"
        what = "mean response" if self.percent is None else f"{self.percent:g} % of responses"
        return f"{what} ≤ {1e3 * self.limit:g} ms"


@dataclass(frozen=True, slots=True)
class Goal:
    """Criteria that must all be met."""

    criteria: tuple[Criterion, ...]

    def reading(self, windows: Sequence[Window]) -> float:
        """The highest SLO ratio of the criteria: 1 is the limit; NaN if nothing is known yet."""
        known = [r for c in self.criteria if (r := c.reading(windows)) is not None]
        return max(known, default=math.nan)
