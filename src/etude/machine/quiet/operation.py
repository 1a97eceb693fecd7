"""Base of all operations: a name, its changes, and how one item is read, set and restored; access to the machine."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from etude.errors import MachineRefuses
from etude.machine import tree
from etude.osutil.commands import tool
from etude.osutil.processes import Stat, read_stat


class Unavailable(Exception):
    """Reason why an operation is not available on this machine."""


@dataclass(frozen=True)
class Change:
    """One item, its value, and the quiet value. An `optional` one may be refused without harm to the rest."""

    item: str
    was: str
    put: str
    optional: bool = False


@dataclass(frozen=True)
class Request:
    """The requested operations, in the table's order.

    `named`: requested by name, in contrast to the default ones; `values`: chosen values; `cpus`: CPUs to keep free.
    """

    names: tuple[str, ...]
    named: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    cpus: frozenset[int] = frozenset()

    def value(self, operation: Operation) -> str:
        """The chosen value for an operation; empty for its default."""
        return self.values.get(operation.name, "")


class Operation:
    """Subclasses define the changes; items that are files below the root need nothing else."""

    name: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    """Reason why it makes a machine quieter, in one line."""
    choices: ClassVar[tuple[str, ...]] = ()
    """Values that are valid in NAME=VALUE."""
    usual: ClassVar[bool] = True
    """True if it is done when no operation is named."""
    needs_cpus: ClassVar[bool] = False
    passes: ClassVar[int] = 1
    """Number of scans for changes: new items may appear while others are being changed."""

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        """Every item with its value and the quiet one, in the order in which they are set.

        Raises:
            Unavailable: there is none here, or it cannot be changed.
        """
        raise NotImplementedError

    def owns(self, item: str) -> bool:
        """True if an item can belong to this operation: a state file is not trusted blindly."""
        raise NotImplementedError

    def read(self, machine: Machine, item: str) -> str | None:
        """An item's value; None if the item no longer exists."""
        return machine.read(item)

    def put(self, machine: Machine, item: str, value: str) -> None:
        """Set an item. Raises: OSError, MachineRefuses."""
        machine.write(item, value)

    def same(self, one: str | None, other: str) -> bool:
        """True if two values of an item are equivalent."""
        return one == other

    def survives_boot(self, item: str) -> bool:
        """True if a change of the item survives a restart of the machine."""
        return False

    def restore(self, machine: Machine, change: Change) -> None:
        """Restore an item. Harmless if it was never changed, or is gone.

        Raises:
            OSError, MachineRefuses: it cannot be restored.
        """
        now = self.read(machine, change.item)
        if now is None or self.same(now, change.was):
            return
        self.put(machine, change.item, change.was)
        now = self.read(machine, change.item)
        if now is not None and not self.same(now, change.was):
            raise MachineRefuses(f"{change.item} stays at {now!r}, and was {change.was!r}")

    def after_restore(self, machine: Machine, changes: Sequence[Change]) -> None:
        """Final step after all items are restored.

        Raises:
            OSError, MachineRefuses: it cannot be done.
        """

    def in_force(self, machine: Machine, changes: Sequence[Change]) -> dict[str, list[str]]:
        """The items that have their quiet values, each with the former and the quiet value: for the results."""
        return {
            each.item: [each.was, each.put]
            for each in changes
            if self.same(self.read(machine, each.item), each.put)
        }


def must_be_writable(machine: Machine, changes: Sequence[Change]) -> list[Change]:
    """The same changes.

    Raises:
        Unavailable: a file would have to be changed, and cannot be.
    """
    for each in changes:
        if each.was != each.put and not each.optional and not machine.writable(each.item):
            raise Unavailable(f"/{each.item} cannot be written here")
    return list(changes)


GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ESRCH, errno.ENOTDIR)
TOOL_S = 90.0
"""Timeout of a tool, s: longer than systemd's own timeout for a service."""


@dataclass(frozen=True)
class Machine:
    """The machine whose /proc, /sys, /run and /etc are below `root`. Tests replace it."""

    root: Path = Path("/")
    holding: tuple[int, ...] = ()
    """Files that tools keep open, so that a ledger stays locked until they end."""

    def read(self, path: str) -> str | None:
        """A file's stripped text, or the selected choice of a text such as `always [madvise] never`; None if there is
        no such file.

        Raises:
            OSError: it exists, and cannot be read.
        """
        try:
            text = (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            if error.errno in GONE:
                return None
            raise
        chosen = [word[1:-1] for word in text.split() if word[:1] == "[" and word[-1:] == "]"]
        return chosen[0] if len(chosen) == 1 else text

    def write(self, path: str, text: str) -> None:
        """Write into an existing file.

        Raises:
            OSError: the kernel refuses.
        """
        file = os.open(self.root / path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(file, f"{text}\n".encode())
        finally:
            os.close(file)

    def writable(self, path: str) -> bool:
        """True if permissions allow a write; the kernel may still refuse it."""
        return os.access(self.root / path, os.W_OK)

    def names(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty if there is no such directory."""
        return tree.names(self.root, path)

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def tool(self, *words: str, patience_s: float | None = None) -> str:
        """Output of a system tool.

        Raises:
            MachineRefuses: it is missing, fails, or takes longer than `patience_s` (else `TOOL_S`).
        """
        return tool(*words, patience_s=patience_s or TOOL_S, holding=self.holding)

    @property
    def systemd(self) -> bool:
        """True if systemd runs this machine."""
        return (self.root / "run/systemd/system").is_dir()

    def affinity(self, thread: int) -> set[int]:
        return os.sched_getaffinity(thread)

    def set_affinity(self, thread: int, cpus: set[int]) -> None:
        os.sched_setaffinity(thread, cpus)

    def signal(self, process: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(process, number)

    def own(self) -> set[int]:
        """This process and its ancestors, except init."""
        found, pid = set(), os.getpid()
        while pid > 1 and pid not in found:
            found.add(pid)
            pid = parent(self, pid)
        return found


def stat(machine: Machine, process: int, thread: int | None = None) -> Stat | None:
    """A process, or one of its threads; None if it is gone."""
    return read_stat(process, thread, machine.root)


def start(machine: Machine, process: int, thread: int | None = None) -> str:
    """Start time in ticks since boot, which identifies a process whose id may be reused. Empty if it is gone."""
    seen = stat(machine, process, thread)
    return "" if seen is None else str(seen.began)


def parent(machine: Machine, process: int) -> int:
    seen = stat(machine, process)
    return 0 if seen is None else seen.parent


def processes(machine: Machine) -> list[int]:
    return sorted(int(name) for name in machine.names("proc") if name.isdecimal())


def comm(machine: Machine, process: int) -> str:
    """The kernel's name for a process, of at most 15 characters; empty if it is gone."""
    with suppress(OSError):
        return machine.read(f"proc/{process}/comm") or ""
    return ""
