"""Surfaces mapped over simulated nodes in virtual time: each cell a real search on a simulated server."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in ("", "workbench")]  # rows, searches

import numpy as np
from peak_searches import TASK, Counted
from surface_searches import server

from etude.cluster.pool.job import Job
from etude.cluster.pool.simulated import SimulatedPool
from etude.peak.policies.registry import DEFAULT, policy
from etude.peak.search import search
from etude.surface.factors import Configuration, Space
from etude.surface.next_configuration import MapComplete, Rules, Visit, Wait, decide, predicted_samples
from etude.surface.peaks import Shapes, sample_of, shapes_after, task_of
from etude.surface.samples import Sample
from etude.surface.simulated import SURFACES, SimulatedSurface

PLACE = Path()


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


def made(asked: Asked) -> Made:
    """The map, over as many nodes."""
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
            visit = chosen(
                system.space, rules, samples, [each[0] for each in under_way.values()], asked.aware
            )
            if not isinstance(visit, Visit):
                break
            sample, learnt = searched(system, visit, shapes)
            name = system.space.name(visit.cell)
            costs[name] = sample.cost_s
            under_way[pool.submit(Job(name, (), PLACE, PLACE))] = (visit.cell, sample, learnt)
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
        return Wait("no more cells")
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
