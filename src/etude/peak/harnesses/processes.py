"""Commands of a harness: each in a session of its own, with bounded output, ended by process id with all its
children. One run of the load command is a `LoadRun`: its reports while it runs, and the resources it used; on other
hosts: load_hosts.py."""

from __future__ import annotations

import math
import os
import resource
import selectors
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from etude.errors import CommandFailed
from etude.machine.leftovers import marked_processes, stop
from etude.osutil.processes import TICKS_PER_S, read_stat
from etude.peak.harnesses.load_report import LoadReport, Reader
from etude.peak.machine_state import MachineState
from etude.peak.search import EarlyStop

MARK = "ETUDE_PEAK_PLACE"
"""Environment variable of all processes started by a harness; its value is their scratch directory."""
TAIL = 4096
_CPU_S = 0.25
"""Interval between readings of the load command's CPU time."""
_MORE_WINDOWS = 0.01
"""Share of new windows that triggers the next check by the policy, which reads all windows each time."""


@dataclass
class Command:
    """A running command."""

    process: subprocess.Popen[bytes]
    began_s: float
    output: bytearray = field(default_factory=bytearray)
    """Tail of its output, bytes."""
    used_s: float = 0.0
    """CPU time of all its processes as last sampled, s."""
    _waited: dict[int, float] = field(default_factory=dict)
    _looked_s: float = 0.0

    def look(self, again_after_s: float = 0.0) -> None:
        """Sample the CPU time of its processes, which is lost when they end; at most once per `again_after_s`."""
        if time.monotonic() - self._looked_s < again_after_s:
            return
        self._looked_s = time.monotonic()
        used = 0.0
        for pid in session(self.process.pid):
            if (seen := read_stat(pid)) is not None:
                used += (seen.user + seen.system + seen.children) / TICKS_PER_S
                with suppress(OSError):  # it ends just now
                    self._waited[pid] = _waited_s(pid)
        self.used_s = max(self.used_s, used)

    @property
    def cpu_s(self) -> float:
        """CPU time used, plus time runnable without a CPU, s."""
        return self.used_s + sum(self._waited.values())


def begin(command: str, place: Path, into: Path | None = None) -> Command:
    """Start a command line in a session of its own. Its output goes to a pipe, its errors to the file `into` or else to
    the same pipe. Raises CommandFailed if the directory is gone."""
    try:
        with open(into or os.devnull, "wb") as errors:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                cwd=place,
                env={**os.environ, "PATH": _search_path(), MARK: str(place)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors if into else subprocess.STDOUT,
                start_new_session=True,
            )
    except FileNotFoundError:
        if place.is_dir():
            raise
        raise CommandFailed(
            f"{place}: is gone: a command of the harness, or another process, has removed its {{place}}"
        ) from None
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return Command(process, time.monotonic())


def _search_path() -> str:
    return os.pathsep.join((os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")))


def error_text(command: Command, wait_s: float) -> Iterator[bytes]:
    """Output within `wait_s`, in chunks; nothing once all writers have closed it."""
    stream = command.process.stdout
    assert stream is not None
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        ready = selector.select(max(wait_s, 0.0))
    for _ in range(64 if ready else 0):
        try:
            chunk = os.read(stream.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not chunk:
            # End of file: all writers have closed the pipe.
            time.sleep(wait_s)
            return
        command.output = (command.output + chunk)[-TAIL:]
        yield chunk


def session(leader: int) -> list[int]:
    """Process ids of a session, including its leader."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                if os.getsid(int(entry)) == leader:
                    found.append(int(entry))
    return found


def end(command: Command, grace_s: float) -> None:
    """Send SIGTERM to its session, and SIGKILL to what is left after the grace period; wait for its leader."""
    command.look()
    stop(partial(session, command.process.pid), grace_s, command.process.poll)
    with suppress(subprocess.TimeoutExpired):  # one that the kernel does not let go
        command.process.wait(1.0)
    if command.process.stdout is not None:
        command.process.stdout.close()


def left_over(place: Path) -> list[int]:
    """Ids of running processes that were started for this scratch directory by any controller."""
    return marked_processes(MARK, str(place))


def how_ended(status: int) -> str:
    """Text for an end with a status or by a signal."""
    if status >= 0:
        return f"ended with {status}"
    known = {each.value: each.name for each in signal.Signals}
    return f"was ended by {known.get(-status, f'signal {-status}')}"


def _waited_s(pid: int) -> float:
    """Time its threads were runnable without a CPU, s (second field of schedstat)."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[1])
    return total * 1e-9


def last_line(command: Command) -> str:
    """Last non-empty line of a command's output."""
    for _ in error_text(command, 0.05) if not command.process.stdout.closed else ():  # type: ignore[union-attr]
        pass
    text = command.output.decode("utf-8", "replace")
    kept = [line.strip() for line in text.splitlines() if line.strip()]
    return kept[-1][:160] if kept else "it printed nothing"


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
        self._command = begin(line, place, self._errors)
        self.began_s = self._command.began_s
        self.ended, self.failed, self.wrong = False, False, ""
        self._used: list[Used] = []

    def hear(self, wait_s: float) -> list[LoadReport]:
        command, reader = self._command, self._reader
        chunk = b"".join(error_text(command, wait_s))
        command.look(_CPU_S)
        status = command.process.poll()
        found = reader.feed(chunk.decode("utf-8", "replace"))
        if status is not None:
            found += reader.feed(b"".join(error_text(command, 0.0)).decode("utf-8", "replace"))
            found += [] if status else reader.end()
            self.ended, self.failed = True, bool(status)
            if status:
                self.wrong = f"the load command {how_ended(status)}: {_message(command, self._errors)}"
        return found

    def end(self, grace_s: float) -> None:
        lasted_s = time.monotonic() - self._command.began_s
        end(self._command, grace_s)
        command = self._command
        command.used_s = max(command.used_s, _used_by_children_s() - self._before_s)
        self._used = [Used(command.cpu_s, lasted_s, self.began_s)]

    def used(self) -> Sequence[Used]:
        return self._used


def _message(command: Command, errors: Path) -> str:
    """Error output of a failed command in one line; else the last line of its output."""
    with suppress(OSError):
        if message := one_line(errors.read_bytes()[-TAIL:].decode("utf-8", "replace")):
            return message
    return last_line(command)


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
