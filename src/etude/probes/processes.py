"""Snapshot of all processes and kernel threads, with the CPU time of each thread, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from etude.osutil.processes import TICKS_PER_S, Stat, parse_stat, read_short

TICK_NS = 1_000_000_000 // TICKS_PER_S
"""Resolution of CPU times in /proc, 10 ms; the kernel's own tick differs."""

_CLOCK_MONOTONIC_COARSE = 6  # moves once a tick
KERNEL_TICK_NS = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e9)


class Process(NamedTuple):
    """One process: `began` in ticks since boot, `ticks` of CPU time of all its threads, ended ones included.

    `threads` are CPU times of live threads in ns, by id (of a zombie, its own).
    """

    pid: int
    name: str
    zombie: bool
    parent: int
    ticks: int
    began: int
    threads: Mapping[int, int]


@dataclass(frozen=True)
class Snapshot:
    """The processes by id, and the time of reading, in ticks since boot without time asleep."""

    taken: int
    processes: Mapping[int, Process]


def read_processes(root: Path = Path("/")) -> Snapshot:
    """All processes of /proc; one that ends meanwhile may be missing."""
    proc = os.path.join(root, "proc")
    processes = {}
    for name in os.listdir(proc):
        if name.isdecimal() and (process := _read_process(f"{proc}/{name}")) is not None:
            processes[process.pid] = process
    return Snapshot(int(time.monotonic() * TICKS_PER_S), processes)


def _read_process(directory: str) -> Process | None:
    found = parse_stat(read_short(f"{directory}/stat"))
    if found is None:
        return None
    if found.threads == 1:
        return _process(found, {found.pid: parse_schedstat(read_short(f"{directory}/schedstat"))})
    try:
        numbers = os.listdir(f"{directory}/task")
    except OSError:
        numbers = []
    times = {
        int(number): parse_schedstat(read_short(f"{directory}/task/{number}/schedstat"))
        for number in numbers
        if number.isdecimal()
    }
    return _process(found, times)


def _process(seen: Stat, threads: Mapping[int, int]) -> Process:
    ticks = seen.user + seen.system
    return Process(seen.pid, seen.name, seen.ended, seen.parent, ticks, seen.began, threads)


def parse_schedstat(text: bytes) -> int:
    """CPU time in ns, the first number of a schedstat; 0 if the kernel does not count it (then ticks are used)."""
    word = text.partition(b" ")[0]
    return int(word) if word.isdigit() else 0
