"""Jobs, their ends and the settings of a pool as plain data, and the interface of a pool. A job has its nodes to
itself."""

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
it, and nothing was measured.
"""

NODE_UNSUITABLE: frozenset[How] = frozenset(("no-etude", "no-space", "other-architecture"))
"""Ends because a node cannot run jobs of this kind."""
RETRYABLE: frozenset[How] = NODE_UNSUITABLE | {"node-lost", "preempted"}
"""Ends that are no fault of the job: it is repeated, on other nodes."""
MAX_ATTEMPTS = 3
"""Maximum attempts for a job whose node was lost."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command to run on nodes."""

    name: str
    """Label for the user; one line."""
    command: tuple[str, ...]
    """Runs once, on the first node of the allocation, in the directory `directory`."""
    place: Path
    """A directory of its own, for the pool's files on the job: output, status, nodes."""
    directory: Path
    """Working directory of the command."""
    nodes: int = 1
    """Number of nodes, all in one allocation, all exclusive."""
    avoid: frozenset[str] = frozenset()
    """Nodes to avoid as long as there are others."""
    only: str | None = None
    """Name of the node that it must run on."""
    environment: Mapping[str, str] = field(default_factory=dict)


def worker_command(place: Path, python: str = sys.executable) -> tuple[str, ...]:
    """The command of a job that does the work described in the directory `place` (cluster/worker.py)."""
    return (python, "-P", "-m", "etude.cluster.worker", str(place))


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job."""

    id: str
    """Id that `Pool.submit` returned."""
    how: How
    code: int | None
    """Exit status of the command; None if it has none."""
    nodes: tuple[str, ...]
    """Names of its nodes; empty if it never ran. With several, the first is the client's."""
    why: str
    """One line: what happened, and what to do about it; empty if *done*."""
    submitted_s: codec.Finite
    started_s: codec.Finite | None
    ended_s: codec.Finite
    """Times in seconds, of the pool's clock."""


Kind = Literal["local", "slurm"]
FileAccess = Literal["shared", "copied"]

PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """Settings of `--pool`. All but `kind` are for Slurm."""

    kind: Kind = "local"
    partition: str = ""
    """Empty: the cluster's default partition."""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    """Features that a node must have, in Slurm's own syntax."""
    reservation: str = ""
    time_s: float | None = None
    """Time limit of a job, s; Slurm counts whole minutes."""
    nodes_at_once: int | None = None
    """Maximum nodes in use at any time."""
    nodelist: str = ""
    """The only nodes to use, such as `n[1-4]`."""
    exclude: str = ""
    """Nodes not to use."""
    patience_s: float = PATIENCE_S
    """Time that all jobs may wait for something other than their turn before they count as held, s."""
    etude: FileAccess = "shared"
    """*shared*: this Étude is on the nodes, at its path. *copied*: only its engine is copied there."""
    results: FileAccess = "shared"
    """*shared*: the results directory is on the nodes, at its path. *copied*: results are copied from the nodes."""
    python: str = sys.executable
    """Path of a Python on the nodes that has this Étude."""


class Pool(Protocol):
    """Runs jobs, each on exclusive nodes. Methods raise MachineRefuses if the pool does not answer."""

    @property
    def name(self) -> str:
        """Kind of pool: `local`, `slurm`."""
        ...

    def width(self, nodes: int = 1) -> int:
        """Number of jobs of `nodes` nodes each that can run at once, at least 1; nodes that are down do not count."""
        ...

    def submit(self, job: Job) -> str:
        """Submit a job; returns its id, by which another controller can adopt it. Raises MachineRefuses."""
        ...

    def adopt(self, id: str, job: Job) -> None:
        """Follow a job that an earlier controller submitted, whether it waits, runs or has ended since."""
        ...

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """Wait until at least one job has ended, at most `timeout_s` (None: no limit), and return all ended jobs, each
        once. Empty at the timeout, or if no job is under way."""
        ...

    def running(self) -> frozenset[str]:
        """Ids of the jobs that run, as of the last poll; the others wait."""
        ...

    def cancel(self, id: str) -> None:
        """End a job and forget it: `ended` does not return it."""
        ...

    def clock_s(self) -> float:
        """Seconds since the epoch; of a simulated pool, since its start."""
        ...

    def close(self) -> None:
        """Release the pool; its jobs continue, except those of a local pool, which are ended."""
        ...
