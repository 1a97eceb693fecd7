"""How much sooner a surface is mapped on eight nodes than on one, in benchmarking time, and how good it then is.

Each map chooses as many cells of a simulated system and searches the peak rate of each, as `etude surface` does; a
search is shorter where more is known when it begins, so eight that begin together pay for what they do not know of
each other. Efficiency is the span on one node over eight spans on eight: nodes without work at the end count. The
error is that of the whole surface, cells that were not measured by prediction.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

from etude.cluster.pool.job import Job
from etude.cluster.pool.simulated import SimulatedPool
from etude.peak.policies import DEFAULT, policy
from etude.peak.search import search
from etude.surface.factors import Configuration, Space
from etude.surface.next_configuration import MapComplete, Rules, Visit, Wait, decide, predicted_samples
from etude.surface.peaks import Shapes, sample_of, shapes_after, task_of
from etude.surface.samples import Sample
from etude.surface.simulated import SURFACES, SimulatedSurface
from peak.searches import TASK, Counted
from rows import Row, in_processes, shown, spread
from surface.searches import server

NODES = 8
REACH = {32: 0.65, 128: 0.8}
"""By cells, the efficiency."""
MAPPED = {32: ("wide", "cached", "batches", "DB_TP"), 128: ("wide", "cached", "batches")}
"""DB_TP has 32 cells, which are all measured; the others have thousands or hundreds, and the plan chooses."""
WORSE = 1.1
"""So much greater than on one node the error may be, on average over maps, where cells are chosen."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One map of one system."""

    surface: str
    number: int
    cells: int
    nodes: int
    aware: bool = True
    """Whether cells under way count in the choice of the next."""
    seed: int = 14


@dataclass(frozen=True, slots=True)
class Made:
    """What it took, in benchmarking time, and how good it is."""

    span_s: float
    """From the first cell's begin to the last one's end."""
    busy_s: float
    """Of all nodes together."""
    error: float
    """Mean absolute error of the response over all cells, measured or predicted, as a share."""
    samples: int


def pool_surface(maps: int) -> list[Row]:
    """A row for each number of cells, and one for each surface."""
    parties = ((1, True), (NODES, True), (NODES, False))
    asked = [
        Asked(surface, number, cells, nodes, aware)
        for cells, surfaces in sorted(MAPPED.items(), reverse=True)  # the longest first
        for surface in surfaces
        for number in range(maps)
        for nodes, aware in parties
    ]
    found = dict(in_processes(_mapped, asked, os.cpu_count() or 1, "maps"))
    rows = []
    for cells, surfaces in MAPPED.items():
        some = [each for each in asked if each.cells == cells]
        of = {name: [each for each in some if each.surface == name] for name in surfaces}
        rows.append(_judged(cells, some, found))
        rows += [_row(f"{name}, {cells} configurations", each, found) for name, each in of.items()]
    return rows


def _mapped(asked: Asked) -> tuple[Asked, Made]:
    return asked, made(asked)


def _judged(cells: int, asked: Sequence[Asked], found: dict[Asked, Made]) -> Row:
    row = _row(f"{cells} configurations over {NODES} nodes, all surfaces", asked, found)
    reached = fmean(_efficiencies(asked, found, aware=True)) >= REACH[cells]
    chosen = [each for each in asked if each.surface != "DB_TP"]
    reached &= _error(chosen, found, NODES, True) <= WORSE * _error(chosen, found, 1, True)
    limit = f"mean ≥ {REACH[cells]:g}, error ≤ {WORSE:g} × where configurations are chosen"
    return replace(row, reach=limit, reached=reached)


def _row(what: str, asked: Sequence[Asked], found: dict[Asked, Made]) -> Row:
    ours, naive = (_efficiencies(asked, found, aware=aware) for aware in (True, False))
    error, alone, ignored = (
        f"{100 * _error(asked, found, *of):.1f} %" for of in ((NODES, True), (1, True), (NODES, False))
    )
    said = f"{fmean(ours):.2f} of the ideal; median {spread(ours)}; error {error}"
    rival = f"one node: error {alone}; others under way ignored: {fmean(naive):.2f}, {ignored}"
    return shown(what, rival, said)


def _efficiencies(asked: Sequence[Asked], found: dict[Asked, Made], *, aware: bool) -> list[float]:
    wanted = [each for each in asked if each.nodes == NODES and each.aware == aware]
    ones = [found[replace(each, nodes=1, aware=True)] for each in wanted]
    return [one.span_s / NODES / found[each].span_s for one, each in zip(ones, wanted, strict=True)]


def _error(asked: Sequence[Asked], found: dict[Asked, Made], nodes: int, aware: bool) -> float:
    return fmean(found[each].error for each in asked if (each.nodes, each.aware) == (nodes, aware))


def made(asked: Asked) -> Made:
    drawn = np.random.default_rng([asked.seed, zlib.crc32(asked.surface.encode()), asked.number])
    system = SimulatedSurface(SURFACES[asked.surface], int(drawn.integers(2**31)))
    rules = Rules("adaptive", asked.cells) if asked.cells < system.space.size else Rules()
    costs: dict[str, float] = {}
    pool = SimulatedPool(asked.nodes, lambda job, node: costs[job.name])
    under_way: dict[str, tuple[Configuration, Sample, Shapes]] = {}
    samples: list[Sample] = []
    shapes: Shapes = ()
    while True:
        while len(under_way) < asked.nodes:
            cells = [each[0] for each in under_way.values()]
            visit = chosen(system.space, rules, samples, cells, asked.aware)
            if not isinstance(visit, Visit):
                break
            sample, learnt = searched(system, visit, shapes)
            name = system.space.name(visit.cell)
            costs[name] = sample.cost_s
            under_way[pool.submit(Job(name, (), Path(), Path()))] = (visit.cell, sample, learnt)
        if not under_way:
            break
        for ended in pool.ended():
            _, sample, shapes = under_way.pop(ended.id)
            samples.append(sample)
    error = off(system, samples)
    return Made(pool.clock_s(), sum(pool.busy_s.values()), error, len(samples))


def chosen(
    space: Space, rules: Rules, samples: Sequence[Sample], under_way: Sequence[Configuration], aware: bool
) -> Visit | MapComplete | Wait:
    """The next cell; one that does not know of others under way takes the best of those that are left."""
    if aware:
        return decide(space, rules, samples, under_way)
    tried = len(samples) + len(under_way)
    if tried >= (rules.count or space.size):
        return Wait("no more configurations")
    apart = Space(space.factors, space.without.union(under_way))
    return decide(apart, replace(rules, count=None) if rules.plan == "full" else rules, samples)


def searched(system: SimulatedSurface, visit: Visit, shapes: Shapes) -> tuple[Sample, Shapes]:
    """A cell's search from what was known when it began, and what it teaches of the curve."""
    task, bench = task_of(TASK, visit, shapes), Counted(server(system, visit.cell))
    answer = search(policy(DEFAULT), task, bench)
    return sample_of(visit.cell, task, answer, bench.made), shapes_after(task, bench.made)


def off(system: SimulatedSurface, samples: Sequence[Sample]) -> float:
    """Mean absolute error over all cells of which something is said."""
    every = [*samples, *predicted_samples(system.space, samples, 0.95)]
    return fmean(abs(each.value / system.peak(each.cell) - 1) for each in every if each.value is not None)
