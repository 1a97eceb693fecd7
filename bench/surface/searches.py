"""Surfaces mapped on simulated servers, and what became of each cell."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from etude.peak.harnesses.simulated import SimulatedServer
from etude.peak.policies import DEFAULT, policy
from etude.peak.search import search
from etude.peak.task import Answer, Task
from etude.surface.factors import Configuration, Space
from etude.surface.next_configuration import Rules, Visit, decide, fit_surrogate, predicted_samples
from etude.surface.peaks import Shapes, sample_of, shapes_after, task_of
from etude.surface.samples import Sample
from etude.surface.simulated import SURFACES, SimulatedSurface
from peak import mlrsearch_peer
from peak.searches import FIXED_COST_S, LIMIT_S, MLRSEARCH, TASK, Counted
from rows import in_processes

FIRST_SAMPLES = (6, 8, 10)
"""After so many cells the surrogate of one of our maps is judged."""


@dataclass(frozen=True, slots=True)
class Mapper:
    """Who maps, and by what rules."""

    policy: str
    rules: Rules
    seeded: bool = True
    region: bool = False
    """Whether its searches promise the response instead of the rate."""


IN_ORDER = Rules("in-order")
OURS, SKIP, REGION, PEER = "ours", "ours+skip", "ours+region", "binsearch+seed"
MAPPERS: Mapping[str, Mapper] = {
    "linear": Mapper("linear", IN_ORDER, seeded=False),
    "linear+seed": Mapper("linear", IN_ORDER),
    "binsearch": Mapper("binsearch", IN_ORDER, seeded=False),
    PEER: Mapper("binsearch", IN_ORDER),
    "model": Mapper("model", IN_ORDER, seeded=False),
    MLRSEARCH: Mapper(MLRSEARCH, IN_ORDER, seeded=False),
    OURS: Mapper(DEFAULT, Rules()),
    SKIP: Mapper(DEFAULT, Rules(skip=True)),
    REGION: Mapper(DEFAULT, Rules(), region=True),
}


@dataclass(frozen=True, slots=True)
class Found:
    """Of one map."""

    hours: float
    errors: tuple[float | None, ...]
    """Of each measured cell, the share by which its rate is off; None where none was given."""
    predicted: tuple[tuple[float, bool], ...] = ()
    """Of each cell that was not measured: its error, and whether its interval holds the true peak."""
    mape: tuple[tuple[int, float], ...] = ()
    """After so many cells, the surrogate's mean absolute error over all cells, %."""
    decisions_s: tuple[float, ...] = ()
    """What each choice of a cell took on the wall, s."""

    @property
    def every(self) -> tuple[float | None, ...]:
        """Errors of all cells, also of those that were not measured."""
        return (*self.errors, *(error for error, _ in self.predicted))


@dataclass(frozen=True, slots=True)
class Job:
    """One map of one system."""

    mapper: str
    surface: str
    seed: int
    number: int
    peer: Path | None = None
    task: Task = TASK
    cells: int | None = None
    """Those that can be paid for: OURS chooses them, and PEER maps the same. None: all."""
    every: int = 1
    """One of this many cells is mapped."""


Maps = dict[tuple[str, str], list[Found]]
"""By mapper and surface, in the order of their numbers."""


def jobs(
    mappers: Sequence[str],
    surfaces: Sequence[str],
    seed: int,
    maps: int,
    peer: Path | None = None,
    task: Task = TASK,
    every: int = 1,
) -> list[Job]:
    """So many maps of each surface by each mapper; those that take longest first, so that none is waited for alone."""
    ours_first = sorted(mappers, key=lambda name: MAPPERS[name].policy != DEFAULT)
    return [
        Job(name, surface, seed, number, peer, task, every=every)
        for name in ours_first
        for surface in surfaces
        for number in range(maps)
    ]


def mapped(todo: Sequence[Job], processes: int) -> Maps:
    found: dict[tuple[str, str], dict[int, Found]] = {}
    for job, each in in_processes(worked, todo, processes, "maps"):
        for mapper, of in each.items():
            found.setdefault((mapper, job.surface), {})[job.number] = of
    return {key: [of[number] for number in sorted(of)] for key, of in found.items()}


def worked(job: Job) -> tuple[Job, dict[str, Found]]:
    system, mapper = system_of(job), MAPPERS[job.mapper]
    if job.cells is None:
        left_out = frozenset(system.space) - frozenset(islice(system.space, 0, None, job.every))
        space = Space(system.space.factors, left_out)
        return job, {job.mapper: made(system, space, mapper, job)[0]}
    ours = replace(MAPPERS[OURS], rules=Rules("adaptive", count=job.cells))
    found, samples = made(system, system.space, ours, job)
    others = set(system.space) - {sample.cell for sample in samples}
    same = Space(system.space.factors, frozenset(others))
    return job, {OURS: found, PEER: made(system, same, MAPPERS[PEER], job)[0]}


def system_of(job: Job) -> SimulatedSurface:
    """By surface, seed and number alone: all mappers see the same."""
    drawn = np.random.default_rng([job.seed, zlib.crc32(job.surface.encode()), job.number])
    return SimulatedSurface(SURFACES[job.surface], int(drawn.integers(2**31)))


def made(system: SimulatedSurface, space: Space, mapper: Mapper, job: Job) -> tuple[Found, list[Sample]]:
    samples: list[Sample] = []
    shapes: Shapes = ()
    took_s: list[float] = []
    task = replace(job.task, promise="region") if mapper.region else job.task
    while True:
        start = time.perf_counter()
        visit = decide(space, mapper.rules, samples)
        took_s.append(time.perf_counter() - start)
        if not isinstance(visit, Visit):
            break
        bench = Counted(server(system, visit.cell))
        asked = task_of(task, visit, shapes) if mapper.seeded else task
        answer = answered(mapper, asked, bench, job.peer)
        samples.append(sample_of(visit.cell, asked, answer, bench.made, mapper.policy))
        if mapper.policy == DEFAULT:
            shapes = shapes_after(asked, bench.made)
    return judged(system, space, mapper, samples, took_s), samples


def server(system: SimulatedSurface, cell: Configuration) -> SimulatedServer:
    """Of one cell; its noise is the same for all mappers."""
    drawn = np.random.default_rng([system.seed, *cell, 1]).integers(2**31)
    return SimulatedServer(
        system.curve, system.peak(cell), int(drawn), limit_s=LIMIT_S, fixed_cost_s=FIXED_COST_S
    )


def answered(mapper: Mapper, task: Task, bench: Counted, peer: Path | None) -> Answer:
    if mapper.policy != MLRSEARCH:
        return search(policy(mapper.policy), task, bench)
    return mlrsearch_peer.search(peer, task, bench)


def judged(
    system: SimulatedSurface,
    space: Space,
    mapper: Mapper,
    samples: Sequence[Sample],
    took_s: Sequence[float] = (),
) -> Found:
    """By the truth. Of our own maps also what was made of the cells between."""
    hours = sum(sample.cost_s for sample in samples) / 3600
    errors = tuple(
        None if each.value is None else each.value / system.peak(each.cell) - 1 for each in samples
    )
    if mapper.policy != DEFAULT:
        return Found(hours, errors)
    told = tuple(
        ((each.value or math.nan) / peak - 1, each.low <= peak <= each.high)
        for each in predicted_samples(space, samples, 0.95)
        for peak in [system.peak(each.cell)]
    )
    return Found(hours, errors, told, approximated(system, samples), tuple(took_s))


def approximated(system: SimulatedSurface, samples: Sequence[Sample]) -> tuple[tuple[int, float], ...]:
    """After how many samples, and the mean absolute error over all cells, %."""
    cells = list(system.space)
    truth = np.array([system.peak(cell) for cell in cells])
    found = []
    for count in FIRST_SAMPLES:
        fit = fit_surrogate(system.space, tuple(samples[:count]))
        if fit is not None and len(samples) >= count:
            off = np.abs(np.exp(fit.predict(cells).log) / truth - 1)
            found.append((count, 100 * float(off.mean())))
    return tuple(found)
