"""CPU time by process name between two readings of /proc: differences of live processes, exit records of dead ones.

Readings are of all processes and kernel threads, with the CPU time of each thread. No time is counted twice;
descendants of the engine, which are the measured command, are separate.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from etude.osutil.processes import TICKS_PER_S, Stat, parse_stat, read_short
from etude.probes.taskstats import Exit

TICK_NS = 1_000_000_000 // TICKS_PER_S
"""Resolution of CPU times in /proc, 10 ms; the kernel's own tick differs."""


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


OURS = "(etude)"
KERNEL_THREADS = 2  # kthreadd, the parent of all other kernel threads

# A total in ticks is the sum of two rounded-down values, and so is the one that it is compared with.
_TICKS_OFF = 2

Key = tuple[int, int]
"""A process: its id, and the number of ended processes with the same id before it."""


@dataclass(frozen=True)
class Share:
    """CPU time of all processes of one name."""

    name: str
    cpu_ns: int
    processes: int


@dataclass(frozen=True)
class Account:
    """Processes that used CPU time, most first; and the time of the measured command, as far as it is known."""

    others: tuple[Share, ...]
    measured_ns: int


@dataclass
class _Used:
    parent: Key
    name: str
    cpu_ns: int = 0


@dataclass(frozen=True)
class Readings:
    """Two readings and the exit records in between.

    `exits` arrived before `after` was taken, `late` while it was: their processes may appear in it as alive.
    """

    before: Snapshot
    exits: Sequence[Exit]
    after: Snapshot
    late: Sequence[Exit] = ()


def account(readings: Readings, engine_pid: int, own_pid: int) -> Account:
    """CPU time by process name. Descendants of `engine_pid` are the measured command; itself and `own_pid` are `OURS`.

    With an `engine_pid` of 0 there is no engine.
    """
    used = _Table(readings).used
    times: dict[str, list[int]] = {}
    measured = _Descent(used, readings.before, engine_pid or -1)
    measured_ns = 0
    for key, process in used.items():
        if process.cpu_ns <= 0:
            continue
        if measured(key):
            measured_ns += process.cpu_ns
        else:
            times.setdefault(_name(key, process, used, engine_pid, own_pid), []).append(process.cpu_ns)
    shares = [Share(name, sum(each), len(each)) for name, each in times.items()]
    return Account(tuple(sorted(shares, key=lambda share: (-share.cpu_ns, share.name))), measured_ns)


class _Table:
    """CPU time by process, in order of ends: a reused process id is another process."""

    def __init__(self, readings: Readings) -> None:
        self.used: dict[Key, _Used] = {}
        self._before = readings.before
        self._ended: Counter[int] = Counter()
        self._known_owners = all(exit_.process is not None for exit_ in (*readings.exits, *readings.late))
        self._had = {
            thread: (cpu_ns, process)
            for process in readings.before.processes.values()
            for thread, cpu_ns in process.threads.items()
        }
        for exit_ in (*readings.exits, *readings.late):
            self._add_exit(exit_)
        recorded = {exit_.thread for exit_ in readings.exits}
        late = {exit_.thread for exit_ in readings.late}
        for process in readings.after.processes.values():
            # A zombie's record has come. One that ended while /proc was read may look alive.
            over = late | {process.pid} if process.zombie and process.pid in recorded else late
            self._add_living(process, over)

    def _add_exit(self, exit_: Exit) -> None:
        pid = exit_.thread if exit_.process is None else exit_.process
        key = (pid, self._ended[pid])
        used = self.used.setdefault(key, _Used((exit_.parent, 0), ""))
        used.cpu_ns += max(0, exit_.cpu_ns - self._had_at_start(exit_))
        used.parent = (exit_.parent, self._ended[exit_.parent])
        if exit_.thread == pid or not used.name:
            used.name = exit_.name
        if exit_.last or exit_.process is None:
            self._ended[pid] += 1

    def _had_at_start(self, exit_: Exit) -> int:
        """CPU time of the thread at the first reading: 0 if it started later, under a reused id."""
        cpu_ns, process = self._had.pop(exit_.thread, (0, None))
        if process is None or exit_.thread != process.pid:
            return cpu_ns
        if process.zombie:  # its record had arrived before
            return 0
        age_us = (self._before.taken - process.began - _TICKS_OFF) * TICK_NS // 1000
        return cpu_ns if exit_.elapsed_us >= age_us else 0

    def _add_living(self, process: Process, over: Set[int]) -> None:
        if process.threads.keys() <= over:
            return
        key = (process.pid, self._ended[process.pid])
        used = self.used.setdefault(key, _Used((process.parent, 0), process.name))
        used.parent = (process.parent, self._ended[process.parent])
        used.name = process.name
        early = self._before.processes.get(process.pid)
        same = early is not None and early.began == process.began
        for thread, cpu_ns in process.threads.items():
            if thread not in over:
                had, owner = self._had.get(thread, (0, None))
                used.cpu_ns += max(0, cpu_ns - (had if same and owner is early else 0))
        # Threads that ended without a record are in the total only; all are if the kernel does not count ns.
        total_ns = (process.ticks - (early.ticks if early is not None and same else 0)) * TICK_NS
        keeps_ns = any(process.threads.values())
        slack_ns = _TICKS_OFF * TICK_NS if keeps_ns else 0
        if total_ns - used.cpu_ns > slack_ns and (self._known_owners or not keeps_ns):
            used.cpu_ns = total_ns


class _Descent:
    def __init__(self, used: Mapping[Key, _Used], before: Snapshot, engine_pid: int) -> None:
        self._used = used
        self._before = before
        self._engine_pid = engine_pid
        self._known: dict[Key, bool] = {}

    def __call__(self, key: Key) -> bool:
        path: list[Key] = []
        while key not in self._known and key not in path:
            path.append(key)
            parent = self._parent(key)
            if parent is None or parent[0] == self._engine_pid:
                self._known[key] = parent is not None
                break
            key = parent
        answer = self._known.get(key, False)
        self._known |= dict.fromkeys(path, answer)
        return answer

    def _parent(self, key: Key) -> Key | None:
        """The parent, or the last known process of its id: its record may have arrived just before its child's."""
        pid, number = key
        while number >= 0:
            if (process := self._used.get((pid, number))) is not None:
                return process.parent
            number -= 1
        early = self._before.processes.get(pid)
        return (early.parent, 0) if early is not None else None


def _name(key: Key, process: _Used, used: Mapping[Key, _Used], engine_pid: int, own_pid: int) -> str:
    if key[0] in (engine_pid, own_pid):
        return OURS
    engine = used.get((engine_pid, 0))
    if process.parent[0] == own_pid and engine is not None and process.name == engine.name:
        return OURS  # the engine of a test's hooks
    return plain_name(process.name, kernel=process.parent[0] == KERNEL_THREADS)


def plain_name(name: str, *, kernel: bool) -> str:
    """The name on one line; a kernel worker's without the item that it last worked on."""
    if kernel and name.startswith("kworker/"):
        head, slash, rest = name.partition("/")
        if not rest.startswith("R-"):  # a rescuer keeps its name
            name = head + slash + rest.partition("+")[0].partition("-")[0]
    return "".join(c if c.isprintable() else "?" for c in name) or "?"
