"""Commands of a harness: each in a session of its own, with bounded output, ended by process id with all its
children."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from etude.errors import CommandFailed
from etude.machine.leftovers import marked_processes, stop
from etude.osutil.processes import TICKS_PER_S, read_stat

MARK = "ETUDE_PEAK_PLACE"
"""Environment variable of all processes started by a harness; its value is their scratch directory."""
TAIL = 4096


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
