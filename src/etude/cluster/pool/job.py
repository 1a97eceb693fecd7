"""A job and its end as plain data, and what a pool of nodes does with jobs. A job has its nodes to itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from etude import codec

How = Literal[
    "done",
    "failed",
    "node-lost",
    "preempted",
    "out-of-time",
    "cancelled",
    "held",
    "no-etude",
    "no-space",
    "other-architecture",
]
"""*done*: the command ended with 0. *failed*: with another status. *node-lost*: the node died, was drained or rebooted
under it. *preempted*: the scheduler took its nodes away. *out-of-time*: its time limit. *cancelled*: by somebody else.
*held*: it waits for a person (a hold, a limit, a request that no node can meet). The last three: the node cannot run
it, and nothing was measured."""

UNFIT: frozenset[How] = frozenset(("no-etude", "no-space", "other-architecture"))
"""Ends that say that a node can run no job of this kind."""
ELSEWHERE: frozenset[How] = UNFIT | {"node-lost", "preempted"}
"""Ends that say nothing of the job: it is repeated, on other nodes."""
TRIES = 3
"""So often what lost its node is begun, at most."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to run."""

    name: str
    """For whoever watches; one line."""
    command: tuple[str, ...]
    """Runs once, on the first node of the allocation, in the directory `directory`."""
    place: Path
    """A directory of its own, for all that the pool keeps of it: what it said, on which nodes it ran."""
    directory: Path
    """Where the command runs."""
    nodes: int = 1
    """Of one allocation, all of them exclusive."""
    avoid: frozenset[str] = frozenset()
    """Nodes that it shall not run on, as long as there are others."""
    only: str | None = None
    """The node that it has to run on."""
    environment: Mapping[str, str] = field(default_factory=dict)


def worker_command(place: Path, python: str = sys.executable) -> tuple[str, ...]:
    """The command of a job that does what is described in the directory `place` (cluster/worker.py)."""
    return (python, "-P", "-m", "etude.cluster.worker", str(place))


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job."""

    id: str
    """As `Pool.submit` gave it."""
    how: How
    code: int | None
    """Exit status of the command; None where it has none."""
    nodes: tuple[str, ...]
    """Where it ran; empty where it never did. The first is the client's, where there are several."""
    why: str
    """One line: what happened, and what to do where somebody has to do something; empty of *done*."""
    submitted_s: codec.Finite
    started_s: codec.Finite | None
    ended_s: codec.Finite
    """Seconds of the pool's clock."""


class Pool(Protocol):
    """Runs jobs, each on nodes that it has to itself. Raises MachineRefuses where the pool itself cannot be had."""

    @property
    def name(self) -> str:
        """`local`, `slurm`."""
        ...

    def width(self, nodes: int = 1) -> int:
        """So many jobs of `nodes` nodes each can run at once, at least 1; nodes that are down do not count."""
        ...

    def submit(self, job: Job) -> str:
        """Hand it over; returns its id, which another controller can adopt it by. Raises MachineRefuses."""
        ...

    def adopt(self, id: str, job: Job) -> None:
        """Follow a job that an earlier controller submitted, whether it waits, runs or has ended since."""
        ...

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """Wait until at least one job has ended, `timeout_s` at most (None: however long), and tell of all that have,
        each once. Empty at the timeout, or where no job is under way."""
        ...

    def running(self) -> frozenset[str]:
        """Ids of the jobs that run now, as of the last look; the others wait."""
        ...

    def cancel(self, id: str) -> None:
        """End a job and forget it: `ended` does not tell of it."""
        ...

    def clock_s(self) -> float:
        """Seconds since the epoch; of a simulated pool, since it began."""
        ...

    def close(self) -> None:
        """Let go of it; jobs under way go on, those of a local pool are ended."""
        ...
