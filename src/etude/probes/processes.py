"""All processes and kernel threads at one moment, with the CPU time that each thread has had, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
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
    found = parse_stat(_read(f"{directory}/stat"))
    if found is None:
        return None
    process, threads = found
    if threads == 1:
        return process._replace(threads={process.pid: parse_schedstat(_read(f"{directory}/schedstat"))})
    try:
        numbers = os.listdir(f"{directory}/task")
    except OSError:
        numbers = []
    times = {
        int(number): parse_schedstat(_read(f"{directory}/task/{number}/schedstat"))
        for number in numbers
        if number.isdecimal()
    }
    return process._replace(threads=times)


def parse_stat(text: bytes) -> tuple[Process, int] | None:
    """/proc/PID/stat as a process without its threads' times, and their number; None if it is none."""
    head, _, tail = text.rpartition(b")")  # the name may hold blanks and parentheses: the last one ends it
    pid, bracket, name = head.partition(b" (")
    words = tail.split()
    if not bracket or len(words) < 20:
        return None
    try:
        parent, user, system, threads, began = (int(words[at]) for at in (1, 11, 12, 17, 19))
        process = Process(
            int(pid), name.decode("utf-8", "replace"), words[0] in b"ZX", parent, user + system, began, {}
        )
    except ValueError:
        return None
    return process, threads


def parse_schedstat(text: bytes) -> int:
    """ns on a CPU, the first number of a schedstat; 0 where the kernel keeps none (then ticks must do)."""
    word = text.partition(b" ")[0]
    return int(word) if word.isdigit() else 0


def _read(path: str) -> bytes:
    """These files are short and made as a whole: one read is all of them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
