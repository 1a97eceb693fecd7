"""Runs the monitor during a session: `etude-engine monitor` is started, recorded, and ended with the session.

The experiment does not wait for its start, and never fails because of it: a reason for missing readings is recorded.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from etude.errors import EtudeError
from etude.program import engine_path

MIN_EVERY_S, MAX_EVERY_S = 0.01, 3600.0
MAX_TOP = 100
"""Limits of the engine itself."""

PATIENCE_S = 2.0
"""Time for its last reading before it is killed, s."""

SHORT = "the session was shorter than one interval"


@dataclass(frozen=True)
class Monitoring:
    """Interval of readings, and number of processes listed in each."""

    every_s: float = 1.0
    top: int = 5


DEFAULT_MONITORING = Monitoring()


def to_document(asked: Monitoring | None) -> dict[str, Any] | None:
    """The member `monitor` of experiment.json; null: no monitor."""
    return None if asked is None else asdict(asked)


def from_document(document: Mapping[str, Any]) -> Monitoring | None:
    """The stored settings; None for no monitor, or for an experiment older than the monitor."""
    asked = document.get("monitor")
    try:
        return None if asked is None else Monitoring(float(asked["every_s"]), int(asked["top"]))
    except (TypeError, KeyError, ValueError):
        return DEFAULT_MONITORING


@contextmanager
def monitor_running(path: Path, entry: dict[str, Any], asked: Monitoring | None) -> Iterator[None]:
    """Run the monitor within the block. `entry`: the session's in experiment.json; its member `monitor` is updated."""
    if asked is None:
        yield
        return
    file = path / f"monitor-{entry['sitting']}.jsonl"
    noted: dict[str, Any] = {"file": file.name, **asdict(asked), "reason": None}
    entry["monitor"] = noted
    running, noted["reason"] = _start(file, asked)
    try:
        yield
    finally:
        if running is not None:
            noted["reason"] = running.end()
        if _is_empty(file):
            noted["reason"] = noted["reason"] or SHORT
            noted["file"] = None
            with suppress(OSError):
                file.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Running:
    pid: int
    input: int
    """Pipe whose end makes the monitor end, also if Étude is killed."""
    output: int

    def end(self) -> str | None:
        """End the monitor; returns why it had failed, if it had."""
        os.close(self.input)
        try:
            status = _exit_status(self.pid)
            if status is None:
                return f"it did not end within {PATIENCE_S:g} s, and was killed"
            if status == 0:
                return None
            words = _read_output(self.output).decode("utf-8", "replace").splitlines()
            said = [line for line in words if line != "monitoring"]
            return said[0] if said else _ending(status)
        finally:
            os.close(self.output)


def _start(file: Path, asked: Monitoring) -> tuple[_Running | None, str | None]:
    """Start the monitor in a process group of its own, so that Ctrl-C reaches only us; or the reason why it failed."""
    try:
        program = engine_path()
    except EtudeError as error:
        return None, str(error)
    words = [
        program,
        "monitor",
        "--output",
        str(file),
        "--every",
        f"{asked.every_s:.9g}s",
        "--top",
        str(asked.top),
    ]
    its_input, our_input = os.pipe()
    our_output, its_output = os.pipe()
    try:
        pid = os.posix_spawn(
            program,
            words,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, its_input, 0),
                (os.POSIX_SPAWN_DUP2, its_output, 1),
                (os.POSIX_SPAWN_DUP2, its_output, 2),
            ],
            setpgroup=0,
        )
    except OSError as error:
        os.close(our_input)
        os.close(our_output)
        return None, f"{program}: cannot be run: {error.strerror}"
    finally:
        os.close(its_input)
        os.close(its_output)
    os.set_blocking(our_output, False)
    return _Running(pid, our_input, our_output), None


def _exit_status(pid: int) -> int | None:
    """Exit status as from `os.waitpid`; None if it had to be killed."""
    until = time.monotonic() + PATIENCE_S
    with suppress(ChildProcessError):  # somebody else waited for it
        while time.monotonic() < until:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.001)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None
    return 0


def _read_output(output: int) -> bytes:
    try:
        return os.read(output, 4096)
    except BlockingIOError:
        return b""


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit status {code}"


def _is_empty(file: Path) -> bool:
    """True if it holds neither a reading nor a message."""
    try:
        with open(file, "rb") as lines:
            return not any(b'"v":' in line or b'"kernel":' in line for line in lines)
    except OSError:
        return True
