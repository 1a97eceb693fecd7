"""A pool with its journal: what a controller submits is on disk before the pool has it, and the next takes it up."""

from __future__ import annotations

from collections.abc import Sequence

from etude import trail
from etude.cluster.pool.job import Job, JobEnd, Pool
from etude.cluster.pool.journal import Journal, Submitted


class JournaledPool:
    """Jobs under way by id, with what each measures. A job is submitted, ended, and then concluded."""

    def __init__(self, pool: Pool, journal: Journal) -> None:
        self.pool, self.journal = pool, journal
        self.under_way: dict[str, Submitted] = {}

    def take_up(self) -> tuple[Submitted, ...]:
        """Follow all that an earlier controller left under way. Raises MachineRefuses."""
        for each in self.journal.unfinished():
            if each.id is not None:
                self.pool.adopt(each.id, each.job)
                trail.note("pool", f"job {each.id} of an earlier controller is followed: {each.what}")
                self.under_way[each.id] = each
            else:
                self._submit(each)
        return tuple(self.under_way.values())

    def submit(self, job: Job, what: str) -> str:
        """`what` is for the journal: what it measures. Raises MachineRefuses; then the next controller tries again."""
        at_s = self.pool.clock_s()
        self.journal.submitting(job, what, at_s)
        return self._submit(Submitted(job, what, at_s))

    def ended(self, timeout_s: float | None = None) -> Sequence[tuple[Submitted, JobEnd]]:
        """As `Pool.ended`, with what was submitted."""
        return [(self.under_way[ended.id], ended) for ended in self.pool.ended(timeout_s)]

    def conclude(self, submitted: Submitted, ended: JobEnd) -> None:
        """All that it brought is kept; without this, the next controller is told of it again."""
        self.journal.ended(submitted.job, ended)
        where = ", ".join(ended.nodes) or "no node"
        trail.note("pool", f"job {ended.id} {ended.how} on {where}: {ended.why or submitted.what}")
        self.under_way.pop(ended.id, None)

    def cancel(self, id: str, why: str) -> None:
        """End it; in the journal it stands as cancelled."""
        each = self.under_way.pop(id)
        trail.note("pool", f"job {id} is cancelled: {why}")
        self.pool.cancel(id)
        self.journal.ended(
            each.job, JobEnd(id, "cancelled", None, (), why, each.at_s, None, self.pool.clock_s())
        )

    def _submit(self, each: Submitted) -> str:
        id = self.pool.submit(each.job)
        self.journal.submitted(each.job, id)
        trail.note("pool", f"job {id} is submitted: {each.what}")
        self.under_way[id] = Submitted(each.job, each.what, each.at_s, id)
        return id
