"""Use of the nodes of a pool, from its journal: jobs, busy time and lost work of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etude.cluster.pool.job import RETRYABLE
from etude.cluster.pool.journal import Submitted


@dataclass(frozen=True)
class NodeUsage:
    """One node. A job of several nodes counts on each."""

    node: str
    done: int
    lost: int
    """Jobs that ended for a reason of the node or of the scheduler, and are repeated."""
    failed: int
    """Jobs that ended in another way."""
    busy_s: float


@dataclass(frozen=True)
class PoolUsage:
    """All jobs of one results directory."""

    nodes: tuple[NodeUsage, ...]
    """Sorted by name."""
    jobs: tuple[Submitted, ...]
    """Every job, in the order of submission."""
    done: int
    lost: tuple[Submitted, ...]
    failed: tuple[Submitted, ...]
    under_way: tuple[Submitted, ...]
    """Jobs without an end in the journal."""
    begin_s: float
    """Time of the first submission, by the pool's clock."""
    span_s: float
    """Time from there to the last end."""


def usage_of(jobs: Sequence[Submitted]) -> PoolUsage:
    """The use of the nodes by at least one job."""
    begin = min(job.at_s for job in jobs)
    ends = [job.ended.ended_s for job in jobs if job.ended is not None]
    names = sorted({node for job in jobs if job.ended is not None for node in job.ended.nodes})
    of_kind = {kind: tuple(job for job in jobs if kind_of_end(job) == kind) for kind in KINDS}
    return PoolUsage(
        tuple(_node(name, jobs) for name in names),
        tuple(jobs),
        len(of_kind["done"]),
        of_kind["lost"],
        of_kind["failed"],
        of_kind["under way"],
        begin,
        max([end - begin for end in ends], default=0.0),
    )


KINDS = ("done", "lost", "failed", "under way")


def kind_of_end(job: Submitted) -> str:
    """One of KINDS."""
    if job.ended is None:
        return "under way"
    if job.ended.how == "done":
        return "done"
    return "lost" if job.ended.how in RETRYABLE else "failed"


def _node(name: str, jobs: Sequence[Submitted]) -> NodeUsage:
    its = [job for job in jobs if job.ended is not None and name in job.ended.nodes]
    kinds = [kind_of_end(job) for job in its]
    spans = [
        max(job.ended.ended_s - job.ended.started_s, 0.0)
        for job in its
        if job.ended is not None and job.ended.started_s is not None
    ]
    return NodeUsage(name, kinds.count("done"), kinds.count("lost"), kinds.count("failed"), sum(spans))
