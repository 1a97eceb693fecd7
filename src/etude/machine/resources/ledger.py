"""Undo ledger: the undo of each change is on disk before the change, so that a killed process's changes can be
undone."""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude.errors import EtudeError, InputError, MachineRefuses
from etude.osutil.commands import tool, wait_until
from etude.osutil.files import replace_file, sync_directory, try_lock
from etude.osutil.mounts import mounts
from etude.osutil.trust import check_directory_for_root, open_for_root

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

NAME = "resources"
FILE = f"{NAME}.json"
NEW = f".{FILE}.new"
LOCK = f"{NAME}.lock"
LOCKED = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
VERSION = 1

Step = dict[str, Any]
Undoing = Mapping[str, Callable[..., None]]
"""Function that undoes each kind of change, with the step's other members as arguments."""


@dataclass
class Ledger:
    """The undo steps of one directory, oldest first, while this process holds it."""

    directory: Path
    steps: list[Step]
    lock: int
    """File whose lock shows that this holder is alive."""
    name: str = field(default_factory=lambda: f"etude-held-{secrets.token_hex(4)}")
    """Unique name for objects of this holder, such as its cgroups."""
    undoing: Undoing = field(default_factory=lambda: UNDO)
    file: str = FILE

    def record_undo(self, undo: str, **members: Any) -> Step:
        """Record the undo step before its change; returns the step. A step must be harmless if the change was not
        made."""
        assert undo in self.undoing
        step = {"undo": undo, **members}
        self._keep([*self.steps, step])
        return step

    def tool(self, *words: str) -> str:
        """Run a tool that makes a change. It inherits the lock: if this process is killed, nobody undoes changes before
        the tool ends."""
        return tool(*words, holding=(self.lock,))

    def undo(self, only: Sequence[Step] | None = None) -> None:
        """Undo all steps, or only these, newest first. A failed step is kept, and earlier ones are still tried.

        Raises:
            MachineRefuses: the first failure.
        """
        failed: list[tuple[Step, str]] = []
        for step in reversed(self.steps):
            if only is not None and not any(step is one for one in only):
                continue
            members: Step = {key: value for key, value in step.items() if key != "undo"}
            try:
                self.undoing[str(step["undo"])](**members)
            except (OSError, EtudeError, TypeError) as error:  # TypeError: invalid members of a step
                failed.append((step, str(error)))
                continue
            with suppress(MachineRefuses):  # no space: undoing twice is harmless
                self._keep([other for other in self.steps if other is not step])
        if failed:
            step, why = failed[0]
            raise MachineRefuses(
                f"{step['undo']} could not be done: {why}; {len(failed)} steps are left in {self.directory / self.file}"
            )

    def forget(self, step: Step) -> None:
        """Drop a step that has nothing left to undo.

        Raises:
            MachineRefuses: it cannot be written.
        """
        self._keep([other for other in self.steps if other is not step])

    def _keep(self, steps: list[Step]) -> None:
        path = self.directory / self.file
        try:
            if steps:
                _write(path, json.dumps({"version": VERSION, "steps": steps}, indent=1) + "\n")
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise MachineRefuses(f"{path} cannot be written: {error.strerror}") from None
        self.steps = steps


@contextmanager
def held_ledger(
    directory: Path, patience_s: float = 5.0, *, name: str = NAME, undoing: Undoing = UNDO
) -> Iterator[Ledger]:
    """The ledger of a directory, with the steps that others left; one process at a time holds it.

    The kernel releases the lock when the process ends, however it ends. The patience is for tools that a killed process
    has left. `name`: prefix of its files.

    Raises:
        MachineRefuses: while another process has it.
        InputError: the file is invalid.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        check_directory_for_root(directory)
        opened = open(os.open(directory / f"{name}.lock", LOCKED, 0o600), "wb")  # noqa: SIM115
    except OSError as error:
        raise MachineRefuses(f"{directory}: nothing can be kept there: {error.strerror}") from None
    with opened as lock:
        if not wait_until(patience_s, lambda: try_lock(lock.fileno())):
            raise MachineRefuses(f"{directory}: another process holds resources by it; wait for its end")
        (directory / f".{name}.json.new").unlink(missing_ok=True)  # half written when its process was killed
        steps = read(directory / f"{name}.json", undoing)
        yield Ledger(directory.absolute(), steps, lock.fileno(), undoing=undoing, file=f"{name}.json")


def read(path: Path, undoing: Undoing = UNDO) -> list[Step]:
    """The steps in a ledger's file, oldest first; empty without a file.

    Raises:
        InputError: it is invalid, or others could have written what root is to undo.
    """
    try:
        with open(open_for_root(path), encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: expected JSON written by Étude") from None
    steps = found.get("steps") if isinstance(found, dict) and found.get("version") == VERSION else None
    if not isinstance(steps, list) or not all(_is_step(step, undoing) for step in steps):
        raise InputError(f"{path}: expected steps of version {VERSION}, as Étude writes them")
    return steps


def _is_step(step: object, undoing: Undoing) -> bool:
    return isinstance(step, dict) and isinstance(step.get("undo"), str) and step["undo"] in undoing


def _write(path: Path, text: str) -> None:
    replace_file(path, text.encode(), mode=0o644)  # independent of the umask: nobody else may write it
    sync_directory(path.parent)
