"""The trials of one test as columns: the input of statistics, warnings and comparisons, whatever the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Column(NamedTuple):
    """One metric over the trials of a test, joined over each trial's commands and workers."""

    unit: str
    kind: str
    """cost, rate, ratio, count or binary."""
    values: Floats
    """Shape (trials,), in the order in which the trials were made; NaN for missing values."""
    reason: str | None = None
    """Reason why no trial has a value, if none has."""
    joined: str = ""
    """Join of each trial's workers or commands (`results.trial_join`); empty for single values."""
    workers: int = 1
    """Maximum number of workers of a trial with a value."""


class Failure(NamedTuple):
    """A measured command that failed."""

    trial: int
    worker: int
    how: str
    """Description, such as `exit status 1` or `killed by signal 9 (SIGKILL)`."""
    of_experiment: bool = False
    """True if it was ended together with the experiment, which is no fault of the command."""


@dataclass(frozen=True, eq=False)
class Series:
    """One test. Arrays have shape (trials,), in the order in which the trials were made."""

    test: str
    trials: Whole
    """Numbers of the trials (epochs)."""
    kept: Flags
    columns: Mapping[str, Column]
    parameters: Mapping[str, str] = field(default_factory=dict)
    blocks: Whole | None = None
    """Block of each trial, shared with trials of other tests; None without blocks."""
    sittings: Whole | None = None
    """Session of each trial; None if unknown: one session."""
    stretches: Whole | None = None
    """Session groups: sessions between which the experiment itself restarted the machine share a number; None without
    such restarts."""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values of levels beyond the session (`boot`, `build`, `machine`), for each trial."""
    why: Sequence[str | None] = ()
    """Reason of exclusion of each trial; empty if unknown."""
    failures: Sequence[Failure] = ()
    inner: int = 1
    """Launches in each trial."""
    caches: Sequence[Mapping[str, Any] | None] = ()
    """Cache preparation before each trial (docs/formats.md); empty if none was requested."""
    kernel: Sequence[Mapping[str, Any] | None] = ()
    """Kernel messages and CPU throttling during each trial; empty if there were none."""
    windows: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    """Windows reported by each trial (docs/formats.md); empty if there were none."""
    spans: Whole | None = None
    """Shape (trials, 2): first start and last end, ns of that boot's monotonic clock, on the host of the first
    worker; -1 if unknown. None if unknown for all trials."""

    def column(self, metric: str) -> Column | None:
        """The metric's column, or None."""
        return self.columns.get(metric)

    def sample(self, metric: str) -> Floats:
        """The metric's finite values over the included trials, in order; empty if there are none."""
        column = self.columns.get(metric)
        if column is None:
            return np.empty(0)
        values = column.values[self.kept]
        return values[np.isfinite(values)]

    def places(self, metric: str) -> Whole:
        """The trials' numbers that go with `sample`."""
        column = self.columns.get(metric)
        if column is None:
            return np.empty(0, dtype=np.int64)
        return self.trials[self.kept & np.isfinite(column.values)]


def no_trials(test: str, parameters: Mapping[str, str]) -> Series:
    """A test without trials."""
    none = np.empty(0, dtype=np.int64)
    labels = {"boot": (), "machine": ()}
    return Series(
        test=test,
        trials=none,
        kept=none.astype(np.bool_),
        columns={},
        parameters=parameters,
        blocks=none,
        sittings=none,
        labels=labels,
        spans=none.reshape(0, 2),
    )
