"""Nodes of Slurm's jobs: commands that lead to a node, and steps of a job by srun."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from functools import partial

from etude.engine import Interrupts
from etude.errors import MachineRefuses
from etude.machine.remote.host import Host
from etude.machine.remote.hosts import Entry
from etude.machine.remote.link import Link
from etude.osutil.commands import run_to_end
from etude.osutil.trust import tool_words

WITHIN_S = 30.0
"""Timeout for an answer of Slurm, s."""

RunCommand = Callable[[Sequence[str]], str]
"""Runs a command of Slurm; returns its standard output."""


def srun(job: str, node: str) -> list[str]:
    """Words before a command that run it once on one node of a running job, beside other steps, unconfined."""
    return [
        "srun",
        "--quiet",
        f"--jobid={job}",
        f"--nodelist={node}",
        *("--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=none", "--mem=0", "--export=ALL"),
    ]


def slurm(words: Sequence[str]) -> str:
    """Output of a command of Slurm.

    Raises:
        MachineRefuses: it fails, or does not answer in time.
    """
    try:
        done = run_to_end(tool_words(words), patience_s=WITHIN_S)
    except OSError as error:
        raise MachineRefuses(f"{words[0]}: cannot be run: {error.strerror}; install slurm-client") from None
    except subprocess.TimeoutExpired:
        raise MachineRefuses(f"{words[0]}: no answer within {WITHIN_S:g} s; does slurmctld run?") from None
    if done.status:
        raise MachineRefuses(f"{shlex.join(words)}: {done.why}")
    return done.text


class StepLink(Link):
    """A connection to a node by steps of a job, the keeper included. The end of the job ends all of them."""

    package = "slurm-client"

    def __init__(self, entry: Entry, job: str) -> None:
        """Raises MachineRefuses: not possible, with the reason in one line, in bounded time."""
        self._job = job
        super().__init__(entry)

    def copy(self, sources: Sequence[str], target: str, *, within_s: float) -> None:
        """Refused: scp cannot use this connection."""
        raise MachineRefuses(f"{self.entry.shown}: files are not copied to a node of a job")

    def _main(self, line: str) -> list[str]:
        return self._session(line)

    def _session(self, line: str) -> list[str]:
        return [*srun(self._job, self.entry.address), "/bin/sh", "-c", line]


def node_of(job: str, name: str, interrupts: Interrupts | None = None, directory: str = "/tmp") -> Host:
    """A node of a running job as a host; the engine is copied into `directory`."""
    entry = Entry(name, name, directory=directory)
    return Host(entry, interrupts, partial(StepLink, job=job))
