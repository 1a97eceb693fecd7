"""Transports: local commands that run a shell line on another machine, over ssh or as a step of a job of Slurm."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from etude.errors import MachineRefuses
from etude.machine.remote.hosts import Entry
from etude.osutil.commands import run_to_end
from etude.osutil.trust import tool_words

OVER_CONNECTION = ("ControlMaster=no", "ProxyCommand=false")
"""Options of ssh that use the open connection; without one it fails, instead of opening another."""


class Transport(Protocol):
    """A way to one machine. Lines are for its shell; their standard streams are those of the local command."""

    @property
    def shown(self) -> str:
        """The machine in messages."""
        ...

    @property
    def package(self) -> str:
        """Debian package of its program."""
        ...

    def command(self, line: str, *, first: bool = False) -> list[str]:
        """The command that runs a line. first: it opens the connection, which lasts as long as the line."""
        ...

    def copying(self, source: str, target: str, *, back: bool) -> list[str]:
        """The command that copies a file or directory to the machine, or `back`. Raises MachineRefuses."""
        ...


def run(transport: Transport, words: Sequence[str], *, given: bytes | int = b"", within_s: float) -> bytes:
    """Output of a command of the transport; `given` is its input, or a file with it.

    Raises:
        MachineRefuses: it fails, or takes longer than `within_s`, s.
    """
    try:
        done = run_to_end(tool_words(words), given=given, patience_s=within_s, apart=True)
    except subprocess.TimeoutExpired:
        raise MachineRefuses(f"{transport.shown}: {words[0]} took longer than {within_s:g} s") from None
    except OSError as error:
        raise cannot_be_run(transport, words[0], error) from None
    if done.status:
        why = done.why if done.errors else f"{words[0]}: {done.why}"
        raise MachineRefuses(f"{transport.shown}: {why}")
    return done.output


def cannot_be_run(transport: Transport, program: str, error: OSError) -> MachineRefuses:
    """The error for a transport whose program is missing."""
    return MachineRefuses(f"{program}: cannot be run: {error.strerror}; install {transport.package}")


@dataclass(frozen=True, slots=True)
class Ssh:
    """One connection by ssh for all commands, by a control socket."""

    entry: Entry
    socket: Path
    package: str = "openssh-client"

    @property
    def shown(self) -> str:
        """See `Transport`, like all of these."""
        return self.entry.shown

    def command(self, line: str, *, first: bool = False) -> list[str]:
        """ssh as the master of the connection, or over it."""
        options = ("ControlMaster=yes", "ControlPersist=no") if first else OVER_CONNECTION
        port = ["-p", str(self.entry.port)] if self.entry.port else []
        user = ["-l", self.entry.user] if self.entry.user else []
        return [
            "ssh",
            "-T",
            "-e",
            "none",
            *self._options(*options),
            *port,
            *user,
            "--",
            self.entry.address,
            line,
        ]

    def copying(self, source: str, target: str, *, back: bool) -> list[str]:
        """scp over the connection."""
        entry = self.entry
        user = f"{entry.user}@" if entry.user else ""
        there = f"{user}[{entry.address}]:" if ":" in entry.address else f"{user}{entry.address}:"
        paths = (f"{there}{source}", target) if back else (source, f"{there}{target}")
        port = ["-P", str(entry.port)] if entry.port else []
        return ["scp", "-r", "-p", "-q", *self._options(*OVER_CONNECTION), *port, "--", *paths]

    def _options(self, *more: str) -> list[str]:
        entry = self.entry
        options = [
            "BatchMode=yes",
            f"ControlPath={self.socket}",
            f"ConnectTimeout={max(1, round(entry.connect_timeout_s))}",
            f"ServerAliveInterval={max(1, round(entry.silence_s / 3))}",
            "ServerAliveCountMax=3",
            "ForwardX11=no",
            "ForwardAgent=no",
            "LogLevel=ERROR",
            *([f'IdentityFile="{entry.identity}"', "IdentitiesOnly=yes"] if entry.identity else []),
            *([f'UserKnownHostsFile="{entry.known_hosts}"'] if entry.known_hosts else []),
            *entry.options,
        ]
        return [word for option in (*more, *options) for word in ("-o", option)]


@dataclass(frozen=True, slots=True)
class Srun:
    """Steps of a running job of Slurm on one of its nodes, beside its other steps, unconfined. The end of the job ends
    all of them."""

    job: str
    node: str
    directory: str = "/"
    """Working directory of the lines."""
    package: str = "slurm-client"

    @property
    def shown(self) -> str:
        """See `Transport`, like all of these."""
        return f"node {self.node}"

    @property
    def words(self) -> list[str]:
        """Words before a command."""
        where = (f"--jobid={self.job}", f"--nodelist={self.node}", "--nodes=1", "--ntasks=1")
        beside = ("--overlap", "--cpu-bind=none", "--mem=0", "--export=ALL")
        return ["srun", "--quiet", *where, *beside, f"--chdir={self.directory}"]

    def command(self, line: str, *, first: bool = False) -> list[str]:
        """A step with a shell; each is a connection of its own."""
        return [*self.words, "/bin/sh", "-c", line]

    def copying(self, source: str, target: str, *, back: bool) -> list[str]:
        """Refused: scp cannot use a step."""
        raise MachineRefuses(f"{self.shown}: files are not copied to a node of a job")
