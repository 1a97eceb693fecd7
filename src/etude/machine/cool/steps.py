"""The steps of cooling: writing back, dropping, mounting anew, using up memory."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.machine.cool import engine, remounts
from etude.machine.cool.backing_devices import Loop, loops, mount_of
from etude.osutil.commands import tool
from etude.osutil.mounts import Mount, mounts
from etude.osutil.trust import check_directory_for_root

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
ANEW = ("nfs", "nfs4", "cifs")
"""Kinds without a device that can be mounted anew all the same: others hold what is in them only while mounted."""
SHOWN_ONLY = frozenset({"seclabel"})
"""Options that the kernel shows and does not take."""


def write_back() -> None:
    """Write what is dirty: twice, for what a loop device has been given is dirty in its own file."""
    os.sync()
    os.sync()


def drop() -> str:
    """Have the kernel drop all clean pages, dentries and inodes: of the whole machine.

    Returns:
        What was done, in words.

    Raises:
        MachineRefuses: not as this user, or not here.
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
    """Use up memory until the kernel has given up its caches (docs/chill.md).

    Returns:
        What was done, in words, and the answer of `etude-engine chill`.

    Raises:
        MachineRefuses: it cannot be done here, as in a control group of limited memory.
    """
    write_back()
    done = engine.answer("chill", "--json")
    return f"chill {done['allocated_bytes']} bytes in {done['seconds']:.1f} s: {done['stopped']}", done


def remount(paths: Sequence[str]) -> list[str]:
    """Unmount the file systems that paths lie on, and mount them again as they were.

    What loop devices below them have of their own files in memory goes, too: without that, what is read after the
    mount would not come from the disk.

    Returns:
        What was done, in words.

    Raises:
        MachineRefuses: no data set is named, its file system cannot be unmounted, or not mounted anew.
    """
    if not paths:
        raise MachineRefuses("cache remount: which file system? Name the data set")
    remounts.finish()  # else the paths lie on what is below
    write_back()
    said = []
    for mount in {mount_of(path).target: mount_of(path) for path in paths}.values():
        check_anew(mount)
        said.append(_mount_anew(mount))
    return said


def check_anew(mount: Mount) -> None:
    """Refuse what cannot be mounted anew, or would not come back as it was.

    Raises:
        MachineRefuses: says why.
    """
    where = f"cache remount: {mount.target}"
    if mount.target == "/":
        raise MachineRefuses(
            f"{where} is the root file system; put the data set on one of its own, or reboot"
        )
    if not mount.source.startswith("/") and mount.kind not in ANEW:
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

    Should this process be killed, the shell mounts it again; should the shell be killed as well, the next start does.
    """
    options = ",".join(sorted({*mount.options} - SHOWN_ONLY))
    source, target = shlex.quote(mount.source), shlex.quote(mount.target)
    again = f"mount -t {shlex.quote(mount.kind)} -o {shlex.quote(options)} -- {source} {target}"
    below = loops(mount)
    backing = next((loop.backing for loop in below if loop.cleared and loop.device == mount.source), "")
    with _kept(below) as kept, remounts.noted_remounts(mount, options, backing) as ledger:
        try:
            tool("/bin/sh", "-c", f"umount -- {target} && {again}", holding=(*kept, ledger.lock))
        except MachineRefuses as error:
            raise MachineRefuses(f"cache remount: {mount.target}: {error}{_users(mount)}") from None
        _evict([mount.source] if mount.source.startswith("/") else [])
        _evict([loop.backing for loop in below if not loop.direct])
    return f"umount {mount.target}; {again}"


@contextmanager
def _kept(below: Sequence[Loop]) -> Iterator[tuple[int, ...]]:
    """Loop devices that are given back at their last close stay while these are open, here or in a child."""
    held = tuple(os.open(loop.device, os.O_RDONLY | os.O_CLOEXEC) for loop in below if loop.cleared)
    try:
        yield held
    finally:
        for file in held:
            os.close(file)


def _evict(paths: Sequence[str]) -> None:
    for path in paths:
        if os.path.exists(path):
            engine.answer("residency", "evict", path)


def _users(mount: Mount) -> str:
    """Who keeps it busy, as far as /proc tells."""
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
