"""Present activity of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etude.machine import tree

Part = dict[str, Any]


def load(root: Path) -> Part:
    averages = (tree.read_text(root, "proc/loadavg") or "").split()
    ticks = cpu_ticks(root)
    return {
        "load_1": tree.to_float(averages[0]) if averages else None,
        "load_5": tree.to_float(averages[1]) if len(averages) > 1 else None,
        "load_15": tree.to_float(averages[2]) if len(averages) > 2 else None,
        "runnable": tree.to_int(averages[3].partition("/")[0]) if len(averages) > 3 else None,
        "pressure": {name: pressure(root, name) for name in ("cpu", "io", "memory")},
        "steal_ticks": ticks[7] if len(ticks) > 7 else None,
        "total_ticks": sum(ticks[:8]) if ticks else None,
    }


def cpu_ticks(root: Path) -> list[int]:
    """Ticks of all CPUs since boot: user, nice, system, idle, iowait, irq, softirq, steal, …"""
    first = (tree.read_text(root, "proc/stat", 4096) or "").partition("\n")[0].split()
    if not first or first[0] != "cpu":
        return []
    return [tree.to_int(field) or 0 for field in first[1:]]


def pressure(root: Path, resource: str) -> dict[str, float | None] | None:
    """Percent of the last 10 and 60 s in which some task waited for the resource; None without PSI."""
    for line in tree.read_lines(root, f"proc/pressure/{resource}"):
        kind, *fields = line.split() or [""]
        if kind == "some":
            values = dict(field.partition("=")[::2] for field in fields)
            return {name: tree.to_float(values.get(name)) for name in ("avg10", "avg60")}
    return None
