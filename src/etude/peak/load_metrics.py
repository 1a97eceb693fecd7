"""Figures of the trials at one load: rates, errors, response times, and the generator's headroom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etude.peak.bottleneck import headroom
from etude.peak.task import Trial
from etude.peak.window import joined_windows

QUANTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
"""Percent, by name."""


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Figures of all trials at one load; rates in requests/s, times in s. None: unknown."""

    load: float
    offered: float
    completed: float
    errors: float
    """Failed requests as a share of those that ended."""
    mean_s: float | None
    """Mean of the trials' mean responses, each weighted equally."""
    quantiles_s: dict[str, float | None]
    """Quantiles by the names of `QUANTILES`; None also if too few requests were answered (it would be the maximum)."""
    lateness_p99_s: float | None
    """Maximum over the trials."""
    headroom: float | None
    """Share of the generator's capacity that was left, in the trial in which it was busiest."""


def load_figures(trials: Sequence[Trial]) -> LoadFigures:
    """The figures of trials at the same load; at least one has a window."""
    whole = joined_windows([window for trial in trials for window in trial.windows])
    each = [joined_windows(trial.windows) for trial in trials if trial.windows]
    means = [one.mean_so_far_s for one in each if one.mean_so_far_s is not None]
    busy = [trial.generator_busy for trial in trials if trial.generator_busy is not None]
    late = [trial.lateness_p99_s for trial in trials if trial.lateness_p99_s is not None]
    return LoadFigures(
        trials[0].load,
        whole.offered / whole.duration_s,
        whole.completed / whole.duration_s,
        whole.failed_share,
        sum(means) / len(means) if means else None,
        {
            name: whole.answered.percentile_s(percent) if whole.completed * (100 - percent) >= 99.9 else None
            for name, percent in QUANTILES.items()
        },
        max(late, default=None),
        headroom(max(busy)) if busy else None,
    )
