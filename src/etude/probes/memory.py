"""Probe `memory`: free and available memory after the measured command, of the whole machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from etude.machine import tree
from etude.probes.probe import Context, CounterProbe, ProbeBlock, Reading, missing, value
from etude.results.model import MetricValue

SHOWN = (
    "Cached",
    "Buffers",
    "Dirty",
    "Writeback",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "AnonPages",
    "SwapFree",
)
IN_STOCK = ("MemFree", "MemAvailable")
"""Values that exclude the free pages in per-CPU lists: up to an eighth of the memory since Linux 6.7 (mm: PCP high
auto-tuning). Such pages move in and out, and would hide a leak of that size."""
OF_PROCESSES = ("AnonPages", "PageTables", "KernelStack")
"""Memory that is freed when its processes end."""
PAGE_BYTES = os.sysconf("SC_PAGESIZE")


class Memory(CounterProbe[dict[str, int]]):
    """Free, available and obtainable memory after, and the change of available memory."""

    name = "memory"
    gives: ClassVar[Mapping[str, str]] = {
        "memory_free": "B",
        "memory_available": "B",
        "memory_obtainable": "B",
        "memory_available_change": "B",
    }

    def unavailable(self) -> str | None:
        return None if self._read() else "/proc/meminfo cannot be read"

    def end(self, state: dict[str, int], context: Context) -> Reading:
        after = self._read()
        change = {name: after[name] - state[name] for name in after if name in state}
        metrics = {
            "memory_free": _bytes(after, "MemFree"),
            "memory_available": _bytes(after, "MemAvailable"),
            "memory_obtainable": _obtainable(after),
            "memory_available_change": _bytes(change, "MemAvailable"),
        }
        lines = tuple(f"{name} = {after[name]} B ({change[name]:+d} B)" for name in SHOWN if name in change)
        return Reading(metrics, (ProbeBlock("memory", lines),) if lines else ())

    def _read(self) -> dict[str, int]:
        sizes = tree.read_sizes(self._root, "proc/meminfo")
        stock = self._stock()
        return {name: size + stock if name in IN_STOCK else size for name, size in sizes.items()}

    def _stock(self) -> int:
        words = (line.split() for line in tree.read_lines(self._root, "proc/zoneinfo"))
        pages = (tree.to_int(pair[1]) for pair in words if len(pair) == 2 and pair[0] == "count:")
        return sum(count for count in pages if count is not None and count > 0) * PAGE_BYTES


def _obtainable(members: dict[str, int]) -> MetricValue:
    """Memory available if every process ended: unaffected by other processes, reduced by a leak."""
    needed = ("MemAvailable", *OF_PROCESSES)
    lacking = next((name for name in needed if name not in members), None)
    if lacking is not None:
        return missing("B", f"no {lacking} in /proc/meminfo")
    return value(sum(members[name] for name in needed), "B")


def _bytes(members: dict[str, int], name: str) -> MetricValue:
    return value(members[name], "B") if name in members else missing("B", f"no {name} in /proc/meminfo")
