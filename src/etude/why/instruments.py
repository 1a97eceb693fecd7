"""Instruments: what a trial is run under, and what is read of the file that each trial leaves."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from etude.errors import InputError, MachineRefuses
from etude.experiment.test import Test
from etude.iotrace.profile import BOTH, READS, WRITES
from etude.iotrace.reader import read_trace
from etude.osutil.commands import Done, run_to_end
from etude.program import engine_path
from etude.why.causes import Cause
from etude.why.critical_path import causes_of
from etude.why.timeline import timeline_of

Instrument = Literal["timeline", "calls"]
INSTRUMENTS: tuple[Instrument, ...] = ("timeline", "calls")
RATE_HZ = 1999
"""Samples a second of a thread on a CPU; a prime number, so that they are not in step with a timer."""
PATIENCE_S = 300.0
_PERF = ("perf", "record", "-q", "--switch-events", "-g")
_EVENTS = ("-e", f"cpu-clock/freq={RATE_HZ}/", "-e", "sched:sched_switch", "-e", "sched:sched_wakeup")
_SCRIPT = ("--ns", "--show-switch-events", "--show-task-events", "--show-lost-events")
_FIELDS = "comm,pid,tid,time,event,ip,sym,dso,trace"


@dataclass(frozen=True)
class Run:
    """The timeline of one run."""

    causes: Mapping[Cause, float]
    """Seconds of each cause on the critical path; their sum is the time of the run."""
    lost: int = 0
    """Number of events that perf lost."""

    @property
    def elapsed_s(self) -> float:
        """Time of the run, s."""
        return sum(self.causes.values())


@dataclass(frozen=True)
class CallCount:
    """Recorded calls of one name about one file."""

    count: int
    bytes: int


Calls = Mapping[tuple[str, str], CallCount]
"""The recorded calls of one run by call and file; the file is empty for calls about none."""


def missing(instrument: Instrument) -> str:
    """Reason why an instrument cannot be used here, in one line; empty if it can."""
    if instrument == "calls":
        return ""
    if shutil.which("perf") is None:
        return "no program perf: causes in time are not known; install the Debian package linux-perf"
    tried = _run(*_PERF, *_EVENTS, "-o", "/dev/null", "--", "true")
    if tried.status == 0:
        return ""
    errors = tried.errors.decode("utf-8", "replace").splitlines()
    said = next((line.strip() for line in errors if line.strip()), "it failed")
    return f"perf record is refused here ({said}): causes in time are not known; try as root"


def under(instrument: Instrument, test: Test, place: Path) -> Test:
    """The test with its command run under an instrument, which leaves a file in `place` for each run.

    Raises:
        MachineRefuses: Étude's engine is missing.
    """
    words = (*_PERF, *_EVENTS) if instrument == "timeline" else (engine_path(), "record", "-q")
    line = f'f=$1/$$; shift; exec {shlex.join(words)} -o "$f" -- "$@"'
    command = ("/bin/sh", "-c", line, "etude-why", str(place.absolute()), *test.command)
    return replace(test, name=f"{test.name}: {instrument}", command=command, metrics=())


def read_timeline(path: Path) -> Run:
    """The causes of a run, from perf's file. Raises InputError: it cannot be read."""
    shown = _run("perf", "script", "-i", str(path), *_SCRIPT, "-F", _FIELDS)
    timeline = timeline_of(shown.text.splitlines())
    if timeline.root is None:
        raise InputError(f"{path}: perf recorded nothing: {shown.why}")
    return Run(causes_of(timeline), timeline.lost)


def read_calls(path: Path) -> Calls:
    """The calls of a run, from the recorder's trace. Raises InputError: it cannot be read."""
    trace = read_trace(path)
    many = len(trace.files)
    keys = trace.call.astype(np.int64) * many + trace.file
    moves = np.array([name in {*READS, *WRITES, *BOTH} for name in trace.names], bool)[trace.call]
    moved = np.where(moves, np.maximum(trace.result, 0), 0)
    kinds, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.zeros(kinds.size, np.int64)
    np.add.at(sums, places, moved)
    return {
        (trace.names[key // many], trace.files[key % many]): CallCount(count, total)
        for key, count, total in zip(kinds.tolist(), counts.tolist(), sums.tolist(), strict=True)
    }


def _run(*words: str) -> Done:
    try:
        return run_to_end(words, patience_s=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineRefuses(f"{words[0]} {words[1]}: {error}") from None
