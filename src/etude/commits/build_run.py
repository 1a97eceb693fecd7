"""Runs a build line in a source tree, with other trees read-only where the kernel allows it; all that it starts ends
with it."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from etude.machine.leftovers import marked_processes, stop

MARK = "ETUDE_BUILD_TREE"
"""Variable of all processes of a build, with its source tree: what outlives Étude itself is found by it."""
GRACE_S = 2.0
_CHECK_S = 0.2
_MOUNT = """set -e
writable=$1; shift
while [ "$1" != -- ]; do
    mount --rbind "$1" "$1"; mount -o remount,bind,ro "$1"; shift
done
shift
mount --bind "$writable" "$writable"; mount -o remount,bind,rw "$writable"
cd "$writable"
exec "$@"
"""
"""Run in a mount namespace of its own: $1 stays writable, all up to `--` not, then the command."""


@dataclass(frozen=True, slots=True)
class BuildEnd:
    """End of a build line."""

    status: int | None
    """Exit status; minus the number of a signal; None after the time limit."""
    elapsed_s: float


def run_build(
    line: str,
    tree: Path,
    log: Path,
    variables: Mapping[str, str],
    *,
    limit_s: float | None = None,
    before: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
) -> BuildEnd:
    """Run a line of /bin/sh in `tree`, its output to `log`. No process of it is left, however this ends.

    before: words before the command (`read_only`). check: called again and again; what it raises ends the build.

    Raises:
        OSError: it cannot be started.
    """
    began_s = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*before, "/bin/sh", "-c", line],
            cwd=tree,
            env={**variables, MARK: str(tree)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = _status(process, math.inf if limit_s is None else began_s + limit_s, check)
        finally:
            elapsed_s = time.monotonic() - began_s
            stop_build(tree, process)
    return BuildEnd(status, elapsed_s)


def _status(process: subprocess.Popen[bytes], until_s: float, check: Callable[[], None]) -> int | None:
    """Exit status; None at `until_s` of the monotonic clock."""
    while (left_s := until_s - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(left_s, _CHECK_S))
        check()
    return None


def stop_build(tree: Path, process: subprocess.Popen[bytes] | None = None) -> None:
    """End all processes of the build in `tree`, also those of an Étude that was killed."""
    stop(partial(marked_processes, MARK, str(tree)), GRACE_S, process.poll if process else lambda: None)
    if process is not None:
        with suppress(ProcessLookupError, PermissionError):  # those without the variable
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_only(places: Sequence[Path], writable: Path) -> tuple[str, ...]:
    """Words before a command that make `places` read-only for it, but not `writable`; it runs as the same user."""
    user, group = os.geteuid(), os.getegid()
    command = ("/bin/sh", "-c", _MOUNT, "sh", str(writable), *map(str, places), "--")
    if user == 0:
        return ("unshare", "--mount", "--propagation", "private", "--", *command)
    outer = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "--", *command)
    return (*outer, "unshare", "--user", f"--map-user={user}", f"--map-group={group}", "--")


def can_be_read_only(places: Sequence[Path], writable: Path) -> bool:
    """True if `read_only` works here: the kernel or its security module may not allow it."""
    words = [
        *read_only(places, writable),
        "/bin/sh",
        "-c",
        'test -w . && ! test -w "$1"',
        "sh",
        str(places[0]),
    ]
    try:
        done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
