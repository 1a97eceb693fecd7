"""The trials of one test as columns: what statistics, warnings and comparisons are made from, whatever was read."""

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
    """Shape (trials,), in the order in which the trials were made; NaN where a trial has none."""
    reason: str | None = None
    """Why no trial has a value, where none has."""
    joined: str = ""
    """How each trial's workers or commands became one value (`results.trial_join`); empty where there was one value."""
    workers: int = 1
    """How many workers of a trial have a value, at most."""


class Failure(NamedTuple):
    """A measured command that failed."""

    trial: int
    worker: int
    how: str
    """Such as `exit status 1` or `killed by signal 9 (SIGKILL)`."""
    of_experiment: bool = False
    """Whether it was ended with the experiment: then it says nothing of the command."""


@dataclass(frozen=True, eq=False)
class Series:
    """One test. Arrays have shape (trials,), in the order in which the trials were made."""

    test: str
    trials: Whole
    """Their numbers (epochs)."""
    kept: Flags
    columns: Mapping[str, Column]
    parameters: Mapping[str, str] = field(default_factory=dict)
    blocks: Whole | None = None
    """With which trials of other tests each formed a block; None where there were no blocks."""
    sittings: Whole | None = None
    """None where it is not known: then it was one."""
    stretches: Whole | None = None
    """Sessions between which the experiment itself restarted the machine have one number; None where none did."""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of levels beyond the session (`boot`, `build`, `machine`): which it was, in each trial."""
    why: Sequence[str | None] = ()
    """Why a trial is not kept; empty where that is not known."""
    failures: Sequence[Failure] = ()
    inner: int = 1
    """Launches in each trial."""
    caches: Sequence[Mapping[str, Any] | None] = ()
    """What was done about caches before each trial (docs/formats.md); empty where nothing was asked for."""
    kernel: Sequence[Mapping[str, Any] | None] = ()
    """What the kernel said during each trial, and how often its CPUs were throttled; empty where nothing was."""
    windows: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    """What each trial reported over time (docs/formats.md); empty where none did."""
    spans: Whole | None = None
    """Shape (trials, 2): from its first start to its last end, ns of that boot's monotonic clock, as the host of its
    first worker has it; -1 where that is not known. None where it is known of no trial."""

    def column(self, metric: str) -> Column | None:
        """The metric's column, or None."""
        return self.columns.get(metric)

    def sample(self, metric: str) -> Floats:
        """The metric's finite values over the kept trials, in order; empty where there is none."""
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
    """A test of which no trial was made."""
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
