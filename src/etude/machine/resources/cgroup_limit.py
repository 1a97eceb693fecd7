"""Limits by cgroups: a group, values for its files, and the count of processes that its OOM killer ended."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from etude.errors import MachineRefuses
from etude.machine.resources.cgroups import Controller, Place, cgroup_place, make_group, put_all
from etude.machine.resources.ledger import Ledger
from etude.machine.resources.levels import UNLIMITED
from etude.machine.resources.resource import Setting

Writes = list[tuple[str, str]]
"""Names of files in the group and their texts, in order."""


@dataclass(frozen=True, kw_only=True)
class CgroupResource(ABC):
    """A resource whose level is in files of a cgroup. Level `max` makes no group."""

    name: ClassVar[str]
    controller: ClassVar[Controller]
    is_cgroup: ClassVar[bool] = True

    root: Path = Path("/")
    """Root of /proc and the cgroup mounts."""

    def accept(self, level: str) -> None:
        """Raises InputError for an invalid level."""
        if level != UNLIMITED:
            self.parse_level(level)

    def check(self) -> str | None:
        """Reason why a group of the controller cannot be made; None if it can."""
        place = cgroup_place(self.controller, self.root)
        if isinstance(place, str):
            return place
        return None if os.access(place.base, os.W_OK) else f"{place.base}: only root may make cgroups in it"

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Set this limit in the group of the ledger."""
        if level == UNLIMITED:
            return Setting()
        place = cgroup_place(self.controller, self.root)
        if isinstance(place, str):
            raise MachineRefuses(place)
        writes = self.writes(level, place, so_far)
        group = make_group(place, self.controller, ledger)
        put_all(group, [(name, text) for name, text in writes if self.has_file(group, name)])
        return Setting((str(group),), notes=self.notes(place))

    @abstractmethod
    def parse_level(self, level: str) -> object:
        """The level as a value; raises InputError."""

    @abstractmethod
    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """Files of the group and their texts."""

    def has_file(self, group: Path, name: str) -> bool:
        """True if a file has to be written; files that a kernel may lack are checked."""
        return True

    def notes(self, place: Place) -> tuple[str, ...]:
        """Notes for readers of the results."""
        return ()


_FILES = ("memory.events", "memory.oom_control")
"""Files of version 2, and of version 1 from Linux 4.13 on; each has a line `oom_kill COUNT`."""


def oom_kills(groups: Iterable[str]) -> int:
    """Number of OOM kills since these groups were made; 0 without a memory controller, or if the kernel does not
    count."""
    return sum(_count(Path(group) / name) for group in groups for name in _FILES)


def _count(file: Path) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return int(counts[0]) if counts else 0
