"""What a verdict costs in a trial: counted in calls of Python functions, which no busy machine makes more."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from etude.analysis.load_subject import read_subject
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.results.model import METRICS as KNOWN
from support.builders import measurement, results_directory
from support.monitored import busy_second, trials_of_seconds

METRICS = ("user", "system", "minor_faults", "voluntary_switches", "peak_memory")
EVERYTHING = VerdictOptions(full=True, every_outlier=True)


def calls(path: Path, verdict_options: VerdictOptions) -> int:
    """How many calls reading and judging these results take."""
    count = 0

    def counting(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        verdict(read_subject(str(path)), None, verdict_options)  # type: ignore[arg-type]
    finally:
        sys.setprofile(before)
    return count


def compared(path: Path, trials: int) -> Path:
    """Two tests in blocks and the first again, with six metrics."""
    noise = np.random.default_rng(5).lognormal(0.0, 0.05, (3, trials, 1 + len(METRICS)))
    names = ("a", "b", "again")
    rows = {
        name: [
            measurement(
                name,
                trial=n,
                metrics={m: [float(v), KNOWN[m].unit] for m, v in zip(("elapsed", *METRICS), x, strict=True)},
            )
            for n, x in enumerate(noise[i])
        ]
        for i, name in enumerate(names)
    }
    tests = [
        {"name": name, "directory": name, "role": "again" if i == 2 else "test", "parameters": {}, "group": 1}
        for i, name in enumerate(names)
    ]
    return results_directory(path, rows, plan={"kind": "script", "primary": "elapsed"}, tests=tests)


def monitored(path: Path, trials: int) -> Path:
    """Trials of a second each, two of which were disturbed by others."""
    lengths = [3 if n in (20, 40) else 1 for n in range(trials)]
    busy = {*range(21, 24), *range(43, 46)}
    readings = []
    for second in range(1, sum(lengths) + 1):
        own, foreign = (0.33, 1.5) if second in busy else (0.97, 0.0)
        reading = busy_second(second, own, foreign)
        reading["v"][0] += 0.3 * (second in busy)
        readings.append(reading)
    return trials_of_seconds(path, lengths, readings)


@pytest.mark.parametrize(("made", "most"), [(compared, 100), (monitored, 60)], ids=["compared", "monitored"])
def test_a_trial_more_costs_few_calls(tmp_path: Path, made: Callable[[Path, int], Path], most: int) -> None:
    counts = {n: calls(made(tmp_path / str(n), n), EVERYTHING) for n in (300, 600, 1200)}
    first, second = (counts[600] - counts[300]) / 300, (counts[1200] - counts[600]) / 600
    assert counts[300] > 300
    assert second <= most
    assert second <= 1.2 * first + 1  # not more the more there are
