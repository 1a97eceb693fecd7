"""Metrics that trials may know much better than their elapsed time: CPU time, and instructions where they are counted.

They answer another question, since what a command waits for is in neither, so they are named beside the elapsed time
and never in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from etude.results.series import Column, Series
from etude.stats.compare import Ratio

CPU_TIME = "CPU time"
"""user + system."""

CANDIDATES = (CPU_TIME, "instructions")

TIMES_NARROWER = 3.0
"""How many times narrower an interval (or spread) than that of the elapsed time is before it is named."""

LEAST_KNOWN = 0.5
"""Half width of an interval of a ratio above which it says too little to be named."""


@dataclass(frozen=True)
class QuieterMetric:
    """A metric whose ratio the same trials know at least `TIMES_NARROWER` times as well as that of the elapsed time."""

    metric: str
    ratio: Ratio
    floor: float | None = None
    """Its own A/A noise, as of the elapsed time; None where that is not known."""


def with_cpu_time(series: Series) -> Series:
    """The series with user + system of each trial as a column; as it is where either is not known."""
    user, system = series.column("user"), series.column("system")
    if user is None or system is None:
        return series
    spent = Column("s", "cost", user.values + system.values)
    return replace(series, columns={**series.columns, CPU_TIME: spent})
