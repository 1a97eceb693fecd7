"""The jobs and nodes of a pool in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etude.analysis.comparison import machines_of
from etude.analysis.verdict import Verdict
from etude.cluster.pool.journal import Submitted
from etude.cluster.pool.usage import PoolUsage
from etude.present.sentences.notes import listed_names
from etude.present.sentences.warnings import found_text
from etude.units.formatting import counted, duration, percent

MOST_NAMED = 4
"""Nodes or jobs that a line names."""
APART = "machine-apart"
"""The kind of warning about a node that differs."""


def verdict_line(usage: PoolUsage, experiment: Mapping[str, Any], verdict: Verdict) -> str:
    """`4 jobs on 3 nodes (n1, n2, n3), 1 lost; all was measured. The levels of node n3 differ.`"""
    names = listed_names([each.node for each in usage.nodes], MOST_NAMED, "node")
    where = f" on {counted(len(usage.nodes), 'node')} ({names})" if usage.nodes else ""
    ends = [
        f"{len(found)} {what}"
        for what, found in (("lost", usage.lost), ("failed", usage.failed), ("under way", usage.under_way))
        if found
    ]
    ended = (experiment.get("pool") or {}).get("ended")
    whole = "" if ended is None else "; all was measured" if ended == "complete" else f"; it ended: {ended}"
    told = f"Measured by {counted(len(usage.jobs), 'job')}{where}, {', '.join(ends) or 'none lost'}{whole}."
    if apart := list(dict.fromkeys(each.test for each in verdict.every if each.kind == APART)):
        return f"{told} Nodes differ in {listed_names(apart, MOST_NAMED, 'test')}."
    if any(len(set(machines_of(series, verdict.primary))) > 1 for series in verdict.subject.tests):
        return f"{told} No node is shown to differ from the others."
    return told


def job_lines(usage: PoolUsage) -> Iterator[str]:
    """Sentences on the time that jobs took, and on each lost or failed one."""
    busy = sum(each.busy_s for each in usage.nodes)
    if usage.nodes and usage.span_s > 0.0:
        mean = busy / (usage.span_s * len(usage.nodes))
        yield (
            f"From the first submission to the last end {duration(usage.span_s)}; nodes were busy in {percent(mean)} "
            f"of it ({duration(busy)} together)."
        )
    for what, found in (("Lost", usage.lost), ("Failed", usage.failed), ("Under way", usage.under_way)):
        yield from (f"{what}: {_job(job)}." for job in found[:MOST_NAMED])
        if more := len(found[MOST_NAMED:]):
            yield f"{what}: {counted(more, 'more job')}; see the table of jobs."
    if usage.lost:
        again = sum(_is_repeat(job, usage.jobs[:place]) for place, job in enumerate(usage.jobs))
        yield f"Submitted again after a loss: {counted(again, 'job')}."


def _job(job: Submitted) -> str:
    if job.ended is None:
        return job.what
    on = f" on {' '.join(job.ended.nodes)}" if job.ended.nodes else ""
    why = job.ended.why or "no reason recorded"
    return f"{job.what}{on}: {job.ended.how}: {why.rstrip('.')}"


def _is_repeat(job: Submitted, before: Sequence[Submitted]) -> bool:
    """True for the work of an earlier job, and for blocks that avoid the node of a lost one."""
    return bool(job.job.avoid) or any(each.what == job.what for each in before)


def difference_lines(verdict: Verdict) -> tuple[str, ...]:
    """Sentences on nodes whose level or ratio differs from the others'."""
    apart = [each for each in verdict.every if each.kind == APART]
    return tuple(f"{each.test}: {found_text(each)}." for each in apart)
