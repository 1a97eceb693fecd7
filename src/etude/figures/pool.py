"""The jobs of a pool over time: a row a node, a bar a job."""

from __future__ import annotations

from etude.cluster.pool.journal import Submitted
from etude.cluster.pool.usage import PoolUsage, kind_of_end
from etude.figures.data import Axis, Bars, Box, Figure, Panel, labels
from etude.units.formatting import counted

MOST_NODES = 40
HALF = 0.36
"""Half of a bar's height, rows."""
COLOURS = {"done": 0, "lost": 1, "failed": 3}
"""Colour of a bar by its job's end."""
LEAST = 0.002
"""Least width of a bar, as a share of the whole time: a job that took none is seen."""


def jobs_over_time(usage: PoolUsage) -> Figure:
    """A bar for each job that began, on each of its nodes; the first `MOST_NODES` nodes."""
    names = [each.node for each in usage.nodes][:MOST_NODES]
    divisor, unit = (60.0, "min") if usage.span_s >= 180.0 else (1.0, "s")
    rows = {name: len(names) - 1 - place for place, name in enumerate(names)}
    least = LEAST * usage.span_s
    layers = tuple(
        Bars(kind, boxes, colour)
        for kind, colour in COLOURS.items()
        if (
            boxes := tuple(
                _box(job, rows[node], usage.begin_s, least, divisor)
                for job in usage.jobs
                if kind_of_end(job) == kind and job.ended is not None and job.ended.started_s is not None
                for node in job.ended.nodes
                if node in rows
            )
        )
    )
    notes = []
    if more := len(usage.nodes) - len(names):
        notes.append(f"{counted(more, 'more node')} not drawn")
    if waiting := sum(job.ended is None or job.ended.started_s is None for job in usage.jobs):
        notes.append(f"{counted(waiting, 'job')} without a begin not drawn")
    shown = labels(names)
    y = Axis(
        "", ticks=tuple((row, shown[name]) for name, row in rows.items()), low=-0.6, high=len(names) - 0.4
    )
    return Figure(
        Axis(f"time since the first submission ({unit})", low=0.0, high=usage.span_s / divisor * 1.02 or 1.0),
        (Panel(y, layers),),
        key="above" if len(layers) > 1 else "off",
        notes=tuple(notes),
        kind="jobs",
    )


def _box(job: Submitted, row: int, begin_s: float, least_s: float, divisor: float) -> Box:
    assert job.ended is not None
    assert job.ended.started_s is not None
    first = max(job.ended.started_s - begin_s, 0.0)
    width = max(job.ended.ended_s - begin_s - first, least_s)
    return Box((first + width / 2) / divisor, width / divisor, row - HALF, row + HALF)
