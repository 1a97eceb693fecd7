"""Storage below a data set: its mount, block devices, and the backing files of loop devices."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from etude.errors import MachineRefuses
from etude.osutil.mounts import Mount, mounts


@dataclass(frozen=True)
class Loop:
    """A loop device; the kernel may cache its file `backing` a second time unless `direct`."""

    device: str
    backing: str
    direct: bool
    cleared: bool
    """It is detached at the last close, such as that of an unmount."""


def mount_of(path: str, table: Sequence[Mount] | None = None) -> Mount:
    """The mount that a path lies on: the one with the longest directory; of several there, the last.

    Raises:
        MachineRefuses: nothing is mounted there.
    """
    real = os.path.realpath(path)
    best: Mount | None = None
    for mount in mounts() if table is None else table:
        below = mount.target.rstrip("/") + "/"
        if (real + "/").startswith(below) and (best is None or len(mount.target) >= len(best.target)):
            best = mount
    if best is None:
        raise MachineRefuses(f"{path}: on no file system that /proc/self/mountinfo names")
    return best


def loops(mount: Mount, sys: Path = Path("/sys")) -> list[Loop]:
    """The loop devices below a mount, also below its partitions, volumes and arrays."""
    found = {}
    for name in _names(mount, sys):
        for block in _blocks(sys / "class/block" / name):
            if (loop := _loop(block)) is not None:
                found[loop.device] = loop
    return list(found.values())


def _names(mount: Mount, sys: Path) -> list[str]:
    """Names of the devices of a file system: btrfs may have several."""
    name = os.path.basename(os.path.realpath(mount.source))
    if mount.kind == "btrfs":
        for devices in sys.glob("fs/btrfs/*/devices"):
            names = [entry.name for entry in devices.iterdir()]
            if name in names:
                return sorted(names)
    return [name] if mount.source.startswith("/") else []


def _blocks(link: Path) -> Iterator[Path]:
    """Directories of a block device, of its disk, and of the devices below it."""
    if not link.exists():
        return
    block = link.resolve()
    yield block
    if (block / "partition").exists():
        yield block.parent
    for slave in sorted((block / "slaves").glob("*")):
        yield from _blocks(slave)


def _loop(block: Path) -> Loop | None:
    try:
        backing = (block / "loop/backing_file").read_text(errors="surrogateescape").rstrip("\n")
        direct, cleared = (
            (block / "loop" / name).read_text().strip() == "1" for name in ("dio", "autoclear")
        )
    except OSError:
        return None
    return Loop(f"/dev/{block.name}", backing, direct, cleared)
