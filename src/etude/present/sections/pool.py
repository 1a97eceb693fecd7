"""Part of a report on the pool that measured a result: its nodes, its jobs over time, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from etude.analysis.comparison import machines_of
from etude.analysis.verdict import Verdict
from etude.cluster.pool.journal import FILE, Journal
from etude.cluster.pool.usage import PoolUsage, usage_of
from etude.errors import InputError
from etude.figures.pool import jobs_over_time
from etude.present.page.gather import Gathered
from etude.present.section import Block, Cell, Paragraphs, Picture, Section, Table, number, page_table
from etude.present.sentences.pool import difference_lines, job_lines, verdict_line
from etude.stats.intervals import mean_interval
from etude.units.formatting import duration, percent, quantity

KEY = "pool"
WIDTH_IN = 6.5
ROW_IN = 0.28
"""Height of a node's row in the figure, inches."""
CAPTION = "Each bar is a job, from its begin to its end, in the row of its node; time counts from the first submission."


def pool_sections(found: Gathered) -> tuple[Section, ...]:
    """A section for each result that a pool measured."""
    several = len(found.verdicts) > 1
    parts = (_part(verdict, number, several) for number, verdict in enumerate(found.verdicts))
    return tuple(part for part in parts if part is not None)


def _part(verdict: Verdict, place: int, several: bool) -> Section | None:
    subject = verdict.subject
    if subject.directory is None or not (subject.directory / FILE).is_file():
        return None
    key, heading = f"{KEY}-{place}", "Pool" + (f" of {subject.label}" if several else "")
    try:
        jobs = Journal(subject.directory).jobs
    except InputError as error:
        return Section(key, heading, (Paragraphs("Jobs", (f"Not read: {error}.",)),))
    if not jobs:
        return None
    usage = usage_of(jobs)
    where = f"{subject.label}: " if several else ""
    answer = verdict_line(usage, subject.experiment or {}, verdict)
    told = tuple(job_lines(usage))
    differing = difference_lines(verdict)
    blocks: list[Block] = [Paragraphs("Jobs", (answer, *told))]
    if differing:
        blocks.append(Paragraphs("Differences between nodes", differing))
    if usage.nodes:
        blocks.append(Picture(CAPTION, jobs_over_time(usage), (WIDTH_IN, 1.1 + ROW_IN * len(usage.nodes))))
    blocks += [
        table for table in (_nodes(usage, key), _levels(verdict, key), _jobs(usage, key)) if table.rows
    ]
    often = {"often": (f"{where}{answer}",)}
    return Section(key, heading, tuple(blocks), (f"{where}{answer}",), often)


def _nodes(usage: PoolUsage, key: str) -> Table:
    rows = [
        (
            each.node,
            number(str(each.done), each.done),
            number(str(each.lost), each.lost),
            number(str(each.failed), each.failed),
            number(duration(each.busy_s), each.busy_s),
            number(percent(each.busy_s / usage.span_s), each.busy_s) if usage.span_s else number("–", None),
        )
        for each in usage.nodes
    ]
    headings = ("node", "jobs done", "lost", "failed", "busy", "of the time")
    return page_table(f"{key}-nodes", "Nodes", headings, rows)


def _levels(verdict: Verdict, key: str) -> Table:
    """A row for each test on each node, where one ran on several."""
    headings = ("test", "node", "trials", f"mean of {verdict.primary}", "95 % of mean", "of all nodes' mean")
    return page_table(f"{key}-levels", "Tests by node", headings, tuple(_level_rows(verdict)), 2)


def _level_rows(verdict: Verdict) -> Iterator[tuple[Cell, ...]]:
    metric = verdict.primary
    for series in verdict.subject.tests:
        names = machines_of(series, metric)
        if len(set(names)) < 2:
            continue
        values, nodes = series.sample(metric), np.asarray(names)
        unit = series.columns[metric].unit
        means = {name: float(values[nodes == name].mean()) for name in sorted(set(names))}
        middle = sum(means.values()) / len(means)
        for name, mean in means.items():
            its = values[nodes == name]
            known = mean_interval(its)
            limits = (
                "–"
                if known is None
                else f"{quantity(known.low, unit, mean)} … {quantity(known.high, unit, mean)}"
            )
            share = mean / middle if middle else None
            yield (
                series.test,
                name or "not recorded",
                number(str(its.size), its.size),
                number(quantity(mean, unit), mean),
                number(limits, None if known is None else known.low),
                number("–" if share is None else percent(share), share),
            )


def _jobs(usage: PoolUsage, key: str) -> Table:
    rows = []
    for job in usage.jobs:
        ended = job.ended
        began = None if ended is None else ended.started_s
        waited = None if began is None else max(began - job.at_s, 0.0)
        took = None if ended is None or began is None else max(ended.ended_s - began, 0.0)
        begin = None if began is None else max(began - usage.begin_s, 0.0)
        rows.append(
            (
                job.what,
                "–" if ended is None else " ".join(ended.nodes) or "–",
                "under way" if ended is None else ended.how,
                *(number("–" if each is None else duration(each), each) for each in (waited, begin, took)),
                (ended.why if ended is not None else "") or "–",
            )
        )
    headings = ("job", "node", "ended", "waited", "from", "took", "why")
    return page_table(f"{key}-jobs", "Jobs, in the order of submission", headings, rows, 3)
