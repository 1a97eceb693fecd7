"""The steps that undo a change. Each may be done twice, and does nothing where the change was never made."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from etude.errors import MachineRefuses
from etude.osutil.commands import tool, wait_until
from etude.osutil.mounts import mounts

PATIENCE_S = 5.0
"""For what the kernel finishes by itself: the end of killed processes, the last writes of a device."""


def remove_file(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def remove_directory(path: str) -> None:
    with suppress(FileNotFoundError):
        Path(path).rmdir()


def remove_group(path: str) -> None:
    """A cgroup and those in it; processes that are still there are killed."""
    for folder, _, _ in os.walk(path, topdown=False):
        _remove_one_group(Path(folder))


def _remove_one_group(folder: Path) -> None:
    def gone() -> bool:
        for member in _members(folder):
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    if not wait_until(PATIENCE_S, gone):
        raise MachineRefuses(f"{folder}: processes in it do not end: {_members(folder)}")


def _members(folder: Path) -> list[int]:
    try:
        # 0 is a process of another PID namespace
        return [pid for pid in map(int, (folder / "cgroup.procs").read_text().split()) if pid > 0]
    except OSError:
        return []


def withdraw_controller(group: str, controller: str) -> None:
    """From the children of a group of cgroup v2, unless another of ours or of others still uses it there."""
    file = Path(group, "cgroup.subtree_control")
    if (
        any(Path(group).glob("etude-held-*/"))
        or not file.exists()
        or controller not in file.read_text().split()
    ):
        return
    try:
        file.write_text(f"-{controller}")
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise


def unmount(target: str, devices: list[str]) -> None:
    """If one of these devices is mounted there."""

    def done() -> bool:
        if not any(mount.target == target and mount.source in devices for mount in mounts()):
            return True
        with suppress(MachineRefuses):
            tool("umount", target)
        return False

    if not wait_until(PATIENCE_S, done):
        tool("umount", target)


def detach_loop(file: str) -> None:
    """All loop devices over this file."""

    def done() -> bool:
        found = loops_of(file)
        for device in found:
            with suppress(MachineRefuses):
                tool("losetup", "--detach", device)
        return not found

    if not wait_until(PATIENCE_S, done):
        raise MachineRefuses(f"{file}: loop device {' '.join(loops_of(file))} is still used")


def loops_of(file: str) -> list[str]:
    """Loop devices over this file, also where it was removed under them."""
    found = tool("losetup", "--json", "--list", "--output", "NAME,BACK-FILE")
    listed = json.loads(found)["loopdevices"] if found.strip() else []
    real = os.path.realpath(file)
    return [each["name"] for each in listed if each["back-file"] in (real, f"{real} (deleted)")]


def forget_btrfs(device: str) -> None:
    """The kernel keeps the members of a volume that it has seen; not each kernel can forget."""
    with suppress(MachineRefuses):
        tool("btrfs", "device", "scan", "--forget", device)


def stop_md(device: str, members: list[str]) -> None:
    """Stop an array and take its marks off the disks, so that nothing assembles it again."""
    if os.path.exists(device):
        tool("mdadm", "--stop", device)
    for member in members:
        with suppress(MachineRefuses):  # a disk that has no mark
            tool("mdadm", "--zero-superblock", "--force", member)


def remove_qdisc(interface: str, namespace: str, handle: str) -> None:
    """If it is ours, by its handle; the kernel's default takes its place."""
    inside = entering(namespace)
    if namespace and not os.path.exists(namespace):
        return
    try:
        found = json.loads(tool(*inside, "tc", "-j", "qdisc", "show", "dev", interface) or "[]")
    except MachineRefuses as error:
        if "Cannot find device" in str(error):
            return
        raise
    if any(each.get("root") and each.get("handle") == handle for each in found):
        tool(*inside, "tc", "qdisc", "del", "dev", interface, "root")


def entering(namespace: str) -> tuple[str, ...]:
    """The words that run a command in the network namespace of this file; none for the machine's own."""
    return ("nsenter", f"--net={namespace}") if namespace else ()


def run(command: str, directory: str) -> None:
    """A hook's own undoing."""
    tool("sh", "-c", command, directory=directory)


UNDO: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (
        remove_file,
        remove_directory,
        remove_group,
        withdraw_controller,
        unmount,
        detach_loop,
        forget_btrfs,
        stop_md,
        remove_qdisc,
        run,
    )
}
