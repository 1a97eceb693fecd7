"""The way to a node of a job of Slurm: each line runs as a step of the job, by srun."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from etude.engine import Interrupts
from etude.errors import MachineRefuses
from etude.machine.remote.host import Host
from etude.machine.remote.hosts import Entry
from etude.machine.remote.link import Link
from etude.machine.remote.slurm import srun


class StepLink(Link):
    """An open way to a node: the keeper is a step, and so is all else. The job's end is the end of all of it."""

    package = "slurm-client"

    def __init__(self, entry: Entry, job: str) -> None:
        """Raises MachineRefuses: why that cannot be, in one line, in bounded time."""
        self._job = job
        super().__init__(entry)

    def copy(self, sources: Sequence[str], target: str, *, within_s: float) -> None:
        """Refused: scp does not go this way."""
        raise MachineRefuses(f"{self.entry.shown}: files are not copied to a node of a job")

    def _main(self, line: str) -> list[str]:
        return self._session(line)

    def _session(self, line: str) -> list[str]:
        return [*srun(self._job, self.entry.address), "/bin/sh", "-c", line]


def node_of(job: str, name: str, interrupts: Interrupts | None = None, directory: str = "/tmp") -> Host:
    """A node of a running job as a host, on which the engine is put into `directory`."""
    entry = Entry(name, name, directory=directory)
    return Host(entry, interrupts, partial(StepLink, job=job))
