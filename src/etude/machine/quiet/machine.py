"""What operations touch: files below a root, the system's tools, threads and processes. Tests have others."""

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
"""A tool that takes longer than systemd's own patience for a service is not waited for."""


@dataclass(frozen=True)
class Machine:
    """The machine whose /proc, /sys, /run and /etc are below `root`."""

    root: Path = Path("/")
    holding: tuple[int, ...] = ()
    """Files that tools keep open, so that a ledger stays locked until they are done."""

    def read(self, path: str) -> str | None:
        """A file's text without blanks at its ends, or the choice in force as in `always [madvise] never`; None if
        there is no such file.

        Raises:
            OSError: it is there, and cannot be read.
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
        """Into a file that is there.

        Raises:
            OSError: the kernel refuses.
        """
        file = os.open(self.root / path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(file, f"{text}\n".encode())
        finally:
            os.close(file)

    def writable(self, path: str) -> bool:
        """Whether a write could be allowed; the kernel may refuse it all the same."""
        return os.access(self.root / path, os.W_OK)

    def names(self, path: str) -> list[str]:
        """Names in a directory, in order; none if there is no such directory."""
        return tree.names(self.root, path)

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def tool(self, *words: str, patience_s: float | None = None) -> str:
        """What a tool of the system printed.

        Raises:
            MachineRefuses: it is missing, fails, or takes longer than `patience_s` (else `TOOL_S`).
        """
        return tool(*words, patience_s=patience_s or TOOL_S, holding=self.holding)

    @property
    def systemd(self) -> bool:
        """Whether systemd runs this machine."""
        return (self.root / "run/systemd/system").is_dir()

    def affinity(self, thread: int) -> set[int]:
        return os.sched_getaffinity(thread)

    def set_affinity(self, thread: int, cpus: set[int]) -> None:
        os.sched_setaffinity(thread, cpus)

    def signal(self, process: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(process, number)

    def own(self) -> set[int]:
        """This process and what it was started by, but for the first of all."""
        found, pid = set(), os.getpid()
        while pid > 1 and pid not in found:
            found.add(pid)
            pid = parent(self, pid)
        return found


def stat(machine: Machine, process: int, thread: int | None = None) -> Stat | None:
    """A process, or one of its threads; None if it is gone."""
    return read_stat(process, thread, machine.root)


def start(machine: Machine, process: int, thread: int | None = None) -> str:
    """When it was started, in ticks since boot: tells a reused number apart. Empty if it is gone."""
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
