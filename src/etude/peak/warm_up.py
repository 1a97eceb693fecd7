"""How long a trial's first windows read more than its later ones: the warm-up that has to be declared."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from etude.peak.slo_ratio import slo_ratio_of
from etude.peak.task import Task, Trial

Floats = NDArray[np.float64]

FEWEST_TRIALS, FEWEST_WINDOWS = 3, 6
SLOWER = math.log(1.1)
"""The log by which windows have to be slower to count as warm-up."""
SURE = 3.0
"""Standard errors by which they have to be."""


def warm_up_s(task: Task, trials: Sequence[Trial]) -> float | None:
    """Seconds after which windows read as in the second half of a trial; 0 where the first do. Where the first half
    is too short, its length: the warm-up takes as long at least.

    By the mean of all trials of the server that met the goal, window by window, each relative to the median of its own
    second half. None where fewer than three trials have six windows of one length.
    """
    rows, lengths = [], []
    for trial in trials:
        if trial.of_server and len(trial.windows) >= FEWEST_WINDOWS and slo_ratio_of(task.goal, trial) <= 1:
            values = np.array([task.goal.reading([window]) for window in trial.windows])
            if (values > 0).all():
                logs = np.log(values)
                rows.append(logs - np.median(logs[len(logs) // 2 :]))
                lengths.append(trial.windows[0].duration_s)
    if len(rows) < FEWEST_TRIALS or max(lengths) > 1.01 * min(lengths):
        return None
    return min(lengths) * _slow_windows([row[: min(map(len, rows))] for row in rows])


def _slow_windows(rows: Sequence[Floats]) -> int:
    """How many of the first half are slower, up to the last of these."""
    table = np.array(rows)
    half = table.shape[1] // 2
    means = table.mean(axis=0)
    # One window's spread over trials is known badly from few: that of all windows of the second half is taken.
    error = float(table[:, half:].std()) / math.sqrt(len(rows))
    slower = np.flatnonzero(means[:half] > max(SLOWER, SURE * error))
    return int(slower[-1]) + 1 if slower.size else 0
