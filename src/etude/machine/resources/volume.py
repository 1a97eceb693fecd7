"""Number of disks: n loop devices or real disks as one volume, created, mounted, and removed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from etude.errors import EtudeError, InputError, MachineRefuses
from etude.machine import tree
from etude.machine.resources import levels
from etude.machine.resources.ledger import Ledger, held_ledger, loops_of
from etude.machine.resources.resource import Setting
from etude.osutil.commands import first_missing_tool
from etude.osutil.mounts import mounts


def file_system_lacking(kind: str, root: Path = Path("/")) -> str | None:
    """Reason why the file system cannot be mounted; None if it can."""
    known = {line.split()[-1] for line in tree.read_lines(root, "proc/filesystems") if line.strip()}
    if kind in known or _module(kind, root):
        return None
    return f"the kernel has no {kind}: it is not in /proc/filesystems, and no module of it is there"


def md_lacking(root: Path = Path("/")) -> str | None:
    """Reason why there can be no array of disks; None if there can."""
    if (root / "proc/mdstat").exists() or _module("raid0", root):
        return None
    return 'the kernel has no md: no /proc/mdstat, and no module raid0 is there; join = "btrfs" needs none'


def _module(name: str, root: Path) -> bool:
    release = tree.read_text(root, "proc/sys/kernel/osrelease") or os.uname().release
    lines = tree.read_lines(root, f"lib/modules/{release}/modules.dep")
    return any(f"/{name}.ko" in line.partition(":")[0] for line in lines)


PROFILES = ("raid0", "single")
FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
TRIED_BYTES = 128 << 20
"""Size of the trial volume: enough for a btrfs of one device, which needs 109 MiB; the file is sparse."""


@dataclass(frozen=True)
class Volume:
    """Level: the number of disks. Commands get `{volume}`, the mount point, `{device}`, the mounted device, and
    `{devices}`, the disks."""

    name: ClassVar[str] = "volume"
    is_cgroup: ClassVar[bool] = False

    join: str = "btrfs"
    """`btrfs`: by the file system. `md`: striped by the kernel (raid0), below any file system."""
    profile: str = "raid0"
    """Profile of a btrfs for data and metadata."""
    filesystem: str = "ext4"
    """File system on an md."""
    devices: tuple[str, ...] = ()
    """Real disks: **erased**. The first n are used."""
    files: tuple[str, ...] = ()
    """Files used as disks, at least 128 MiB each: erased as well."""
    directory: Path | None = None
    """Directory for sparse files of `size_bytes` each; default: beside the ledger."""
    size_bytes: int = 1 << 30
    mount: Path | None = None
    """Mount point: an empty directory, or one to create; default: beside the ledger."""
    root: Path = Path("/")
    """Root of /proc, /sys and /lib/modules, for `check`."""

    @property
    def most(self) -> int | None:
        """Number of disks, if they are named."""
        named = self.devices or self.files
        return len(named) if named else None

    def accept(self, level: str) -> None:
        """Raises InputError for an invalid number of disks."""
        number = levels.count(level)
        if self.most is not None and number > self.most:
            raise InputError(f"{level} disks: expected at most {self.most}, which are named")

    def check(self) -> str | None:
        """Reason why it is unavailable: tools, the kernel, the disks; a small volume of a sparse file is tried, since a
        kernel may list what does not work."""
        kind = "btrfs" if self.join == "btrfs" else self.filesystem
        programs = [f"mkfs.{kind}"] + ([] if self.devices else ["losetup"])
        why = first_missing_tool([*programs, "mdadm"] if self.join == "md" else programs)
        why = why or file_system_lacking(kind, self.root)
        why = why or (md_lacking(self.root) if self.join == "md" else None)
        why = why or next(filter(None, map(reason_in_use, (*self.devices, *self.files))), None)
        for place in filter(None, (self.directory, self.mount and self.mount.absolute().parent)):
            why = why or (None if place.is_dir() else f"{place}: no such directory; make it, or name another")
        return why or self._tried()

    def _tried(self) -> str | None:
        small = replace(self, devices=(), files=(), directory=None, mount=None, size_bytes=TRIED_BYTES)
        try:
            with tempfile.TemporaryDirectory(prefix="etude-") as place, held_ledger(Path(place)) as ledger:
                try:
                    small.apply("1", Setting(), ledger)
                finally:
                    ledger.undo()
        except (EtudeError, OSError) as error:
            return str(error)
        return None

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Set up the disks, the volume on them, and its mount."""
        self.accept(level)
        target = (self.mount or ledger.directory / f"{ledger.name}-volume").absolute()
        disks = self._disks(int(level), ledger)
        device = self._joined(disks, ledger)
        _mounted(device, disks, target, self.join == "btrfs", ledger)
        return Setting(values={"volume": str(target), "device": device, "devices": " ".join(disks)})

    def _disks(self, number: int, ledger: Ledger) -> list[str]:
        if self.devices:
            chosen = list(self.devices[:number])
        elif self.files:
            chosen = [str(Path(file).absolute()) for file in self.files[:number]]
        else:
            chosen = _sparse(self.directory or ledger.directory, number, self.size_bytes, ledger)
        for each in chosen:
            if why := reason_in_use(each):
                raise MachineRefuses(why)
        return chosen if self.devices else [_loop(file, ledger) for file in chosen]

    def _joined(self, disks: list[str], ledger: Ledger) -> str:
        """The device to mount, with a file system on it."""
        if self.join == "btrfs":
            for disk in disks:
                ledger.record_undo("forget_btrfs", device=disk)
            # raid0 of one disk is the same as single, and older mkfs.btrfs refuse it
            profile = self.profile if len(disks) > 1 else "single"
            ledger.tool("mkfs.btrfs", "-q", "-f", "-d", profile, "-m", profile, *disks)
            return disks[0]
        device = f"/dev/md/{ledger.name}"
        ledger.record_undo("stop_md", device=device, members=disks)
        ledger.tool(
            "mdadm", "--create", device, "--run", "--force", "--level=0",
            f"--raid-devices={len(disks)}", *disks,
        )  # fmt: skip
        ledger.tool(f"mkfs.{self.filesystem}", "-q", *_FORCE[self.filesystem], device)
        return device


_FORCE = {"ext4": ("-F",), "xfs": ("-f",), "btrfs": ("-f",)}


def _sparse(directory: Path, number: int, size_bytes: int, ledger: Ledger) -> list[str]:
    """Sparse files of that size; their names contain the ledger's unique name."""
    files = [str(directory.absolute() / f"{ledger.name}-disk{each}") for each in range(1, number + 1)]
    for file in files:
        ledger.record_undo("remove_file", path=file)
        try:
            with open(file, "xb") as made:
                os.truncate(made.fileno(), size_bytes)
        except OSError as error:
            raise MachineRefuses(f"{file}: no file of {size_bytes} B: {error.strerror}") from None
    return files


def _loop(file: str, ledger: Ledger) -> str:
    ledger.record_undo("detach_loop", file=file)
    return ledger.tool("losetup", "--find", "--show", file).strip()


def _mounted(device: str, disks: Sequence[str], target: Path, is_btrfs: bool, ledger: Ledger) -> None:
    if not target.exists():
        ledger.record_undo("remove_directory", path=str(target))
        target.mkdir()
    elif not target.is_dir() or any(target.iterdir()):
        raise MachineRefuses(f"{target}: expected an empty directory to mount the volume at")
    ledger.record_undo(
        "unmount", target=str(target), devices=list({os.path.realpath(device), device, *disks})
    )
    members = ["-o", ",".join(f"device={disk}" for disk in disks)] if is_btrfs else []
    ledger.tool("mount", *members, device, str(target))


def reason_in_use(path: str, root: Path = Path("/")) -> str | None:
    """Reason why this disk, or file, cannot be erased."""
    try:
        status = os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    if stat.S_ISREG(status.st_mode):
        loops = loops_of(path)
        return f"{path} is the file of {loops[0]}, which is in use" if loops else None
    if not stat.S_ISBLK(status.st_mode):
        return f"{path}: expected a disk or a file"
    real = os.path.realpath(path)
    if target := next(
        (mount.target for mount in mounts(root) if os.path.realpath(mount.source) == real), None
    ):
        return f"{path} is mounted at {target}: it would be erased"
    if any(real == os.path.realpath(line.split()[0]) for line in tree.read_lines(root, "proc/swaps")[1:]):
        return f"{path} is swap: it would be erased"
    block = root / "sys/dev/block" / f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    if holders := tree.names(block, "holders"):
        return f"{path} is part of {holders[0]}: it would be erased"
    parts = [each for each in tree.names(block, ".") if (block / each / "partition").exists()]
    return (
        f"{path} has partitions ({parts[0]}): it would be erased; name one of them, or wipefs it"
        if parts
        else None
    )
