"""Pools whose nodes lack something: a job holds a node of an inner pool, and what is missing is copied there."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

from etude.cluster.pool.job import How, Job, JobEnd, Pool
from etude.cluster.pool.job_status import last_line
from etude.errors import MachineRefuses
from etude.machine.remote.link import RunCommand, slurm


@dataclass
class HeldNode:
    """A job: its node is held, or waited for."""

    job: Job
    submitted_s: float
    node: str = ""
    started_s: float | None = None


H = TypeVar("H", bound=HeldNode)


class HoldingPool(ABC, Generic[H]):
    """A pool (job.py) on top of an inner pool, which provides the nodes."""

    look_s: ClassVar[float]
    """Interval between checks of the jobs that have a node, s."""
    one_node: ClassVar[str]
    """Reason why a job has one node, and what to do about it."""
    lost_why: ClassVar[str]
    """Reason why a job is lost whose holder has ended by itself: `{}` is what the inner pool reports."""
    held_type: type[H]

    def __init__(self, nodes: Pool, ask: RunCommand = slurm) -> None:
        self._nodes, self._ask = nodes, ask
        self._held: dict[str, H] = {}
        self.name = nodes.name

    def width(self, nodes: int = 1) -> int:
        """Same as the inner pool."""
        return self._nodes.width(nodes)

    def submit(self, job: Job) -> str:
        """Request a node for it. Raises MachineRefuses: the inner pool refuses, or the job needs two nodes."""
        if job.nodes != 1:
            raise MachineRefuses(f"{job.name}: wants {job.nodes} nodes: with {self.one_node}")
        id = self._nodes.submit(self._holder(job))
        self._held[id] = self.held_type(job, self.clock_s())
        return id

    def adopt(self, id: str, job: Job) -> None:
        """Follow a job of an earlier controller, which still holds its node."""
        self._nodes.adopt(id, self._holder(job))
        self._held[id] = self.held_type(job, self.clock_s())

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """Same as `Pool.ended`; the results of a job returned as done or failed are here.

        Raises MachineRefuses: they cannot be copied, or the inner pool is silent.
        """
        until = time.monotonic() + (float("inf") if timeout_s is None else timeout_s)
        while self._held:
            pause_s = min(self.look_s, max(until - time.monotonic(), 0.0))
            found = [self._lost(end) for end in self._nodes.ended(pause_s)]
            found += self._looked(sorted(self._nodes.running() & self._held.keys()))
            if found or time.monotonic() >= until:
                return found
        return ()

    def running(self) -> frozenset[str]:
        """Same as the inner pool."""
        return self._nodes.running()

    def cancel(self, id: str) -> None:
        """End a job and forget it."""
        self._drop(id, self._held.pop(id))
        self._nodes.cancel(id)

    def clock_s(self) -> float:
        """Same as the inner pool."""
        return self._nodes.clock_s()

    def close(self) -> None:
        """Release the pool; nodes stay held, for a controller that adopts the jobs."""
        self._nodes.close()

    @abstractmethod
    def _holder(self, job: Job) -> Job:
        """The job of the inner pool that holds the node."""

    @abstractmethod
    def _looked(self, running: Sequence[str]) -> list[JobEnd]:
        """Check the jobs that have a node; those that have ended."""

    @abstractmethod
    def _drop(self, id: str, held: H) -> None:
        """Remove what is left of a job."""

    def _lost(self, end: JobEnd) -> JobEnd:
        """The end of a job whose holder has ended: it never ends by itself before the job has."""
        del self._held[end.id]
        if end.how in ("done", "failed"):
            return replace(end, how="node-lost", code=None, why=self.lost_why.format(end.why))
        return end

    def _by_status(self, id: str, status: int | None, shown: str) -> JobEnd:
        """The end of a job by the exit status of its command."""
        if status == 0:
            return self._ended(id, "done", status, "")
        return self._ended(id, "failed", status, failure_text(self._held[id].job, shown))

    def _ended(self, id: str, how: How, code: int | None, why: str) -> JobEnd:
        """The end of a job; its node is released."""
        held = self._held.pop(id)
        with suppress(MachineRefuses):
            self._nodes.cancel(id)
        nodes = (held.node,) if held.node else ()
        return JobEnd(id, how, code, nodes, why, held.submitted_s, held.started_s, self.clock_s())


def failure_text(job: Job, status: str) -> str:
    """The exit status of a command that failed, and the last line of its output."""
    return f"exit status {status}: {last_line(job.place) or 'it printed nothing'}"
