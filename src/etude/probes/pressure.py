"""Probe `pressure`: PSI (pressure stall information): time that tasks of the whole machine waited for CPU,
I/O or memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from etude.machine import tree
from etude.probes.probe import Context, CounterProbe, Reading, missing, value

RESOURCES = ("cpu", "io", "memory")
KINDS = ("some", "full")
_TOTAL = re.compile(r"^(some|full) .*\btotal=([0-9]+)$", re.MULTILINE | re.ASCII)


class Pressure(CounterProbe[dict[str, int]]):
    """Seconds in which some task, or all non-idle tasks at once, waited for a resource."""

    name = "pressure"
    gives: ClassVar[Mapping[str, str]] = {
        f"pressure_{resource}_{kind}": "s" for resource in RESOURCES for kind in KINDS
    }

    def unavailable(self) -> str | None:
        return None if self._read() else "no /proc/pressure: boot with psi=1 (Linux 4.20 or newer)"

    def end(self, state: dict[str, int], context: Context) -> Reading:
        after = self._read()
        both = state.keys() & after.keys()
        return Reading(
            {
                name: value((after[name] - state[name]) / 1e6, "s")
                if name in both
                else missing("s", "this kernel does not report it")
                for name in self.gives
            }
        )

    def _read(self) -> dict[str, int]:
        """Totals in µs, by the metrics' names."""
        return {
            f"pressure_{resource}_{kind}": total_us
            for resource in RESOURCES
            for kind, total_us in parse_totals(
                tree.read_text(self._root, f"proc/pressure/{resource}") or ""
            ).items()
        }


def parse_totals(text: str) -> dict[str, int]:
    """The totals of a file of /proc/pressure, in µs."""
    return {kind: int(total) for kind, total in _TOTAL.findall(text)}
