"""One run of a load command: what it reports while it runs, and what it took; on other hosts: load_hosts.py."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from etude.workbench.harnesses import processes
from etude.workbench.harnesses.reading import Reader, Told

_CPU_S = 0.25
"""Between looks at the processes of the load command."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one load generator is to offer in a trial."""

    host: str
    """As in the hosts file; empty: this machine."""
    load: float


@dataclass(frozen=True, slots=True)
class Used:
    """What a run of a load command took, s; NaN where that is not known."""

    cpu_s: float
    """CPU time that it had, and waited for where that is known."""
    lasted_s: float
    began_s: float
    """On this machine's monotonic clock."""


class LoadRun(Protocol):
    """A run of the load command, which has begun."""

    began_s: float
    """On this machine's monotonic clock."""
    ended: bool
    """Whether it has ended by itself, and all that it reported was taken."""
    failed: bool
    """It ended with a status other than 0."""
    wrong: str
    """Why it is no whole run; empty if it is one."""

    def hear(self, wait_s: float) -> list[Told]:
        """What it has reported since; waits for that at most so long. Raises Unreadable."""
        ...

    def end(self, grace_s: float) -> None:
        """End it, if it has not ended, and all that it started."""
        ...

    def used(self) -> Sequence[Used]:
        """Of each generator, after `end`."""
        ...


class LocalRun:
    """A run of the load command on this machine."""

    def __init__(self, line: str, place: Path, reader: Reader) -> None:
        self._errors = place / "load.err"
        self._before_s = _used_by_children_s()
        self._reader = reader
        self._command = processes.begin(line, place, self._errors)
        self.began_s = self._command.began_s
        self.ended, self.failed, self.wrong = False, False, ""
        self._used: list[Used] = []

    def hear(self, wait_s: float) -> list[Told]:
        """What it has reported since. Raises Unreadable."""
        command, reader = self._command, self._reader
        chunk = b"".join(processes.said(command, wait_s))
        command.look(_CPU_S)
        status = command.process.poll()
        found = reader.feed(chunk.decode("utf-8", "replace"))
        if status is not None:
            found += reader.feed(b"".join(processes.said(command, 0.0)).decode("utf-8", "replace"))
            found += [] if status else reader.end()
            self.ended, self.failed = True, bool(status)
            if status:
                self.wrong = (
                    f"the load command {processes.how_ended(status)}: {_message(command, self._errors)}"
                )
        return found

    def end(self, grace_s: float) -> None:
        """End it with all that is in its session."""
        lasted_s = time.monotonic() - self._command.began_s
        processes.end(self._command, grace_s)
        command = self._command
        command.used_s = max(command.used_s, _used_by_children_s() - self._before_s)
        self._used = [Used(command.cpu_s, lasted_s, self.began_s)]

    def used(self) -> Sequence[Used]:
        """Of the one generator."""
        return self._used


def _message(command: processes.Command, errors: Path) -> str:
    """All that a command that failed wrote to the file of its errors, in one line; else the last that it printed."""
    with suppress(OSError):
        if message := one_line(errors.read_bytes()[-processes.TAIL :].decode("utf-8", "replace")):
            return message
    return processes.last_line(command)


def one_line(text: str) -> str:
    """All lines that say something, as one."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _used_by_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
