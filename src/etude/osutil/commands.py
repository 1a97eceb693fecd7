"""Runs Étude's own commands to their end: their output, and the reason for a failure in one line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from etude.errors import MachineRefuses
from etude.osutil.trust import tool_environment


@dataclass(frozen=True)
class Done:
    """Result of a command that has ended."""

    status: int
    """Exit status; minus the number of the signal that ended it."""
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """Output as text."""
        return self.output.decode("utf-8", "replace")

    @property
    def why(self) -> str:
        """The last line of its errors, else of its output, else its exit status."""
        for said in (self.errors, self.output):
            if lines := said.decode("utf-8", "replace").strip().splitlines():
                return lines[-1]
        return f"exit status {self.status}"


def run_to_end(
    words: Sequence[str],
    *,
    given: bytes | int = b"",
    into: int | None = None,
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    patience_s: float | None = None,
    apart: bool = False,
    holding: Sequence[int] = (),
) -> Done:
    """Run a command, killed after `patience_s`. Its output goes to memory, not to a pipe, so that a process which it
    leaves behind does not hold it up.

    given: its input, or a file with it. into: a file that its output goes to instead. apart: in a session of its own,
    which Ctrl-C does not end halfway.
    holding: files that it keeps open while it runs.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer.
    """
    output, errors = (os.fdopen(os.memfd_create(f"etude-{name}"), "w+b") for name in ("output", "errors"))
    with output, errors:
        done = subprocess.run(
            words,
            stdin=given if isinstance(given, int) else None if given else subprocess.DEVNULL,
            input=given if isinstance(given, bytes) and given else None,
            stdout=output if into is None else into,
            stderr=errors,
            env=environment,
            cwd=directory,
            timeout=patience_s,
            start_new_session=apart,
            pass_fds=holding,
            check=False,
        )
        output.seek(0)
        errors.seek(0)
        return Done(done.returncode, output.read(), errors.read())


PACKAGES = {
    "btrfs": "btrfs-progs",
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mdadm": "mdadm",
    "ip": "iproute2",
    "tc": "iproute2",
    "losetup": "util-linux",
}
"""Debian packages of programs."""


def tool(
    *words: str, directory: str | None = None, patience_s: float = 600.0, holding: tuple[int, ...] = ()
) -> str:
    """Output of a system tool, run in a session of its own, so that Ctrl-C does not end it halfway. `holding`: files
    that it keeps open while it runs.

    Raises:
        MachineRefuses: it is not installed, fails, or takes too long.
    """
    if directory is not None and not os.path.isdir(directory):
        raise MachineRefuses(f"{directory}: there is no such directory to run {words[-1]!r} in")
    line = " ".join(shlex.join(words).split())
    environment = tool_environment() | {"LC_ALL": "C"}
    try:
        done = run_to_end(
            words,
            environment=environment,
            directory=directory,
            patience_s=patience_s,
            apart=True,
            holding=holding,
        )
    except FileNotFoundError:
        raise MachineRefuses(missing_tool_text(words[0])) from None
    except subprocess.TimeoutExpired:
        raise MachineRefuses(f"{line}: not done after {patience_s:g} s") from None
    if done.status:
        raise MachineRefuses(f"{line}: {done.why}")
    return done.text


def missing_tool_text(program: str) -> str:
    """The error text for a program that is not installed."""
    package = PACKAGES.get(program)
    return f"no program {program}" + (f": install the Debian package {package}" if package else "")


def wait_until(patience_s: float, done: Callable[[], bool]) -> bool:
    """True if the condition became true in time; it is polled every 10 ms."""
    until = time.monotonic() + patience_s
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def first_missing_tool(programs: Iterable[str]) -> str | None:
    """The error text for the first program that is not installed; None if all are."""
    return next((missing_tool_text(program) for program in programs if shutil.which(program) is None), None)
