"""Surfaces mapped on simulated servers, and what became of each cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pool
from pathlib import Path

import mlrsearch_peer
import numpy as np
from peak_searches import FIXED_COST_S, LIMIT_S, MLRSEARCH, TASK, WITHIN, Counted

from etude.workbench.harnesses.simulated import SimulatedServer
from etude.workbench.harnesses.surfaces import SURFACES, SimulatedSurface
from etude.workbench.policies.registry import policy
from etude.workbench.search import search
from etude.workbench.surfaces.factors import Cell
from etude.workbench.surfaces.mapping import Enough, Rules, Visit, as_predicted, decide
from etude.workbench.surfaces.peaks import sample_of, shapes_after, task_of
from etude.workbench.surfaces.samples import Sample
from etude.workbench.task import Answer, Task
from rows import progress

FOUR = ("DB_TP", "Web", "Mail", "SPECsfs97")
"""The paper's three workloads, and the fourth of its generator."""


@dataclass(frozen=True, slots=True)
class Mapper:
    """Who maps, and by what rules."""

    name: str
    policy: str
    rules: Rules
    seeded: bool = True
    share: float = 1.0
    """Of the maps that others make."""


IN_ORDER = Rules("in-order")
MAPPERS: Mapping[str, Mapper] = {
    mapper.name: mapper
    for mapper in (
        Mapper("linear", "linear", IN_ORDER, seeded=False, share=0.2),
        Mapper("linear+seed", "linear", IN_ORDER, share=0.2),
        Mapper("binsearch", "binsearch", IN_ORDER, seeded=False, share=0.2),
        Mapper("binsearch+seed", "binsearch", IN_ORDER),
        Mapper("model", "model", IN_ORDER, seeded=False, share=0.2),
        Mapper("model+seed", "model", IN_ORDER, share=0.2),
        Mapper(MLRSEARCH, MLRSEARCH, IN_ORDER, seeded=False),
        Mapper("ours", "posterior", Rules()),
        Mapper("ours+skip", "posterior", Rules(skip=True)),
    )
}


@dataclass(frozen=True, slots=True)
class Found:
    """Of one map."""

    hours: float
    trials: int
    errors: tuple[float | None, ...]
    """Of each measured cell, the share by which its rate is off; None where none was given."""
    predicted: tuple[tuple[float, bool], ...]
    """Of each cell that was skipped: its error, and whether its interval holds the true peak."""

    @property
    def right(self) -> float:
        """The share of all cells, also the skipped ones, whose rate is within 10 % of the true peak."""
        every = [*self.errors, *(error for error, _ in self.predicted)]
        return sum(error is not None and abs(error) <= WITHIN for error in every) / len(every)


@dataclass(frozen=True, slots=True)
class Job:
    """One map of one surface."""

    mapper: str
    surface: str
    seed: int
    number: int
    task: Task
    peer: Path | None


Maps = dict[tuple[str, str], list[Found]]
"""By mapper and surface, in the order of their numbers."""


def mapped(
    mappers: Sequence[Mapper],
    surfaces: Sequence[str],
    seed: int,
    maps: int,
    processes: int,
    peer: Path | None,
    task: Task = TASK,
) -> Maps:
    """All of them; every mapper has the same systems."""
    todo = list(jobs(mappers, surfaces, seed, maps, task, peer))
    found: dict[tuple[str, str], dict[int, Found]] = {}
    with Pool(processes) as pool:
        for done, (job, each) in enumerate(pool.imap_unordered(worked, todo), 1):
            found.setdefault((job.mapper, job.surface), {})[job.number] = each
            progress(f"{done}/{len(todo)} maps, {job.mapper} of {job.surface}")
    progress("")
    return {key: [of[number] for number in sorted(of)] for key, of in found.items()}


def jobs(
    mappers: Sequence[Mapper], surfaces: Sequence[str], seed: int, maps: int, task: Task, peer: Path | None
) -> Iterator[Job]:
    """The longest first, so that none is waited for alone."""
    for mapper in mappers:
        for number in range(max(round(mapper.share * maps), 1)):
            for surface in surfaces:
                yield Job(mapper.name, surface, seed, number, task, peer)


def worked(job: Job) -> tuple[Job, Found]:
    """In one of the processes."""
    return job, made(job)


def made(job: Job) -> Found:
    """One map, cell by cell."""
    mapper = MAPPERS[job.mapper]
    system = SimulatedSurface(
        SURFACES[job.surface], int(np.random.default_rng([job.seed, job.number]).integers(2**31))
    )
    samples: list[Sample] = []
    shapes: tuple[tuple[str, float], ...] = ()
    while isinstance(visit := decide(system.space, mapper.rules, samples), Visit):
        bench = Counted(server(system, visit.cell))
        task = task_of(job.task, visit, shapes) if mapper.seeded else job.task
        answer = answered(mapper, task, bench, job.peer)
        samples.append(sample_of(visit.cell, task, answer, bench.made))
        if mapper.policy == "posterior":
            shapes = shapes_after(task, bench.made)
    assert isinstance(visit, Enough)
    return judged(system, samples, as_predicted(system.space, samples, 0.95))


def server(system: SimulatedSurface, cell: Cell) -> SimulatedServer:
    """Of one cell; its noise is the same for all mappers."""
    drawn = np.random.default_rng([system.seed, *cell, 1]).integers(2**31)
    return SimulatedServer(
        system.curve, system.peak(cell), int(drawn), limit_s=LIMIT_S, fixed_cost_s=FIXED_COST_S
    )


def answered(mapper: Mapper, task: Task, bench: Counted, peer: Path | None) -> Answer:
    """The search of a cell."""
    if mapper.policy != MLRSEARCH:
        return search(policy(mapper.policy), task, bench)
    if peer is None:
        raise RuntimeError("MLRsearch is not installed")
    return mlrsearch_peer.search(peer, task, bench)


def judged(system: SimulatedSurface, samples: Sequence[Sample], predicted: Sequence[Sample]) -> Found:
    """By the truth."""
    errors = [None if s.value is None else s.value / system.peak(s.cell) - 1 for s in samples]
    told = [
        ((s.value or math.nan) / system.peak(s.cell) - 1, s.low <= system.peak(s.cell) <= s.high)
        for s in predicted
    ]
    return Found(
        sum(s.cost_s for s in samples) / 3600, sum(s.trials for s in samples), tuple(errors), tuple(told)
    )


def with_task(task: Task, **changes: float) -> Task:
    """Of figures over confidence, accuracy and width."""
    return replace(task, **changes)  # type: ignore[arg-type]
