"""MLRsearch as a peer: its search for the highest rate without loss, on the benches that policies are tried on.

The library of FD.io's CSIT, which implements the IETF's draft of that name. It is no dependency of Étude: the pinned
version is installed by pip into a directory below build/. It knows loss alone, so a trial whose mean is above the limit
is one with loss: those of its requests that the server did not answer, and one at least. (Of ways to say how far above
it was, this one costs it least: what is answered is the hint that it goes by.) It has no seed and begins at the highest
load. A load is decided by three trials of the run length, of which more than half decide (exceed ratio 0.5). The peak
is the middle of its bounds. Its clock is the wall's, which a simulation does not use, so its limit on the duration of a
search is lifted.
"""

from __future__ import annotations

import math
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy

from etude.peak.search import Bench
from etude.peak.task import Answer, Task, Trial, TrialRequest, slo_ratio_of
from rows import BUILD

PINNED = "MLRsearch==1.2.1"
WIDTH = 0.05
TRIALS = 3
COUNT = 1_000_000
"""Requests of which losses are a share: the library counts."""


def installed() -> Path | None:
    """Where the library is; installed at the first use. None where pip cannot, which is said."""
    place = BUILD / PINNED.replace("==", "-")
    if not (place / "MLRsearch").is_dir():
        words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"]
        done = subprocess.run([sys.executable, *words, str(place), PINNED], capture_output=True, check=False)
        if done.returncode:
            print(f"bench: pip cannot install {PINNED}: left out", file=sys.stderr)
            return None
    return place


def versions(place: Path | None) -> list[str]:
    """Of the libraries that searches compute with, and of this one."""
    return [f"numpy {np.__version__}", f"scipy {scipy.__version__}", PINNED if place else "no MLRsearch"]


def library(place: Path) -> ModuleType:
    if str(place) not in sys.path:
        sys.path.append(str(place))
    return import_module("MLRsearch")


def search(place: Path | None, task: Task, bench: Bench, width: float = WIDTH) -> Answer:
    if place is None:
        raise RuntimeError("MLRsearch is not installed")
    from_there = library(place)
    goal = from_there.SearchGoal(
        loss_ratio=0.0,
        exceed_ratio=0.5,
        relative_width=width,
        initial_trial_duration=task.runlength_s,
        final_trial_duration=task.runlength_s,
        duration_sum=TRIALS * task.runlength_s,
        fail_fast=False,
    )
    config = from_there.Config()
    config.goals = (goal,)
    config.min_load = task.lowest
    config.max_load = task.highest
    config.warmup_duration = None
    config.search_duration_max = 1e12
    measurer = _measurer(from_there, task, bench)
    found = from_there.MultipleLossRatioSearch(config=config).search(measurer, debug=lambda text: None)[goal]
    low = float(found.relevant_lower_bound) if found.relevant_lower_bound else 0.0
    high = float(found.relevant_upper_bound) if found.relevant_upper_bound else math.inf
    both = low > 0 and math.isfinite(high)
    rate = (low + high) / 2 if both else None
    return Answer(rate, low, high, math.nan, both, f"bounds {100 * width:g} % apart")


def _measurer(from_there: ModuleType, task: Task, bench: Bench) -> Any:
    class Measurer(from_there.AbstractMeasurer):  # type: ignore[name-defined, misc]
        def measure(self, intended_duration: float, intended_load: float) -> Any:
            request = TrialRequest(intended_load, intended_duration, "asked for by MLRsearch")
            return from_there.MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=COUNT,
                loss_count=lost(task, bench.run(request, lambda windows: False)),
            )

    return Measurer()


def lost(task: Task, trial: Trial) -> int:
    """Of COUNT requests; none where the limit is kept."""
    if slo_ratio_of(task.goal, trial) <= 1:
        return 0
    offered = sum(window.offered for window in trial.windows)
    answered = sum(window.completed for window in trial.windows)
    return max(COUNT - round(COUNT * answered / max(offered, 1)), 1)
