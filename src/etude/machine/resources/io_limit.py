"""Limits of disk I/O: bytes or operations per second, of reads, writes or each of both."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from etude.errors import InputError, MachineRefuses
from etude.machine import tree
from etude.machine.resources import levels
from etude.machine.resources.cgroup_limit import CgroupResource, Writes
from etude.machine.resources.cgroups import Controller, Place
from etude.machine.resources.resource import Setting

LIMITS: dict[str, dict[str, str]] = {
    "bps": {"rbps": "read_bps_device", "wbps": "write_bps_device"},
    "iops": {"riops": "read_iops_device", "wiops": "write_iops_device"},
    "read_bps": {"rbps": "read_bps_device"},
    "write_bps": {"wbps": "write_bps_device"},
    "read_iops": {"riops": "read_iops_device"},
    "write_iops": {"wiops": "write_iops_device"},
}
"""Kinds of limits, with their names in v2 and v1."""

BUFFERED = "cgroup v1 limits writes only where they are direct or synchronous, not those the page cache takes"


@dataclass(frozen=True)
class Io(CgroupResource):
    """A limit on each of the disks."""

    name: ClassVar[str] = "io"
    controller: ClassVar[Controller] = "io"

    device: str = ""
    """Devices or directories on them, separated by blanks; `{devices}` are those of a volume."""
    limit: str = "bps"

    def parse_level(self, level: str) -> int:
        """Bytes or operations per second."""
        return levels.bytes_per_s(level) if self.limit.endswith("bps") else levels.count(level)

    def check(self) -> str | None:
        """Reason why the controller or a named disk is unavailable; None if all are available."""
        try:
            for each in self.device.split() if "{" not in self.device else ():
                number_of(each, self.root)
        except MachineRefuses as error:
            return str(error)
        return super().check()

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """A line for each disk, and in v1 for each of reads and writes."""
        value = self.parse_level(level)
        try:
            devices = self.device.format_map(so_far.values).split()
        except KeyError as error:
            raise InputError(
                f"device {self.device!r}: no resource before gives {{{error.args[0]}}}"
            ) from None
        numbers = dict.fromkeys(number_of(each, self.root) for each in devices)
        names = LIMITS[self.limit]
        if place.version == 2:
            text = " ".join(f"{name}={value}" for name in names)
            return [("io.max", f"{number} {text}") for number in numbers]
        return [
            (f"blkio.throttle.{name}", f"{number} {value}") for number in numbers for name in names.values()
        ]

    def notes(self, place: Place) -> tuple[str, ...]:
        """Note on buffered writes under version 1."""
        return (BUFFERED,) if place.version == 1 and not self.limit.startswith("read") else ()


def number_of(path: str, root: Path = Path("/")) -> str:
    """`8:0` of the disk: for a partition, or a directory on one, of the whole disk, since limits apply to it."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise MachineRefuses(f"{path}: {error.strerror}; expected a disk, or a directory on one") from None
    device = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    if os.major(device) == 0:
        raise MachineRefuses(f"{path} is on no single disk, as btrfs or tmpfs: name the disks")
    return whole(f"{os.major(device)}:{os.minor(device)}", root)


def whole(number: str, root: Path) -> str:
    """The number of a partition's disk."""
    block = root / "sys/dev/block" / number
    if (block / "partition").exists():
        return tree.read_text(block.resolve().parent, "dev") or number
    return number
