"""Machine state during a trial: steal time, and pressure (PSI) on CPU, I/O and memory.

Steal time has no cause on this machine, so a trial with much more of it than the others is repeated. Pressure is also
caused by the load itself: it is recorded but has no influence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from etude.machine import tree
from etude.machine.snapshot.processor import cpu_ticks
from etude.probes.pressure import RESOURCES, parse_totals

LEAST_STEAL, TIMES_STEAL = 0.05, 3.0
"""A trial was disturbed above this share of all CPU time and this multiple of the lower quartile of all trials."""
_STEAL, _SUMMED = 7, 8


@dataclass(frozen=True, slots=True)
class MachineState:
    """State over one trial; None for values that the kernel does not report."""

    steal: float | None = None
    """Share of the time of all CPUs."""
    cpu_pressure: float | None = None
    """Share of the time in which some task waited for a CPU."""
    io_pressure: float | None = None
    memory_pressure: float | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """Kernel counters at one moment."""

    at_s: float
    ticks: Sequence[int]
    waited_us: Mapping[str, int]


def counters(root: Path = Path("/"), at_s: float | None = None) -> Counters:
    """Current counters, or those of a directory tree laid out like `/`."""
    waited = {
        name: totals["some"]
        for name in RESOURCES
        if "some" in (totals := parse_totals(tree.read_text(root, f"proc/pressure/{name}") or ""))
    }
    return Counters(time.monotonic() if at_s is None else at_s, cpu_ticks(root)[:_SUMMED], waited)


def state_between(before: Counters, after: Counters) -> MachineState:
    """State between two readings of the counters."""
    steal = None
    if len(before.ticks) == len(after.ticks) == _SUMMED:
        whole = sum(after.ticks) - sum(before.ticks)
        steal = max(after.ticks[_STEAL] - before.ticks[_STEAL], 0) / whole if whole > 0 else None
    took_us = 1e6 * (after.at_s - before.at_s)
    waited = {
        f"{name}_pressure": min(max(after.waited_us[name] - total, 0) / took_us, 1.0)
        for name, total in before.waited_us.items()
        if name in after.waited_us and took_us > 0
    }
    return MachineState(steal, **waited)


def machine_member(state: MachineState) -> dict[str, float]:
    """Known values, for a line of results."""
    return {name: value for name, value in asdict(state).items() if value is not None}


def steal_share(states: Sequence[MachineState | None]) -> list[bool]:
    """True for each trial with much more steal time than the others."""
    steal = [None if state is None else state.steal for state in states]
    known = sorted(share for share in steal if share is not None)
    least = max(LEAST_STEAL, TIMES_STEAL * known[len(known) // 4]) if known else 1.0
    return [share is not None and share >= least for share in steal]
