"""Which CPUs a command may use: cpuset. Level: how many, as 2, or which, as 0,2-3."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from etude.errors import MachineRefuses
from etude.testbed import tree
from etude.testbed.resources import levels
from etude.testbed.resources.cgroups import Controller, Place
from etude.testbed.resources.confined import Confined, Writes
from etude.testbed.resources.resource import Setting


@dataclass(frozen=True)
class Cpus(Confined):
    """A number takes the first of those that are allowed; to choose cores rather than threads, give a list."""

    name: ClassVar[str] = "cpus"
    controller: ClassVar[Controller] = "cpuset"

    def understood(self, level: str) -> list[int]:
        """CPUs, if there are as many as can be."""
        return levels.cpus(level)

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """One file; memory nodes stay as they are above."""
        return [("cpuset.cpus", levels.listed(levels.cpus(level, allowed(place.base))))]


def allowed(group: Path) -> list[int]:
    """The CPUs of a group: v2 has them in `effective`, which a group without the controller lacks."""
    for folder in (group, *group.parents):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            if found := tree.read_cpus(folder, name):
                return found
        if not (folder / "cgroup.procs").exists():
            break
    raise MachineRefuses(f"{group}: no list of CPUs in it or above")
