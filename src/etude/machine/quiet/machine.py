"""Access to files below a root, system tools, threads and processes for operations. Tests replace it."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from etude.machine import tree
from etude.osutil.commands import tool
from etude.osutil.processes import Stat, read_stat

GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ESRCH, errno.ENOTDIR)
TOOL_S = 90.0
"""Timeout of a tool, s: longer than systemd's own timeout for a service."""


@dataclass(frozen=True)
class Machine:
    """The machine whose /proc, /sys, /run and /etc are below `root`."""

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
