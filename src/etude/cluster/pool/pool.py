"""What a pool is: it takes jobs, and says when they have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from etude.cluster.pool.job import Ended, Job


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

    def ended(self, timeout_s: float | None = None) -> Sequence[Ended]:
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
