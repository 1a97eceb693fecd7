"""How much CPU time a command gets: CPUs as a decimal, 0.5 for half of one, in each period of 100 ms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from etude.testbed.resources import levels
from etude.testbed.resources.cgroups import Controller, Place
from etude.testbed.resources.confined import Confined, Writes
from etude.testbed.resources.resource import Setting

PERIOD_US = 100_000
"""The kernel's default."""


@dataclass(frozen=True)
class Quota(Confined):
    """Of all CPUs together: with 1.5 three threads may run at once, and stop when the period's share is used up."""

    name: ClassVar[str] = "quota"
    controller: ClassVar[Controller] = "cpu"

    def understood(self, level: str) -> float:
        """CPUs."""
        return levels.share_of_cpus(level)

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """µs of CPU time in a period."""
        quota_us = round(self.understood(level) * PERIOD_US)
        if place.version == 2:
            return [("cpu.max", f"{quota_us} {PERIOD_US}")]
        return [("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", str(quota_us))]
