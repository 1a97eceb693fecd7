"""Instruments: what a trial is run under, and what is read of the file that each trial leaves."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from etude.errors import InputError, MachineRefuses
from etude.experiment.test import Test
from etude.iotrace.profile import BOTH, READS, WRITES
from etude.iotrace.reader import Trace, read_trace
from etude.osutil.commands import Done, run_to_end
from etude.program import engine_path
from etude.why.causes import Cause
from etude.why.critical_path import path_times
from etude.why.stacks import Stacks, summed
from etude.why.timeline import timeline_of

Instrument = Literal["timeline", "calls", "instructions"]
INSTRUMENTS: tuple[Instrument, ...] = ("timeline", "calls")
"""Those that pairs of trials are run under; instructions are counted in runs of their own."""
RATE_HZ = 1999
"""Samples a second of a thread on a CPU; a prime number, so that they are not in step with a timer."""
PATIENCE_S = 300.0
INSTEAD = "causes are the recorded calls of the first thread; its functions and what other threads did are not known"
_PERF = ("perf", "record", "-q", "--switch-events", "--no-bpf-event", "--no-buildid", "--no-buildid-cache")
"""Without what perf does at its end about all programs of the machine: it takes longer than a short run."""
_EVENTS = (
    *("-e", f"cpu-clock/freq={RATE_HZ},call-graph=dwarf,stack-size=4096/"),
    *("-e", "sched:sched_switch/call-graph=dwarf,stack-size=2048/"),
    *("-e", "sched:sched_waking/call-graph=fp/"),
)
"""Callers are found without frame pointers. sched_waking is of the thread that wakes; sched_wakeup may be of the CPU on
which the woken one goes on."""
_SIMULATOR = ("valgrind", "-q", "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes")
_FILES = "--cachegrind-out-file="
_SCRIPT = ("--no-inline", "--ns", "--show-switch-events", "--show-task-events", "--show-lost-events")
_FIELDS = "comm,pid,tid,time,event,ip,sym,dso,trace"


@dataclass(frozen=True)
class Run:
    """The timeline of one run."""

    causes: Mapping[Cause, float]
    """Seconds of each cause on the critical path; their sum is the time of the run."""
    lost: int = 0
    """Number of events that perf lost."""
    stacks: Stacks = field(default_factory=dict)
    """Seconds of each stack on the critical path; empty in results of an Étude that did not keep them."""

    @property
    def elapsed_s(self) -> float:
        """Time of the run, s."""
        return math.fsum(self.causes.values())


@dataclass(frozen=True)
class CallCount:
    """Recorded calls of one name about one file."""

    count: int
    bytes: int
    seconds: float = 0.0
    """Time in them, summed over all threads."""


Calls = Mapping[tuple[str, str], CallCount]
"""The recorded calls of one run by call and file; the file is empty for calls about none."""


def missing(instrument: Instrument, tests: Sequence[Test] = ()) -> str:
    """Reason why an instrument cannot be used here, for these tests, in one line; empty if it can."""
    if instrument == "calls":
        return ""
    for test in tests:
        program = shutil.which(test.command[0], path=test.environment.get("PATH")) or ""
        if program and os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID):
            return f"{test.name}: {program} is setuid, and perf does not follow it: {INSTEAD}"
    if shutil.which("perf") is None:
        return f"no program perf (install the Debian package linux-perf): {INSTEAD}"
    try:
        tried = _run(*_PERF, *_EVENTS, "-o", "/dev/null", "--", "true")
    except MachineRefuses as error:
        return f"{error}: {INSTEAD}"
    if tried.status == 0:
        return ""
    errors = tried.errors.decode("utf-8", "replace").splitlines()
    said = next((line.strip() for line in errors if line.strip()), "it failed")
    return f"perf record is refused here ({said}; try as root): {INSTEAD}"


def under(instrument: Instrument, test: Test, place: Path) -> Test:
    """The test with its command run under an instrument, which leaves a file in `place` for each run, or a
    directory with one of each process (instructions). Its set-up and
    clean-up are those of the plain test, beside which it runs.

    Raises:
        MachineRefuses: Étude's engine is missing.
    """
    words = (*_PERF, *_EVENTS) if instrument == "timeline" else (engine_path(), "record", "-q")
    line = f'f=$1/$$; shift; exec {shlex.join(words)} -o "$f" -- "$@"'
    if instrument == "instructions":
        line = f'f=$1/$$; shift; mkdir "$f"; exec {shlex.join(_SIMULATOR)} "{_FILES}$f/%p" -- "$@"'
    command = ("/bin/sh", "-c", line, "etude-why", str(place.absolute()), *test.command)
    return replace(
        test, name=f"{test.name}: {instrument}", command=command, metrics=(), setup=None, cleanup=None
    )


def read_timeline(path: Path) -> Run:
    """The causes of a run, from perf's file. Raises InputError: it cannot be read."""
    shown = _run("perf", "script", "-i", str(path), *_SCRIPT, "-F", _FIELDS)
    timeline = timeline_of(shown.text.split("\n"))
    if timeline.root is None:
        raise InputError(f"{path}: perf recorded nothing that can be read; has the program an odd name?")
    timeline.lost += shown.status != 0
    times = path_times(timeline)
    causes = summed((cause, s) for (cause, _), s in times.items())
    return Run(
        causes, timeline.lost, summed(((cause.process, stack), s) for (cause, stack), s in times.items())
    )


def with_common_names(sides: tuple[Sequence[Run], Sequence[Run]]) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs with one name for the program that takes the most time in one test alone and that which does in the
    other alone, such as `old` and `new`: they are two versions of one program, whose functions are compared."""
    times = [summed((c.process, s) for run in side for c, s in run.causes.items()) for side in sides]
    own = [
        max((name for name in mine if name not in other), key=mine.__getitem__, default="")
        for mine, other in (times, times[::-1])
    ]
    if not all(own):
        a, b = map(tuple, sides)
        return a, b
    a, b = (
        tuple(_renamed(run, name, " → ".join(own)) for run in side)
        for side, name in zip(sides, own, strict=True)
    )
    return a, b


def _renamed(run: Run, old: str, new: str) -> Run:
    causes = {replace(c, process=new) if c.process == old else c: s for c, s in run.causes.items()}
    stacks = {(new if process == old else process, stack): s for (process, stack), s in run.stacks.items()}
    return replace(run, causes=causes, stacks=stacks)


def read_calls(path: Path) -> Calls:
    """The calls of a run, from the recorder's trace. Raises InputError: it cannot be read."""
    return call_sums(read_trace(path))


def call_sums(trace: Trace) -> dict[tuple[str, str], CallCount]:
    """Number, bytes and time of the calls of a trace by call and file."""
    moves = np.array([name in {*READS, *WRITES, *BOTH} for name in trace.names], bool)[trace.call]
    return _sums(trace, np.where(moves, np.maximum(trace.result, 0), 0), np.ones(trace.events, bool))


def read_first_thread(path: Path) -> Run:
    """The time of a command's first thread by its recorded calls, from the recorder's trace.

    Raises:
        InputError: it cannot be read.
    """
    trace = read_trace(path)
    first = next(each for each in trace.meta if each.get("what") == "exec")
    program, begin_ns = first["executable"].rpartition("/")[2], first["at_ns"]
    pid = next(m["pid"] for m in trace.meta if m.get("what") == "process" and m["process"] == 0)
    own = {
        m["thread"] for m in trace.meta if m.get("what") == "thread" and m["process"] == 0 and m["tid"] == pid
    }
    mine = np.isin(trace.thread, list(own)) & (trace.start_ns >= begin_ns)
    causes = {
        Cause(program, "recorded call", call, file): each.seconds
        for (call, file), each in _sums(trace, np.zeros(trace.events, np.int64), mine).items()
    }
    ended = [m["at_ns"] for m in trace.meta if m.get("what") == "ended" and m["process"] == 0]
    whole_s = (max([*ended, begin_ns]) - begin_ns) * 1e-9
    outside_s = max(whole_s - sum(causes.values()), 0.0)
    return Run({**causes, Cause(program, "outside of calls", "outside of the recorded calls"): outside_s})


def _sums(
    trace: Trace, moved: NDArray[np.int64], kept: NDArray[np.bool_]
) -> dict[tuple[str, str], CallCount]:
    """The kept calls by call and file."""
    many = len(trace.files)
    keys = (trace.call.astype(np.int64) * many + trace.file)[kept]
    kinds, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    bytes_, ns = np.zeros(kinds.size, np.int64), np.zeros(kinds.size, np.int64)
    np.add.at(bytes_, places, moved[kept])
    np.add.at(ns, places, trace.duration_ns[kept])
    return {
        (trace.names[key // many], trace.files[key % many]): CallCount(count, total, time * 1e-9)
        for key, count, total, time in zip(
            kinds.tolist(), counts.tolist(), bytes_.tolist(), ns.tolist(), strict=True
        )
    }


def _run(*words: str) -> Done:
    try:
        return run_to_end(words, patience_s=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineRefuses(f"{words[0]} {words[1]}: {error}") from None
