"""A pool whose nodes lack something: each job holds a node of an inner pool, and what is missing is copied there."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from etude.cluster.pool.job import How, Job, JobEnd, Pool
from etude.cluster.pool.job_files import last_line
from etude.cluster.pool.slurm.answers import SlurmJob
from etude.errors import MachineRefuses
from etude.machine.remote.transport import Srun, Transport

GRACE_S = 30.0
"""Time between SIGTERM and SIGKILL for a command, s."""

Outcome = tuple[How, int | None, str]
"""How a job ended, its exit status and the reason."""


class SharedDirectory(MachineRefuses):
    """A node shares the results directory."""


class NodePool(Pool, Protocol):
    """A pool that provides the nodes."""

    def seen(self, id: str) -> SlurmJob:
        """A job as of the last poll of the scheduler."""
        ...


@dataclass
class HeldJob(ABC):
    """A job that holds a node, or waits for it. Subclasses are ways of staging: what is copied there, and when."""

    look_s: ClassVar[float]
    """Interval between checks of the jobs that have a node, s."""
    one_node: ClassVar[str]
    """Reason why a job has one node, and what to do about it."""
    lost_why: ClassVar[str]
    """Reason why a job is lost whose holder has ended by itself: `{}` is what the inner pool reports."""

    job: Job
    id: str
    submitted_s: float
    reach: Callable[[str, str], Transport]
    """The way to a node of a job, from the job's id and the node's name."""
    node: str = ""
    started_s: float | None = None
    process: subprocess.Popen[bytes] | None = None
    """Its command, if it runs here."""

    @staticmethod
    @abstractmethod
    def holder(job: Job) -> Job:
        """The job of the inner pool that holds the node."""

    @abstractmethod
    def look(self, comment: str) -> Outcome | None:
        """Check a job that has its node; `comment`: that of its holder. Its outcome if it has ended."""

    def close(self) -> None:
        """Send SIGTERM to its command, which then releases its engine; SIGKILL after the grace period."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def drop(self) -> None:
        """Remove what is left of it."""
        self.close()

    def lost(self, end: JobEnd) -> JobEnd:
        """The end of a job whose holder has ended: it never ends by itself before the job has."""
        self.close()
        if end.how in ("done", "failed"):
            return replace(end, how="node-lost", code=None, why=self.lost_why.format(end.why))
        return end

    def by_status(self, status: int | None, shown: str) -> Outcome:
        """The outcome by the exit status of its command."""
        return ("done", status, "") if status == 0 else ("failed", status, self.failure(shown))

    def failure(self, status: str) -> str:
        """The exit status of a command that failed, and the last line of its output."""
        return f"exit status {status}: {last_line(self.job.place) or 'it printed nothing'}"


class HeldPool:
    """A pool (job.py) on top of an inner pool. `staging`: what is copied to a node."""

    def __init__(
        self, nodes: NodePool, staging: type[HeldJob], reach: Callable[[str, str], Transport] = Srun
    ) -> None:
        self._nodes, self._staging, self._reach = nodes, staging, reach
        self._held: dict[str, HeldJob] = {}
        self.name = nodes.name

    def width(self, nodes: int = 1) -> int:
        """Same as the inner pool."""
        return self._nodes.width(nodes)

    def submit(self, job: Job) -> str:
        """Request a node for it. Raises MachineRefuses: the inner pool refuses, or the job needs two nodes."""
        if job.nodes != 1:
            raise MachineRefuses(f"{job.name}: wants {job.nodes} nodes: with {self._staging.one_node}")
        id = self._nodes.submit(self._staging.holder(job))
        self._held[id] = self._staging(job, id, self.clock_s(), self._reach)
        return id

    def adopt(self, id: str, job: Job) -> None:
        """Follow a job of an earlier controller, which still holds its node."""
        self._nodes.adopt(id, self._staging.holder(job))
        self._held[id] = self._staging(job, id, self.clock_s(), self._reach)

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """Same as `Pool.ended`; the results of a job returned as done or failed are here.

        Raises MachineRefuses: they cannot be copied, or the inner pool is silent.
        """
        until = time.monotonic() + (float("inf") if timeout_s is None else timeout_s)
        while self._held:
            pause_s = min(self._staging.look_s, max(until - time.monotonic(), 0.0))
            found = [self._held.pop(end.id).lost(end) for end in self._nodes.ended(pause_s)]
            found += filter(None, map(self._looked, sorted(self._nodes.running() & self._held.keys())))
            if found or time.monotonic() >= until:
                return found
        return ()

    def running(self) -> frozenset[str]:
        """Ids of the jobs that have their node."""
        return frozenset(id for id, held in self._held.items() if held.node)

    def cancel(self, id: str) -> None:
        """End a job and forget it."""
        self._held.pop(id).drop()
        self._nodes.cancel(id)

    def clock_s(self) -> float:
        """Same as the inner pool."""
        return self._nodes.clock_s()

    def close(self) -> None:
        """Release the pool; nodes stay held, for a controller that adopts the jobs."""
        for held in self._held.values():
            held.close()
        self._nodes.close()

    def _looked(self, id: str) -> JobEnd | None:
        """The end of a job that has its node; the node is released."""
        held, seen = self._held[id], self._nodes.seen(id)
        if not held.node:
            held.node, held.started_s = "".join(seen.nodes[:1]), self.clock_s()
        try:
            outcome = held.look(seen.comment)
        except SharedDirectory:
            for each in self._held:
                self._nodes.cancel(each)
            raise
        if outcome is None:
            return None
        del self._held[id]
        with suppress(MachineRefuses):
            self._nodes.cancel(id)
        nodes, times = (held.node,), (held.submitted_s, held.started_s, self.clock_s())
        return JobEnd(id, outcome[0], outcome[1], nodes, outcome[2], *times)
