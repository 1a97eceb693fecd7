"""Probe `disk`: requests to block devices and their bytes, of the whole machine.

I/O of the measured processes alone is in storage_read and storage_written; this probe counts what reached devices.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from etude.machine import tree
from etude.probes.probe import Context, CounterProbe, ProbeBlock, Reading, growth, to_ints, value

SECTOR_BYTES = 512
"""Unit of /proc/diskstats, whatever the device's own sector size."""


class Counts(NamedTuple):
    """Counters of one device since its creation. Discards are 0 before Linux 4.18, flushes before 5.5."""

    reads: int
    read_bytes: int
    writes: int
    write_bytes: int
    busy_ms: int
    discards: int
    flushes: int


class Disk(CounterProbe[dict[str, Counts]]):
    """Sums over whole devices without a device below; the counters of each device are in a block."""

    name = "disk"
    gives: ClassVar[Mapping[str, str]] = {
        "disk_reads": "1",
        "disk_writes": "1",
        "disk_read_bytes": "B",
        "disk_write_bytes": "B",
    }

    def unavailable(self) -> str | None:
        if tree.read_text(self._root, "proc/diskstats") is None:
            return "/proc/diskstats cannot be read"
        if not os.path.isdir(self._root / "sys/class/block"):
            return "no /sys/class/block, so partitions and disks are not distinguishable"
        return None

    def end(self, state: dict[str, Counts], context: Context) -> Reading:
        grown = {name: Counts(*row) for name, row in growth(state, self._read()).items()}
        left_out = {name: why_not_counted(self._root, name) for name in grown}
        counted = [counts for name, counts in grown.items() if left_out[name] is None]
        metrics = {
            name: value(sum(getattr(each, name.removeprefix("disk_")) for each in counted), unit)
            for name, unit in self.gives.items()
        }
        lines = tuple(_line(name, counts, left_out[name]) for name, counts in grown.items())
        return Reading(metrics, (ProbeBlock("disk", lines),) if lines else ())

    def _read(self) -> dict[str, Counts]:
        return parse_diskstats(tree.read_text(self._root, "proc/diskstats") or "")


def parse_diskstats(text: str) -> dict[str, Counts]:
    """Devices of /proc/diskstats by name; invalid lines are skipped."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        numbers = to_ints(words[3:])
        if numbers is None or len(numbers) < 11:
            continue
        reads, _, read, _, writes, _, written, _, _, busy_ms, *_ = numbers
        discards = numbers[11] if len(numbers) > 11 else 0
        flushes = numbers[15] if len(numbers) > 15 else 0
        found[words[2]] = Counts(
            reads, read * SECTOR_BYTES, writes, written * SECTOR_BYTES, busy_ms, discards, flushes
        )
    return found


def why_not_counted(root: Path, name: str) -> str | None:
    """Reason why a device is not in the sums: its requests may be counted at another one too, or reach no disk."""
    place = root / "sys/class/block" / name.replace("/", "!")
    if os.path.exists(place / "partition"):
        return "a partition"
    if name.startswith("loop"):
        return "a loop device"
    if name.startswith(("ram", "zram")):
        return "in memory"
    below = tree.names(root, str(place.relative_to(root) / "slaves"))
    return f"stands on {', '.join(below)}" if below else None


def _line(name: str, counts: Counts, left_out: str | None) -> str:
    return (
        f"{name} = {counts.reads} reads of {counts.read_bytes} B, "
        f"{counts.writes} writes of {counts.write_bytes} B, "
        f"{counts.discards} discards, {counts.flushes} flushes, "
        f"busy {counts.busy_ms / 1000:.3f} s ({f'not counted: {left_out}' if left_out else 'counted'})"
    )
