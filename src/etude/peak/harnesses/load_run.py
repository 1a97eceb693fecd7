"""One run of a load command: what it reports while it runs, and what it took; on other hosts: load_hosts.py."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from etude.peak.bench import Enough
from etude.peak.harnesses import processes
from etude.peak.harnesses.load_report import LoadReport, Reader
from etude.peak.machine_state import MachineState

_CPU_S = 0.25
"""Between looks at the processes of the load command."""
_MORE_WINDOWS = 0.01
"""The share of new windows from which on the policy looks again: it looks at all each time, and fewer tell nothing."""


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

    def hear(self, wait_s: float) -> list[LoadReport]:
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

    def hear(self, wait_s: float) -> list[LoadReport]:
        """What it has reported since. Raises Unreadable."""
        command, reader = self._command, self._reader
        chunk = b"".join(processes.error_text(command, wait_s))
        command.look(_CPU_S)
        status = command.process.poll()
        found = reader.feed(chunk.decode("utf-8", "replace"))
        if status is not None:
            found += reader.feed(b"".join(processes.error_text(command, 0.0)).decode("utf-8", "replace"))
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


@dataclass
class Watched:
    """The outcome of one run of the load command."""

    told: list[LoadReport]
    early: bool = False
    wrong: str = ""
    """Why it is no whole run; empty if it is one."""
    failed: bool = False
    """It ended with a status other than 0."""
    lost: bool = False
    """The system did not recover from the warm-up."""
    gone: bool = False
    """The system had ended, or was not ready again in time."""
    oom_killed: int = 0
    """Processes of the system that the OOM killer ended."""
    used: list[Sequence[Used]] = field(default_factory=list)
    """Of each run, of each generator."""
    machine: MachineState | None = None
    _looked_at: int = 0

    def enough(self, enough: Enough) -> bool:
        """Whether the policy has seen enough, so that the trial ends early; it looks again after a hundredth more."""
        if self.told and len(self.told) >= (1 + _MORE_WINDOWS) * self._looked_at:
            self._looked_at = len(self.told)
            self.early = enough([each.window for each in self.told])
        return self.early


def told_by(watched: Watched, index: int) -> list[LoadReport]:
    """What one generator reported, of one or several."""
    return [each.parts[index] if each.parts else each for each in watched.told]


def after_first_s(runs: Sequence[Sequence[Used]], index: int) -> float | None:
    """How long after the first a generator began, s: the longest of several runs; None where that is not known."""
    began_s = [[each.began_s for each in run] for run in runs if index < len(run)]
    known = [each for each in began_s if all(map(math.isfinite, each))]
    return max((each[index] - min(each) for each in known), default=None)
