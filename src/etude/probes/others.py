"""Probe `others`: CPU time of all processes but the measured command, by name, kernel threads included."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from etude.machine import tree
from etude.osutil.processes import TICKS_PER_S
from etude.probes.accounting import Account, Readings, Snapshot, account, read_processes
from etude.probes.probe import Context, ProbeBlock, Reading, to_ints, value
from etude.probes.taskstats import ExitRecords, NoRecords

MAX_LINES = 50
MIN_SHOWN_NS = 500_000
"""Processes with less time than what is shown as 0.001 s are summed up."""

_IDLE, _WAITING_FOR_IO, _STEAL = 3, 4, 7  # fields of the first line of /proc/stat
_GUEST = 8  # from here on, fields are included in user and nice


@dataclass(frozen=True)
class Baseline:
    """Readings before the launch. `records` is None if unavailable, for `reason`."""

    machine: tuple[int, ...]
    processes: Snapshot
    records: ExitRecords | None
    reason: str | None


class Others:
    """Sums of CPU time, from exit records of the kernel (root) and /proc, or from /proc alone."""

    name = "others"
    gives: ClassVar[Mapping[str, str]] = {"others_cpu": "s", "others_coverage": "1"}

    def __init__(
        self,
        root: Path = Path("/"),
        listen: Callable[[str], ExitRecords] = ExitRecords,
        own_pid: int | None = None,
    ) -> None:
        """`listen` starts to receive exit records from these CPUs, or raises NoRecords."""
        self._root = root
        self._listen = listen
        self._own_pid = os.getpid() if own_pid is None else own_pid
        self._told = False

    def unavailable(self) -> str | None:
        return None if tree.read_text(self._root, "proc/self/stat") else "/proc is not mounted"

    def start(self, context: Context) -> Baseline:
        records, reason = self._records()
        try:
            machine = machine_ticks(self._root)
            processes = read_processes(self._root)
            if records is not None:
                processes = _without_the_dead(processes, records)
        except BaseException:
            if records is not None:
                records.close()
            raise
        if records is None and 1 not in processes.processes:
            reason = f"{reason}; and other users' processes are hidden (hidepid)"
        return Baseline(machine, processes, records, reason)

    def end(self, state: Baseline, context: Context) -> Reading:
        machine = machine_ticks(self._root)
        if state.records is None:
            readings, lost = Readings(state.processes, (), read_processes(self._root)), False
        else:
            try:
                readings, lost = _readings(self._root, state.processes, state.records)
            finally:
                state.records.close()
        used = account(readings, context.engine_pid, self._own_pid)
        complete = state.records is not None and not lost
        metrics = {
            "others_cpu": value(sum(share.cpu_ns for share in used.others) / 1e9, "s"),
            "others_coverage": value(int(complete), "1"),
        }
        why = "some exit records were lost: too many processes ended" if lost else state.reason
        lines = (*_lines(used), *_explanation(used, state, machine, why))
        return Reading(metrics, (ProbeBlock("others", lines),), self._notes(why, lost))

    def _records(self) -> tuple[ExitRecords | None, str | None]:
        cpus = tree.read_text(self._root, "sys/devices/system/cpu/possible")
        try:
            return self._listen(cpus or f"0-{(os.cpu_count() or 1) - 1}"), None
        except NoRecords as error:
            return None, str(error)

    def _notes(self, why: str | None, lost: bool) -> tuple[str, ...]:
        """Notes; one that applies to every trial is returned once."""
        if why is None or (self._told and not lost):
            return ()
        self._told = self._told or not lost
        return (f"short-lived processes are {'partly' if lost else 'not'} included: {why}",)


def _without_the_dead(processes: Snapshot, records: ExitRecords) -> Snapshot:
    """Processes without the threads that ended while /proc was read: their ids may be reused."""
    ended = {exit_.thread for exit_ in records.drain()[0]}
    left = {
        pid: process._replace(threads={t: ns for t, ns in process.threads.items() if t not in ended})
        for pid, process in processes.processes.items()
    }
    return Snapshot(processes.taken, left)


def _readings(root: Path, before: Snapshot, records: ExitRecords) -> tuple[Readings, bool]:
    exits, lost = records.drain()
    after = read_processes(root)
    late, lost_late = records.drain()
    return Readings(before, exits, after, late), lost or lost_late


def machine_ticks(root: Path) -> tuple[int, ...]:
    """Ticks of all CPUs by state, the first line of /proc/stat; empty if it cannot be read."""
    words = (tree.read_text(root, "proc/stat", 512) or "").partition("\n")[0].split()
    return (to_ints(words[1:]) or ()) if words[:1] == ["cpu"] else ()


def _lines(used: Account) -> tuple[str, ...]:
    shown = [share for share in used.others[:MAX_LINES] if share.cpu_ns >= MIN_SHOWN_NS]
    lines = [f"{s.name} = {s.cpu_ns / 1e9:.3f} s ({_processes(s.processes)})" for s in shown]
    rest = used.others[len(shown) :]
    if rest:
        cpu_s, count = sum(s.cpu_ns for s in rest) / 1e9, sum(s.processes for s in rest)
        lines.append(f"(rest) = {cpu_s:.3f} s ({_processes(count)})")
    return tuple(lines)


def _explanation(
    used: Account, state: Baseline, machine: tuple[int, ...], why: str | None
) -> tuple[str, ...]:
    lines = []
    if state.records is not None:
        lines.append(f"(measured) = {used.measured_ns / 1e9:.3f} s (the measured command; not in others_cpu)")
    # Idle time may even fall a little: the kernel estimates it at each reading.
    ticks = [max(0, late - early) for early, late in zip(state.machine, machine, strict=False)][:_GUEST]
    if len(ticks) == _GUEST:
        idle = ticks[_IDLE] + ticks[_WAITING_FOR_IO]
        busy = sum(ticks) - idle - ticks[_STEAL]
        busy_s, idle_s, steal_s = (each / TICKS_PER_S for each in (busy, idle, ticks[_STEAL]))
        lines.append(
            f"(machine) = {busy_s:.2f} s (all CPUs; idle {idle_s:.2f} s, steal time {steal_s:.2f} s)"
        )
    covered = "short-lived processes are included" if why is None else f"short-lived processes are not: {why}"
    return (*lines, f"(coverage) = {covered}")


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
