"""A pool in virtual time, to test a controller of many nodes without waiting.

Jobs start in the order of submission, each as soon as nodes are free; a waiting job lets later ones pass. A node dies
and returns at given times, and takes its job with it.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from etude.cluster.pool.job import How, Job, JobEnd
from etude.errors import MachineRefuses

Duration = Callable[[Job, str], float]
"""Duration of a job on its first node, s; called when it starts."""
Finish = Callable[[Job, str], None]
"""Writes the results of a job, called when it ends successfully; must not raise."""

DEAD, ALIVE, END = 0, 1, 2
"""Order of events at one instant: a job that ends as its node dies is lost with it."""


@dataclass(frozen=True, slots=True)
class Death:
    """A node that is down for a while."""

    node: str
    at_s: float
    back_s: float = math.inf


@dataclass(slots=True)
class _Submitted:
    id: str
    job: Job
    submitted_s: float
    nodes: tuple[str, ...] = ()
    started_s: float | None = None


class SimulatedPool:
    """A Pool of nodes `node001`, `node002`, …"""

    name = "simulated"

    def __init__(
        self,
        nodes: int,
        duration_s: Duration,
        finish: Finish = lambda job, node: None,
        deaths: Sequence[Death] = (),
    ) -> None:
        self.nodes = tuple(f"node{number:03d}" for number in range(1, nodes + 1))
        self._duration_s, self._finish = duration_s, finish
        self._now_s = 0.0
        self._free = dict.fromkeys(self.nodes)  # in the order in which they became free
        self._dead: set[str] = set()
        self._waiting: dict[str, _Submitted] = {}
        self._running: dict[str, _Submitted] = {}
        self._ended_jobs: list[JobEnd] = []
        self._numbers = itertools.count(1)
        self._turns = itertools.count()
        self._events: list[tuple[float, int, int, str]] = []
        self.busy_s: dict[str, float] = dict.fromkeys(self.nodes, 0.0)
        """Time for which each node had a job."""
        for death in deaths:
            self._at(death.at_s, DEAD, death.node)
            if math.isfinite(death.back_s):
                self._at(death.back_s, ALIVE, death.node)

    def width(self, nodes: int = 1) -> int:
        """See `Pool.width`."""
        return max((len(self.nodes) - len(self._dead)) // nodes, 1)

    def submit(self, job: Job) -> str:
        """See `Pool.submit`; the job starts at once if nodes are free."""
        each = _Submitted(str(next(self._numbers)), job, self._now_s)
        self._waiting[each.id] = each
        self._begin()
        return each.id

    def adopt(self, id: str, job: Job) -> None:
        """See `Pool.adopt`; the job must be of this pool. Raises MachineRefuses for another."""
        if (
            id not in self._waiting
            and id not in self._running
            and all(each.id != id for each in self._ended_jobs)
        ):
            raise MachineRefuses(f"job {id} ({job.name}): this pool has no such job: submit it again")

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """See `Pool.ended`; virtual time jumps to the next event."""
        last_s = math.inf if timeout_s is None else self._now_s + timeout_s
        while not self._ended_jobs and (self._waiting or self._running):
            if not self._events:
                self._hold()
            elif self._events[0][0] > last_s:
                self._now_s = last_s
                break
            else:
                self._happens()
        ended, self._ended_jobs = self._ended_jobs, []
        return ended

    def running(self) -> frozenset[str]:
        """See `Pool.running`."""
        return frozenset(self._running)

    def cancel(self, id: str) -> None:
        """See `Pool.cancel`."""
        self._waiting.pop(id, None)
        if id in self._running:
            self._release(self._running.pop(id))
        self._ended_jobs = [each for each in self._ended_jobs if each.id != id]
        self._begin()

    def clock_s(self) -> float:
        """Virtual seconds since the pool's start."""
        return self._now_s

    def close(self) -> None:
        """See `Pool.close`."""

    def _at(self, at_s: float, what: int, of: str) -> None:
        heapq.heappush(self._events, (at_s, what, next(self._turns), of))

    def _happens(self) -> None:
        """Process all events of the next instant, then start jobs."""
        self._now_s = self._events[0][0]
        while self._events and self._events[0][0] == self._now_s:
            _, what, _, of = heapq.heappop(self._events)
            if what == END:
                self._end(of)
            elif what == ALIVE:
                self._dead.discard(of)
                self._free[of] = None
            else:
                self._die(of)
        self._begin()

    def _die(self, node: str) -> None:
        self._dead.add(node)
        self._free.pop(node, None)
        for each in [each for each in self._running.values() if node in each.nodes]:
            del self._running[each.id]
            self._release(each)
            self._report(each, "node-lost", None, f"{node} died")

    def _end(self, id: str) -> None:
        each = self._running.pop(id, None)
        if each is None:
            return  # its node died before, or it was cancelled
        self._release(each)
        self._finish(each.job, each.nodes[0])
        self._report(each, "done", 0, "")

    def _hold(self) -> None:
        """End all waiting jobs as held: no event will free their nodes."""
        for each in self._waiting.values():
            self._report(each, "held", None, "no node is left that it could run on")
        self._waiting.clear()

    def _report(self, each: _Submitted, how: How, code: int | None, why: str) -> None:
        times = (each.submitted_s, each.started_s, self._now_s)
        self._ended_jobs.append(JobEnd(each.id, how, code, each.nodes, why, *times))

    def _release(self, each: _Submitted) -> None:
        for node in each.nodes:
            self.busy_s[node] += self._now_s - (each.started_s or 0.0)
            if node not in self._dead:
                self._free[node] = None

    def _begin(self) -> None:
        for each in list(self._waiting.values()):
            if not self._free:
                return
            nodes = _nodes_for(each.job, self._free)
            if len(nodes) == each.job.nodes:
                del self._waiting[each.id]
                self._start(each, nodes)

    def _start(self, each: _Submitted, nodes: tuple[str, ...]) -> None:
        for node in nodes:
            del self._free[node]
        each.nodes, each.started_s = nodes, self._now_s
        self._running[each.id] = each
        self._at(self._now_s + self._duration_s(each.job, nodes[0]), END, each.id)


def _nodes_for(job: Job, free: Mapping[str, None]) -> tuple[str, ...]:
    """Free nodes for the job, fewer than it needs if not enough are free."""
    may = (node for node in free if node not in job.avoid)
    if job.only is None:
        return tuple(itertools.islice(may, job.nodes))
    rest = [node for node in may if node != job.only]
    return (job.only, *rest[: job.nodes - 1]) if job.only in free and job.only not in job.avoid else ()
