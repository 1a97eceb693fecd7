"""Counters whose differences show how busy the machine is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from etude.machine import tree
from etude.machine.snapshot import cpu_ticks
from etude.osutil.processes import read_stat

Verdict = Literal["good", "noisy", "unknown"]

NOTHING_TO_DO = "nothing to do"


@dataclass(frozen=True)
class Finding:
    name: str
    state: str
    verdict: Verdict
    meaning: str  # one sentence: what it does to numbers
    advice: str  # one line: what to do about it


@dataclass(frozen=True)
class Reading:
    """Counters of the machine at one moment."""

    cpu_ticks: tuple[int, ...] = ()  # of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal
    cpus: int = 1
    swapped_pages: int = 0  # in and out, since boot
    process_ticks: dict[int, tuple[str, int]] = field(default_factory=dict)  # pid: name, ticks used


@dataclass(frozen=True)
class Machine:
    """Input of the checks: the machine's root, the working directory, and two readings a moment apart."""

    root: Path
    directory: Path
    before: Reading
    after: Reading
    privileged: bool = False


def read_counters(root: Path) -> Reading:
    vmstat = tree.read_counts(root, "proc/vmstat")
    online = tree.read_cpus(root, "sys/devices/system/cpu/online") or [0]
    return Reading(
        cpu_ticks=tuple(cpu_ticks(root)[:8]),
        cpus=len(online),
        swapped_pages=vmstat.get("pswpin", 0) + vmstat.get("pswpout", 0),
        process_ticks=process_ticks(root),
    )


def process_ticks(root: Path) -> dict[int, tuple[str, int]]:
    """Name and used ticks of every process but this one."""
    own = (tree.read_text(root, "proc/self/stat", 64) or "").partition(" ")[0]
    ticks = {}
    for name in tree.names(root, "proc"):
        if name.isdecimal() and name != own and (seen := read_stat(name, root=root)) is not None:
            ticks[int(name)] = seen.name, seen.user + seen.system
    return ticks


def ticks_between(before: Reading, after: Reading) -> list[int]:
    """Ticks between the readings, by kind; empty if one reading failed."""
    if not before.cpu_ticks or len(before.cpu_ticks) != len(after.cpu_ticks):
        return []
    return [max(0, late - early) for early, late in zip(before.cpu_ticks, after.cpu_ticks, strict=True)]


def busiest(before: Reading, after: Reading, at_least: float, most: int) -> list[tuple[str, float]]:
    """Processes by the share of one CPU that they used between the readings, largest first."""
    passed = sum(ticks_between(before, after)) / after.cpus
    if passed <= 0:
        return []
    shares = []
    for pid, (name, ticks) in after.process_ticks.items():
        started_with = before.process_ticks.get(pid, (name, 0))[1]
        shares.append((name, (ticks - started_with) / passed))
    busy = [(name, share) for name, share in shares if share >= at_least]
    return sorted(busy, key=lambda item: (-item[1], item[0]))[:most]
