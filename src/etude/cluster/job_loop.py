"""The loop of a controller: submits jobs to a pool, follows them to their ends, and repeats those that lost nodes.

Its users decide what is submitted next and what a result is: experiments (distributed/jobs.py), maps of surfaces.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from etude.cluster.pool.job import MAX_ATTEMPTS, NODE_UNSUITABLE, RETRYABLE, Job, JobEnd
from etude.cluster.pool.journal import JournaledPool
from etude.errors import EtudeError


class Work(Protocol):
    """One attempt at a piece of work, by one job."""

    @property
    def key(self) -> Hashable:
        """Identifies the work; the same for all attempts."""
        ...

    @property
    def attempt(self) -> int:
        """Number of the attempt, from 1; later ones replace a job that lost its node."""
        ...


T = TypeVar("T", bound=Work)


@dataclass(frozen=True)
class EndedJob(Generic[T]):
    """A job that has ended."""

    work: T
    job: Job
    end: JobEnd
    again: bool
    """True if the end is no fault of the work, which has attempts left."""


@dataclass(frozen=True)
class Losses:
    """Consecutive lost attempts at one piece of work."""

    attempts: int = 0
    nodes: frozenset[str] = frozenset()
    """Nodes that were lost; a preempted node is none of them."""


class JobLoop(Generic[T]):
    """Jobs under way in a pool. Each is in the journal before it is submitted, and until its result is stored."""

    def __init__(
        self,
        pool: JournaledPool,
        work_of: Callable[[Job], T],
        losses: Mapping[Any, Losses] | None = None,
    ) -> None:
        """Take over the jobs of an earlier controller. `work_of`: their work, from the directory of each; `losses`:
        those of earlier sessions.

        Raises:
            InputError: a job's directory cannot be read; MachineRefuses: the pool does not take them.
        """
        self._jobs, self.pool, self.journal = pool, pool.pool, pool.journal
        self.under_way: dict[str, T] = {str(each.id): work_of(each.job) for each in pool.recover()}
        self.unfit: set[str] = set()
        """Nodes that cannot run jobs of this kind."""
        self._losses: dict[Hashable, Losses] = dict(losses or {})
        self._nodes, self._widest = self.pool.width(), 1
        """Maximum number of nodes, and of jobs that there were nodes for."""

    @property
    def running(self) -> int:
        """Number of jobs under way that run; the others wait for nodes."""
        return len(self.pool.running() & self.under_way.keys())

    def free(self, nodes: int = 1) -> int:
        """Number of further jobs of `nodes` nodes each that could run now.

        A dead node does not count in the pool's width, but its job is reported as ended only minutes later: until then
        one other job at a time replaces it.
        """
        width = self.pool.width()
        self._nodes = max(self._nodes, width)
        jobs, count = max((width - len(self.unfit)) // nodes, 1), len(self.under_way)
        self._widest = max(self._widest, jobs)
        replaces = jobs <= count < self._widest and count == self.running
        return 1 if replaces else max(jobs - count, 0)

    def attempt(self, key: Hashable) -> int:
        """Number of the next attempt at a piece of work."""
        return self._losses.get(key, Losses()).attempts + 1

    def submit(self, work: T, job: Job, label: str) -> None:
        """Submit a job, which avoids nodes that cannot run it. `label`: its work, for the journal. Raises
        MachineRefuses; then the next controller submits it."""
        job = replace(job, avoid=self._avoided(work.key, job.nodes))
        self.under_way[self._jobs.submit(job, label)] = work

    def _avoided(self, key: Hashable, nodes: int) -> frozenset[str]:
        """Nodes to avoid while there are others: those that cannot run any job, and those lost under this work."""
        lost = self._losses.get(key, Losses()).nodes
        fitting = (each for each in (self.unfit | lost, self.unfit) if len(each) + nodes <= self._nodes)
        return frozenset(next(fitting, ()))

    def follow(
        self,
        submit: Callable[[], None],
        store: Callable[[EndedJob[T]], EtudeError | None],
        look_s: Callable[[], float | None] = lambda: None,
    ) -> EtudeError | None:
        """Follow the jobs until none is under way, or `store` returns an error, which is returned.

        `submit` submits what is next: at the begin, after ends, and at the latest after `look_s` (s). `store` stores
        the result of an ended job.

        Raises:
            MachineRefuses: the pool does not answer; its jobs continue.
        """
        while True:
            submit()
            if not self.under_way:
                return None
            errors = []
            for submitted, end in self._jobs.ended(look_s()):
                errors.append(store(self._judged(self.under_way.pop(end.id), submitted.job, end)))
                self._jobs.conclude(submitted, end)
            if error := next(filter(None, errors), None):
                return error

    def _judged(self, work: T, job: Job, end: JobEnd) -> EndedJob[T]:
        """An end, with the nodes to avoid from now on because of it."""
        again = end.how in RETRYABLE and work.attempt < MAX_ATTEMPTS
        before = self._losses.pop(work.key, Losses())
        if end.how in NODE_UNSUITABLE:
            self.unfit.update(end.nodes[:1])
        if again:
            lost = end.nodes[:1] if end.how == "node-lost" else ()
            self._losses[work.key] = Losses(work.attempt, before.nodes.union(lost))
        return EndedJob(work, job, end, again)

    def cancel(self, why: str, *, waiting_only: bool = False) -> list[tuple[T, Job]]:
        """Cancel the jobs under way, or only those that still wait; returns them."""
        kept = self.pool.running() if waiting_only else frozenset()
        found = []
        for id in [each for each in self.under_way if each not in kept]:
            found.append((self.under_way.pop(id), self._jobs.under_way[id].job))
            self._jobs.cancel(id, why)
        return found
