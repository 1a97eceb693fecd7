"""Probe `memory`: what is free and available after the measured command, of the whole machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from etude.probes.probe import Context, ProbeBlock, Reading, missing, value
from etude.results.model import MetricValue
from etude.testbed import tree

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


class Memory:
    """Free and available memory after, and how the latter has changed."""

    name = "memory"
    gives: ClassVar[Mapping[str, str]] = {
        "memory_free": "B",
        "memory_available": "B",
        "memory_available_change": "B",
    }

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def unavailable(self) -> str | None:
        return None if self._read() else "/proc/meminfo cannot be read"

    def start(self, context: Context) -> dict[str, int]:
        return self._read()

    def end(self, state: dict[str, int], context: Context) -> Reading:
        after = self._read()
        change = {name: after[name] - state[name] for name in after if name in state}
        metrics = {
            "memory_free": _bytes(after, "MemFree"),
            "memory_available": _bytes(after, "MemAvailable"),
            "memory_available_change": _bytes(change, "MemAvailable"),
        }
        lines = tuple(f"{name} = {after[name]} B ({change[name]:+d} B)" for name in SHOWN if name in change)
        return Reading(metrics, (ProbeBlock("memory", lines),) if lines else ())

    def _read(self) -> dict[str, int]:
        return tree.read_sizes(self._root, "proc/meminfo")


def _bytes(members: dict[str, int], name: str) -> MetricValue:
    return value(members[name], "B") if name in members else missing("B", f"no {name} in /proc/meminfo")
