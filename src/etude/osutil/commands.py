"""Commands that Étude itself runs to their end: what they said, and in one line why they failed."""

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
    """A command that has ended."""

    status: int
    """Its exit status; minus the number of the signal that ended it."""
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """Its output."""
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
"""Where Debian has them."""


def tool(
    *words: str, directory: str | None = None, patience_s: float = 600.0, holding: tuple[int, ...] = ()
) -> str:
    """What it printed. It is in a session of its own, so that Ctrl-C does not end it halfway. `holding` are files that
    it keeps open while it runs.

    Raises:
        MachineRefuses: when it is not installed, fails, or takes too long.
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
        raise MachineRefuses(missing_tools(words[0])) from None
    except subprocess.TimeoutExpired:
        raise MachineRefuses(f"{line}: not done after {patience_s:g} s") from None
    if done.status:
        raise MachineRefuses(f"{line}: {done.why}")
    return done.text


def missing_tools(program: str) -> str:
    """The line for a program that is not there."""
    package = PACKAGES.get(program)
    return f"no program {program}" + (f": install the Debian package {package}" if package else "")


def wait_until(patience_s: float, done: Callable[[], bool]) -> bool:
    """Whether it came true in time; it is asked every 10 ms."""
    until = time.monotonic() + patience_s
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def lacking_any(programs: Iterable[str]) -> str | None:
    """The line for the first that is not there."""
    return next((missing_tools(program) for program in programs if shutil.which(program) is None), None)
