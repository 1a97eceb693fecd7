"""Where the time of a test went: its own CPU time, waiting, and, where it was measured, whom it waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from etude.results.series import Series

DEVICE = "pressure_io_some"
OTHERS = "others_cpu"


@dataclass(frozen=True)
class TimeBreakdown:
    """Means over the kept trials, seconds a trial (a launch, with several in each trial)."""

    elapsed: float
    user: float
    system: float
    waiting: float
    """elapsed - user - system, of each trial; negative where several CPUs were at work at once."""
    device: float | None
    """Some task of the machine waited for a device (the probe `pressure`); None where that was not measured."""
    others: float | None
    """CPU time of everybody else (the probe `others`); None where that was not measured."""

    @property
    def cpus(self) -> float:
        """CPUs at work on average; above 1 waiting says nothing."""
        return (self.user + self.system) / self.elapsed if self.elapsed > 0.0 else 0.0


def time_spent(series: Series) -> TimeBreakdown | None:
    """Where the time went; None where elapsed, user or system is not known."""
    names = ("elapsed", "user", "system")
    columns = [series.column(name) for name in names]
    if any(column is None for column in columns):
        return None
    values = np.array([column.values[series.kept] for column in columns if column is not None])
    values = values[:, np.isfinite(values).all(axis=0)]
    if values.shape[1] == 0:
        return None
    elapsed, user, system = (float(mean) for mean in values.mean(axis=1))
    return TimeBreakdown(
        elapsed, user, system, elapsed - user - system, _mean(series, DEVICE), _mean(series, OTHERS)
    )


def _mean(series: Series, metric: str) -> float | None:
    values = series.sample(metric)
    return float(values.mean()) if values.size else None
