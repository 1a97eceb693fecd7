"""Probe `energy`: energy meters of the processors (RAPL), of the whole machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from etude.machine import tree
from etude.probes.probe import Context, CounterProbe, ProbeBlock, ProbeFailed, Reading, value

BASE = "sys/class/powercap"

# Zones by the beginning of their name: package-0, package-0-die-1, dram, …
PARTS = {
    "package": "energy_package",
    "dram": "energy_dram",
    "core": "energy_core",
    "uncore": "energy_uncore",
    "psys": "energy_platform",
}


class Meter(NamedTuple):
    """One meter: it counts µJ up to its range, then again from 0."""

    name: str
    uj: int
    range_uj: int | None


class Energy(CounterProbe[dict[str, Meter]]):
    """Joules, summed over packages: of the packages, and of each of their parts that has a meter."""

    name = "energy"
    gives: ClassVar[Mapping[str, str]] = {"energy_package": "J"}

    def unavailable(self) -> str | None:
        if not zones(self._root):
            return "no energy meters in /sys/class/powercap (RAPL); most virtual machines have none"
        if not self._read():
            return "only root may read the energy meters in /sys/class/powercap (since Linux 5.10)"
        return None

    def end(self, state: dict[str, Meter], context: Context) -> Reading:
        used = used_uj(state, self._read())
        if not used:
            raise ProbeFailed("no energy meter could be read twice")
        sums: dict[str, int] = {}
        for zone, uj in used.items():
            for part, metric in PARTS.items():
                if state[zone].name.startswith(part):
                    sums[metric] = sums.get(metric, 0) + uj
        lines = tuple(f"{_place(zone, state)} = {uj / 1e6:.6f} J" for zone, uj in used.items())
        metrics = {metric: value(uj / 1e6, "J") for metric, uj in sums.items()}
        return Reading(metrics, (ProbeBlock("energy", lines),))

    def _read(self) -> dict[str, Meter]:
        return read_meters(self._root)


def zones(root: Path) -> list[str]:
    """Directories of the meters, packages before their parts.

    Zones of memory-mapped registers are excluded: they show the same packages.
    """
    names = tree.names(root, BASE)
    found = [name for name in names if re.fullmatch(r"intel-rapl:[0-9]+(:[0-9]+)?", name)]
    return found or [name for name in names if re.fullmatch(r"intel-rapl-mmio:[0-9]+(:[0-9]+)?", name)]


def read_meters(root: Path) -> dict[str, Meter]:
    """The meters that can be read, by zone."""
    meters = {}
    for zone in zones(root):
        name = tree.read_text(root, f"{BASE}/{zone}/name")
        uj = tree.read_int(root, f"{BASE}/{zone}/energy_uj")
        if name is not None and uj is not None:
            meters[zone] = Meter(name, uj, tree.read_int(root, f"{BASE}/{zone}/max_energy_range_uj"))
    return meters


def used_uj(before: dict[str, Meter], after: dict[str, Meter]) -> dict[str, int]:
    """Energy of each meter in between, µJ, by zone, if it wrapped at most once."""
    used = {}
    for zone, early in before.items():
        late = after.get(zone)
        if late is None:
            continue
        by = late.uj - early.uj
        if by < 0:
            by += early.range_uj or 0
        if by >= 0:
            used[zone] = by
    return used


def _place(zone: str, meters: dict[str, Meter]) -> str:
    """Name of the zone: `package-0`, or `package-0 dram`."""
    parent = meters.get(zone.rpartition(":")[0])
    return f"{parent.name} {meters[zone].name}" if parent else meters[zone].name
