"""Steps that undo changes. Each may be repeated, and does nothing if the change was never made."""

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
"""Timeout for what the kernel finishes by itself, s: the end of killed processes, the last writes of a device."""


def remove_file(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def remove_directory(path: str) -> None:
    with suppress(FileNotFoundError):
        Path(path).rmdir()


def remove_group(path: str) -> None:
    """Remove a cgroup and its children; remaining processes are killed."""
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
    """Withdraw it from the children of a v2 group, unless another cgroup there still uses it."""
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
    """Unmount it if one of these devices is mounted there."""

    def done() -> bool:
        if not any(mount.target == target and mount.source in devices for mount in mounts()):
            return True
        with suppress(MachineRefuses):
            tool("umount", target)
        return False

    if not wait_until(PATIENCE_S, done):
        tool("umount", target)


def detach_loop(file: str) -> None:
    """Detach all loop devices of this file."""

    def done() -> bool:
        found = loops_of(file)
        for device in found:
            with suppress(MachineRefuses):
                tool("losetup", "--detach", device)
        return not found

    if not wait_until(PATIENCE_S, done):
        raise MachineRefuses(f"{file}: loop device {' '.join(loops_of(file))} is still used")


def loops_of(file: str) -> list[str]:
    """Loop devices of this file, also if the file was removed."""
    found = tool("losetup", "--json", "--list", "--output", "NAME,BACK-FILE")
    listed = json.loads(found)["loopdevices"] if found.strip() else []
    real = os.path.realpath(file)
    return [each["name"] for each in listed if each["back-file"] in (real, f"{real} (deleted)")]


def forget_btrfs(device: str) -> None:
    """Make the kernel forget the members of a volume; not every kernel can."""
    with suppress(MachineRefuses):
        tool("btrfs", "device", "scan", "--forget", device)


def stop_md(device: str, members: list[str]) -> None:
    """Stop an array and erase its superblocks, so that nothing assembles it again."""
    if os.path.exists(device):
        tool("mdadm", "--stop", device)
    for member in members:
        with suppress(MachineRefuses):  # a disk without a superblock
            tool("mdadm", "--zero-superblock", "--force", member)


def remove_qdisc(interface: str, namespace: str, handle: str) -> None:
    """Remove the discipline if it is ours, by its handle; the kernel's default replaces it."""
    inside = netns_words(namespace)
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


def netns_words(namespace: str) -> tuple[str, ...]:
    """Words that run a command in the network namespace of this file; empty for the machine's own."""
    return ("nsenter", f"--net={namespace}") if namespace else ()


def run(command: str, directory: str) -> None:
    """The undo command of a hook."""
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
