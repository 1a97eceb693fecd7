"""One run of a load command: its reports while it runs, and the resources it used; on other hosts: load_hosts.py."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from etude.peak.harnesses import processes
from etude.peak.harnesses.load_report import LoadReport, Reader
from etude.peak.machine_state import MachineState
from etude.peak.search import EarlyStop

_CPU_S = 0.25
"""Interval between readings of the load command's CPU time."""
_MORE_WINDOWS = 0.01
"""Share of new windows that triggers the next check by the policy, which reads all windows each time."""


@dataclass(frozen=True, slots=True)
class Share:
    """Load of one generator in a trial."""

    host: str
    """Name as in the hosts file; empty: this machine."""
    load: float


@dataclass(frozen=True, slots=True)
class Used:
    """Resources used by a run of a load command; NaN if unknown."""

    cpu_s: float
    """CPU time used, plus time waited for a CPU if known."""
    lasted_s: float
    began_s: float
    """Begin on this machine's monotonic clock."""


class LoadRun(Protocol):
    """A running load command."""

    began_s: float
    """Begin on this machine's monotonic clock."""
    ended: bool
    """True once it has ended by itself and all its reports were read."""
    failed: bool
    """It ended with a status other than 0."""
    wrong: str
    """Reason why the run is incomplete; empty if it is complete."""

    def hear(self, wait_s: float) -> list[LoadReport]:
        """New reports; waits at most `wait_s`. Raises Unreadable."""
        ...

    def end(self, grace_s: float) -> None:
        """End it, unless it has ended, and all that it started."""
        ...

    def used(self) -> Sequence[Used]:
        """Resources used by each generator, after `end`."""
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
        lasted_s = time.monotonic() - self._command.began_s
        processes.end(self._command, grace_s)
        command = self._command
        command.used_s = max(command.used_s, _used_by_children_s() - self._before_s)
        self._used = [Used(command.cpu_s, lasted_s, self.began_s)]

    def used(self) -> Sequence[Used]:
        return self._used


def _message(command: processes.Command, errors: Path) -> str:
    """Error output of a failed command in one line; else the last line of its output."""
    with suppress(OSError):
        if message := one_line(errors.read_bytes()[-processes.TAIL :].decode("utf-8", "replace")):
            return message
    return processes.last_line(command)


def one_line(text: str) -> str:
    """All non-empty lines, joined."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _used_by_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class LoadOutcome:
    """The outcome of one run of the load command."""

    told: list[LoadReport]
    early: bool = False
    wrong: str = ""
    failed: bool = False
    """Both as in `LoadRun`."""
    lost: bool = False
    """The system did not recover from the warm-up."""
    gone: bool = False
    """The system had ended, or was not ready again in time."""
    oom_killed: int = 0
    """Processes of the system that the OOM killer ended."""
    used: list[Sequence[Used]] = field(default_factory=list)
    """Resources used, by run and generator."""
    machine: MachineState | None = None
    _looked_at: int = 0

    def enough(self, enough: EarlyStop) -> bool:
        """True if the policy has seen enough and the trial ends early; checked again after 1 % more windows."""
        if self.told and len(self.told) >= (1 + _MORE_WINDOWS) * self._looked_at:
            self._looked_at = len(self.told)
            self.early = enough([each.window for each in self.told])
        return self.early


def generator_reports(watched: LoadOutcome, index: int) -> list[LoadReport]:
    """Reports of one generator."""
    return [each.parts[index] if each.parts else each for each in watched.told]


def after_first_s(runs: Sequence[Sequence[Used]], index: int) -> float | None:
    """Start delay of a generator after the first one, s: the maximum over runs; None if unknown."""
    began_s = [[each.began_s for each in run] for run in runs if index < len(run)]
    known = [each for each in began_s if all(map(math.isfinite, each))]
    return max((each[index] - min(each) for each in known), default=None)
