"""The connection to one host, with a keeper at its other end, over any transport."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from etude.engine import StartedEngine, start
from etude.errors import MachineRefuses
from etude.machine.remote.hosts import Entry
from etude.machine.remote.transport import Ssh, Transport, cannot_be_run, run
from etude.osutil.files import scratch_directory
from etude.osutil.trust import tool_words

PAUSE_S = 1.0
"""Pause between two attempts, s."""
_KINDS = (
    ("address", True, r"Temporary failure in name|No route to host|is unreachable|timed out"),
    ("address", False, r"Could not resolve|Name or service not known"),
    ("key", True, r"[Mm]unge|authentication (?:error|credential)"),
    ("key", False, r"Permission denied|[Hh]ost key|Load key|Unable to negotiate|Too many authentication"),
    ("port", True, r"refused|kex_exchange|banner exchange|Connection (?:closed|reset)"),
)
"""Messages of ssh: the part of the hosts file concerned, True if the fault may be transient (a host that starts), and
the pattern."""

Connection = TypeVar("Connection")


class HostUnreachable(MachineRefuses):
    """A host cannot be reached. `part`: the address, port, key or program; "" if ssh does not say."""

    def __init__(self, entry: Entry, why: str, part: str | None = None) -> None:
        """`part`: if it is known; else it is derived from ssh's message."""
        found = next(((p, passes) for p, passes, words in _KINDS if re.search(words, why)), ("", False))
        self.part, self.passes = found if part is None else (part, False)
        about = f" ({self.part})" if self.part else ""
        what = "used" if self.part == "program" else "reached"
        super().__init__(f"{entry.shown}: cannot be {what}{about}: {why}")


def connect_with_retries(
    way: Callable[[Entry], Connection],
    entry: Entry,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Connection:
    """The connection that `way` opens; transient errors are retried until the host's patience is over.

    Raises:
        MachineRefuses: same as `way`, the last time.
    """
    until, attempts = clock() + entry.patience_s, 1
    while True:
        try:
            return way(entry)
        except HostUnreachable as error:
            if not error.passes:
                raise
            if clock() + PAUSE_S > until:
                error.args = (f"{error}; tried {attempts} times in {entry.patience_s:g} s",)
                raise
        pause(PAUSE_S)
        attempts += 1


SLACK_S = 10.0
"""Time for the other machine's part, beyond the connect timeout, s."""
TRANSFER_BYTES_PER_S = 100_000
"""Minimum average speed of a copy; a slower one is given up."""
END_S = 5.0
_LAST_LINES = 4096
_FOLLOW = r"""
cd "$1" && mkfifo "$2" && echo || exit
cat "$2" & reading=$!
exec 3<&0
{ cat <&3; kill "$reading"; } >/dev/null 2>&1 &
wait "$reading"
rm -f "$2"
"""
"""Script of a pipe that also ends with its input: a pipe without writers would block forever."""


class Link:
    """An open connection. Closing it removes our files there."""

    def __init__(self, entry: Entry, transport: Transport | None = None) -> None:
        """Connect, by ssh unless another `transport` is given.

        Raises:
            MachineRefuses: not possible, with the reason in one line, in bounded time.
        """
        self.entry = entry
        self._sessions: list[int] = []
        self._said = ""
        # A control socket's path may have 104 bytes, and ssh appends some 17 while it creates it.
        self._stack = ExitStack()
        self._private = self._stack.enter_context(scratch_directory("/tmp"))
        self._errors = os.open(
            self._private / "said", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        self._transport = transport or Ssh(entry, self._private / "c")
        words = self._transport.command(keeper_command(entry.directory), first=True)
        try:
            self._pid, self._requests, self._answers = start(tool_words(words), self._errors)
        except OSError as error:
            self._tidy()
            raise cannot_be_run(self._transport, words[0], error) from None
        try:
            self.facts: Facts = parse_facts(self._greeting())
        except ValueError as error:
            self.close()
            raise HostUnreachable(entry, str(error), "program") from None
        except BaseException:
            self.close()
            raise

    # --- commands on the host ------------------------------------------------------------------------

    def serve(self, program: str) -> StartedEngine:
        """Start an engine there, in our directory."""
        there = shlex.quote(self.facts.directory)
        words = self._transport.command(f"cd {there} && exec {shlex.quote(program)} serve")
        pid, requests, answers = start(tool_words(words), self._errors)
        self._sessions.append(pid)
        return StartedEngine(pid, requests, answers, self.entry.shown, self.why)

    def run(self, line: str, *, data: Path | None = None, within_s: float | None = None) -> bytes:
        """Output of a shell line there; `data` is its standard input.

        Raises:
            MachineRefuses: it fails, or takes longer than `within_s`, s (default: same as a connection).
        """
        within_s = within_s or self.entry.connect_timeout_s + SLACK_S
        with open(data or os.devnull, "rb") as file:
            words = self._transport.command(line)
            return run(self._transport, words, given=file.fileno(), within_s=within_s)

    def follow(self, pipe: str) -> subprocess.Popen[bytes]:
        """Make a named pipe in our directory there; the process prints an empty line once it exists, then what is
        written into it. The end of its input ends it, and removes the pipe.

        Raises:
            MachineRefuses: the program of the connection cannot be run.
        """
        words = ["/bin/sh", "-c", _FOLLOW, "follow", self.facts.directory, pipe]
        session = self._transport.command(f"exec {shlex.join(words)}")
        try:
            return subprocess.Popen(
                tool_words(session),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                process_group=0,
            )
        except OSError as error:
            raise cannot_be_run(self._transport, session[0], error) from None

    def copy(self, source: str, target: str, *, back: bool, within_s: float) -> None:
        """Copy a file or directory to the host, or `back`. A relative path of the host is in our directory there.

        Raises:
            MachineRefuses: it fails, or takes longer than `within_s`, s.
        """
        there = os.path.join(self.facts.directory, source if back else target)
        paths = (there, target) if back else (source, there)
        run(self._transport, self._transport.copying(*paths, back=back), within_s=within_s)

    # --- the connection ------------------------------------------------------------------------------

    def why(self) -> str:
        """Last message of ssh, if any."""
        if self._errors < 0:
            return self._said
        size = os.fstat(self._errors).st_size
        said = os.pread(self._errors, _LAST_LINES, max(0, size - _LAST_LINES)) if size else b""
        lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [line for line in lines if not line.startswith(("mux_", "Shared connection", "Warning:"))]
        return (telling or lines or ["the connection ended"])[-1]

    def is_up(self) -> bool:
        """True if the connection is up, as far as ssh knows."""
        return self._requests >= 0 and not _readable(self._answers, 0.0)

    def close(self) -> None:
        """End the connection. The keeper removes our files; it is waited for a while."""
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1
        until = time.monotonic() + END_S
        for pid in [self._pid, *self._sessions]:
            _wait(pid, until)
        self._sessions.clear()
        with suppress(OSError):
            os.close(self._answers)
        self._tidy()

    def _tidy(self) -> None:
        if self._errors >= 0:
            self._said = self.why()
            os.close(self._errors)
            self._errors = -1
        self._stack.close()

    def _greeting(self) -> list[str]:
        """The keeper's lines until it is ready.

        Raises:
            MachineRefuses: nobody there, refused, or silent for too long.
        """
        within_s = self.entry.connect_timeout_s + SLACK_S
        until, said = time.monotonic() + within_s, b""
        while not said.endswith(b"ready\n"):
            if not _readable(self._answers, until - time.monotonic()):
                raise HostUnreachable(
                    self.entry, f"no answer within {within_s:g} s; does it hang?", "program"
                )
            more = os.read(self._answers, 1 << 16)
            said += more
            if not more:
                if said:
                    return said.decode("utf-8", "replace").splitlines()
                _wait(self._pid, time.monotonic() + END_S)
                raise HostUnreachable(self.entry, self.why())
        return said.decode("utf-8", "replace").splitlines()


def _readable(descriptor: int, within_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, within_s) * 1000))


def _wait(pid: int, until: float) -> None:
    """Wait for a child process; kill it if it has not ended by then."""
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return
            time.sleep(0.005)


PREFIX = "etude-remote-"

_SCRIPT = r"""
base=$1; umask 077; PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
fail() { printf 'failed %s\n' "$*"; exit 1; }
began() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
space=$(readlink /proc/self/ns/pid)
cd "$base/" 2>/dev/null || fail "$base is no directory that may be entered"
removed=0
for old in "${base%/}"/PREFIX*; do
    [ -d "$old" ] && [ ! -L "$old" ] && [ -O "$old" ] || continue
    read -r pid since in_boot in_space <"$old/keeper" || continue
    [ "$in_boot" = "$boot" ] && [ "${in_space:-$space}" != "$space" ] && continue
    [ "$in_boot" = "$boot" ] && [ "$(began "$pid")" = "$since" ] && continue
    rm -rf "$old" && removed=$((removed + 1))
done 2>/dev/null
dir=${base%/}/PREFIX$$-$(began $$)
why=$(mkdir "$dir" 2>&1) || fail "nothing can be made in $base: ${why##*: }"
trap 'rm -rf "$dir" || { sleep 1; rm -rf "$dir"; }' EXIT
trap : HUP INT TERM PIPE
us="$$ $(began $$) $boot $space"
why=$(printf '%s\n' "$us" | { cat >"$dir/keeper"; } 2>&1) && [ -s "$dir/keeper" ] ||
    fail "nothing can be written in $base: ${why##*: }"
printf '#!/bin/sh\nexec "%s/etude-engine" measure "$@"\n' "$dir" >"$dir/aptime" && chmod 700 "$dir/aptime"
printf '%s\n' "directory $dir" "machine $(uname -m)" "system $(uname -s)" "release $(uname -r)" "boot $boot"
printf '%s\n' "name $(uname -n)" "free $(df -Pk "$dir" | tail -n 1)" "path $PATH" "removed $removed" "ready"
cat >/dev/null
"""
"""The keeper: makes our directory on another machine while we are connected, and removes it.

It runs in /bin/sh and reads its standard input to the end, which comes when we close the connection, are killed, or the
connection breaks: nothing of ours stays. If the keeper itself is killed, or the machine restarts, the next keeper
removes the directory. It names its keeper's process with its start time and boot, so that a live keeper is recognised.
A directory of another PID namespace (a container that shares it) cannot be judged, and is left alone.
"""


@dataclass(frozen=True)
class Facts:
    """Facts that a keeper reports about its machine."""

    directory: str
    """Our directory there, until the connection ends."""
    machine: str
    release: str
    boot_id: str
    nodename: str
    free_bytes: int | None
    path: str
    removed: int
    """Number of removed directories of killed keepers."""


def keeper_command(directory: str) -> str:
    """The keeper as one line for the other machine's login shell."""
    script = _SCRIPT.replace("PREFIX", PREFIX)
    return f"exec /bin/sh -c {shlex.quote(script)} keeper {shlex.quote(directory)}"


def parse_facts(lines: list[str]) -> Facts:
    """Facts from its lines.

    Raises:
        ValueError: its failure, or that this is no keeper.
    """
    said: dict[str, str] = {}
    for line in lines:
        word, _, rest = line.partition(" ")
        said.setdefault(word, rest)
    if "failed" in said:
        raise ValueError(said["failed"])
    if said.get("system") != "Linux" or not said.get("directory", "").startswith("/"):
        raise ValueError(f"is no Linux with a POSIX shell: it prints {' '.join(lines)[:80]!r}")
    free = re.search(r"\s(\d+)\s+\d+%", said.get("free", ""))
    return Facts(
        said["directory"],
        said.get("machine", ""),
        said.get("release", ""),
        said.get("boot", ""),
        said.get("name", ""),
        int(free[1]) * 1024 if free else None,
        said.get("path", ""),
        int(said["removed"]) if said.get("removed", "").isdecimal() else 0,
    )
