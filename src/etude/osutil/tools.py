"""Running the system's tools: their output, or one line that says what is missing or what they said."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable

from etude.errors import MachineRefuses
from etude.osutil.commands import run_to_end
from etude.osutil.trust import tool_environment

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
