"""Steps of preparing a cold cache: write back, drop, remount, chill. Unmounted file systems are recorded on disk."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.machine.cool import dataset
from etude.machine.cool.dataset import Loop, loops, mount_of
from etude.machine.resources.ledger import Ledger, held_ledger
from etude.osutil.commands import tool
from etude.osutil.mounts import Mount, mounts
from etude.osutil.trust import check_directory_for_root

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
REMOUNTABLE = ("nfs", "nfs4", "cifs")
"""File systems without a device that can be remounted; others lose their contents when unmounted."""
SHOWN_ONLY = frozenset({"seclabel"})
"""Options that the kernel shows but does not accept."""


def write_back() -> None:
    """Write back dirty pages: twice, since writes to a loop device become dirty pages of its own file."""
    os.sync()
    os.sync()


def drop() -> str:
    """Make the kernel drop all clean pages, dentries and inodes of the whole machine.

    Returns:
        Description of what was done.

    Raises:
        MachineRefuses: no permission, or not possible here.
    """
    write_back()
    try:
        DROP_CACHES.write_text("3")
    except OSError as error:
        raise MachineRefuses(
            f"cache drop: {DROP_CACHES} cannot be written ({error.strerror}): run as root, in no container"
        ) from None
    return "sync; drop_caches 3"


def chill() -> tuple[str, Mapping[str, Any]]:
    """Evict caches by memory pressure (docs/howto/chill.md).

    Returns:
        Description of what was done, and the answer of `etude-engine chill`.

    Raises:
        MachineRefuses: not possible here, such as in a control group of limited memory.
    """
    write_back()
    done = dataset.engine_answer("chill", "--json")
    return f"chill {done['allocated_bytes']} bytes in {done['seconds']:.1f} s: {done['stopped']}", done


def remount(paths: Sequence[str]) -> list[str]:
    """Unmount the file systems that paths lie on, and mount them again with the same options.

    Cached pages of loop devices' own files are evicted too: otherwise reads after the mount would not reach the disk.

    Returns:
        Descriptions of what was done.

    Raises:
        MachineRefuses: no data set is given, or its file system cannot be unmounted or mounted.
    """
    if not paths:
        raise MachineRefuses("cache remount: which file system? Name the data set")
    restore_mounts()  # else the paths lie on the file system below
    write_back()
    said = []
    for mount in {mount_of(path).target: mount_of(path) for path in paths}.values():
        check_remountable(mount)
        said.append(_mount_anew(mount))
    return said


def check_remountable(mount: Mount) -> None:
    """Refuse file systems that cannot be remounted, or would change by it.

    Raises:
        MachineRefuses: the reason.
    """
    where = f"cache remount: {mount.target}"
    if mount.target == "/":
        raise MachineRefuses(
            f"{where} is the root file system; put the data set on one of its own, or reboot"
        )
    if not mount.source.startswith("/") and mount.kind not in REMOUNTABLE:
        raise MachineRefuses(
            f"{where} is a {mount.kind}: what is in it would be lost; use another file system"
        )
    if mount.within != "/" and mount.kind != "btrfs":
        raise MachineRefuses(f"{where} is a bind mount of {mount.within}; name the file system's own mount")
    check_directory_for_root(os.path.dirname(mount.target), sticky=True)  # a link there would be followed
    others = [other.target for other in mounts() if other.source == mount.source and other != mount]
    if others:
        raise MachineRefuses(
            f"{where} is also mounted at {others[0]}, which keeps it in memory; unmount that"
        )


def _mount_anew(mount: Mount) -> str:
    """Unmount and mount a file system by one shell in a session of its own.

    If this process is killed, the shell still mounts it; if the shell is killed as well, the next start does.
    """
    options = ",".join(sorted({*mount.options} - SHOWN_ONLY))
    source, target = shlex.quote(mount.source), shlex.quote(mount.target)
    again = f"mount -t {shlex.quote(mount.kind)} -o {shlex.quote(options)} -- {source} {target}"
    below = loops(mount)
    backing = next((loop.backing for loop in below if loop.cleared and loop.device == mount.source), "")
    with _kept(below) as kept, noted_remounts(mount, options, backing) as ledger:
        try:
            tool("/bin/sh", "-c", f"umount -- {target} && {again}", holding=(*kept, ledger.lock))
        except MachineRefuses as error:
            raise MachineRefuses(f"cache remount: {mount.target}: {error}{_users(mount)}") from None
        _evict([mount.source] if mount.source.startswith("/") else [])
        _evict([loop.backing for loop in below if not loop.direct])
    return f"umount {mount.target}; {again}"


@contextmanager
def _kept(below: Sequence[Loop]) -> Iterator[tuple[int, ...]]:
    """Keeps loop devices open, here and in children: otherwise their last close would detach them."""
    held = tuple(os.open(loop.device, os.O_RDONLY | os.O_CLOEXEC) for loop in below if loop.cleared)
    try:
        yield held
    finally:
        for file in held:
            os.close(file)


def _evict(paths: Sequence[str]) -> None:
    for path in paths:
        if os.path.exists(path):
            dataset.engine_answer("residency", "evict", path)


def _users(mount: Mount) -> str:
    """Processes that keep it busy, as far as /proc shows."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        links = [process / "cwd", process / "root", *_links(process / "fd")]
        if any(_lies_below(link, mount.target) for link in links):
            found.append(f"{process.name} ({_name(process)})")
    return f"; in use by {', '.join(sorted(found)[:4])}" if found else ""


def _links(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _lies_below(link: Path, target: str) -> bool:
    try:
        found = os.readlink(link)
    except OSError:
        return False
    return found == target or found.startswith(f"{target}/")


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "?"


DIRECTORY = Path("/run/etude")
"""Directory of the record; like mounts, it does not survive a boot."""
NAME = "remounts"
PATIENCE_S = 600.0
"""Maximum wait for the unmount and mount of another run, s: it may have much to write back."""


@contextmanager
def noted_remounts(mount: Mount, options: str, backing: str) -> Iterator[Ledger]:
    """Records this mount as unmounted within the block. `backing`: the file of a loop device that its last close
    detaches.

    Mounts that killed runs have left unmounted are mounted first.

    Raises:
        MachineRefuses: it cannot be recorded, or is still not mounted at the end.
    """
    with held_ledger(DIRECTORY, PATIENCE_S, name=NAME, undoing=UNDO) as ledger:
        ledger.undo()
        step = ledger.record_undo(
            "mount_again",
            source=mount.source,
            target=mount.target,
            kind=mount.kind,
            options=options,
            backing=backing,
        )
        try:
            yield ledger
        finally:
            ledger.undo([step])


def restore_mounts() -> list[str]:
    """Mount what killed runs have left unmounted; returns the mount points.

    Raises:
        MachineRefuses: one cannot be mounted; it is kept for the next time.
    """
    if os.geteuid() or not (DIRECTORY / f"{NAME}.json").exists():
        return []
    with held_ledger(DIRECTORY, PATIENCE_S, name=NAME, undoing=UNDO) as ledger:
        away = [str(step["target"]) for step in ledger.steps if not _is_mounted(**step)]
        ledger.undo()
    return away


def mount_again(source: str, target: str, kind: str, options: str, backing: str) -> None:
    """Mount it, unless it is mounted there."""
    if _is_mounted(target=target):
        return
    if backing and not _is_over(source, backing):
        source, options = backing, f"{options},loop"
    tool("mount", "-t", kind, "-o", options, "--", source, target)


def _is_mounted(target: Any, **_: Any) -> bool:
    return any(mount.target == target for mount in mounts())


def _is_over(device: str, backing: str) -> bool:
    try:
        file = Path("/sys/block", os.path.basename(device), "loop/backing_file")
        return file.read_text(errors="surrogateescape").rstrip("\n") == backing
    except OSError:
        return False


UNDO = {"mount_again": mount_again}
