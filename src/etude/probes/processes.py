"""All processes and kernel threads at one moment, with the CPU time that each thread has had, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from etude.osutil.processes import TICKS_PER_S, Stat, parse_stat, read_short

TICK_NS = 1_000_000_000 // TICKS_PER_S
"""What /proc counts in, 10 ms; the kernel's own tick is another."""

_CLOCK_MONOTONIC_COARSE = 6  # moves once a tick
KERNEL_TICK_NS = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e9)


class Process(NamedTuple):
    """One process: `began` in ticks since boot, `ticks` of CPU time of all its threads, the ended ones too.

    `threads` are the living ones' ns on a CPU, by number (of a zombie, its own).
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
    """The processes by number, and when they were read, in ticks since boot without the time asleep."""

    taken: int
    processes: Mapping[int, Process]


def read_processes(root: Path = Path("/")) -> Snapshot:
    """What /proc shows; a process that ends meanwhile may be missing."""
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
    """ns on a CPU, the first number of a schedstat; 0 where the kernel keeps none (then ticks must do)."""
    word = text.partition(b" ")[0]
    return int(word) if word.isdigit() else 0
