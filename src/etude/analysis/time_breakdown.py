"""Breakdown of a test's time: own CPU time, waiting and its causes; and the time around a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etude.results.series import Series, Whole
from etude.stats.moments import mean_of

DEVICE = "pressure_io_some"
OTHERS = "others_cpu"


@dataclass(frozen=True)
class TimeBreakdown:
    """Means over the included trials (s per trial, or per launch if a trial has several)."""

    elapsed: float
    user: float
    system: float
    waiting: float
    """elapsed - user - system of each trial; negative if several CPUs were busy at once."""
    device: float | None
    """Time that some task of the machine waited for a device (probe `pressure`); None if not measured."""
    others: float | None
    """CPU time of all other processes (probe `others`); None if not measured."""

    @property
    def cpus(self) -> float:
        """Mean number of busy CPUs; above 1 `waiting` has no meaning."""
        return (self.user + self.system) / self.elapsed if self.elapsed > 0.0 else 0.0


def time_spent(series: Series) -> TimeBreakdown | None:
    """Breakdown of the time; None if elapsed, user or system is unknown."""
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


NS_PER_S = 1e9


def seconds_per_trial(tests: Sequence[Series]) -> float | None:
    """Mean time from the start of one trial to the next, over trials of these tests in one session (s).

    It includes all that ran in between: other tests, the baseline against itself, the empty shell. None if no session
    has two trials whose start is known.
    """
    found = [_starts(series) for series in tests if series.spans is not None]
    if not found:
        return None
    sittings, starts = np.concatenate(found, axis=1)
    spans, steps = 0.0, 0
    for sitting in np.unique(sittings):
        within = starts[sittings == sitting]
        spans += float(within.max() - within.min()) / NS_PER_S
        steps += within.size - 1
    return spans / steps if spans > 0.0 else None


def time_span_s(tests: Sequence[Series]) -> float | None:
    """Time from the first start to the last end of included trials (s), summed over sessions; None if unknown."""
    found = [_kept_spans(series) for series in tests if series.spans is not None]
    if not found or not sum(part.shape[1] for part in found):
        return None
    sittings, starts, ends = np.concatenate(found, axis=1)
    every = [sittings == sitting for sitting in np.unique(sittings)]
    return sum(float(ends[there].max() - starts[there].min()) for there in every) / NS_PER_S


def mean_trial_s(series: Series) -> float:
    """Mean time of an included trial with all its launches (s); 0 if unknown."""
    values = series.sample("elapsed")
    return mean_of(values) * series.inner if values.size else 0.0


def _starts(series: Series) -> Whole:
    """Session and start (ns) of each trial whose start is known; shape (2, trials)."""
    assert series.spans is not None
    starts = series.spans[:, 0]
    sittings = np.zeros_like(starts) if series.sittings is None else series.sittings
    found: Whole = np.stack((sittings, starts))[:, starts >= 0]
    return found


def _kept_spans(series: Series) -> Whole:
    """Session, start and end (ns) of each included trial whose times are known; shape (3, trials)."""
    assert series.spans is not None
    sittings = np.zeros_like(series.trials) if series.sittings is None else series.sittings
    there = series.kept & (series.spans[:, 0] >= 0)
    found: Whole = np.stack((sittings, *series.spans.T))[:, there]
    return found
